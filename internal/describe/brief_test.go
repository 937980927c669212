package describe

import (
	"math/rand/v2"
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
)

// TestDescriptions_Brief: for a client with a tool search of its own, the descriptions have the names of all tools if there are
// at most forty tools. They never have parameters or descriptions of tools.
func TestDescriptions_Brief(t *testing.T) {
	b, f := Budget{Chars: 2000}, Features{Brief: true}
	for _, size := range []struct{ servers, tools int }{{1, 1}, {3, 10}, {6, 40}, {10, 80}, {30, 600}, {139, 3000}} {
		servers := randomServers(rand.New(rand.NewPCG(21, 22)), size.servers, size.tools)
		inspect, exec := Descriptions(catalog.NewSnapshot(servers), b, f)
		checkClean(t, inspect+exec)
		catalogue := strings.TrimPrefix(inspect, f.usage()) + strings.TrimPrefix(exec, execUsage(f))
		for i := range servers {
			for _, tool := range servers[i].Tools {
				if size.tools <= 40 && !strings.Contains(catalogue, tool.Name) {
					t.Errorf("%+v: %s is not named", size, tool.Name)
				}
				if strings.Contains(catalogue, tool.Name+"(") || strings.Contains(catalogue, tool.Name+":") {
					t.Errorf("%+v: %s has more than its name", size, tool.Name)
				}
			}
		}
	}
	inspect, exec := Descriptions(catalog.NewSnapshot([]catalog.Server{{Name: "a", Known: true}}), b, Features{Brief: true, JSONSchema: true, NoTOON: true, NoJS: true, ShortNames: true})
	for _, wrong := range []string{"TypeScript", "TOON", "server_name"} {
		if strings.Contains(inspect+exec, wrong) {
			t.Errorf("%s in %s %s", wrong, inspect, exec)
		}
	}
}
