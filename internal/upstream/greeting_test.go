package upstream

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// TestOddGreetings: mcpx ignores an invalid member in the answer to a handshake, and uses the other members.
func TestOddGreetings(t *testing.T) {
	const initialize, discover = "initialize", "server/discover"
	tests := []struct {
		name, method, result    string
		protocol, title, server string // server is the version of the server
		instructions            string
	}{
		{"version a number", initialize, `{"protocolVersion":"2025-03-26","serverInfo":{"name":"s","version":1.0}}`, "2025-03-26", "s", "", ""},
		{"title a number", initialize, `{"protocolVersion":"2025-03-26","serverInfo":{"name":"s","title":5,"version":"1"}}`, "2025-03-26", "s", "1", ""},
		{"identity a string", initialize, `{"protocolVersion":"2025-03-26","serverInfo":"s","instructions":"do"}`, "2025-03-26", "", "", "do"},
		{"instructions a list", initialize, `{"protocolVersion":"2025-03-26","serverInfo":{"name":"s","title":"S"},"instructions":["do","this"]}`, "2025-03-26", "S", "", ""},
		{"revision a number", initialize, `{"protocolVersion":1,"instructions":"do","capabilities":[]}`, legacyVersion, "", "", "do"},
		{"revision that no header takes", initialize, `{"protocolVersion":"2025\r\nX: y"}`, legacyVersion, "", "", ""},
		{"nothing", initialize, `{}`, legacyVersion, "", "", ""},
		{"null", initialize, `null`, legacyVersion, "", "", ""},
		{"all null", initialize, `{"protocolVersion":null,"capabilities":null,"serverInfo":null,"instructions":null}`, legacyVersion, "", "", ""},
		{"modern", discover, `{"supportedVersions":["2026-07-28",5],"serverInfo":{"name":"s","title":[],"version":2},"_meta":1,"instructions":{}}`, modernVersion, "s", "", ""},
		{"modern identities", discover, `{"supportedVersions":["2026-07-28"],"serverInfo":{"name":"s"},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"t","version":"3"}}}`, modernVersion, "t", "3", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			fake := mcptest.Spec{MethodResults: map[string]json.RawMessage{tt.method: json.RawMessage(tt.result)}}
			if tt.method == discover {
				fake.Era = mcptest.EraModern
			}
			u := ready(t, at(transport.HTTP, fake.HTTP(t).URL))
			mustEcho(t, u)
			st := u.Status()
			if st.Protocol != tt.protocol || st.Title != tt.title || st.Version != tt.server || st.Instructions != tt.instructions {
				t.Errorf("got %q %q %q %q", st.Protocol, st.Title, st.Version, st.Instructions)
			}
		})
	}
}

// TestReasonsHaveNoTypes: the reason for a failure names no Go types, because users do not know the internals of
// mcpx.
func TestReasonsHaveNoTypes(t *testing.T) {
	for method, result := range map[string]string{"initialize": `"ok"`, "tools/list": `[{"name":"t"}]`} {
		t.Run(method, func(t *testing.T) {
			mcptest.NoLeaks(t)
			fake := mcptest.Spec{MethodResults: map[string]json.RawMessage{method: json.RawMessage(result)}}
			status := awaitState(t, connect(t, at(transport.HTTP, fake.HTTP(t).URL)), catalog.Unavailable)
			contains(t, "reason", status.Reason, "reading "+method+": the result is not an object")
			for _, part := range []string{"json:", "Go ", "struct"} {
				if strings.Contains(status.Reason, part) {
					t.Errorf("%q in %q", part, status.Reason)
				}
			}
		})
	}
}

