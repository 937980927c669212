package request

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// user is a client whose user answers questions with an action and content. If the action is empty, the user
// never answers. If the content is empty, the user fills in the form so that the call is made.
type user struct {
	action  string
	content string
	takes   time.Duration
	asked   []string
	forms   []string
}

func (p *user) client(principal string) *caller.Client {
	return &caller.Client{
		ID: "1", Version: "2025-11-25", Capabilities: json.RawMessage(`{"elicitation":{}}`), Principal: &caller.Principal{ID: principal},
		Request: func(ctx context.Context, _ string, params json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
			p.asked = append(p.asked, wire.MemberText(params, "message"))
			p.forms = append(p.forms, string(wire.Member(params, "requestedSchema")))
			<-time.After(p.takes)
			switch p.action {
			case "":
				<-ctx.Done()
				return nil, ctx.Err()
			case "error":
				return nil, &wire.RPCError{Code: -1, Message: "no user"}
			}
			return json.RawMessage(`{"action":"` + p.action + `"` + cmp.Or(p.content, `,"content":{"run":true}`) + `}`), nil
		},
	}
}

// confirmed returns a chain in which every request must be confirmed.
func confirmed(last *end) Handler {
	return Chain(last.handle, Recorded(nil), Confirmed(func(*Request) string { return "confirm in the config" }))
}

func drop(t *testing.T, client *caller.Client, table string) *Request {
	return &Request{
		From: From{Client: client}, To: &catalog.Server{Name: "db"}, Tool: tool(t, `{"name":"drop"}`), Method: "tools/call",
		Params: ToolParams("drop", json.RawMessage(`{"table":"`+table+`"}`)), Relay: true,
	}
}

// TestApproval: an approval covers only the message that the question showed, from the same principal, also if it is sent again.
func TestApproval(t *testing.T) {
	p := &user{action: "accept"}
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
		// If a call is started again with the approval, the user is asked again only if the approval does not cover it.
		before := len(p.asked)
		q.Consent = Consent{Given: given}
		if _, err := confirmed(last)(t.Context(), q); err != nil || len(p.asked) == before != tt.covers {
			t.Errorf("%s: %v, asked %d times more", name, err, len(p.asked)-before)
		}
	}
}

