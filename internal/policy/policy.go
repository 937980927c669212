// Package policy decides what a caller may see of the catalogue. For the caller, a hidden tool does not exist: it is neither in
// texts nor in inspect, and exec cannot call it.
package policy

import (
	"path"
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
)

// Rules are what the config says about tools: which are visible, how their definitions are corrected, and which calls the user must
// confirm. The zero value hides only tools that are for the user interfaces of their servers. Patterns are globs of [path.Match].
// The config has checked that they are valid.
type Rules struct {
	// Servers has the rules of single servers, by name.
	Servers map[string]ServerRules
	// If Allow is not empty, only tools that match one of its patterns of "server.tool" are visible. Disabled contains patterns of
	// tools that are hidden even if Allow matches them.
	Allow, Disabled []string
	// ReadOnly hides tools that do not declare themselves read-only.
	ReadOnly bool
	// Rights further restrict what single principals may see. They are applied by [Permissions], not by [Rules.See].
	Rights *Rights
}

// ServerRules are the rules for the tools of one server: which are visible, how their definitions are corrected, and which
// calls the user must confirm.
type ServerRules struct {
	// If Allow is not empty, only tools that match one of its patterns are visible. Deny contains patterns of tools that are hidden
	// even if Allow matches them.
	Allow, Deny []string
	// ReadOnly hides tools that do not declare themselves read-only.
	ReadOnly bool
	// Overrides correct the server's definitions before they are filtered.
	Overrides []conf.Override
	// Approved contains the digests of the definitions that the user has approved, by the server's own names of the tools. It is
	// nil if none were approved. Pin says what happens to tools whose definition is not approved.
	Approved map[string]string
	Pin      conf.Pin
	// Dialled means that the server has dialled in, so that an admin approves its definitions, and not mcpx lock.
	Dialled bool
	// Confirm says which calls the user must confirm.
	Confirm conf.Confirm
}

// The reasons for hiding a tool that [Rules.See] returns: keys of the config, or of the tool's own definition.
const (
	ByVisibility = "_meta.ui.visibility"
	ByAllow      = "tools.allow"
	ByDeny       = "tools.deny"
	ByReadOnly   = "read_only"
	ByDisabled   = "disabled_tools"
	ByPin        = "pin"
	byDial       = "dial" // a pin of a server that has dialled in
)

// See implements [catalog.Rules]. It returns the tool as corrected by the overrides, or the reason why the tool is hidden: one of
// the constants above. It also hides tools that only the user interface of their server may call. The filters match both the name
// that callers see and the server's own name for the tool.
func (r *Rules) See(server *catalog.Server, tool *catalog.Tool) (seen *catalog.Tool, hiddenBy string) {
	rules := r.Servers[server.Name]
	if rules.Pin == conf.PinBlock && rules.Approved[tool.OwnName()] != Digest(tool) {
		if rules.Dialled {
			return nil, byDial
		}
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

// RulesOf returns the rules of a snapshot, or nil if it has none of this type.
func RulesOf(snap *catalog.Snapshot) *Rules {
	rules, _ := snap.Rules.(*Rules)
	return rules
}

// Disables reports whether a pattern in r.Disabled matches a tool. r may be nil.
func (r *Rules) Disables(server, tool string) bool {
	return r != nil && Match(r.Disabled, server+"."+tool)
}

// limits reports whether the rules hide tools of a server, or could hide tools that it lists later. The server then gets no
// requests with methods that mcpx does not know, because such a request could use a hidden tool.
func (r *Rules) limits(server string) bool {
	if r == nil {
		return false
	}
	own := r.Servers[server]
	some := func(globs []string) bool {
		return slices.ContainsFunc(globs, func(glob string) bool { return Begins(glob, server+".") })
	}
	return own.Pin == conf.PinBlock || own.ReadOnly || len(own.Allow)+len(own.Deny) > 0 ||
		r.ReadOnly || len(r.Allow) > 0 || some(r.Disabled)
}

// Repaired returns a tool as corrected by the overrides.
func (r *Rules) Repaired(server *catalog.Server, tool *catalog.Tool) *catalog.Tool {
	return overridden(r.Servers[server.Name].Overrides, tool, func(name string) bool {
		_, taken := server.Tool(name)
		return taken
	})
}

// Match reports whether one of the globs matches name. A slash is an ordinary character.
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
