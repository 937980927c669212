package request

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// TestRecorded: a message without an event gets one of its own, with its target and outcome.
func TestRecorded(t *testing.T) {
	client := &caller.Client{Name: "agent", Principal: &caller.Principal{ID: "token ann", Name: "ann", Display: "Ann"}}
	for _, tt := range []struct {
		method, params string
		err            error
		item, outcome  string
		known          bool
	}{
		{"resources/read", `{"uri":"a://b"}`, nil, "a://b", "RESULT", true},
		{"resources/subscribe", `{"uri":"a://b"}`, nil, "a://b", "RESULT", true},
		{"prompts/get", `{"name":"p","arguments":{"uri":"x"}}`, nil, "p", "RESULT", true},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"p"}}`, nil, "p", "RESULT", true},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"a://{x}"}}`, nil, "a://{x}", "RESULT", true},
		{"tasks/get", `{"taskId":"7"}`, nil, "7", "RESULT", true},
		{"own/method", `{"name":"x","uri":"y"}`, nil, "", "RESULT", false},
		{"resources/read", `{"uri":"a://b"}`, &wire.RPCError{Code: -32002}, "a://b", "ERROR -32002", true},
		{"resources/read", `{"uri":"a://b"}`, &LimitError{}, "a://b", "RATE_LIMITED", true},
		{"resources/read", `{"uri":"a://b"}`, &UnavailableError{}, "a://b", "SERVER_UNAVAILABLE", true},
		{"resources/read", `{"uri":"a://b"}`, &RefusedError{}, "a://b", "EXECUTION_ERROR", true},
	} {
		var journal Journal
		var events []*Event
		journal.Observe(func(e *Event) { events = append(events, e) })
		last := &end{result: "{}", err: tt.err}
		q := &Request{From: From{Client: client}, To: &catalog.Server{Name: "s"}, Method: tt.method, Params: json.RawMessage(tt.params)}
		if _, err := Chain(last.handle, Recorded(&journal))(t.Context(), q); !errors.Is(err, tt.err) || len(events) != 1 {
			t.Errorf("%s: %v, %d events", tt.method, err, len(events))
			continue
		}
		e := events[0]
		if e.Number != 1 || !e.Attempted || e.Request || e.Who != (Who{Principal: "ann", Display: "Ann", Client: "agent"}) ||
			e.ArgumentBytes != len(tt.params) || e.Began.IsZero() ||
			e.Target != (Target{Server: "s", Item: tt.item, KnownServer: true, ReadOnly: tt.known}) || e.KnownMethod != tt.known {
			t.Errorf("%s: %+v", tt.method, e)
		}
		if e.Outcome != tt.outcome || (e.Code != 0) != strings.HasPrefix(tt.outcome, "ERROR") {
			t.Errorf("%s: outcome %s, code %d, want %s", tt.method, e.Outcome, e.Code, tt.outcome)
		}
	}
}

func TestRecorded_cancelled(t *testing.T) {
	var journal Journal
	var outcome string
	journal.Observe(func(e *Event) { outcome = e.Outcome })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	last := &end{err: ctx.Err()}
	_, _ = Chain(last.handle, Recorded(&journal))(ctx, &Request{To: &catalog.Server{}, Method: "prompts/get"})
	if outcome != OutcomeCancelled {
		t.Error(outcome)
	}
}

// TestRecorded_given: Recorded does not end an event that somebody else has made. Later messages about a call do not change the
// target in its event.
func TestRecorded_given(t *testing.T) {
	var journal Journal
	ended := 0
	journal.Observe(func(*Event) { ended++ })
	handler := Chain((&end{result: "{}"}).handle, Recorded(&journal))
	call, read := journal.Begin("tools/call", nil), journal.Begin("resources/read", nil)
	call.Server, call.Tool, call.ArgumentBytes = "s", "t", 5
	for _, q := range []*Request{
		{From: From{Event: call}, Method: "tools/call", Params: json.RawMessage(`{"name":"t"}`)},
		{From: From{Event: call}, Method: "tasks/get", Params: json.RawMessage(`{"taskId":"7"}`)},
		{From: From{Event: read}, Method: "resources/read", Params: json.RawMessage(`{"uri":"a://b"}`)},
	} {
		q.To = &catalog.Server{Name: "s"}
		if _, err := handler(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if ended != 0 || call.Number != 1 || read.Number != 2 {
		t.Errorf("%d ended, numbers %d and %d", ended, call.Number, read.Number)
	}
	if call.Target != (Target{Server: "s", Tool: "t"}) || call.ArgumentBytes != 5 || read.Item != "a://b" {
		t.Errorf("%+v, %+v", call, read)
	}
	journal.End(call)
	journal.End(read)
	if ended != 2 || call.Outcome != OutcomeResult {
		t.Errorf("%d ended, %+v", ended, call)
	}
}

// TestRecorded_longItem: the item of an event is cut to maxItem, since a client chooses it.
func TestRecorded_longItem(t *testing.T) {
	event := (*Journal)(nil).Begin("resources/read", nil)
	params := wire.Encode(map[string]string{"uri": "a://" + strings.Repeat("é", 1000)})
	q := &Request{From: From{Event: event}, To: &catalog.Server{}, Method: "resources/read", Params: params}
	_, err := Chain((&end{result: "{}"}).handle, Recorded(nil))(t.Context(), q)
	if err != nil || len(event.Item) > maxItem || len(event.Item) < maxItem-1 || !utf8.ValidString(event.Item) {
		t.Errorf("%v, %d bytes: %s", err, len(event.Item), event.Item)
	}
}

// TestTimed: the recorded time of the server is the sum over all messages of an event.
func TestTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		event := (*Journal)(nil).Begin("tools/call", nil)
		result, failed := json.RawMessage(`{"a":1}`), error(nil)
		slow := func(context.Context, *Request) (json.RawMessage, error) {
			<-time.After(time.Second)
			return result, failed
		}
		handler := Chain(slow, Timed)
		<-time.After(time.Minute)
		asked := time.Now()
		for range 2 {
			_, _ = handler(t.Context(), &Request{From: From{Event: event}})
		}
		result, failed = nil, &LostError{}
		_, _ = handler(t.Context(), &Request{From: From{Event: event}})
		if event.Asked != asked || event.Upstream != 3*time.Second || event.ReceivedBytes != len(`{"a":1}`) {
			t.Errorf("%+v", event)
		}
		inside := (*Journal)(nil).Begin("tools/call", nil)
		if _, _ = handler(t.Context(), &Request{From: From{Event: inside}, Serve: slow}); !inside.Asked.IsZero() || inside.Upstream != 0 {
			t.Errorf("inside of mcpx: %+v", inside)
		}
	})
}

// TestEvent_Stop: no duration includes the time that the user took to confirm.
func TestEvent_Stop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var journal *Journal
		event := journal.Begin("tools/call", nil)
		<-time.After(time.Minute)
		event.Confirming = 50 * time.Second
		journal.End(event)
		if event.Duration != 10*time.Second {
			t.Error(event.Duration)
		}
		<-time.After(time.Minute)
		if journal.End(event); event.Duration != 10*time.Second {
			t.Errorf("at the end: %s", event.Duration)
		}
	})
}