// TestConfirmed: nothing is sent without the user's consent.
func TestConfirmed(t *testing.T) {
	deaf := (&user{}).client("ann")
	deaf.Capabilities = nil
	for _, tt := range []struct {
		name, says string // says is the text for the model; empty if the request is sent
		client     *caller.Client
		change     func(q *Request)
	}{
		{"accepted", "", (&user{action: "accept"}).client("ann"), nil},
		{"accepted elsewhere", "", nil, func(q *Request) { q.Consent.Ask = func(string) bool { return true } }},
		{"accepted by the client itself", "the client accepted the call of db.drop without the user's answer", (&user{action: "accept", content: " "}).client("ann"), nil},
		{"an empty form", "without the user's answer", (&user{action: "accept", content: `,"content":{}`}).client("ann"), nil},
		{"no form", "without the user's answer", (&user{action: "accept", content: `,"content":null`}).client("ann"), nil},
		{"another form", "without the user's answer", (&user{action: "accept", content: `,"content":{"run":"true"}`}).client("ann"), nil},
		{"another answer", "without the user's answer", (&user{action: "accept", content: `,"content":{"ok":true},"run":true`}).client("ann"), nil},
		{"accepted, not to run", "the user declined the call of db.drop; it was not made", (&user{action: "accept", content: `,"content":{"run":false}`}).client("ann"), nil},
		{"declined, with a form", "the user declined the call of db.drop", (&user{action: "decline"}).client("ann"), nil},
		{"declined", "the user declined the call of db.drop; it was not made", (&user{action: "decline"}).client("ann"), nil},
		{"declined elsewhere", "the user declined the call of db.drop; it was not made", nil, func(q *Request) {
			q.Consent.Ask = func(string) bool { return false }
		}},
		{"cancelled", "confirm in the config says which calls", (&user{action: "cancel"}).client("ann"), nil},
		{"refused", "the user could not be asked: no user", (&user{action: "error"}).client("ann"), nil},
		{"no answer", "the user did not confirm the call of db.drop within 15m0s", (&user{}).client("ann"), nil},
		{"no elicitation", "the user could not be asked: elicitation/create cannot be answered", deaf, nil},
		{"nobody", "the user could not be asked: elicitation/create needs an MCP client", nil, nil},
		{"a notification", "db own/note needs the user's confirmation, and a notification has no answer", (&user{action: "accept"}).client("ann"),
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

// TestConfirmed_Time: a request that needs no confirmation is sent unchanged. The event records how long the user
// took to confirm.
func TestConfirmed_Time(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &user{action: "accept", takes: time.Minute}
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

// TestConfirmed_Question: the question names what will be called, in a form that the user can read.
func TestConfirmed_Question(t *testing.T) {
	p := &user{action: "accept"}
	for want, change := range map[string]func(q *Request){
		"Run db.drop? It may change something.\n{\n  \"table\": \"a\"\n}": func(*Request) {},
		"Run db.look?": func(q *Request) {
			q.Tool = tool(t, `{"name":"look","annotations":{"readOnlyHint":true}}`)
			q.Params = ToolParams("look", nil)
		},
		"Run db.drop? It may change something.": func(q *Request) { // the tool's own name, not the name that an override gives it
			q.Tool = tool(t, `{"name":"harmless"}`)
			q.Tool.Own, q.Params = "drop", ToolParams("drop", nil)
		},
		"Run db.own/method? It may change something.\n{\n  \"a\": 1\n}": func(q *Request) {
			q.Tool, q.Method, q.Params = nil, "own/method", json.RawMessage(`{"a":1}`)
		},
	} {
		q := drop(t, p.client("ann"), "a")
		change(q)
		p.asked = nil
		if _, err := confirmed(&end{result: "{}"})(t.Context(), q); err != nil || len(p.asked) != 1 || p.asked[0] != want ||
			p.forms[0] != `{"type":"object","properties":{"run":{"type":"boolean","title":"Run it"}},"required":["run"]}` {
			t.Errorf("%v: asked %q, want %q", err, p.asked, want)
		}
	}
}

// TestConfirmed_AllShown: the question shows every member that is sent; otherwise the request is refused. Long values are cut,
// and the text says so.
func TestConfirmed_AllShown(t *testing.T) {
	const text = `"rm -rf /"`
	hash := func(of string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(of))) }
	pad, numbers := strings.Repeat("x", 50_000), strings.TrimSuffix(strings.Repeat("1234567, ", 2000), ", ")
	padded := func(n int) string { // returns members with long values
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"pad%d":"%d%s",`, i, i, pad)
		}
		return b.String()
	}
	for name, tt := range map[string]struct {
		arguments string
		says      []string // parts of the question; empty if the request is refused
	}{
		"short":               {`{"a":1.10,"b":[1,"x",null],"c":{},"d":[],"e":""}`, []string{"{\n  \"a\": 1.10,\n  \"b\": [1, \"x\", null],\n  \"c\": {},\n  \"d\": [],\n  \"e\": \"\"\n}"}},
		"a padded member":     {`{"pad":"` + pad + `","text":` + text + `}`, []string{`"text": ` + text, `x" (cut: 4`, "more characters; SHA-256 of all " + hash(pad)}},
		"padded members":      {`{` + padded(30) + `"text":` + text + `}`, []string{`"text": ` + text, `"pad29": "29xxx`, hash("7" + pad)}},
		"a padded name":       {`{"` + strings.Repeat("p", 3000) + `":1,"text":` + text + `}`, []string{`"text": ` + text, strings.Repeat("p", 3000)}},
		"white space":         {strings.Repeat(" ", 5000) + `{` + strings.Repeat("\n", 5000) + `"text" :` + text + `}`, []string{`"text": ` + text}},
		"a padded object":     {`{"o":{` + padded(3) + `"text":` + text + `}}`, []string{`    "text": ` + text}},
		"a padded array":      {`{"o":[{"pad":"` + pad + `"},["` + pad + `",[]],{"text":` + text + `}]}`, []string{`"text": ` + text}},
		"a command":           {`{"o":["sh","-c","` + pad + `",` + text + `]}`, []string{`"sh", "-c", "xxx`, `1 more elements; SHA-256 of all ` + hash(`["sh","-c","`+pad+`",`+text+`]`)}},
		"numbers":             {`{"o":[` + numbers + `],"text":` + text + `}`, []string{`"text": ` + text, "[1234567, 1234567, ", "more elements; SHA-256 of all " + hash("["+numbers+"]")}},
		"a long number":       {`{"o":` + strings.Repeat("1", 5000) + `,"text":` + text + `}`, []string{`"text": ` + text, "1 (cut: ", hash(strings.Repeat("1", 5000))}},
		"the same name":       {`{"text":"ls","text":` + text + `}`, []string{`"text": "ls"`, `"text": ` + text}},
		"escapes":             {`{"\u0074ext":"\u0072m -rf \/"}`, []string{`"text": ` + text}},
		"invisible":           {`{"te\u200bxt":"a\u202eb\u0000\ud83d\ude00󠁁` + "\u3164" + `"}`, []string{`"te\u200bxt": "a\u202eb\x00😀\U000e0041\u3164"`}},
		"half a character":    {`{"a":"\ud800"}`, []string{`"a": "\\ud800"`}},
		"a forged note":       {`{"a":"x\" (cut: 5 more characters)\n\"b\": 1"}`, []string{`"a": "x\" (cut: 5 more characters)\n\"b\": 1"`}},
		"many members":        {`{` + strings.Repeat(`"a":1,`, 1500) + `"text":` + text + `}`, nil},
		"many deeper members": {`{"o":[` + strings.Repeat(`{"a":1},`, 1500) + `{"text":` + text + `}]}`, nil},
		"many long members":   {`{` + padded(80) + `"text":` + text + `}`, nil},
		"a long name":         {`{"` + pad + `":1,"text":` + text + `}`, nil},
		"depth":               {strings.Repeat(`{"a":[`, 2000) + strings.Repeat(`]}`, 2000), nil},
		"invalid":             {`{"a":[1,x],"text":` + text + `}`, nil},
	} {
		p, last := &user{action: "accept"}, &end{result: "{}"}
		q := drop(t, p.client("ann"), "a")
		q.Params = json.RawMessage(tt.arguments)
		q.Tool, q.Method = nil, "own/method"
		_, err := confirmed(last)(t.Context(), q)
		if tt.says == nil {
			if refused, ok := errors.AsType[*RefusedError](err); !ok || len(p.asked)+len(last.got) != 0 ||
				!strings.Contains(refused.Text, "db own/method needs the user's confirmation. The call was not made, as its arguments cannot be shown to the user: ") {
				t.Errorf("%s: %v, asked %q", name, err, p.asked)
			}
			continue
		}
		if err != nil || len(p.asked) != 1 || len(last.got) != 1 || utf8.RuneCountInString(p.asked[0]) > maxShown+100 {
			t.Errorf("%s: %v, asked %q", name, err, p.asked)
			continue
		}
		for _, want := range tt.says {
			if !strings.Contains(p.asked[0], want) {
				t.Errorf("%s: the question lacks %s: %s", name, want, p.asked[0])
			}
		}
	}
}
