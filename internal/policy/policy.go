// Package policy says what a caller may see and do. What it hides does not
// exist: not in the catalogue, not in inspect, not in exec.
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
	// Disabled are patterns of "server.tool".
	Disabled []string
}

// ServerRules are the filters of one server.
type ServerRules struct {
	// Allow, if not empty, names the only tools that exist; Deny wins over it.
	Allow, Deny []string
	// ReadOnly hides each tool that does not declare itself read-only.
	ReadOnly bool
}

// Visible reports whether a tool exists for callers.
func (r *Rules) Visible(server string, tool *catalog.Tool) bool {
	rules := r.Servers[server]
	switch {
	case len(rules.Allow) > 0 && !Match(rules.Allow, tool.Name):
		return false
	case Match(rules.Deny, tool.Name):
		return false
	case rules.ReadOnly && !tool.Hints.IsReadOnly():
		return false
	}
	return !Match(r.Disabled, server+"."+tool.Name)
}

// Match reports whether one of the globs matches name. A slash in the name is
// an ordinary character.
func Match(globs []string, name string) bool {
	flat := strings.ReplaceAll(name, "/", "\x00")
	for _, glob := range globs {
		if ok, err := path.Match(strings.ReplaceAll(glob, "/", "\x00"), flat); err == nil && ok {
			return true
		}
	}
	return false
}
