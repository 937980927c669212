package app

import (
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/config"
	"mcpx/internal/plain"
	"mcpx/internal/policy"
)

// rightsOf are the rights of a config, nil where nobody is asked who they are.
func rightsOf(cfg *config.Config) *policy.Rights {
	switch {
	case cfg.Auth == nil:
		return nil
	case cfg.Auth.Rights == nil:
		return policy.NewRights(nil)
	}
	rules := make([]policy.Right, 0, len(cfg.Auth.Rights))
	for _, r := range cfg.Auth.Rights {
		rules = append(rules, policy.Right{
			Principals: r.Principals, Groups: r.Groups, Scopes: r.Scopes,
			Servers: r.Servers, Allow: r.Tools.Allow, Deny: r.Tools.Deny, ReadOnly: r.ReadOnly,
			Views: r.Views, Confirm: confirms[r.Confirm], Admin: r.Admin,
		})
	}
	return policy.NewRights(rules)
}

// Rights are those in force. They change with the config: nobody keeps them.
func (a *App) Rights() *policy.Rights { return policy.RightsOf(a.Registry.Snapshot()) }

// UnknownInRights has a text for each name in the rights of a config that names nothing.
// It may be there later, or in another config; a mistake would go unseen.
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
	look := func(key string, globs, names []string, named func(glob, name string) bool, missing string) {
		for _, glob := range globs {
			if slices.ContainsFunc(names, func(name string) bool { return named(glob, name) }) {
				continue
			}
			text := fmt.Sprintf("%s: %s %q", key, missing, glob)
			if near := plain.Nearest(strings.Trim(glob, "*?"), names); len(near) > 0 {
				text += "; did you mean " + near[0] + "?"
			}
			all = append(all, text)
		}
	}
	is := func(glob, name string) bool { return policy.Match([]string{glob}, name) }
	ofServer := func(glob, name string) bool { return policy.Begins(glob, name+".") }
	for i, r := range cfg.Auth.Rights {
		at := fmt.Sprintf("auth.rights[%d].", i)
		look(at+"servers", r.Servers, servers, is, "no server is called")
		look(at+"tools.allow", r.Tools.Allow, servers, ofServer, "no server is named by")
		look(at+"tools.deny", r.Tools.Deny, servers, ofServer, "no server is named by")
		look(at+"views", r.Views, views, is, "no view is called")
	}
	return all
}
