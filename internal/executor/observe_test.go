package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// TestObserve: the observers get one event for every call, when the call ends, whatever its outcome. It says whether a server
// has answered, and what was saved.
func TestObserve(t *testing.T) {
	mcptest.NoLeaks(t)
	long := strings.Repeat("A line of some words.\n", 200)
	fake := mcptest.Spec{Tools: json.RawMessage(`[{"name":"echo"},{"name":"fail"},{"name":"slow"},{"name":"crash"},{"name":"long"},{"name":"table"}]`), Results: map[string]json.RawMessage{
		"long":  json.RawMessage(`{"content":[` + string(wire.TextBlock(long)) + `]}`),
		"table": json.RawMessage(`{"content":[` + string(wire.TextBlock(mcptest.TableText(20))) + `]}`),
	}}
	var lines bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	journal := observed(LogEvents(logger, slog.LevelDebug))
	e := executing(t, Options{Journal: journal, ResultTokens: 200, TOON: true}, nil, piped(t, "one", fake))
	var event request.Event
	journal.Observe(func(r *request.Event) { event = *r })
	said := regexp.MustCompile(`msg=call server=(\S+) tool=(\S+) outcome=(\S+) duration=\S+ upstream=\S+ tokens_received=(\d+) tokens_sent=(\d+)`)
	for _, tt := range []struct {
		server, tool, outcome string
		answered              bool
		shape                 string // how the numbers of received and sent tokens compare
	}{
		{"one", "echo", "RESULT", true, "same"},
		{"one", "fail", "TOOL_ERROR", true, "same"},
		{"one", "long", "RESULT", true, "cut"},
		{"one", "table", "RESULT", true, "less"},
		{"one", "nobody", "TOOL_NOT_FOUND", false, "none"},
		{"mcpx", "read_result", "VALIDATION_ERROR", false, "none"},
		{"one", "crash", "CONNECTION_LOST", false, "none"},
	} {
		lines.Reset()
		result := exec(t, e, Request{Server: tt.server, Tool: tt.tool, Arguments: json.RawMessage(`{"text":"some words","message":"no luck"}`)})
		got := said.FindAllStringSubmatch(lines.String(), -1)
		if len(got) != 1 || !slices.Equal(got[0][1:4], []string{tt.server, tt.tool, tt.outcome}) {
			t.Errorf("%s.%s: %s", tt.server, tt.tool, lines.String())
			continue
		}
		if event.Answered != tt.answered || tt.answered && (event.Received != result.Received || event.Sent != result.Sent) {
			t.Errorf("%s: %+v", tt.tool, event)
		}
		sent := 0
		for _, raw := range result.Content {
			sent += results.Roughly(wire.ReadBlock(raw).Text)
		}
		if difference := sent - result.Sent; difference > 2 || difference < -2 {
			t.Errorf("%s: %d tokens sent, counted %d", tt.tool, sent, result.Sent)
		}
		if ok := map[string]bool{
			"same": result.Received == result.Sent && result.Sent > 0,
			"cut":  result.Received > 500 && result.Sent <= 200 && event.Cut == result.Received-result.Sent,
			"less": result.Sent < result.Received && result.Sent > 0 && event.Compression() > 0 && event.Cut > 0 && event.LeftOut == 0,
			"none": result.Received == 0,
		}[tt.shape]; !ok {
			t.Errorf("%s: %d tokens received, %d sent", tt.tool, result.Received, result.Sent)
		}
	}

	lines.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Exec(ctx, Request{Server: "one", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)}); err == nil || !strings.Contains(lines.String(), "outcome=CANCELLED") {
		t.Errorf("%v, %s", err, lines.String())
	}
}

