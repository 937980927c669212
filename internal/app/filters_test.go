package app

import (
	"slices"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
)

// TestUnmatched_NamesOfTheConfig: filters may use the name that the server gives a tool, or the name from an override. Keys that
// do not consider overrides may use only the server's name. auth.rights uses the names of servers in the config file. For a
// pattern of auth.rights that names no server, Unmatched says nothing, because UnknownInRights warns of it.
func TestUnmatched_NamesOfTheConfig(t *testing.T) {
	either := []string{"get", "fetch", "none"}
	of := config.Server{
		Name: "team_a_1", Written: "team/a[1]",
		Running: config.Running{ToolTimeouts: []conf.ToolTimeout{{Glob: "fetch"}}},
		Shown:   config.Shown{Verbatim: either, Overrides: []conf.Override{{Glob: "get", Name: "fetch"}, {Glob: "fetch"}}},
	}
	of.Tools.Allow, of.Tools.Deny = either, either
	served, written := []string{"team_a_1.get", "team_a_1.fetch"}, []string{"team/a[1].get", "team/a[1].fetch", "team/b.x"}
	group := config.Group{Name: "g"}
	group.Tools.Allow = served
	cfg := &config.Config{
		Servers: []config.Server{of, {Name: "team_b", Written: "team/b"}}, ForCalls: config.ForCalls{DisabledTools: append([]string{"mcpx.run"}, served...)},
		ForClients: config.ForClients{Groups: []config.Group{group}},
		OverHTTP: config.OverHTTP{Auth: &config.Auth{Rights: []conf.Right{
			{Allow: written, Deny: written}, {Allow: []string{"team_a_1.get"}, Deny: []string{"team_a_1.fetch", "team/a[1].none", "team_a_1.none", "team_b.x"}},
		}}},
	}
	snap := catalog.NewSnapshot([]catalog.Server{
		{Name: "team_a_1", Known: true, Tools: []catalog.Tool{{Name: "get", Raw: []byte(`{"name":"get"}`)}}}, {Name: "team_b"},
	})
	got := Unmatched(cfg, snap)
	want := map[string][]string{
		"": {
			`auth.rights[1].tools.deny: "team/a[1].none" matches no tool; did you mean team/a[1].get?`,
			`auth.rights[1].tools.deny: "team_a_1.none" matches no tool`,
		},
		"team_a_1": {
			`tools.allow: "none" matches no tool`, `tools.deny: "none" matches no tool`,
			`verbatim: "fetch" matches no tool`, `verbatim: "none" matches no tool`,
			`tool_timeouts: "fetch" matches no tool`, `overrides: "fetch" matches no tool`,
		},
	}
	for server, messages := range want {
		if !slices.Equal(got[server], messages) {
			t.Errorf("%q: got  %q\nwant %q", server, got[server], messages)
		}
	}
	if got := UnknownInRights(cfg); len(got) != 1 {
		t.Errorf("want a warning only for the glob in allow that begins with team_a_1: %q", got)
	}
}
