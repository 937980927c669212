package app

import (
	"mcpx/internal/caller"
	"mcpx/internal/desk/config"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/page"
)

// page is the status page; nil if the config turns it off.
func (a *App) page() httpd.Page {
	if !a.Config.UI {
		return nil
	}
	return page.New(page.Options{
		View: a.View, ViewName: config.ViewTwoTools, Executor: a.Executor, Hour: &a.hour, Status: func() any { return a.status() },
		Sessions: a.state.browsers, Identity: a.identity, Admin: a.admin, Logger: a.log,
	})
}

// admin reports whether a principal may see the states of all servers and change them.
func (a *App) admin(p *caller.Principal) bool { return a.Rights().Admin(p) }