// TestObserve_event: an event has the sizes, the trace, and the durations. The log record has neither arguments nor results.
func TestObserve_event(t *testing.T) {
	mcptest.NoLeaks(t)
	var events []request.Event
	var lines bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&lines, nil))
	journal := observed(func(r *request.Event) { events = append(events, *r) }, LogEvents(logger, slog.LevelInfo))
	fake := mcptest.Spec{Tools: json.RawMessage(`[{"name":"look","annotations":{"readOnlyHint":true}}]`), Results: map[string]json.RawMessage{
		"look": json.RawMessage(`{"content":[` + string(wire.TextBlock("canary in a result")) + `]}`),
	}}
	e := executing(t, Options{Journal: journal}, nil, piped(t, "one", fake))
	const trace = "0af7651916cd43dd8448eb211c80319c"
	result := exec(t, e, Request{From: request.From{Client: &caller.Client{Name: "an agent\nlevel=ERROR", Principal: &caller.Principal{ID: "token:ann", Name: "ann"}}, Meta: []request.Meta{{Name: "traceparent", Value: json.RawMessage(`"00-` + trace + `-b7ad6b7169203331-01"`)}}}, Server: "one", Tool: "look", Arguments: json.RawMessage(`{"text":"canary in an argument"}`)})
	exec(t, e, Request{Server: "one", Tool: "ignore\nall"})
	if len(events) != 2 {
		t.Fatalf("%+v", events)
	}
	r := events[0]
	if r.Principal != "ann" || r.Client != "an agent\nlevel=ERROR" || !r.Known || !r.ReadOnly || r.Trace.ID != trace ||
		r.ArgumentBytes != 32 || r.ReceivedBytes < 40 || r.SentBytes != result.Size() || r.Upstream <= 0 || r.Duration < r.Upstream || r.Began.IsZero() {
		t.Errorf("%+v", r)
	}
	if r := events[1]; r.Known || r.Upstream != 0 || r.Outcome != results.CodeToolNotFound {
		t.Errorf("%+v", r)
	}
	if text := lines.String(); strings.Contains(text, "canary") || strings.Count(text, "\n") != 2 || !strings.Contains(text, "principal=ann") ||
		!strings.Contains(text, "call=1\n") || !strings.Contains(text, "call=2\n") ||
		!strings.Contains(text, `client="an agent level=ERROR"`) || !strings.Contains(text, "trace="+trace) || !strings.Contains(text, `tool="ignore all"`) {
		t.Error(text)
	}
}

// TestTracing: with tracing, the server gets the traceparent of the span of its request, which is a child of the call's span,
// which is a child of the client's span. A traceparent that is not sampled is passed on unchanged.
func TestTracing(t *testing.T) {
	mcptest.NoLeaks(t)
	const trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for _, tt := range []struct {
		name    string
		tracing *request.Tracing
		meta    string // the traceparent in the client's _meta
		spans   bool
	}{
		{"off", nil, "00-" + trace + "-" + parent + "-01", false},
		{"sampled", &request.Tracing{}, "00-" + trace + "-" + parent + "-01", true},
		{"not sampled", &request.Tracing{Share: 1}, "00-" + trace + "-" + parent + "-00", false},
		{"no trace", &request.Tracing{}, "", false},
		{"begins here", &request.Tracing{Share: 1}, "", true},
		{"odd", &request.Tracing{Share: 1}, "00-odd", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var events []request.Event
			fake := mcptest.Spec{Tools: json.RawMessage(`[{"name":"look"}]`)}.HTTP(t)
			e := executing(t, Options{Tracing: tt.tracing, Journal: observed(func(r *request.Event) { events = append(events, *r) })}, nil,
				registry.Server{Spec: upstream.Spec{Options: transport.Options{Name: "one", Type: transport.HTTP, Remote: transport.Remote{URL: fake.URL}}}})
			meta := []request.Meta{{Name: "before", Value: json.RawMessage("1")}}
			if tt.meta != "" {
				meta = append(meta, request.Meta{Name: "traceparent", Value: wire.Encode(tt.meta)})
			}
			exec(t, e, Request{From: request.From{Meta: slices.Clip(meta)}, Server: "one", Tool: "look"})
			message := string(fake.Log().Method("tools/call")[0].Message)
			if len(events) != 1 || (events[0].Spans != nil) != tt.spans || !strings.Contains(message, `"before":1`) || strings.Count(message, "traceparent") > 1 {
				t.Fatalf("%+v, sent %s", events, message)
			}
			event := events[0]
			want := tt.meta
			if tt.spans {
				want = "00-" + event.Trace.ID + "-" + event.Spans.Upstream + "-01"
				if event.Asked.Before(event.Began) || event.Spans.Call == event.Spans.Upstream || (event.Spans.Parent == parent) != (tt.name == "sampled") {
					t.Errorf("%+v, %+v", event, event.Spans)
				}
			}
			if strings.HasPrefix(tt.meta, "00-0a") && event.Trace.ID != trace {
				t.Errorf("%+v", event)
			}
			if got := strings.Contains(message, `"traceparent":"`+want+`"`); got != (want != "") || want == "" && strings.Contains(message, "traceparent") {
				t.Errorf("sent %s, want %s", message, want)
			}
			if len(meta) == 2 && string(meta[1].Value.(json.RawMessage)) != `"`+tt.meta+`"` {
				t.Error("the client's own _meta was changed")
			}
		})
	}
}

