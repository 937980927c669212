package front

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/view"
)

// TestAllTools_Silent: a server has added a tool without a notification. Every client can call the tool by its
// name in the list of all tools. A name that no server has is still unknown.
func TestAllTools_Silent(t *testing.T) {
	mcptest.NoLeaks(t)
	file := filepath.Join(t.TempDir(), "tools.json")
	f := connect(t, view.Options{}, piped(t, "a.b", mcptest.Spec{ToolsFile: file}), piped(t, "other", mcptest.Spec{}))
	f.registry.WaitTried(t.Context())
	v := view.NewAllTools(f.registry, executor.New(f.registry, executor.Options{}), view.Options{})
	defer v.Close()
	if err := os.WriteFile(file, []byte(`[{"name":"echo"},{"name":"fresh","inputSchema":{"type":"object"}}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, call := range []struct {
		client, name string
		unknown      bool
	}{{"a", "other__fresh", true}, {"a", "fresh", true}, {"a", "a_b__fresh", false}, {"b", "a_b__fresh", false}, {"b", "a_b__none", true}} {
		_, err := v.Call(t.Context(), view.Call{
			From: request.From{Client: &caller.Client{ID: call.client}}, Name: call.name, Arguments: json.RawMessage(`{}`),
		})
		if _, unknown := errors.AsType[*view.UnknownToolError](err); unknown != call.unknown {
			t.Errorf("%s of %s: %v", call.name, call.client, err)
		}
	}
}
