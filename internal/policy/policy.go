// Package policy makes the catalogue as a caller may see it. A tool that it hides
// does not exist for the caller: not in texts, not in inspect, not in exec.
package policy

import (
	"path"
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
)

// Rules are the filters of a configuration. The zero value allows everything.
// Its patterns are globs as of [path.Match], checked by the configuration.
type Rules struct {
	// Servers has the rules of single servers, by name.
	Servers map[string]ServerRules
	// Allow, if not empty, has patterns of the only "server.tool" that exist; Disabled
	// wins over it.
	Allow, Disabled []string
	// ReadOnly hides each tool that does not declare itself read-only.
	ReadOnly bool
	// Rights are what single principals may see of what the rules leave.
	Rights *Rights
}

// ServerRules are the filters of one server.
type ServerRules struct {
	// Allow, if not empty, names the only tools that exist; Deny wins over it.
	Allow, Deny []string
	// ReadOnly hides each tool that does not declare itself read-only.
	ReadOnly bool
	// Overrides repair what the server declares, before the filters look at it.
	Overrides []Override
	// Approved has the digests of the definitions that a user has approved, by the
	// server's own names of the tools; nil = nobody has approved any. Pin says what
	// follows for the others.
	Approved map[string]string
	Pin      Pin
	// Confirm says which calls a person must confirm.
	Confirm Confirm
}

// Pin says what happens to tools whose definition was not approved.
type Pin = conf.Pin

// The values of [Pin].
const (
	PinOff   = conf.PinOff
	PinWarn  = conf.PinWarn
	PinBlock = conf.PinBlock
)

// The keys of the configuration that hide tools, and the one of a tool's own
// definition: what [Rules.See] returns.
const (
	ByVisibility = "_meta.ui.visibility"
	ByAllow      = "tools.allow"
	ByDeny       = "tools.deny"
	ByReadOnly   = "read_only"
	ByDisabled   = "disabled_tools"
	ByPin        = "pin"
)

// See implements [catalog.Rules]: the tool as the overrides repair it, or the key that
// hides it from callers. A tool that its server means for its own user interface only is
// hidden by itself. The filters match the name that callers see, and the server's own.
func (r *Rules) See(server *catalog.Server, tool *catalog.Tool) (seen *catalog.Tool, hiddenBy string) {
	rules := r.Servers[server.Name]
	if rules.Pin == PinBlock && rules.Approved[tool.OwnName()] != Digest(tool) {
		return nil, ByPin
	}
	tool = r.Repaired(server, tool)
	is := func(globs []string, prefix string) bool {
		return Match(globs, prefix+tool.Name) || tool.Own != "" && Match(globs, prefix+tool.Own)
	}
	at := server.Name + "."
	switch {
	case tool.AppOnly:
		return nil, ByVisibility
	case len(rules.Allow) > 0 && !is(rules.Allow, ""):
		return nil, ByAllow
	case is(rules.Deny, ""):
		return nil, ByDeny
	case len(r.Allow) > 0 && !is(r.Allow, at):
		return nil, ByAllow
	case (rules.ReadOnly || r.ReadOnly) && !tool.Hints.IsReadOnly():
		return nil, ByReadOnly
	case is(r.Disabled, at):
		return nil, ByDisabled
	}
	return tool, ""
}

// limits reports whether the rules hide tools of a server, or could hide one: then callers may not do all that the server
// can.
func (r *Rules) limits(server string) bool {
	if r == nil {
		return false
	}
	own := r.Servers[server]
	some := func(globs []string) bool {
		return slices.ContainsFunc(globs, func(glob string) bool { return Begins(glob, server+".") })
	}
	return own.ReadOnly || len(own.Allow)+len(own.Deny) > 0 || r.ReadOnly || len(r.Allow) > 0 || some(r.Disabled)
}

// Repaired is a tool as the overrides repair it.
func (r *Rules) Repaired(server *catalog.Server, tool *catalog.Tool) *catalog.Tool {
	return overridden(r.Servers[server.Name].Overrides, tool, func(name string) bool {
		_, taken := server.Tool(name)
		return taken
	})
}

// Match reports whether one of the globs matches name. A slash in the name is
// an ordinary character.
func Match(globs []string, name string) bool {
	if len(globs) == 0 {
		return false
	}
	flat := strings.ReplaceAll(name, "/", "\x00")
	for _, glob := range globs {
		if ok, err := path.Match(strings.ReplaceAll(glob, "/", "\x00"), flat); err == nil && ok {
			return true
		}
	}
	return false
}