// TestObserve_afterwards: whoever creates the event of a call ends it, for example after the answer was sent. A call that may
// continue after its answer has its own event, which ends with the call.
func TestObserve_afterwards(t *testing.T) {
	var events []*request.Event
	journal := observed(func(r *request.Event) { events = append(events, r) })
	e := executing(t, Options{Journal: journal}, nil)
	r := Request{From: request.From{Event: journal.Begin("tools/call", nil)}, Server: "none", Tool: "x"}
	exec(t, e, r)
	if len(events) != 0 || r.Event.Number != 1 {
		t.Fatalf("%d events, %+v", len(events), r.Event)
	}
	journal.End(r.Event)
	if len(events) != 1 || events[0] != r.Event || r.Event.Outcome != results.CodeServerNotFound {
		t.Errorf("%+v", r.Event)
	}
	own := journal.Begin("tools/call", nil)
	r.Format.Wait, r.Event = time.Minute, own
	exec(t, e, r)
	if len(events) != 2 || events[1] == own || events[1].Number != 2 || events[1].Outcome != results.CodeServerNotFound || own.Attempted {
		t.Errorf("%d events, %+v of the request", len(events), own)
	}
}

// trail records the beginnings and the ends of messages, like the audit trail.
type trail struct {
	mu           sync.Mutex
	began, ended []request.Event
}

func (t *trail) admit(next request.Handler) request.Handler {
	return func(ctx context.Context, r *request.Request) (json.RawMessage, error) {
		if !r.Event.Admitted {
			r.Event.Admitted = true
			t.add(&t.began, r.Event)
		}
		return next(ctx, r)
	}
}

func (t *trail) end(r *request.Event) {
	if r.Attempted {
		t.add(&t.ended, r)
	}
}

func (t *trail) add(to *[]request.Event, r *request.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*to = append(*to, *r)
}

// take returns the events since the last call of take, each as method, name and outcome. It checks that each end has the number
// of a beginning, and that an event without a beginning is a refusal.
func (t *trail) take(test *testing.T) (all []string) {
	test.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.ended {
		began := slices.DeleteFunc(slices.Clone(t.began), func(b request.Event) bool { return b.Number != r.Number })
		if r.Number == 0 || len(began) > 1 || r.Admitted != (len(began) == 1) || !r.KnownMethod || r.Duration < r.Upstream {
			test.Errorf("%d beginnings of %+v", len(began), r)
		}
		name := map[bool]string{true: "call ", false: r.Method + " "}[r.IsCall()] + r.Server + "." + r.Tool + r.Item + " " + r.Outcome
		if len(began) == 0 {
			name += ", not begun"
		}
		all = append(all, name)
		t.began = slices.DeleteFunc(t.began, func(b request.Event) bool { return b.Number == r.Number })
	}
	for _, b := range t.began {
		all = append(all, b.Server+"."+b.Tool+" begun")
	}
	t.ended = nil
	return all
}

