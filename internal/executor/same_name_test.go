package executor

import (
	"encoding/json"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
)

// TestSameNameInTwoServers: several servers have a tool of the same name. Each call reaches the server that it names, and no
// server shows a tool of another one.
func TestSameNameInTwoServers(t *testing.T) {
	mcptest.NoLeaks(t)
	var servers []registry.Server
	for _, name := range []string{"a", "b", "c"} {
		servers = append(servers, piped(t, name, mcptest.Spec{
			Tools:   json.RawMessage(`[{"name":"who","inputSchema":{"type":"object","required":["` + name + `"]}},{"name":"only_` + name + `"}]`),
			Results: map[string]json.RawMessage{"who": json.RawMessage(`{"content":[{"type":"text","text":"` + name + `"}]}`)},
		}))
	}
	e := executing(t, Options{}, nil, servers...)
	for _, name := range []string{"a", "b", "c"} {
		got := exec(t, e, Request{Server: name, Tool: "who", Arguments: json.RawMessage(`{"` + name + `":1}`)})
		if got.IsError || textOf(t, got.Content[0]) != name {
			t.Errorf("%s: got %s", name, got.Content)
		}
		for _, other := range []string{"a", "b", "c"} {
			got := exec(t, e, Request{Server: name, Tool: "only_" + other})
			if got.IsError != (name != other) {
				t.Errorf("%s has the tool of %s: %t, %s", name, other, !got.IsError, got.Content)
			}
		}
	}
}
