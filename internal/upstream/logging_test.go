package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// heardLogs collects the data of the log messages that a client got.
type heardLogs struct {
	mu   sync.Mutex
	list []string
}

func (h *heardLogs) add(params json.RawMessage) {
	var p struct{ Data string }
	_ = json.Unmarshal(params, &p)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, p.Data)
}

func (h *heardLogs) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// call returns a tool call of a client that receives log messages.
func (h *heardLogs) call(client, tool, arguments string) request.Request {
	return request.Request{From: request.From{Client: &caller.Client{ID: client}, Sink: request.Sink{Log: h.add, Level: "debug"}}, Method: "tools/call", Params: request.ToolParams(tool, json.RawMessage(arguments))}
}

// sendLogs returns the arguments with which the tool notify sends that many log messages, on the stream of the
// call (mine) or on the shared one.
func sendLogs(data string, times int, mine bool) string {
	return fmt.Sprintf(`{"method":"notifications/message","params":{"level":"info","data":%q},"times":%d,"mine":%t}`, data, times, mine)
}

// hold begins a call that stays open until the test ends.
func hold(t testing.TB, u *Upstream, c request.Request, executed func() int) {
	t.Helper()
	before := executed()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = u.Call(ctx, c)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	mcptest.WaitFor(t, "the call that is held", patience, func() bool { return executed() > before })
}

// TestLogsOnTheStreamOfACall: over HTTP, a log message goes to the call on whose stream it comes, however many
// clients have calls open.
func TestLogsOnTheStreamOfACall(t *testing.T) {
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern %t", modern), func(t *testing.T) {
			mcptest.NoLeaks(t)
			spec, log := overHTTP(modern)(t, mcptest.Spec{HangTools: []string{"held"}})
			u := ready(t, spec)
			var idle heardLogs
			for _, client := range []string{"a", "b"} {
				hold(t, u, idle.call(client, "held", `{}`), func() int { return len(log().Calls("held")) })
			}
			var calls sync.WaitGroup
			for i := range 6 {
				calls.Go(func() {
					var heard heardLogs
					client := fmt.Sprintf("client %d", i)
					if _, err := textOf(u.Call(context.Background(), heard.call(client, "notify", sendLogs(client, 20, true)))); err != nil {
						t.Error(err)
					}
					if got := heard.all(); !slices.Equal(got, slices.Repeat([]string{client}, 20)) {
						t.Errorf("%s heard %d: %q", client, len(got), got)
					}
				})
			}
			calls.Wait()
			if got := idle.all(); len(got) != 0 {
				t.Errorf("calls that said nothing heard %q", got)
			}
		})
	}
}

// TestLogsOnTheStreamOfAll: a log message that names no call goes to the client whose calls are open. If several
// clients have calls open, mcpx drops it.
func TestLogsOnTheStreamOfAll(t *testing.T) {
	eachVariant(t, mcptest.Spec{HangTools: []string{"held"}}, func(t *testing.T, v variant, spec Spec, log func() mcptest.Log) {
		if v.name == "http modern" {
			t.Skip("has no such stream")
		}
		u := ready(t, spec)
		var a, b heardLogs
		hold(t, u, a.call("a", "held", `{}`), func() int { return len(log().Calls("held")) })
		quiet := func(client, tool, arguments string) {
			t.Helper()
			if _, err := u.Call(context.Background(), request.Request{From: request.From{Client: &caller.Client{ID: client}}, Method: "tools/call", Params: request.ToolParams(tool, json.RawMessage(arguments))}); err != nil {
				t.Error(err)
			}
		}
		// say lets the server log, and returns when mcpx has read the message.
		say := func(data string) {
			t.Helper()
			get := strings.HasPrefix(v.name, "http")
			quiet("a", "notify", sendLogs(data, 1, !get))
			if !get {
				return // the answer came after the log message on the same stream
			}
			lists := len(log().Method("tools/list"))
			quiet("a", "notify", `{}`)
			mcptest.WaitFor(t, "the list behind it", patience, func() bool { return len(log().Method("tools/list")) > lists })
		}
		quiet("b", "echo", `{"text":"x"}`)
		if !strings.HasPrefix(v.name, "http") {
			if _, err := textOf(u.Call(context.Background(), b.call("a", "notify", sendLogs("of a", 1, true)))); err != nil {
				t.Error(err)
			}
			if got := append(a.all(), b.all()...); !slices.Equal(got, []string{"of a"}) {
				t.Errorf("alone: heard %q", got)
			}
		}
		hold(t, u, b.call("b", "held", `{}`), func() int { return len(log().Calls("held")) })
		heard := len(a.all())
		say("secret of b")
		if got := append(a.all()[heard:], b.all()...); len(got) != 0 {
			t.Errorf("heard %q", got)
		}
	})
}

