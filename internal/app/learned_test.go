package app

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
)

// TestLearned_Principals: with auth, nothing from the results of one principal is shown to another one, unless the config has
// learn: true. Then it is shown only to principals with the same rights, in the same view.
func TestLearned_Principals(t *testing.T) {
	const two = `[{"principals":["alice","bob"]},{"principals":["carol"],"servers":["fake","other"]}]`
	const inspect = `"name":"inspect","arguments":{"server_name":"fake","tool_name":"get"}`
	const group = `,"groups":{"g":{"servers":["fake"]}}`
	for _, tt := range []struct {
		name, more string
		bob        bool
	}{
		{"by default", group, false}, {"off", group + `,"learn":false`, false}, {"on", group + `,"learn":true`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			text := string(wire.TextBlock(`{"id":1,"owner":{"login":"x"}}`))
			fakes := map[string]*mcptest.HTTPServer{
				"fake": mcptest.Spec{
					Tools: json.RawMessage(`[{"name":"get","inputSchema":{"type":"object"}},{"name":"fails","inputSchema":{"type":"object"}}]`),
					Results: map[string]json.RawMessage{
						"get": json.RawMessage(`{"content":[` + text + `]}`), "fails": json.RawMessage(`{"isError":true,"content":[` + text + `]}`),
					},
				}.HTTP(t),
				"other": mcptest.Spec{}.HTTP(t),
			}
			e := hosted(t, map[string]string{"fake": fakes["fake"].URL, "other": fakes["other"].URL}, two, tt.more)
			alice, bob, carol := e.visitor(t, "alice", modernEra, false), e.visitor(t, "bob", legacyEra, false), e.visitor(t, "carol", modernEra, false)
			listed := alice.ask(t, "/mcp", "tools/list", "")
			for range 3 {
				for _, tool := range []string{"get", "fails"} {
					if said := alice.ask(t, "/mcp", "tools/call", execute("fake", tool, `{}`)); !strings.Contains(said, "owner") {
						t.Fatalf("alice gets %s", said)
					}
				}
			}
			const seen = `// seen: {id: number, owner: {login: string}}`
			if tt.bob {
				mcptest.WaitFor(t, "the shape", patience, func() bool { return strings.Contains(alice.ask(t, "/mcp", "tools/call", inspect), seen) })
			}
			if said := bob.ask(t, "/mcp", "tools/call", inspect); strings.Contains(said, seen) != tt.bob || !strings.Contains(said, "get(") {
				t.Errorf("bob gets %s", said)
			}
			for what, said := range map[string]string{
				"carol": carol.ask(t, "/mcp", "tools/call", inspect), "alice in the group": alice.ask(t, "/mcp/groups/g", "tools/call", inspect),
				"alice of failures": alice.ask(t, "/mcp", "tools/call", strings.Replace(inspect, "get", "fails", 1)),
			} {
				if strings.Contains(said, "seen:") || strings.Contains(said, "login") || !strings.HasPrefix(said, "200 ") {
					t.Errorf("%s gets %s", what, said)
				}
			}
			if again := alice.ask(t, "/mcp", "tools/list", ""); strings.Contains(again, "login") || !strings.Contains(again, "inspect") {
				t.Errorf("tools/list: %s, before %s", again, listed)
			}
		})
	}
}
