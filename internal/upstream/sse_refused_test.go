package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// refuse returns a fault: the server refuses requests of that method.
func refuse(method string, status int, media, body string) mcptest.Fault {
	return mcptest.Fault{Kind: mcptest.FaultStatus, Method: method, Status: status, Body: body, Header: map[string]string{"Content-Type": media}}
}

// streamsOpened returns how many sessions were opened over the old HTTP+SSE transport.
func streamsOpened(log mcptest.Log) (n int) {
	for _, e := range log.Event(mcptest.EventHTTP) {
		if strings.HasPrefix(e.Text, "GET ") {
			n++
		}
	}
	return n
}

// TestSSECallRefused: if the server refuses a POST of the old HTTP+SSE transport, neither the session nor other
// calls end, and the caller gets the reason.
func TestSSECallRefused(t *testing.T) {
	unavailable := func(err error) bool { var e *request.UnavailableError; return errors.As(err, &e) && !e.Stopped }
	tests := []struct {
		name  string
		fault mcptest.Fault
		want  string
		is    func(error) bool
	}{
		{"arguments", refuse("tools/call", 400, "text/plain", "bad args: n is missing"), "bad args: n is missing", unavailable},
		{"arguments that speak of a session", refuse("tools/call", 400, "text/plain", "the argument session_id is missing"), "session_id is missing", unavailable},
		{"404 of the tool", refuse("tools/call", 404, "text/plain", "no such tool"), "no such tool", unavailable},
		{"no token", refuse("tools/call", 401, "text/plain", "token expired"), "401 Unauthorized: token expired; check the headers", unavailable},
		{"too fast", refuse("tools/call", 429, "application/json", `{"message":"10 per minute"}`), "10 per minute", unavailable},
		{"JSON-RPC", refuse("tools/call", 400, "application/json", `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"n is missing in this session"}}`), "n is missing",
			func(err error) bool { var e *wire.RPCError; return errors.As(err, &e) && e.Code == -32602 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			server := mcptest.Spec{HangTools: []string{"held"}}.SSE(t)
			u := ready(t, at(transport.SSE, server.URL))
			hold(t, u, request.Request{Method: "tools/call", Params: request.ToolParams("held", nil)}, func() int { return len(server.Log().Calls("held")) })
			server.Script(tt.fault)
			_, err := text(u, "echo", `{"text":"x"}`)
			if err == nil || !tt.is(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %T %v, want %q in it", err, err, tt.want)
			}
			mustEcho(t, u)
			if n := len(server.Log().Method("tools/call")); n != 3 {
				t.Errorf("%d calls were sent, want 3", n)
			}
			if n := streamsOpened(server.Log()); n != 1 || u.Status().Restarts != 0 || len(server.Log().Event(mcptest.EventCancel)) != 0 {
				t.Errorf("%d streams, %d restarts", n, u.Status().Restarts)
			}
		})
	}
}

// TestSSESessionRefused: if a server never accepts the session, a call opens one fresh session, but not more.
func TestSSESessionRefused(t *testing.T) {
	for name, fault := range map[string]mcptest.Fault{
		"400":      refuse("", 400, "text/plain", "No transport found for this sessionId"),
		"404":      refuse("", 404, "text/plain", "who?"),
		"JSON-RPC": refuse("", 400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID provided"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.Parallel(t)
			server := mcptest.Spec{}.SSE(t)
			u := ready(t, at(transport.SSE, server.URL))
			list, again := fault.On("tools/list"), fault.On("tools/list")
			again.Skip = 1 // skips the tools/list with which the fresh session begins
			server.Script(fault.On("tools/call").Always(), fault.On("ping").Always(), list, again)
			_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("read_echo", json.RawMessage(`{"text":"x"}`)), Repeatable: true, Times: request.Times{Timeout: patience}})
			var lost *request.LostError
			if !errors.As(err, &lost) || lost.MayHaveRun || !strings.Contains(strings.ToLower(err.Error()), map[bool]string{true: "who?", false: "session"}[name == "404"]) {
				t.Errorf("got %v", err)
			}
			if n := len(server.Log().Method("tools/call")); n != 2 {
				t.Errorf("%d calls were sent, want 2", n)
			}
			server.Heal()
			if got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", json.RawMessage(`{"text":"x"}`)), Times: request.Times{Timeout: patience}})); err != nil || got != "x" {
				t.Errorf("got %q, %v", got, err)
			}
			if n := streamsOpened(server.Log()); n != 3 {
				t.Errorf("%d streams, want 3", n)
			}
		})
	}
}
