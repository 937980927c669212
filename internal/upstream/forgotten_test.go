package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// forgotten are responses, other than a plain 404, with which servers report that they do not know the session.
var forgotten = []struct {
	name string
	says mcptest.Refusal
}{
	{"400 with an error", mcptest.Refusal{Status: 400, Type: "application/json", Body: `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`}},
	{"400 with the id of the request", mcptest.Refusal{Status: 400, Type: "application/json", Body: `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32600,"message":"Invalid Request: Session not found"}}`}},
	{"400 with text", mcptest.Refusal{Status: 400, Type: "text/plain", Body: "Bad Request: No valid session ID provided"}},
	{"404 with the id of the request", mcptest.Refusal{Status: 404, Type: "application/json", Body: `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32001,"message":"Session not found"}}`}},
	{"401 with text", mcptest.Refusal{Status: 401, Type: "text/plain", Body: "Unauthorized: Session not found"}},
	{"200 with an error", mcptest.Refusal{Status: 200, Type: "application/json", Body: `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"Server not initialized"}}`}},
	{"200 with another id", mcptest.Refusal{Status: 200, Type: "application/json", Body: `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Server not initialized"}}`}},
	{"an event that is no JSON-RPC", mcptest.Refusal{Status: 200, Type: "text/event-stream", Body: "event: message\ndata: {\"error\":\"Session not found\"}\n\n"}},
}

// However a server reports that it has forgotten the session, a fresh one is opened, and each call that was refused
// because of it is sent again, once.
func TestSessionForgottenInDisguise(t *testing.T) {
	for _, tt := range forgotten {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			server := mcptest.Spec{Forgotten: tt.says}.HTTP(t)
			u := ready(t, at(transport.HTTP, server.URL))
			server.KillSessions()
			var calls sync.WaitGroup
			for range 20 {
				calls.Go(func() {
					got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("destroy_echo", json.RawMessage(`{"text":"x"}`)), Times: request.Times{Timeout: patience}}))
					if err != nil || got != "x" {
						t.Errorf("got %q, %v", got, err)
					}
				})
			}
			calls.Wait()
			if n := len(server.Log().Calls("destroy_echo")); n != 20 {
				t.Errorf("executed %d times, want 20", n)
			}
			if n := server.Count("initialize"); n != 2 {
				t.Errorf("%d sessions, want 2", n)
			}
		})
	}
}

// TestHealthOfForgottenSession: if a health check fails because the server does not know the session, the check
// does not count as a sign of life.
func TestHealthOfForgottenSession(t *testing.T) {
	for _, tt := range forgotten {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			server := mcptest.Spec{Forgotten: tt.says}.HTTP(t)
			u := ready(t, Spec{Options: over(transport.HTTP, server.URL), Health: conf.Health{Interval: 10 * time.Millisecond, Timeout: patience, Threshold: 1000}})
			server.KillSessions()
			mcptest.WaitFor(t, "a fresh session", patience, func() bool { return server.Sessions() == 1 })
			awaitState(t, u, catalog.Ready)
			mustEcho(t, u)
		})
	}
}