// TestLogsOnTheListeningStream: also over HTTP, the only client with an open call gets the log messages of the stream
// that belongs to no call.
func TestLogsOnTheListeningStream(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{HangTools: []string{"held"}}.HTTP(t)
	u := ready(t, at(transport.HTTP, server.URL))
	var a heardLogs
	hold(t, u, a.call("a", "held", `{}`), func() int { return len(server.Log().Calls("held")) })
	mcptest.WaitFor(t, "a log message", patience, func() bool {
		server.Notify("notifications/message", `{"level":"info","data":"for a"}`) // the listening stream may open late
		return slices.Contains(a.all(), "for a")
	})
}

// levelsTold returns the log levels that the server got: by logging/setLevel, or in the _meta of calls ("-" for a
// call without one).
func levelsTold(t testing.TB, log mcptest.Log, modern bool) (told []string) {
	t.Helper()
	method := "logging/setLevel"
	if modern {
		method = "tools/call"
	}
	for _, e := range log.Method(method) {
		var m struct {
			Params struct {
				Level string
				Meta  map[string]json.RawMessage `json:"_meta"`
			}
		}
		if err := json.Unmarshal(e.Message, &m); err != nil {
			t.Fatal(err)
		}
		level := m.Params.Level
		if modern {
			level = "-"
			if raw, ok := m.Params.Meta[mcp.MetaKeyLogLevel]; ok {
				level = strings.Trim(string(raw), `"`)
			}
		}
		told = append(told, level)
	}
	return told
}

// TestLogLevel: mcpx sends the server the log level that clients require: to a modern server with each call, to a
// legacy server before the first call that needs a lower level than the one that was set.
func TestLogLevel(t *testing.T) {
	wanted := []request.Request{
		{}, {From: request.From{Sink: request.Sink{Log: func(json.RawMessage) {}, Level: "warning"}}}, {From: request.From{Sink: request.Sink{Log: func(json.RawMessage) {}, Level: "error"}}},
		{From: request.From{Sink: request.Sink{Log: func(json.RawMessage) {}}}}, {From: request.From{Sink: request.Sink{Log: func(json.RawMessage) {}, Level: "loud"}}}, {From: request.From{Sink: request.Sink{Level: "info"}}},
	}
	tests := []struct {
		name           string
		fake           mcptest.Spec
		legacy, modern []string
	}{
		{"taken", mcptest.Spec{}, []string{"warning", "debug"}, []string{"-", "warning", "error", "-", "debug", "-"}},
		{"not offered", mcptest.Spec{NoLogging: true}, nil, []string{"-", "warning", "error", "-", "debug", "-"}},
		{"refused", mcptest.Spec{FailMethods: []string{"logging/setLevel"}}, []string{"warning", "debug"}, nil},
		{"not answered", mcptest.Spec{HangMethods: []string{"logging/setLevel"}}, []string{"warning", "debug"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			variantsAtOnce(t, tt.fake, func(t *testing.T, v variant, spec Spec, log func() mcptest.Log) {
				want := tt.legacy
				if v.modern {
					if want = tt.modern; want == nil {
						t.Skip("no such method")
					}
				}
				u := ready(t, spec)
				began := time.Now()
				for _, c := range wanted {
					c.Method, c.Params = "tools/call", request.ToolParams("echo", json.RawMessage(`{"text":"x"}`))
					if _, err := u.Call(context.Background(), c); err != nil {
						t.Error(err)
					}
				}
				if took := time.Since(began); took > patience/2 {
					t.Errorf("took %v", took)
				}
				if got := levelsTold(t, log(), v.modern); !slices.Equal(got, want) {
					t.Errorf("told %q, want %q", got, want)
				}
				if v.modern {
					return
				}
				var order []string
				for _, e := range log().Event(mcptest.EventMessage) {
					if e.Method == "logging/setLevel" || e.Method == "tools/call" {
						order = append(order, strings.TrimPrefix(e.Method, "tools/"))
					}
				}
				if want != nil && (len(order) < 2 || order[0] != "call" || order[1] != "logging/setLevel") {
					t.Errorf("in this order: %q", order)
				}
			})
		})
	}
}

