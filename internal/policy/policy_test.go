package policy

import (
	"testing"

	"mcpx/internal/catalog"
)

func TestVisible(t *testing.T) {
	yes, no := true, false
	readOnly := catalog.Hints{ReadOnly: &yes}
	writes := catalog.Hints{ReadOnly: &no}
	for _, c := range []struct {
		name  string
		rules Rules
		tool  catalog.Tool
		want  bool
	}{
		{"no rules", Rules{}, catalog.Tool{Name: "x"}, true},
		{"allowed", Rules{Servers: map[string]ServerRules{"s": {Allow: []string{"get_*"}}}}, catalog.Tool{Name: "get_file"}, true},
		{"not allowed", Rules{Servers: map[string]ServerRules{"s": {Allow: []string{"get_*"}}}}, catalog.Tool{Name: "put_file"}, false},
		{"deny wins", Rules{Servers: map[string]ServerRules{"s": {Allow: []string{"*"}, Deny: []string{"rm*"}}}}, catalog.Tool{Name: "rm_all"}, false},
		{"other server's rules", Rules{Servers: map[string]ServerRules{"t": {Deny: []string{"*"}}}}, catalog.Tool{Name: "x"}, true},
		{"read-only keeps readers", Rules{Servers: map[string]ServerRules{"s": {ReadOnly: true}}}, catalog.Tool{Name: "x", Hints: readOnly}, true},
		{"read-only hides writers", Rules{Servers: map[string]ServerRules{"s": {ReadOnly: true}}}, catalog.Tool{Name: "x", Hints: writes}, false},
		{"read-only hides the silent", Rules{Servers: map[string]ServerRules{"s": {ReadOnly: true}}}, catalog.Tool{Name: "x"}, false},
		{"disabled", Rules{Disabled: []string{"s.x"}}, catalog.Tool{Name: "x"}, false},
		{"disabled by glob", Rules{Disabled: []string{"*.delete_*"}}, catalog.Tool{Name: "delete_it"}, false},
		{"slash is ordinary", Rules{Disabled: []string{"s.*"}}, catalog.Tool{Name: "a/b"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.rules.Visible("s", &c.tool); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