// TestErrorThatSpeaksOfSessions: if the error of a tool mentions a session, mcpx sends a ping to test its own session, and keeps
// it. A 404 whose body has the id of the call is the answer to that call too.
func TestErrorThatSpeaksOfSessions(t *testing.T) {
	const expired = "your session with the bank has expired"
	for _, tt := range []struct {
		status  int
		message string
		pings   int
	}{{200, expired, 1}, {400, expired, 1}, {404, "no such file in this session", 1}, {404, "Resource not found: file x", 0}} {
		mcptest.NoLeaks(t)
		server := mcptest.Spec{}.HTTP(t)
		u := ready(t, at(transport.HTTP, server.URL))
		server.Script(says(tt.status, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"`+tt.message+`"}}`).On("tools/call"))
		_, err := text(u, "echo", `{}`)
		if rpc, ok := errors.AsType[*wire.RPCError](err); !ok || rpc.Message != tt.message {
			t.Errorf("%d: got %v", tt.status, err)
		}
		mustEcho(t, u)
		if sessions, calls, pings := server.Count("initialize"), server.Count("tools/call"), server.Count("ping"); sessions != 1 || calls != 2 || pings != tt.pings {
			t.Errorf("%d, %s: %d sessions, %d calls, %d pings", tt.status, tt.message, sessions, calls, pings)
		}
	}
}

// TestErrorThatSpeaksOfSessionsAtTheEndOfOne: the error of a tool is the answer to the call, even if the session
// ends at the same moment.
func TestErrorThatSpeaksOfSessionsAtTheEndOfOne(t *testing.T) {
	for _, tt := range forgotten {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			server := mcptest.Spec{Forgotten: tt.says}.HTTP(t)
			u := ready(t, at(transport.HTTP, server.URL))
			server.KillSessions()
			server.Script(says(200, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32000,"message":"your session with the bank has expired"}}`).On("tools/call"))
			_, err := text(u, "destroy_echo", `{"text":"x"}`)
			var rpc *wire.RPCError
			if !errors.As(err, &rpc) || rpc.Message != "your session with the bank has expired" {
				t.Errorf("got %v", err)
			}
			mustEcho(t, u)
			if n := server.Count("initialize"); n != 2 {
				t.Errorf("%d sessions, want 2", n)
			}
		})
	}
}

// TestNotFoundMethod: status 404 means that the session has ended, unless the body says that the method does not
// exist.
func TestNotFoundMethod(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	server.Script(mcptest.Fault{Kind: mcptest.FaultStatus, Status: 404, Header: map[string]string{"Content-Type": "application/json"},
		Body: `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32601,"message":"Method not found"}}`}.On("ping").Always())
	ready(t, Spec{Options: over(transport.HTTP, server.URL), Health: conf.Health{Interval: 5 * time.Millisecond, Timeout: patience, Threshold: 1}})
	mcptest.WaitFor(t, "some health checks", patience, func() bool { return server.Count("ping") >= 5 })
	if n := server.Count("initialize"); n != 1 {
		t.Errorf("%d sessions", n)
	}
}

// TestServerWithoutPing: mcpx checks a server with tools/list if the server answers ping with an HTTP error, or with 202 and no
// answer. The session ends if tools/list fails too.
func TestServerWithoutPing(t *testing.T) {
	for _, status := range []int{400, 405, 500, 501, 202} {
		mcptest.NoLeaks(t)
		server := mcptest.Spec{}.HTTP(t)
		server.Script(mcptest.Fault{Kind: mcptest.FaultStatus, Status: status}.On("ping").Always())
		u := ready(t, Spec{Options: over(transport.HTTP, server.URL), Health: conf.Health{Interval: 5 * time.Millisecond, Timeout: patience, Threshold: 1}})
		mcptest.WaitFor(t, "some health checks", patience, func() bool { return server.Count("tools/list") >= 5 })
		if pings, sessions := server.Count("ping"), server.Count("initialize"); pings != 1 || sessions != 1 {
			t.Errorf("%d: %d pings, %d sessions, want 1 of each", status, pings, sessions)
		}
		server.Script(mcptest.BadGateway().On("tools/list").Always())
		mcptest.WaitFor(t, "the end of the session", patience, func() bool { return u.Status().State != catalog.Ready })
	}
}

// A server that answers everything but ping is neither restarted nor degraded.
func TestServerIgnoresPing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		wedge := filepath.Join(t.TempDir(), "wedge")
		var h history
		spec, all := inProcess(t, mcptest.Spec{HangMethods: []string{"ping"}, WedgeFile: wedge})
		spec.Health = health
		h.start(t, spec, nil)
		pause(time.Hour)
		for _, status := range h.all() {
			if status.State != catalog.Ready || status.Restarts != 0 {
				t.Fatalf("%s (%s), %d restarts", status.State, status.Reason, status.Restarts)
			}
		}
		if pings, lists := len(all.all().Method("ping")), len(all.all().Method("tools/list")); pings != 1 || lists < 100 || lists > 125 {
			t.Errorf("%d pings, %d lists in an hour", pings, lists)
		}
		if err := os.WriteFile(wedge, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		pause(70 * time.Second)
		if n := all.starts(); n < 2 {
			t.Error("it hangs, and is left so")
		}
	})
}

