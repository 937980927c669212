package app

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/desk/config"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/page"
	"mcpx/internal/policy"
)

// pageWork has the handlers of the status page's requests about servers, such as adding, changing, starting and stopping them.
// Package page calls the handlers only for viewers who may see the page.
type pageWork struct {
	app  *App
	api  *serversAPI
	desk bool // the viewer is the user of this machine, not an admin over HTTP
	// ctx ends with the App.
	ctx     context.Context
	signing signing
	counted counted
}

// newPage makes a page. An App has one page for each handler that serves it. Calls of newPage and Close must not overlap. links has
// the links that open the page of a user's own machine. It is nil for the page that an HTTP server, such as mcpx serve, shows to
// admins.
func (a *App) newPage(links *page.Links) *page.Page {
	ctx, cancel := context.WithCancel(context.Background())
	a.pageEnds = append(a.pageEnds, cancel)
	w := &pageWork{app: a, api: &serversAPI{app: a}, desk: links != nil, ctx: ctx}
	a.loops.Go(func() { // ends with Close
		<-ctx.Done()
		w.signing.close()
	})
	return page.New(page.Options{
		View: a.View, ViewName: config.ViewTwoTools, Executor: a.Executor, Hour: &a.history.hour, Calls: &a.history.calls,
		Status: w.status, About: w.about, Routes: w.routes(), Back: w.back, Links: links,
		Browsers: a.browsers, Identity: a.identity, Admin: a.admin, Logger: a.log,
	})
}

func (p *pageWork) routes() map[string]http.HandlerFunc {
	all := map[string]http.HandlerFunc{
		"GET /ui/server":          p.server,
		"GET /ui/entry":           p.entry,
		"GET /ui/log":             p.log,
		"GET /ui/changes":         p.changes,
		"GET /ui/stats":           p.stats,
		"GET /ui/registry":        p.find,
		"GET /ui/registry/server": p.published,
		"POST /ui/preview":        p.preview,
	}
	changing := map[string]http.HandlerFunc{
		"POST /ui/servers":                    p.add,
		"PUT /ui/servers/{name}":              p.replace,
		"DELETE /ui/servers/{name}":           p.remove,
		"POST /ui/servers/{name}/enable":      p.enable(true),
		"POST /ui/servers/{name}/disable":     p.enable(false),
		"POST /ui/servers/{name}/start":       p.act("start", p.start),
		"POST /ui/servers/{name}/stop":        p.act("stop", p.stop),
		"POST /ui/servers/{name}/restart":     p.act("restart", p.restart),
		"POST /ui/servers/{name}/approve":     p.approve,
		"POST /ui/servers/{name}/login":       p.login,
		"GET /ui/servers/{name}/login":        p.loginState,
		"DELETE /ui/servers/{name}/login":     p.endLogin,
		"POST /ui/servers/{name}/login/paste": p.pasteLogin,
		"POST /ui/servers/{name}/logout":      p.logout,
	}
	for pattern, handler := range changing {
		all[pattern] = func(w http.ResponseWriter, r *http.Request) {
			if status, err := p.mayChange(); err != nil {
				refuse(w, status, err)
				return
			}
			handler(w, r)
		}
	}
	return all
}

// errReadOnly is the error for a change of servers that the config does not allow over HTTP.
var errReadOnly = errors.New(`servers cannot be changed over HTTP here: who adds a server runs programs as the user of mcpx. ` +
	`The config allows it with auth (unless "api" is false), or with "api": true`)

// mayChange returns an error and the HTTP status for it if the viewer must not change servers. The user of this machine may change them, as
// with mcpx add, unless the config has "api": false. An admin over HTTP may change them if the config allows it (see errReadOnly). Nobody
// may change them without a config file.
func (p *pageWork) mayChange() (status int, err error) {
	cfg := p.app.Config
	switch {
	case p.app.edits == nil || p.app.source.Load() == nil:
		return http.StatusConflict, errNoFile
	case p.desk && (cfg.API == nil || *cfg.API), !p.desk && cfg.ChangesServers():
		return 0, nil
	case p.desk:
		return http.StatusForbidden, errors.New(`the config has "api": false, so the page changes nothing`)
	}
	return http.StatusForbidden, errReadOnly
}

