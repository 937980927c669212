package front

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

// TestTask_Question: a question about a task names the task as the client knows it, and the client's answer as the server knows it.
// Another task keeps its name.
func TestTask_Question(t *testing.T) {
	mcptest.NoLeaks(t)
	heard := make(chan string, 2)
	serve := func(_ context.Context, in io.Reader, out io.Writer) error {
		result := ""
		for lines := bufio.NewScanner(in); lines.Scan(); {
			var m webMessage
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				return err
			}
			answer := `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"Method not found"}}`
			const ask = `"method":"elicitation/create","params":{"message":"Which word?","requestedSchema":{"type":"object","properties":{}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":`
			switch {
			case m.Method == "initialize":
				answer = `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{}},"serverInfo":{"name":"x"}}}`
			case m.Method == "tasks/result":
				result = `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"7"}}}}`
				answer = `{"jsonrpc":"2.0","id":"q",` + ask + `"7"}}}}`
			case string(m.ID) == `"q"`:
				heard <- lines.Text()
				answer = `{"jsonrpc":"2.0","id":"r",` + ask + `"8"}}}}`
			case string(m.ID) == `"r"`:
				answer = result
			case m.ID == nil:
				continue
			}
			if _, err := io.WriteString(out, answer+"\n"); err != nil {
				return err
			}
		}
		return nil
	}
	f := connect(t, view.Options{}, registry.Server{Spec: upstream.Spec{Options: transport.Options{Name: "fake", Type: transport.InProcess, Serve: serve}}})
	p := dialSilent(t, f, StdioOptions{})
	p.send(t, able("agent")+`{"jsonrpc":"2.0","id":11,"method":"tasks/result","params":{"taskId":"fake/7"}}`+"\n")
	const related = `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"fake/7"}}`
	for n, task := range []string{"fake/7", "8"} {
		id := p.asked(t, n+1)
		if p.with(`"id":`+id+`,"method":"elicitation/create"`) != 1 || p.with(`{"taskId":"`+task+`"}`) == 0 {
			t.Errorf("asked about the task %s: %q", task, p.lines)
		}
		p.send(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{"action":"decline",`+related+`}}`+"\n")
	}
	mcptest.WaitFor(t, "the result", patience, func() bool { return len(p.answers("11")) == 1 })
	if got := p.answers("11")[0]; !strings.Contains(got, related) {
		t.Errorf("the result: %s", got)
	}
	if got := <-heard; !strings.Contains(got, `{"taskId":"7"}`) {
		t.Errorf("the answer: %s", got)
	}
}

// TestTask_Listen: a client that wants to hear of tasks must have declared the tasks extension. One that has declared it hears of none,
// and reads that in the acknowledgement.
func TestTask_Listen(t *testing.T) {
	mcptest.NoLeaks(t)
	f := connect(t, view.Options{})
	const declared, asks = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, `["fake/7"]`
	for _, tt := range []struct{ capabilities, taskIDs, want string }{
		{`{}`, asks, `"code":-32021`},
		{declared, asks, `"result":{"resultType":"complete"`},
		{`{}`, `null`, `"result":{"resultType":"complete"`}, // as some libraries write a field that is not set
	} {
		p := dialSilent(t, f, StdioOptions{})
		p.send(t, `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"taskIds":`+tt.taskIDs+`},`+
			strings.Replace(modernMeta, `"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":`+tt.capabilities, 1)+`}}`+"\n")
		mcptest.WaitFor(t, "the answer", patience, func() bool { return len(p.answers("7")) == 1 })
		if got := p.answers("7")[0]; !strings.Contains(got, tt.want) {
			t.Errorf("%+v: %s", tt, got)
		}
	}
}
