package app

import (
	"fmt"
	"slices"

	"mcpx/internal/desk/config"
	"mcpx/internal/policy"
)

// rightsOf are the rights of a config; nil without auth.
func rightsOf(cfg *config.Config) *policy.Rights {
	if cfg.Auth == nil {
		return nil
	}
	return policy.NewRights(cfg.Auth.Rights)
}

// Rights are those in force. They change with the config, so that callers must not keep them.
func (a *App) Rights() *policy.Rights { return policy.RightsOf(a.Registry.Snapshot()) }

// UnknownInRights has a text for each name in the rights of a config that names no server or
// view. Such a name is no fault, as it may be there later; but nobody would notice a mistake.
func UnknownInRights(cfg *config.Config) (all []string) {
	if cfg.Auth == nil {
		return nil
	}
	servers, views := make([]string, 0, len(cfg.Servers)), []string{config.ViewTwoTools, config.ViewTools}
	for _, s := range cfg.Servers {
		servers, views = append(servers, s.Name), append(views, config.ViewServer+s.Name)
	}
	for _, g := range cfg.Groups {
		views = append(views, config.ViewGroup+g.Name)
	}
	ofServer := func(glob, name string) bool { return policy.Begins(glob, name+".") }
	for i, r := range cfg.Auth.Rights {
		at := fmt.Sprintf("auth.rights[%d].", i)
		all = slices.Concat(all,
			unmatched(at+"servers: no server is called %q", r.Servers, servers, matches),
			unmatched(at+"tools.allow: no server is named by %q", r.Allow, servers, ofServer),
			unmatched(at+"tools.deny: no server is named by %q", r.Deny, servers, ofServer),
			unmatched(at+"views: no view is called %q", r.Views, views, matches))
	}
	return all
}
