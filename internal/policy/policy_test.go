package policy

import (
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
)

func TestSee(t *testing.T) {
	yes, no := true, false
	readOnly := catalog.Hints{ReadOnly: &yes}
	writes := catalog.Hints{ReadOnly: &no}
	for _, c := range []struct {
		name  string
		rules Rules
		tool  catalog.Tool
		want  string
	}{
		{"no rules", Rules{}, catalog.Tool{Name: "x"}, ""},
		{"allowed", Rules{Servers: map[string]ServerRules{"s": {Allow: []string{"get_*"}}}}, catalog.Tool{Name: "get_file"}, ""},
		{"not allowed", Rules{Servers: map[string]ServerRules{"s": {Allow: []string{"get_*"}}}}, catalog.Tool{Name: "put_file"}, "tools.allow"},
		{"deny wins", Rules{Servers: map[string]ServerRules{"s": {Allow: []string{"*"}, Deny: []string{"rm*"}}}}, catalog.Tool{Name: "rm_all"}, "tools.deny"},
		{"other server's rules", Rules{Servers: map[string]ServerRules{"t": {Deny: []string{"*"}}}}, catalog.Tool{Name: "x"}, ""},
		{"read-only keeps readers", Rules{Servers: map[string]ServerRules{"s": {ReadOnly: true}}}, catalog.Tool{Name: "x", Hints: readOnly}, ""},
		{"read-only hides writers", Rules{Servers: map[string]ServerRules{"s": {ReadOnly: true}}}, catalog.Tool{Name: "x", Hints: writes}, "read_only"},
		{"read-only hides the silent", Rules{Servers: map[string]ServerRules{"s": {ReadOnly: true}}}, catalog.Tool{Name: "x"}, "read_only"},
		{"disabled", Rules{Disabled: []string{"s.x"}}, catalog.Tool{Name: "x"}, "disabled_tools"},
		{"disabled by glob", Rules{Disabled: []string{"*.delete_*"}}, catalog.Tool{Name: "delete_it"}, "disabled_tools"},
		{"slash is ordinary", Rules{Disabled: []string{"s.*"}}, catalog.Tool{Name: "a/b"}, "disabled_tools"},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen, got := c.rules.See(&catalog.Server{Name: "s"}, &c.tool)
			if got != c.want || (seen == &c.tool) != (got == "") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestLimited: a server is limited if its tools are filtered, or if a tool that it lists later could be.
func TestLimited(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules Rules
		want  bool
	}{
		{"no rules", Rules{}, false},
		{"allow", Rules{Servers: map[string]ServerRules{"s": {Allow: []string{"*"}}}}, true},
		{"deny", Rules{Servers: map[string]ServerRules{"s": {Deny: []string{"x"}}}}, true},
		{"read-only", Rules{ReadOnly: true}, true},
		{"disabled", Rules{Disabled: []string{"s.x"}}, true},
		{"pin warns", Rules{Servers: map[string]ServerRules{"s": {Pin: conf.PinWarn}}}, false},
		{"pin blocks", Rules{Servers: map[string]ServerRules{"s": {Pin: conf.PinBlock}}}, true},
		{"of another server", Rules{Servers: map[string]ServerRules{"t": {Pin: conf.PinBlock, ReadOnly: true}}, Disabled: []string{"t.x"}}, false},
	} {
		snap := catalog.NewSnapshot([]catalog.Server{{Name: "s"}})
		snap.Rules = &c.rules
		if s, _ := new(Catalogues).Of(snap).Server("s"); s.Limited != c.want {
			t.Errorf("%s: limited is %t", c.name, s.Limited)
		}
	}
}
