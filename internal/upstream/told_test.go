package upstream

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// TestTold_HTTP: the error of a call whose deadline has passed says whether the server was told to cancel the call, and whether
// the call may have been executed: that is so if its request, or an earlier request for the same call, was sent.
func TestTold_HTTP(t *testing.T) {
	mcptest.Parallel(t)
	type R = *request.Request
	idle := func(r R) { r.Timeout, r.Idle = patience, silence }
	for name, tt := range map[string]struct {
		tool      string
		set       func(R)
		drop      bool   // the first tools/call is lost
		blocked   string // see mcptest.Unaccepted
		first     int32
		told, may bool
	}{
		"sent":                      {tool: "slow", blocked: "no message", told: true, may: true},
		"sent, idle":                {tool: "slow", blocked: "no message", set: idle, told: true, may: true},
		"not sent":                  {tool: "slow", blocked: `"slow"`},
		"not sent, idle":            {tool: "slow", blocked: `"slow"`, set: idle},
		"after a lost one":          {tool: "slow", blocked: `"slow"`, first: 1, drop: true, set: func(r R) { r.Repeatable = true }, may: true},
		"after a lost one, idle":    {tool: "slow", blocked: `"slow"`, first: 1, drop: true, set: func(r R) { idle(r); r.Repeatable = true }, may: true},
		"after an input round":      {tool: "ask", blocked: `"ask"`, first: 1, may: true},
		"after a relayed round":     {tool: "slow", blocked: `"slow"`, set: func(r R) { r.Input.State = json.RawMessage(`"s"`) }, may: true},
		"after another's execution": {tool: "slow", blocked: `"slow"`, set: func(r R) { r.MayHaveRun = true }, may: true},
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.Parallel(t)
			server := mcptest.Spec{Era: mcptest.EraModern}.HTTP(t)
			spec, gate := at(transport.HTTP, server.URL), &mcptest.Unaccepted{Text: tt.blocked}
			gate.First.Store(tt.first)
			spec.Remote.Transport = gate
			u := ready(t, spec)
			if tt.drop {
				server.Script(mcptest.Drop().On("tools/call"))
			}
			r := request.Request{From: request.From{Client: withUser("a", 0)}, Method: "tools/call",
				Params: request.ToolParams(tt.tool, json.RawMessage(`{"ms":600000}`)), Times: request.Times{Timeout: silence}}
			if tt.set != nil {
				tt.set(&r)
			}
			_, err := u.Call(context.Background(), r)
			timeout, ok := errors.AsType[*request.TimeoutError](err)
			if !ok || timeout.Told != tt.told || timeout.MayHaveRun != tt.may || timeout.Idle != (r.Idle > 0) {
				t.Errorf("got %#v, want told %v, may have run %v", err, tt.told, tt.may)
			}
		})
	}
}

// TestTold_Unread: a server stops reading its input. A request that waits behind the one that is being written was not sent.
func TestTold_Unread(t *testing.T) {
	bubble(t, func(t *testing.T) {
		u := ready(t, serving(func(ctx context.Context, in io.Reader, out io.Writer) error {
			for lines := bufio.NewScanner(in); lines.Scan(); {
				var m struct {
					ID     json.RawMessage
					Method string
				}
				_ = json.Unmarshal(lines.Bytes(), &m)
				switch m.Method {
				case "initialize":
					fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"}}}`+"\n", m.ID)
				case "tools/call":
					<-ctx.Done()
					return nil
				default:
					if m.ID != nil {
						fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
					}
				}
			}
			return nil
		}))
		call := func(times request.Times) *request.TimeoutError {
			_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("t", nil), Times: times})
			timeout, ok := errors.AsType[*request.TimeoutError](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			return timeout
		}
		if read := call(request.Times{Timeout: time.Second}); !read.Told || !read.MayHaveRun {
			t.Errorf("the one that was read: %#v", read)
		}
		synctest.Wait() // the notification that cancels the call is being written
		for _, times := range []request.Times{{Timeout: time.Second}, {Timeout: time.Minute, Idle: time.Second}} {
			if waiting := call(times); waiting.Told || waiting.MayHaveRun {
				t.Errorf("one that waited: %#v", waiting)
			}
		}
	})
}