// TestObserve_once: each call is recorded with one end and, if it was admitted, one beginning. This also holds for a call that
// makes several requests to its server, for one that continues after its answer, and for requests that the built-in server
// sends.
func TestObserve_once(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var all trail
		var last request.Event
		r := registry.New([]registry.Server{
			piped(t, "fake", mcptest.Spec{Resources: json.RawMessage(`[{"uri":"a://b","name":"b"}]`)}.WithFiles(t)),
			piped(t, "tasks", tasking(t, "60000", "completed")),
		}, registry.Options{})
		r.Start()
		t.Cleanup(func() { r.Close(0) })
		r.WaitTried(t.Context())
		e := chainedWith(r, Options{Journal: observed(all.end, func(r *request.Event) { last = *r })}, all.admit, nil)
		r.WaitListedOne(t.Context(), "fake")
		client := &caller.Client{ID: "1", Version: "2025-11-25", Capabilities: json.RawMessage(`{"elicitation":{}}`)}
		client.Request = func(context.Context, string, json.RawMessage, func(json.RawMessage)) (json.RawMessage, error) {
			return json.RawMessage(`{"action":"decline"}`), nil
		}
		from := request.From{Client: client}
		text, why := json.RawMessage(`{"text":"x"}`), json.RawMessage(`{"message":"no"}`)
		part := &policy.Scope{Confirm: conf.ConfirmAll}
		for _, tt := range []struct {
			name string
			call Request
			want []string
		}{
			{"a call", Request{Server: "fake", Tool: "echo", Arguments: text}, []string{"call fake.echo RESULT"}},
			{"an error", Request{Server: "fake", Tool: "fail", Arguments: why}, []string{"call fake.fail TOOL_ERROR"}},
			{"no tool", Request{Server: "fake", Tool: "none"}, []string{"call fake.none TOOL_NOT_FOUND, not begun"}},
			{"a task", Request{Server: "tasks", Tool: "t"}, []string{"call tasks.t RESULT"}},
			{"not read-only", Request{Server: "fake", Tool: "echo", Arguments: text, ReadOnly: true},
				[]string{"call fake.echo EXECUTION_ERROR, not begun"}},
			{"declined", Request{From: from, Server: "fake", Tool: "echo", Arguments: text, Scope: part},
				[]string{"call fake.echo EXECUTION_ERROR, not begun"}},
			{"the built-in server, which needs no consent",
				Request{From: from, Server: builtin.Name, Tool: "read_resource", Arguments: json.RawMessage(`{"uri":"a://b"}`), Scope: part},
				[]string{"resources/read fake.a://b RESULT", "call mcpx.read_resource RESULT"}},
			{"no resource", Request{Server: builtin.Name, Tool: "read_resource", Arguments: json.RawMessage(`{"uri":"a://none"}`)},
				[]string{"resources/read fake.a://none ERROR -32002", "call mcpx.read_resource UPSTREAM_ERROR"}},
			{"no server is asked", Request{Server: builtin.Name, Tool: "get_prompt", Arguments: json.RawMessage(`{"name":"none"}`)},
				[]string{"call mcpx.get_prompt VALIDATION_ERROR"}},
		} {
			exec(t, e, tt.call)
			if got := all.take(t); !slices.Equal(got, tt.want) {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			}
			if tt.call.Server == builtin.Name && (last.Upstream != 0 || !last.Asked.IsZero()) {
				t.Errorf("%s: %+v", tt.name, last)
			}
		}

		slow := Request{Server: "fake", Tool: "slow", Arguments: json.RawMessage(`{"ms":90000}`), Format: results.Format{Wait: time.Minute}}
		handle := parked(t, exec(t, e, slow), "60")
		if got, want := all.take(t), []string{"fake.slow begun"}; !slices.Equal(got, want) {
			t.Errorf("while it runs: %q", got)
		}
		exec(t, e, waitFor(handle, slow.Format))
		got := all.take(t)
		slices.Sort(got)
		if want := []string{"call fake.slow RESULT", "call mcpx.wait_result RESULT"}; !slices.Equal(got, want) {
			t.Errorf("at the end: %q, want %q", got, want)
		}
		if _, failure := e.Raw(t.Context(), Request{Server: "fake", Tool: "none"}); failure == nil {
			t.Error("no failure")
		}
		_, _ = e.Raw(t.Context(), Request{Server: "fake", Tool: "fail", Arguments: why})
		if got, want := all.take(t), []string{"call fake.none TOOL_NOT_FOUND, not begun", "call fake.fail TOOL_ERROR"}; !slices.Equal(got, want) {
			t.Errorf("raw: %q, want %q", got, want)
		}
	})
}
