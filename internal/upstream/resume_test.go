package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// resumed counts the GETs that resume a stream.
func resumed(server *mcptest.HTTPServer) (n int) {
	for _, entry := range server.Log().Event(mcptest.EventHTTP) {
		if strings.HasPrefix(entry.Text, "GET ") && entry.Header.Get("Last-Event-Id") != "" {
			n++
		}
	}
	return n
}

// TestResume: a server may end the stream of an answer after an event with an id. mcpx then gets the rest with a
// GET, and no call is executed twice.
func TestResume(t *testing.T) {
	mcptest.Parallel(t)
	for _, fault := range []mcptest.Fault{
		{Kind: mcptest.FaultPoll},
		{Kind: mcptest.FaultPoll, Polls: 3},
		{Kind: mcptest.FaultBreak, Polls: 1},
	} {
		server := mcptest.Spec{}.HTTP(t)
		u := ready(t, at(transport.HTTP, server.URL))
		server.Script(fault.On("tools/call"), mcptest.BadGateway().On("GET"))
		got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("read_echo", json.RawMessage(`{"text":"x"}`)), Repeatable: true, Times: request.Times{Timeout: patience}}))
		if err != nil || got != "x" {
			t.Errorf("%s: got %q, %v", fault.Kind, got, err)
		}
		// Either one of these calls, or the listening stream, got the "bad gateway" response.
		if calls, gets := len(server.Log().Calls("read_echo")), resumed(server); calls != 1 || gets < fault.Polls+1 || gets > fault.Polls+2 {
			t.Errorf("%s: %d calls, %d GETs", fault.Kind, calls, gets)
		}
	}
}

// TestResumeRefused: if the server does not send the rest of an answer, the call is lost like any other, or times out.
func TestResumeRefused(t *testing.T) {
	lost := func(err error) bool { var e *request.LostError; return errors.As(err, &e) && e.MayHaveRun }
	tests := []struct {
		name string
		fake mcptest.Spec
		get  mcptest.Fault
		want func(error) bool
		gets int
	}{
		{"405", mcptest.Spec{NoGET: true}, mcptest.Fault{}, lost, 1},
		{"404", mcptest.Spec{}, mcptest.Fault{Kind: mcptest.FaultStatus, Status: 404}, lost, 1},
		{"no stream", mcptest.Spec{}, mcptest.HTML(), lost, 1},
		{"bad gateway", mcptest.Spec{}, mcptest.BadGateway(), lost, 3},
		{"reset", mcptest.Spec{}, mcptest.Drop(), lost, 3},
		{"never answered", mcptest.Spec{}, mcptest.Stall(), func(err error) bool { var e *request.TimeoutError; return errors.As(err, &e) }, 1},
		{"modern", mcptest.Spec{Era: mcptest.EraModern}, mcptest.Fault{}, lost, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.Parallel(t)
			server := tt.fake.HTTP(t)
			u := ready(t, at(transport.HTTP, server.URL))
			if tt.get.Kind != "" {
				server.Script(tt.get.On("GET").Always())
			}
			server.Script(mcptest.Fault{Kind: mcptest.FaultPoll}.On("tools/call"))
			limit := patience
			if tt.name == "never answered" {
				limit = silence
			}
			_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("destroy_echo", json.RawMessage(`{"text":"x"}`)), Times: request.Times{Timeout: limit}})
			if !tt.want(err) {
				t.Errorf("got %#v", err)
			}
			// net/http may repeat a GET on its own
			if calls, gets := len(server.Log().Calls("destroy_echo")), resumed(server); calls != 1 || gets < tt.gets || gets > tt.gets && tt.name != "reset" {
				t.Errorf("%d calls, %d GETs behind the event, want 1, %d", calls, gets, tt.gets)
			}
			mustEcho(t, u)
		})
	}
}
