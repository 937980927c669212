package main

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestTasksExtension: if the client has declared the tasks extension, a modern server may answer a call with a
// task. The client polls, updates and cancels the task through mcpx.
func TestTasksExtension(t *testing.T) {
	mcptest.Parallel(t)
	const (
		extension = `"extensions":{"io.modelcontextprotocol/tasks":{}}`
		working   = `"taskId":"a/b","status":"working","createdAt":"2026-11-21T10:00:00Z","lastUpdatedAt":"2026-11-21T10:00:00Z","ttlMs":60000}`
	)
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	spec := mcptest.Spec{
		Era:   mcptest.EraModern,
		Tools: raw(`[{"name":"t","inputSchema":{"type":"object"}}]`), Results: map[string]json.RawMessage{"t": raw(`{"resultType":"task",` + working)},
		MethodResults: map[string]json.RawMessage{
			"server/discover": raw(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},` + extension + `}}`),
			"tasks/get":       raw(`{"resultType":"complete",` + working), "tasks/update": raw(`{"resultType":"complete"}`), "tasks/cancel": raw(`{"resultType":"complete"}`),
		},
	}.WithFiles(t)
	h := newHome(t)
	config := h.config(t, map[string]server{"s": fake(t, spec)}, patient)
	c := &client{peer: h.serveStdio(t, "--config", config), era: modern, name: "e2e"}
	request := func(id, method, capabilities, params string) message {
		c.send(t, `{"jsonrpc":"2.0","id":"`+id+`","method":"`+method+`","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"`+modern+
			`","io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"},"io.modelcontextprotocol/clientCapabilities":{`+capabilities+`}}`+params+`}}`)
		return c.answer(t, `"`+id+`"`)
	}
	call := `,"name":"exec","arguments":` + execArgs("s", "t", `{}`)
	if m := request("0", "tools/call", "", call); !strings.Contains(string(m.Result), "which was not asked for") {
		t.Errorf("without the extension: %s %s", m.Result, m.Error)
	}
	if m := request("1", "tasks/get", "", `,"taskId":"s/a/b"`); !strings.Contains(string(m.Error), `"code":-32021`) {
		t.Errorf("without the extension: %s %s", m.Result, m.Error)
	}
	if m := request("2", "server/discover", extension, ""); !strings.Contains(string(m.Result), extension) {
		t.Errorf("server/discover: %s %s", m.Result, m.Error)
	}
	if m := request("3", "tools/call", extension, call); !strings.Contains(string(m.Result), `"resultType":"task","taskId":"s/a/b","status":"working"`) {
		t.Errorf("tools/call: %s %s", m.Result, m.Error)
	}
	if m := request("4", "tasks/get", extension, `,"taskId":"s/a/b"`); !strings.Contains(string(m.Result), `"taskId":"s/a/b"`) {
		t.Errorf("tasks/get: %s %s", m.Result, m.Error)
	}
	for _, method := range []string{"tasks/update", "tasks/cancel"} {
		if m := request(method, method, extension, `,"taskId":"s/a/b","inputResponses":{}`); m.Error != nil {
			t.Errorf("%s: %s", method, m.Error)
		}
	}
	if m := request("6", "tasks/get", extension, `,"taskId":"a/b"`); !strings.Contains(string(m.Error), "there is no task") {
		t.Errorf("unknown: %s %s", m.Result, m.Error)
	}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if seen := spec.Log(t).Method(method); len(seen) != 1 || !strings.Contains(string(seen[0].Message), `"taskId":"a/b"`) {
			t.Errorf("the server got %v", seen)
		}
	}
}