// TestShared: once a second program has used a session, the session counts as shared for good.
func TestShared(t *testing.T) {
	spec, _ := inProcess(t, mcptest.Spec{})
	s := newSession(&spec)
	for i, step := range []struct {
		client string
		shared bool
	}{{"a", false}, {"a", false}, {"b", true}, {"b", true}} {
		s.listenFor(int64(i), &call{Request: request.Request{From: request.From{Client: &caller.Client{ID: step.client}}}})
		s.unlisten(int64(i), false)
		if s.shared() != step.shared {
			t.Errorf("call %d, of %s: shared %v", i, step.client, s.shared())
		}
	}
}

// TestLogsAfterManyAbandonedCalls: however many calls a program has given up, it gets no log messages of another's abandoned call.
func TestLogsAfterManyAbandonedCalls(t *testing.T) {
	spec, _ := inProcess(t, mcptest.Spec{})
	spec.Logger = slog.New(slog.DiscardHandler)
	s := newSession(&spec)
	var heard heardLogs
	listen := func(id int64, client string) {
		from := request.From{Client: &caller.Client{ID: client}, Sink: request.Sink{Log: heard.add}}
		s.listenFor(id, &call{Request: request.Request{From: from}})
	}
	abandon := func(client string, times int64) {
		for id := range times {
			listen(id, client)
			s.unlisten(id, true)
		}
	}
	logs := func(client string, wanted int) {
		listen(2000, client)
		s.logged(json.RawMessage(`{"level":"info","data":"of another"}`), 0)
		s.unlisten(2000, false)
		if got := heard.all(); len(got) != wanted {
			t.Errorf("%s heard %q, want %d", client, got, wanted)
		}
	}
	abandon("a", 1)
	logs("a", 1)
	abandon("a", 1500)
	abandon("b", 1)
	logs("a", 1)
	abandon("a", 1500)
	logs("a", 1)
	logs("b", 1)
	logs("c", 1)
}

// TestLogsAfterAnAbandonedCall: a server may go on logging for a call that its client has given up. So for lateLogs, other clients
// get no log messages that could belong to that call. Without this limit they might never get any again.
func TestLogsAfterAnAbandonedCall(t *testing.T) {
	for after, hears := range map[time.Duration]bool{lateLogs / 2: false, 2 * lateLogs: true} {
		bubble(t, func(t *testing.T) {
			spec, _ := inProcess(t, mcptest.Spec{HangTools: []string{"held"}})
			u := ready(t, spec)
			_, _ = u.Call(context.Background(), request.Request{From: request.From{Client: &caller.Client{ID: "a"}}, Method: "tools/call", Params: request.ToolParams("held", nil), Times: request.Times{Timeout: time.Second}})
			pause(after)
			var b heardLogs
			if _, err := u.Call(context.Background(), b.call("b", "notify", sendLogs("of whom", 1, true))); err != nil {
				t.Error(err)
			}
			if heard := len(b.all()) == 1; heard != hears {
				t.Errorf("after %v: heard %q", after, b.all())
			}
		})
	}
}

// TestLogsWithoutALevel: a client that has set no level gets the log messages of a stream without names of calls as long as it is the only
// one: later ones may be for a call of another client that has ended.
func TestLogsWithoutALevel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{})
		u := ready(t, spec)
		var a heardLogs
		for _, one := range []struct {
			client, level string
			hears         int
		}{{"a", "", 1}, {"b", "", 0}, {"a", "", 0}, {"a", "debug", 1}} {
			before := len(a.all())
			r := a.call(one.client, "notify", sendLogs("x", 1, true))
			r.Sink.Level = one.level
			if _, err := u.Call(context.Background(), r); err != nil {
				t.Error(err)
			}
			if heard := len(a.all()) - before; heard != one.hears {
				t.Errorf("%v: heard %d", one, heard)
			}
		}
	})
}
