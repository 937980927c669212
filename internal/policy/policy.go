// Package policy makes the catalogue as a caller may see it. A tool that it hides
// does not exist for the caller: not in texts, not in inspect, not in exec.
package policy

import (
	"path"
	"strings"

	"mcpx/internal/catalog"
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
}

// ServerRules are the filters of one server.
type ServerRules struct {
	// Allow, if not empty, names the only tools that exist; Deny wins over it.
	Allow, Deny []string
	// ReadOnly hides each tool that does not declare itself read-only.
	ReadOnly bool
}

// The keys of the configuration that hide tools, and the one of a tool's own
// definition: what [Rules.HiddenBy] returns.
const (
	ByVisibility = "_meta.ui.visibility"
	ByAllow      = "tools.allow"
	ByDeny       = "tools.deny"
	ByReadOnly   = "read_only"
	ByDisabled   = "disabled_tools"
)

// HiddenBy implements [catalog.Rules]: the key that hides a tool from callers. A tool
// that its server means for its own user interface only is hidden by itself.
func (r *Rules) HiddenBy(server string, tool *catalog.Tool) string {
	rules := r.Servers[server]
	switch {
	case tool.AppOnly:
		return ByVisibility
	case len(rules.Allow) > 0 && !Match(rules.Allow, tool.Name):
		return ByAllow
	case Match(rules.Deny, tool.Name):
		return ByDeny
	case len(r.Allow) > 0 && !Match(r.Allow, server+"."+tool.Name):
		return ByAllow
	case (rules.ReadOnly || r.ReadOnly) && !tool.Hints.IsReadOnly():
		return ByReadOnly
	case Match(r.Disabled, server+"."+tool.Name):
		return ByDisabled
	}
	return ""
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