// about returns what the page shows besides the status: whether the viewer may change servers, or why not, and the path of the config
// file.
func (p *pageWork) about() map[string]any {
	can := map[string]any{"change": true}
	if status, err := p.mayChange(); err != nil {
		can = map[string]any{"change": false, "why": err.Error(), "code": codeOf(status, err)}
	}
	return map[string]any{"can": can, "file": p.app.Config.Path}
}

// pageServer is a server as the page shows it.
type pageServer struct {
	serverStatus
	Enabled    bool   `json:"enabled"`
	Configured bool   `json:"configured"` // the config has an entry for the server; a server that has dialled in has none
	Type       string `json:"type,omitempty"`
	Login      string `json:"login"` // "needed", "held" (the user is logged in), or empty
	Running    bool   `json:"running"`
	Changed    int    `json:"changed"` // how many tools are new, changed or gone since they were approved; see counted
	Hidden     int    `json:"hidden"`  // how many tools are hidden
	Runs       string `json:"runs,omitempty"`
	Sessions   int    `json:"sessions,omitempty"` // in how many sessions and commands of the daemon the server runs
}

func (p *pageWork) status() any {
	whole := p.app.status()
	whole["servers"] = p.servers()
	return whole
}

func (p *pageWork) servers() []pageServer {
	cfg := p.app.current.Load().config
	var all []pageServer
	full := p.app.Registry.Snapshot()
	for _, one := range p.app.serverStatuses() {
		s := pageServer{serverStatus: one, Enabled: one.State != catalog.Disabled}
		if of := configured(cfg, one.Name); of != nil {
			s.describe(p.app, of)
		}
		if server, ok := full.Server(one.Name); ok {
			s.Hidden, s.Changed = max(0, len(server.Tools)-one.Tools), p.counted.changed(full, server)
		}
		s.Running = one.State == catalog.Ready || one.State == catalog.Degraded
		p.inSessions(&s)
		all = append(all, s)
	}
	if all == nil {
		return []pageServer{}
	}
	return all
}

func configured(cfg *config.Config, name string) *config.Server {
	for i := range cfg.Servers {
		if cfg.Servers[i].Name == name {
			return &cfg.Servers[i]
		}
	}
	return nil
}

// describe sets the fields that only a server of the config has; entry is its entry.
func (s *pageServer) describe(a *App, entry *config.Server) {
	s.Configured, s.Type, s.Enabled, s.Runs = true, entry.Type, entry.Enabled, entry.URL
	if entry.Type == config.Stdio {
		s.Runs = strings.Join(append([]string{entry.Command}, entry.Args...), " ")
	}
	s.Runs = sanitize.NewSecrets(entry.Secrets, nil).Line(s.Runs, 400)
	switch {
	case entry.Type == config.Stdio || entry.OAuth.Off:
	case strings.Contains(s.Reason, "mcpx login"):
		s.Login = "needed"
	case a.logins.Holds(LoginServer(*entry)):
		s.Login = "held"
	}
}

// inSessions adds the state of a server in the daemon's sessions and commands. The page shows a server as running if it runs in any
// of them.
func (p *pageWork) inSessions(s *pageServer) {
	for _, a := range p.others() {
		status, ok := a.Registry.Status(s.Name)
		if !ok || status.State != catalog.Ready && status.State != catalog.Degraded {
			continue
		}
		s.Sessions++
		if s.State != catalog.Ready {
			s.State, s.Reason, s.RetryAfter, s.Running = status.State, status.Reason, 0, true
			s.Protocol = cmp.Or(s.Protocol, status.Protocol)
		}
	}
}

// others returns the Apps of the daemon's sessions and commands, without the App of the page. It returns nil if there is no
// daemon.
func (p *pageWork) others() []*App {
	if p.app.origin.Sessions == nil {
		return nil
	}
	return slices.DeleteFunc(p.app.origin.Sessions(), func(a *App) bool { return a == p.app })
}

