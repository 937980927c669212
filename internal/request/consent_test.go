package request

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// person is a client whose user answers questions with an action; empty = never.
type person struct {
	action string
	takes  time.Duration
	asked  []string
}

func (p *person) client(principal string) *caller.Client {
	return &caller.Client{
		ID: "1", Version: "2025-11-25", Capabilities: json.RawMessage(`{"elicitation":{}}`), Principal: &caller.Principal{ID: principal},
		Request: func(ctx context.Context, _ string, params json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
			p.asked = append(p.asked, wire.MemberText(params, "message"))
			<-time.After(p.takes)
			switch p.action {
			case "":
				<-ctx.Done()
				return nil, ctx.Err()
			case "error":
				return nil, &wire.RPCError{Code: -1, Message: "no user"}
			}
			return json.RawMessage(`{"action":"` + p.action + `"}`), nil
		},
	}
}

// confirmed is a chain in which everything must be confirmed.
func confirmed(last *end) Handler {
	return Chain(last.handle, Recorded(nil), Confirmed(func(*Request) string { return "confirm in the config" }))
}

func drop(t *testing.T, client *caller.Client, table string) *Request {
	return &Request{
		From: From{Client: client}, To: &catalog.Server{Name: "db"}, Tool: tool(t, `{"name":"drop"}`), Method: "tools/call",
		Params: ToolParams("drop", json.RawMessage(`{"table":"`+table+`"}`)), Relay: true,
	}
}

// An approval is for what the question showed: for the same message of the same principal, and no other.
func TestApproval(t *testing.T) {
	p := &person{action: "accept"}
	approved := func(change func(q *Request)) *Request {
		q := drop(t, p.client("ann"), "a")
		if change(q); q.Method == "" {
			t.Fatal("no method")
		}
		return q
	}
	first := approved(func(*Request) {})
	last := &end{result: "{}"}
	if _, err := confirmed(last)(t.Context(), first); err != nil || len(p.asked) != 1 {
		t.Fatalf("%v, asked %q", err, p.asked)
	}
	given := first.Consent.Given
	if (Approval{}).Covers(first) || !given.Covers(first) {
		t.Error("the first message")
	}
	for name, tt := range map[string]struct {
		change func(q *Request)
		covers bool
	}{
		"again":              {func(*Request) {}, true},
		"another connection": {func(q *Request) { q.Client = p.client("ann"); q.Client.ID = "2" }, true},
		"another catalogue": {func(q *Request) {
			q.To = &catalog.Server{Name: "db", Generation: 7}
			q.Tool = tool(t, `{"name":"drop"}`)
		}, true},
		"other times":        {func(q *Request) { q.Timeout, q.Meta = time.Second, []Meta{{Name: "a", Value: 1}} }, true},
		"other params":       {func(q *Request) { q.Params = ToolParams("drop", json.RawMessage(`{"table":"b"}`)) }, false},
		"more params":        {func(q *Request) { q.Params = wire.WithMember(q.Params, "x", []byte("1")) }, false},
		"another tool":       {func(q *Request) { q.Params = ToolParams("drop_all", json.RawMessage(`{"table":"a"}`)) }, false},
		"another definition": {func(q *Request) { q.Tool = tool(t, `{"name":"drop","description":"Drops all."}`) }, false},
		"another server":     {func(q *Request) { q.To = &catalog.Server{Name: "db2"} }, false},
		"another principal":  {func(q *Request) { q.Client = p.client("bob") }, false},
		"no principal":       {func(q *Request) { q.Client.Principal = nil }, false},
		"no client":          {func(q *Request) { q.Client = nil }, false},
		"another method":     {func(q *Request) { q.Method = "tools/simulate" }, false},
	} {
		q := approved(tt.change)
		if given.Covers(q) != tt.covers {
			t.Errorf("%s: covers %t", name, !tt.covers)
		}
		if q.Client == nil {
			continue
		}
		// The same within a call that begins anew: it takes the approval along.
		before := len(p.asked)
		q.Consent = Consent{Given: given}
		if _, err := confirmed(last)(t.Context(), q); err != nil || len(p.asked) == before != tt.covers {
			t.Errorf("%s: %v, asked %d times more", name, err, len(p.asked)-before)
		}
	}
}