// TestPingRefusedInWordsOfASession: if a server does not know ping, and its error reads as if it did not know the
// session, the session stays open.
func TestPingRefusedInWordsOfASession(t *testing.T) {
	for _, status := range []int{200, 400} {
		mcptest.NoLeaks(t)
		server := mcptest.Spec{}.HTTP(t)
		server.Script(says(status, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32600,"message":"Unknown method ping. Supported: initialize, tools/list, tools/call"}}`).On("ping").Always())
		u := ready(t, Spec{Options: over(transport.HTTP, server.URL), Health: conf.Health{Interval: 5 * time.Millisecond, Timeout: patience, Threshold: 2}})
		mcptest.WaitFor(t, "some checks", patience, func() bool { return server.Count("ping")+server.Count("tools/list") > 8 })
		mustEcho(t, u)
		if n := server.Count("initialize"); n != 1 || u.Status().State != catalog.Ready {
			t.Errorf("%d: %d sessions, %s: %s", status, n, u.Status().State, u.Status().Reason)
		}
	}
}

// TestRefusedThenForgotten: if a call failed with another error, and the server then forgot the session, the call
// may have been executed, so mcpx does not repeat it.
func TestRefusedThenForgotten(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.SSE(t)
	u := ready(t, at(transport.SSE, server.URL))
	server.Script(
		says(500, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"the database session broke while writing"}}`).On("tools/call"),
		says(404, "text/plain", "unknown session").On("ping"),
	)
	_, err := text(u, "destroy_echo", `{"text":"x"}`)
	if err == nil || !strings.Contains(err.Error(), "broke while writing") {
		t.Errorf("got %v", err)
	}
	if n := server.Count("tools/call"); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestNotFound_Tool: a server that answers 404 to a certain tool, in each session, loses one session by that. Other tools work on.
func TestNotFound_Tool(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	u := ready(t, at(transport.HTTP, server.URL))
	call := func(tool string) error {
		_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams(tool, json.RawMessage(`{"text":"x"}`)), Times: request.Times{Timeout: patience}})
		return err
	}
	server.Script(mcptest.Fault{Kind: mcptest.FaultStatus, Status: 404, Body: `{"detail":"no such backend"}`, Times: 5}.On("tools/call"))
	for range 4 { // the first one is sent twice
		err := call("destroy_echo")
		if status, ok := errors.AsType[*request.UnavailableError](err); !ok || !strings.Contains(status.Reason, "404") || !strings.Contains(status.Reason, "no such backend") {
			t.Errorf("%T %v", err, err)
		}
	}
	if err := call("echo"); err != nil {
		t.Error(err)
	}
	if n := server.Count("initialize"); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
	server.KillSessions()
	if err := call("echo"); err != nil {
		t.Error(err)
	}
	if err := call("destroy_echo"); err != nil {
		t.Error(err)
	}
}

// TestNotFound_ToolNameless: the same, if the body of the 404 is a JSON-RPC error without an id.
func TestNotFound_ToolNameless(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	u := ready(t, at(transport.HTTP, server.URL))
	server.Script(mcptest.Fault{
		Kind: mcptest.FaultStatus, Status: 404, Header: map[string]string{"Content-Type": "application/json"},
		Body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no such backend"}}`, Times: 4,
	}.On("tools/call"))
	for range 3 { // the first one is sent twice
		_, err := u.Call(context.Background(), request.Request{
			Method: "tools/call", Params: request.ToolParams("echo", json.RawMessage(`{"text":"x"}`)), Times: request.Times{Timeout: patience},
		})
		if rpc, ok := errors.AsType[*wire.RPCError](err); !ok || rpc.Message != "no such backend" {
			t.Errorf("%T %v", err, err)
		}
	}
	if n := server.Count("initialize"); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
}
