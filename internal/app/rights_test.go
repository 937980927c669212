package app

import (
	"slices"
	"testing"

	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
)

// TestUnknownInRights: for each pattern in auth.rights that matches nothing, there is a warning.
func TestUnknownInRights(t *testing.T) {
	cfg := &config.Config{
		Servers: []config.Server{{Name: "github"}, {Name: "mail"}}, ForClients: config.ForClients{Groups: []config.Group{{Name: "ops"}}},
		OverHTTP: config.OverHTTP{Auth: &config.Auth{Rights: []conf.Right{
			{Servers: []string{"git*", "mail"}, Views: []string{"*"}, Allow: []string{"github.get_*", "*.x"}},
			{Servers: []string{"gihub"}, Views: []string{"tools", "groups/op", "servers/m*"}, Allow: []string{"githup.x"}, Deny: []string{"mail"}},
		}}},
	}
	want := []string{
		`auth.rights[1].servers: no server is called "gihub"; did you mean github?`,
		`auth.rights[1].tools.allow: no server is named by "githup.x"; did you mean github?`,
		`auth.rights[1].tools.deny: no server is named by "mail"; did you mean mail?`,
		`auth.rights[1].views: no view is called "groups/op"; did you mean groups/ops?`,
	}
	if got := UnknownInRights(cfg); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := UnknownInRights(&config.Config{}); got != nil {
		t.Errorf("without auth: %q", got)
	}
}

// TestUnknownInRights_Dial: there is no warning for patterns that fit a server which may dial in.
func TestUnknownInRights_Dial(t *testing.T) {
	cfg := &config.Config{
		ForCalls: config.ForCalls{Dial: &conf.Dial{Allow: []conf.DialRule{{Names: []string{"scope", "lab-*"}}}}},
		OverHTTP: config.OverHTTP{Auth: &config.Auth{Rights: []conf.Right{
			{Servers: []string{"scope", "lab-1", "sc*", "scop"}, Views: []string{"servers/scope", "servers/scop"}, Allow: []string{"lab-2.get_*"}},
			{TakeAway: []string{"lab*", "scope.write", "lap"}},
		}}},
	}
	want := []string{
		`auth.rights[0].servers: no server is called "scop"`,
		`auth.rights[0].views: no view is called "servers/scop"`,
		`auth.rights[1].deny: no server is called "lap", or has such a tool`,
	}
	if got := UnknownInRights(cfg); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestUnknownInRights_Effective: there is no warning for patterns that have an effect. Patterns may name the built-in server.
// Patterns that deny may also use the name under which mcpx serves a server. Patterns that permit must use its name in the
// config file.
func TestUnknownInRights_Effective(t *testing.T) {
	cfg := &config.Config{
		Servers: []config.Server{{Name: "team_a", Written: "team/a"}},
		OverHTTP: config.OverHTTP{Auth: &config.Auth{Rights: []conf.Right{
			{Allow: []string{"team/a.*", "mcpx.run"}, Deny: []string{"team_a.x", "team/a.y", "mcpx.run"}},
			{TakeAway: []string{"team_a", "team_a.x", "team/a.y", "mcpx.run"}},
			{Servers: []string{"team_a"}, Allow: []string{"team_a.x"}, Deny: []string{"team_b.x"}},
		}}},
	}
	want := []string{
		`auth.rights[2].servers: no server is called "team_a"; did you mean team/a?`,
		`auth.rights[2].tools.allow: no server is named by "team_a.x"; did you mean team/a?`,
		`auth.rights[2].tools.deny: no server is named by "team_b.x"; did you mean team/a?`,
	}
	if got := UnknownInRights(cfg); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