// each calls visit with the App of the page and with the App of each session and command of the daemon. It returns true if
// visit returned true for one of them.
func (p *pageWork) each(visit func(*App) bool) bool {
	done := visit(p.app)
	for _, a := range p.others() {
		done = visit(a) || done
	}
	return done
}

// counted remembers for each server how many of its tools differ from the approved ones, because comparing the definitions
// takes long. The number is 0 if pin is off, or if nothing is approved and pin is not block.
type counted struct {
	mu  sync.Mutex
	all map[string]countedServer
}

type countedServer struct {
	tools    []catalog.Tool
	approved map[string]string
	changed  int
}

func (c *counted) changed(snap *catalog.Snapshot, s *catalog.Server) int {
	rules, ok := snap.Rules.(*policy.Rules)
	if !ok {
		return 0
	}
	one := rules.Servers[s.Name]
	if one.Pin == conf.PinOff || one.Pin != conf.PinBlock && one.Approved == nil || !s.Known {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, ok := c.all[s.Name]; ok && catalog.SameTools(was.tools, s.Tools) && maps.Equal(was.approved, one.Approved) {
		return was.changed
	}
	added, changed, gone := Lock{s.Name: one.Approved}.Changes(s)
	if c.all == nil {
		c.all = make(map[string]countedServer)
	}
	n := len(added) + len(changed) + len(gone)
	// Servers that dial in come and go under ever new names, so the counts of servers that are gone are deleted.
	maps.DeleteFunc(c.all, func(name string, _ countedServer) bool {
		_, there := snap.Server(name)
		return !there
	})
	c.all[s.Name] = countedServer{s.Tools, one.Approved, n}
	return n
}

// show answers a request with the state of the server called name; status is the status code. If there is no such server, it
// answers with an error.
func (p *pageWork) show(w http.ResponseWriter, status int, name string) {
	all := p.servers()
	if at := slices.IndexFunc(all, func(s pageServer) bool { return s.Name == name }); at >= 0 {
		httpd.WriteJSON(w, status, all[at])
		return
	}
	page.Refuse(w, http.StatusNotFound, "unknown_server", "there is no such server")
}

// ErrUnused is the error of ServePage after the page was unused for half an hour.
var ErrUnused = errors.New("nobody has used the page for half an hour")

// ServePage serves the page on an address of this machine until ctx ends, serving fails, or the page was unused for half an hour.
// It starts the servers, as ServeStdio and ServeHTTP do. Viewers need one of the links that the parameter links makes. At the end
// ServePage closes the App and the listener.
func (a *App) ServePage(ctx context.Context, listener net.Listener, links *Links) error {
	defer a.Close()
	defer links.Close()
	a.start(startAfter)
	served := a.newPage(links)
	web := &http.Server{
		Handler: served, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: 2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
	}
	done := make(chan error, 1)
	go func() { done <- web.Serve(listener) }() // ends with Shutdown or Close
	ticker := time.NewTicker(page.UnusedFor / 60)
	defer ticker.Stop()
	why, err := "ended", error(nil)
	for waiting := true; waiting; {
		select {
		case err = <-done:
			return err
		case <-ctx.Done():
			waiting = false
		case <-ticker.C:
			if links.Unused() {
				why, err, waiting = "unused", ErrUnused, false
			}
		}
	}
	links.Close()
	served.EndUnused(why)
	bounded, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if web.Shutdown(bounded) != nil {
		_ = web.Close()
	}
	<-done
	return err
}

// Links makes the links with which a user opens the page of mcpx on the user's own machine (mcpx ui). Each link works once.
type Links = page.Links

// NewLinks returns the links to a page at an address of this machine.
func NewLinks(listener net.Listener) *Links { return page.NewLinks(listener.Addr().String()) }

// body decodes the JSON body of a request into the value that target points to. If that fails, it answers the request with an error and
// returns false.
func body(w http.ResponseWriter, r *http.Request, target any) bool {
	return page.Read(w, r, maxEntry, target)
}