// TestLaterPageFails: if the server refuses a later page of a catalogue, mcpx keeps the pages before it and
// reports the fault.
func TestLaterPageFails(t *testing.T) {
	mcptest.Parallel(t)
	refused := mcptest.Fault{Kind: mcptest.FaultStatus, Status: 200, Header: map[string]string{"Content-Type": "application/json"},
		Body: `{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"bad cursor"}}`, Skip: 1}
	broken := mcptest.Fault{Kind: mcptest.FaultStatus, Status: 500, Body: "database down", Skip: 1}
	odd := refused
	odd.Body = `{"jsonrpc":"2.0","id":$ID,"result":[]}`
	for name, tt := range map[string]struct {
		fault mcptest.Fault
		want  string
	}{"refused": {refused, "bad cursor"}, "broken": {broken, "database down"}, "odd": {odd, "the result is not an object"}} {
		t.Run(name, func(t *testing.T) {
			mcptest.Parallel(t)
			server := mcptest.Spec{Pages: 2}.HTTP(t)
			server.Script(tt.fault.On("tools/list"))
			var h history
			u := h.start(t, at(transport.HTTP, server.URL), nil)
			awaitState(t, u, catalog.Ready)
			mustEcho(t, u)
			st := u.Status()
			if len(st.Tools) == 0 || len(st.Faults) != 1 {
				t.Fatalf("%d tools, faults %q", len(st.Tools), st.Faults)
			}
			contains(t, "fault", st.Faults[0], "page 2 of tools/list", tt.want)

			// If a refresh fails at a later page, the complete catalogue stays in use.
			server.Notify("notifications/tools/list_changed", `{}`)
			mcptest.WaitFor(t, "the whole catalogue", patience, func() bool { return len(u.Status().Faults) == 0 })
			whole := len(u.Status().Tools)
			if whole <= len(st.Tools) {
				t.Fatalf("%d tools, then %d", len(st.Tools), whole)
			}
			server.Script(tt.fault.On("tools/list"))
			lists := len(server.Log().Method("tools/list"))
			server.Notify("notifications/tools/list_changed", `{}`)
			mcptest.WaitFor(t, "both pages", patience, func() bool { return len(server.Log().Method("tools/list")) == lists+2 })
			server.Notify("notifications/tools/list_changed", `{}`)
			mcptest.WaitFor(t, "the next list", patience, func() bool { return len(server.Log().Method("tools/list")) > lists+2 })
			seen := h.all()
			at := slices.IndexFunc(seen, func(n noted) bool { return len(n.Tools) == whole })
			for _, n := range seen[at:] {
				if len(n.Tools) != whole {
					t.Errorf("%d tools of %d are left", len(n.Tools), whole)
				}
			}
		})
	}
}

// TestPartAfterRestart: an incomplete list that is read after a restart does not replace the complete one.
func TestPartAfterRestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var starts, broken atomic.Int32
		u := connect(t, Spec{Options: transport.Options{Type: transport.InProcess, Serve: answering(func(m sent, _ io.Writer) (string, error) {
			switch {
			case m.Method == "tools/call":
				return "", io.EOF
			case m.Method == "initialize":
				starts.Add(1)
				return `"result":{"protocolVersion":"2025-06-18"}`, nil
			case m.Params.Cursor == "":
				return `"result":{"tools":[{"name":"a"}],"nextCursor":"2"}`, nil
			case broken.Load() == 0:
				return `"result":{"tools":[{"name":"b"}]}`, nil
			}
			return `"error":{"code":-32603,"message":"busy for a moment"}`, nil
		})}, Era: EraLegacy})
		pause(time.Second)
		broken.Store(1)
		if _, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("a", nil)}); err == nil {
			t.Error("a call that ends the server is answered")
		}
		pause(time.Hour)
		if status := u.Status(); starts.Load() != 2 || len(status.Tools) != 2 || len(status.Faults) != 1 {
			t.Errorf("%d starts, %d tools, %q", starts.Load(), len(status.Tools), status.Faults)
		}
		broken.Store(0)
		pause(relistRetry + time.Second)
		if status := u.Status(); len(status.Tools) != 2 || len(status.Faults) != 0 {
			t.Errorf("then %d tools, %q", len(status.Tools), status.Faults)
		}
	})
}
