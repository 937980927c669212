package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// quietServer is a server that changes its tools without sending a notification.
type quietServer struct {
	tools   atomic.Pointer[string] // names, separated by commas
	refusal string                 // the answer for an unknown tool, with %s for its name
	lists   atomic.Int32
	delay   atomic.Int64 // how long it takes to answer tools/list
}

func (s *quietServer) serve(_ context.Context, in io.Reader, out io.Writer) error {
	for decoder := json.NewDecoder(in); ; {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if err := decoder.Decode(&m); err != nil {
			return err
		}
		answer := `"error":{"code":-32601,"message":"Method not found"}`
		switch m.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x"}}`
		case "tools/list":
			s.lists.Add(1)
			<-time.After(time.Duration(s.delay.Load()))
			answer = `"result":{"tools":[{"name":"` + strings.ReplaceAll(*s.tools.Load(), ",", `","inputSchema":{}},{"name":"`) + `","inputSchema":{}}]}`
		case "tools/call":
			answer = `"result":{"content":[{"type":"text","text":"done"}]}`
			if !strings.Contains(","+*s.tools.Load()+",", ","+m.Params.Name+",") {
				answer = fmt.Sprintf(s.refusal, m.Params.Name)
			}
		}
		if m.ID == nil {
			continue
		}
		if _, err := fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer); err != nil {
			return err
		}
	}
}

// TestSilentChanges: before mcpx says that a tool does not exist, it asks the server for its tools again, but at most once in
// 10 s, even if several callers guess names. The answer takes the same time whether a tool is hidden from the caller or does
// not exist.
func TestSilentChanges(t *testing.T) {
	mcptest.NoLeaks(t)
	for _, refusal := range []string{
		`"error":{"code":-32602,"message":"Tool %s not found"}`, `"error":{"code":-32602,"message":"unknown tool \"%s\""}`,
		`"result":{"content":[{"type":"text","text":"Unknown tool: '%s'"}],"isError":true}`,
	} {
		for way, by := range ways {
			t.Run(way, func(t *testing.T) { silentChanges(t, refusal, by) })
		}
	}
}

func silentChanges(t *testing.T, refusal string, by func(testing.TB, *Executor, Request) *results.Result) {
	synctest.Test(t, func(t *testing.T) {
		s := &quietServer{refusal: refusal}
		s.delay.Store(int64(700 * time.Millisecond))
		set := func(names string) { s.tools.Store(&names) }
		set("old,secret")
		e := executing(t, Options{}, hiding(func(_ string, tool *catalog.Tool) bool { return tool.Name != "secret" }), registry.Server{
			Spec: upstream.Spec{Options: transport.Options{Name: "x", Type: transport.InProcess, Serve: s.serve}},
		})
		ask := func(who, tool, code string, lists int32) time.Duration {
			t.Helper()
			before, began := s.lists.Load(), time.Now()
			got := by(t, e, Request{From: request.From{Client: &caller.Client{ID: who}}, Server: "x", Tool: tool})
			if got.Code != code {
				t.Errorf("%s of %s: %s", tool, who, got.Content)
			}
			if n := s.lists.Load() - before; n != lists {
				t.Errorf("%s of %s: %d lists", tool, who, n)
			}
			return time.Since(began)
		}
		const missing = results.CodeToolNotFound
		ask("a", "old", "", 0)
		none := ask("hostile", "none", missing, 1)
		for i := range 50 {
			ask("hostile", fmt.Sprint("none", i), missing, 0)
		}
		<-time.After(11 * time.Second)
		if hidden := ask("hostile", "secret", missing, 1); hidden != none {
			t.Errorf("a hidden tool took %v, a missing one %v", hidden, none)
		}
		if hidden, none := ask("hostile", "secret", missing, 0), ask("hostile", "none", missing, 0); hidden != none {
			t.Errorf("again: a hidden tool took %v, a missing one %v", hidden, none)
		}
		set("old,new,secret")
		<-time.After(11 * time.Second)
		ask("b", "new", "", 1)
		ask("a", "new", "", 0)
		set("new,secret")
		<-time.After(11 * time.Second)
		ask("a", "old", missing, 1)
		ask("b", "old", missing, 0)
		// The same holds for inspect.
		set("new,newer,secret")
		<-time.After(11 * time.Second)
		if _, server, failure := e.FindServer(t.Context(), Request{Server: "x", Tool: "new, newer", Catalogue: e.Catalogue(nil)}); failure != nil || lacks(server, "newer") {
			t.Errorf("inspect: %v", failure)
		}
		// If a server does not answer tools/list, a caller waits only for a limited time.
		s.delay.Store(int64(time.Hour))
		<-time.After(11 * time.Second)
		if took := ask("a", "none", missing, 1); took > relistTimeout {
			t.Errorf("took %v", took)
		}
	})
}