// Without the user's consent nothing is sent.
func TestConfirmed(t *testing.T) {
	deaf := (&person{}).client("ann")
	deaf.Capabilities = nil
	for _, tt := range []struct {
		name, says string // what the model gets; empty = it is sent
		client     *caller.Client
		change     func(q *Request)
	}{
		{"accepted", "", (&person{action: "accept"}).client("ann"), nil},
		{"accepted elsewhere", "", nil, func(q *Request) { q.Consent.Ask = func(string) bool { return true } }},
		{"declined", "the user declined the call of db.drop; it was not made", (&person{action: "decline"}).client("ann"), nil},
		{"declined elsewhere", "the user declined the call of db.drop; it was not made", nil, func(q *Request) {
			q.Consent.Ask = func(string) bool { return false }
		}},
		{"cancelled", "confirm in the config says which calls", (&person{action: "cancel"}).client("ann"), nil},
		{"refused", "the user could not be asked: no user", (&person{action: "error"}).client("ann"), nil},
		{"no answer", "the user did not confirm the call of db.drop within 15m0s", (&person{}).client("ann"), nil},
		{"no elicitation", "the user could not be asked: elicitation/create cannot be answered", deaf, nil},
		{"nobody", "the user could not be asked: elicitation/create needs an MCP client", nil, nil},
		{"a notification", "db own/note needs the user's confirmation, and a notification has no answer", (&person{action: "accept"}).client("ann"),
			func(q *Request) { q.Tool, q.Method, q.Notification = nil, "own/note", true }},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := drop(t, tt.client, "a")
			if tt.change != nil {
				tt.change(q)
			}
			last := &end{result: "{}"}
			_, err := confirmed(last)(t.Context(), q)
			refused, _ := errors.AsType[*RefusedError](err)
			switch {
			case tt.says == "" && (err != nil || len(last.got) != 1 || q.Relay || !q.Consent.asked):
				t.Errorf("%s: %v, %+v", tt.name, err, q)
			case tt.says != "" && (refused == nil || !strings.Contains(refused.Text, tt.says) || len(last.got) != 0 || q.Consent.Given.Covers(q)):
				t.Errorf("%s: got %v, want %s", tt.name, err, tt.says)
			}
		})
	}
}

// What need not be confirmed is sent as it is; the time the user takes to confirm is in the event.
func TestConfirmed_Time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &person{action: "accept", takes: time.Minute}
		last := &end{result: "{}"}
		free := drop(t, p.client("ann"), "a")
		nothing := Chain(last.handle, Recorded(nil), Confirmed(func(*Request) string { return "" }))
		if _, err := nothing(t.Context(), free); err != nil || len(p.asked) != 0 || !free.Relay {
			t.Errorf("%v, asked %q", err, p.asked)
		}
		q := drop(t, p.client("ann"), "a")
		if _, err := confirmed(last)(t.Context(), q); err != nil || q.Event.Confirming != time.Minute {
			t.Errorf("%v, %+v", err, q.Event)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		p.action, p.takes = "", 0
		q = drop(t, p.client("ann"), "b")
		if _, err := confirmed(last)(ctx, q); !errors.Is(err, context.DeadlineExceeded) || len(last.got) != 2 {
			t.Errorf("given up: %v", err)
		}
	})
}

// The question names what will be called, as the user can read it.
func TestConfirmed_Question(t *testing.T) {
	p := &person{action: "accept"}
	long := strings.Repeat("x", 5000)
	for want, change := range map[string]func(q *Request){
		"Run db.drop? It may change something.\n{\n  \"table\": \"a\"\n}": func(*Request) {},
		"Run db.look?": func(q *Request) {
			q.Tool = tool(t, `{"name":"look","annotations":{"readOnlyHint":true}}`)
			q.Params = ToolParams("look", nil)
		},
		"Run db.drop? It may change something.": func(q *Request) { // its own name, not the one that an override gives it
			q.Tool = tool(t, `{"name":"harmless"}`)
			q.Tool.Own, q.Params = "drop", ToolParams("drop", nil)
		},
		"Run db.own/method? It may change something.\n{\n  \"a\": 1\n}": func(q *Request) {
			q.Tool, q.Method, q.Params = nil, "own/method", json.RawMessage(`{"a":1}`)
		},
		"Run db.drop? It may change something.\n{\n  \"a\": \"" + long[:3990] + "\n(1013 more characters)": func(q *Request) {
			q.Params = ToolParams("drop", json.RawMessage(`{"a":"`+long+`"}`))
		},
	} {
		q := drop(t, p.client("ann"), "a")
		change(q)
		p.asked = nil
		if _, err := confirmed(&end{result: "{}"})(t.Context(), q); err != nil || len(p.asked) != 1 || p.asked[0] != want {
			t.Errorf("%v: asked %q, want %q", err, p.asked, want)
		}
	}
}
