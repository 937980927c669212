package mcptest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestHTTP_LegacySession(t *testing.T) {
	NoLeaks(t)
	h := Spec{}.HTTP(t)
	c := newWebClient(t, h.URL)
	if status, _, _, _ := c.post(callMessage(1, "pid", `{}`)); status != 400 {
		t.Errorf("without a session: %d, want 400", status)
	}
	c.handshake()
	if c.session == "" || h.Sessions() != 1 {
		t.Errorf("session %q, %d open", c.session, h.Sessions())
	}
	status, header, said, err := c.post(callMessage(1, "echo", `{"text":"hi"}`))
	if err != nil || status != 200 || header.Get("Content-Type") != "application/json" || textOf(t, decode(t, said[0])) != "hi" {
		t.Errorf("echo: %d %v %v %v", status, header, said, err)
	}
	h.AnswerSSE(true)
	_, header, said, err = c.post(callMessage(2, "echo", `{"text":"hi"}`))
	if err != nil || header.Get("Content-Type") != "text/event-stream" || textOf(t, decode(t, said[0])) != "hi" {
		t.Errorf("echo: %v %v %v", header, said, err)
	}
	h.AnswerSSE(false)
	_, _, said, err = c.post(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"progress","arguments":{"steps":2},"_meta":{"progressToken":1}}}`)
	if err != nil || len(said) != 3 || !strings.Contains(said[1], `"progress":2`) || textOf(t, decode(t, said[2])) != "did 2 steps" {
		t.Errorf("progress: %v %v", said, err)
	}
	if h.Count("tools/call") != 4 || len(h.Log().Calls("echo")) != 2 {
		t.Errorf("counts: %d, %+v", h.Count("tools/call"), h.Log().Calls(""))
	}
	resp, err := c.do(context.Background(), "DELETE", "")
	if err != nil || resp.StatusCode != 200 || h.Sessions() != 0 {
		t.Fatalf("DELETE: %v, %v, %d sessions", resp, err, h.Sessions())
	}
	resp.Body.Close()
	if status, _, _, _ := c.post(callMessage(4, "pid", `{}`)); status != 404 {
		t.Errorf("after DELETE: %d, want 404", status)
	}
}

// stream opens the GET stream, and returns a channel with its messages.
func (c *webClient) stream(ctx context.Context) <-chan string {
	c.t.Helper()
	resp, err := c.do(ctx, "GET", "")
	if err != nil {
		c.t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		resp.Body.Close()
		c.t.Fatalf("GET: %d", resp.StatusCode)
	}
	said := make(chan string, 100)
	go func() {
		defer close(said)
		defer resp.Body.Close()
		events(resp.Body, func(kind, data string) bool { said <- kind + " " + data; return true })
	}()
	return said
}

func (c *webClient) wait(said <-chan string) string {
	c.t.Helper()
	select {
	case s := <-said:
		return s
	case <-time.After(patience):
		c.t.Fatal("nothing was said on the stream")
		return ""
	}
}

func TestHTTP_GETStream(t *testing.T) {
	NoLeaks(t)
	h := Spec{}.HTTP(t)
	c := newWebClient(t, h.URL)
	c.handshake()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	said := c.stream(ctx)
	h.Notify("notifications/tools/list_changed", `{}`)
	if got := c.wait(said); got != `message {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}` {
		t.Errorf("got %s", got)
	}
	h.SetTools([]byte(`[{"name":"new"}]`))
	c.wait(said)
	if _, _, got, _ := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); !strings.Contains(got[0], `{"tools":[{"name":"new"}]}`) {
		t.Errorf("tools: %s", got)
	}
	h.KillSessions()
	for range said { // ends when the session ends
	}
	h2 := Spec{NoGET: true}.HTTP(t)
	c2 := newWebClient(t, h2.URL)
	c2.handshake()
	if resp, err := c2.do(ctx, "GET", ""); err != nil || resp.StatusCode != 405 {
		t.Errorf("NoGET: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
}

func TestHTTP_Modern(t *testing.T) {
	NoLeaks(t)
	h := Spec{Era: EraModern}.HTTP(t)
	c := newWebClient(t, h.URL)
	for _, tc := range []struct {
		method, name, params string
		breaks               string // the header that is given a wrong value
		status, code         int
	}{
		{"server/discover", "", "", "", 200, 0},
		{"tools/list", "", "", "", 200, 0},
		{"tools/call", "echo", `"arguments":{"text":"x"}`, "", 200, 0},
		{"tools/call", "rpc_error", "", "", 200, -32050},
		{"tools/call", "echo", "", "", 400, -32602},
		{"tools/call", "pid", "", "Mcp-Name", 400, -32020},
		{"tools/list", "", "", "Mcp-Method", 400, -32020},
		{"tools/list", "", "", "Mcp-Protocol-Version", 400, -32020},
		{"nope", "", "", "", 404, -32601},
		{"initialize", "", "", "", 404, -32601},
	} {
		body := c.modern(1, tc.method, tc.name, tc.params)
		if tc.breaks != "" {
			c.header[tc.breaks] = "wrong"
		}
		status, header, said, err := c.post(body)
		if err != nil {
			t.Fatal(err)
		}
		code := 0
		if r := decode(t, said[0]); r.Error != nil {
			code = r.Error.Code
		}
		if status != tc.status || code != tc.code || header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s %s: %d, %s; want %d and code %d", tc.method, tc.name, status, said, tc.status, tc.code)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		resp, err := c.do(context.Background(), method, "")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 405 {
			t.Errorf("%s: %d, want 405", method, resp.StatusCode)
		}
	}
}

func TestHTTP_ModernListen(t *testing.T) {
	NoLeaks(t)
	h := Spec{Era: EraBoth, ListChangedStorm: 100}.HTTP(t)
	c := newWebClient(t, h.URL)
	ctx, cancel := context.WithCancel(context.Background())
	resp, err := c.do(ctx, "POST", c.modern(1, "subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n := 0
	events(resp.Body, func(_, data string) bool {
		if n == 0 && !strings.Contains(data, "acknowledged") || n > 0 && !strings.Contains(data, `list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}`) {
			t.Errorf("message %d: %s", n, data)
		}
		n++
		return n < 5
	})
	cancel()
	WaitFor(t, "the cancel", patience, func() bool { return len(h.Log().Event(EventCancel)) == 1 })
}

// TestHTTP_Disconnect: if a modern client disconnects, its request is cancelled. The request of a legacy client is
// not.
func TestHTTP_Disconnect(t *testing.T) {
	NoLeaks(t)
	h := Spec{Era: EraBoth}.HTTP(t)
	for _, modern := range []bool{true, false} {
		c := newWebClient(t, h.URL)
		body := callMessage(1, "slow", `{"ms":3600000}`)
		want, not := EventDisconnect, EventCancel
		if modern {
			body = c.modern(1, "tools/call", "slow", `"arguments":{"ms":3600000}`)
			want, not = EventCancel, EventDisconnect
		} else {
			c.handshake()
		}
		ctx, cancel := context.WithCancel(context.Background())
		before, calls := h.Log(), len(h.Log().Calls("slow"))
		failed := make(chan error)
		go func() {
			resp, err := c.do(ctx, "POST", body)
			if err == nil {
				resp.Body.Close()
			}
			failed <- err
		}()
		WaitFor(t, "the call", patience, func() bool { return len(h.Log().Calls("slow")) > calls })
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("leaving: %v", err)
		}
		WaitFor(t, want, patience, func() bool { return len(h.Log().Event(want)) > len(before.Event(want)) })
		if len(h.Log().Event(not)) > len(before.Event(not)) {
			t.Errorf("modern %v: there is also a %s", modern, not)
		}
		if e := h.Log().Event(want)[0]; e.Tool != "slow" || modern && e.Text != "disconnect" {
			t.Errorf("entry %+v", e)
		}
		if !modern {
			if status, _, _, err := c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`); status != 202 || err != nil {
				t.Errorf("cancelling: %d %v", status, err)
			}
			WaitFor(t, "the cancel", patience, func() bool { return len(h.Log().Event(EventCancel)) == 2 })
		}
	}
}

// TestHTTP_NoCancelAfterAnswer: if a client closes its connection after it has received the answer, nothing is
// cancelled.
func TestHTTP_NoCancelAfterAnswer(t *testing.T) {
	NoLeaks(t)
	h := Spec{Era: EraModern, AnswerSSE: true}.HTTP(t)
	c := newWebClient(t, h.URL)
	for range 50 {
		resp, err := c.do(context.Background(), "POST", c.modern(1, "tools/call", "pid", ""))
		if err != nil {
			t.Fatal(err)
		}
		events(resp.Body, func(string, string) bool { return false })
		resp.Body.Close()
		c.http.CloseIdleConnections()
	}
	if got := h.Log().Event(EventCancel); len(got) > 0 {
		t.Errorf("%d cancels", len(got))
	}
}

func TestHTTP_Faults(t *testing.T) {
	NoLeaks(t)
	for _, tc := range []struct {
		name     string
		fault    Fault
		status   int // 0 if there must be no response
		contains string
		broken   bool // whether reading the body must end with an error
		executed int
	}{
		{"drop", Drop(), 0, "", true, 0},
		{"drop after", DropAfter(), 0, "", true, 1},
		{"reset", Reset(), 200, "", true, 1},
		{"end", End(), 200, "", false, 1},
		{"unauthorized", Unauthorized(), 401, "invalid_token", false, 0},
		{"too many", TooMany(3 * time.Second), 429, "slow down", false, 0},
		{"bad gateway", BadGateway(), 502, "<html>", false, 0},
		{"html", HTML(), 200, "Sign in", false, 0},
		{"redirect", Redirect("http://127.0.0.1:9/mcp"), 307, "", false, 0},
		{"lost session", LostSession(), 404, "Session not found", false, 0},
		{"half json", Fault{Kind: FaultHalfJSON}, 200, `{"jsonrpc":"2.0","id":1,"result"`, false, 1},
		{"wrong id", Fault{Kind: FaultWrongID}, 200, `"id":424242`, false, 1},
		{"delay", Fault{Kind: FaultDelay, Delay: time.Millisecond}, 200, "hi", false, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := Spec{}.HTTP(t)
			c := newWebClient(t, h.URL)
			c.handshake()
			h.Script(tc.fault.On("tools/call"))
			status, header, said, err := c.post(callMessage(1, "echo", `{"text":"hi"}`))
			if status != tc.status || (err != nil) != tc.broken || !strings.Contains(strings.Join(said, ""), tc.contains) {
				t.Errorf("got %d, %q, %v", status, said, err)
			}
			if tc.contains == "" && strings.Contains(strings.Join(said, ""), "result") {
				t.Errorf("the answer came: %q", said)
			}
			if tc.status == 429 && header.Get("Retry-After") != "3" || tc.status == 307 && header.Get("Location") == "" || tc.status == 401 && header.Get("WWW-Authenticate") == "" {
				t.Errorf("header %v", header)
			}
			if got := len(h.Log().Calls("echo")); got != tc.executed {
				t.Errorf("executed %d times, want %d", got, tc.executed)
			}
			if tc.status == 404 {
				c.session = ""
				c.handshake()
			}
			if status, _, said, err := c.post(callMessage(2, "echo", `{"text":"again"}`)); err != nil || status != 200 || textOf(t, decode(t, said[0])) != "again" {
				t.Errorf("afterwards: %d %q %v", status, said, err)
			}
		})
	}
}

// TestHTTP_Polls: a GET with the ID of the last event gets the rest of the answer.
func TestHTTP_Polls(t *testing.T) {
	NoLeaks(t)
	h := Spec{}.HTTP(t)
	c := newWebClient(t, h.URL)
	c.handshake()
	for _, fault := range []Fault{{Kind: FaultPoll, Polls: 1}, {Kind: FaultBreak}} {
		h.Script(fault.On("tools/call"))
		_, header, said, err := c.post(callMessage(7, "echo", `{"text":"hi"}`))
		if header.Get("Content-Type") != "text/event-stream" || len(said) != 0 || (err != nil) != (fault.Kind == FaultBreak) {
			t.Errorf("%s: %v %q %v", fault.Kind, header, said, err)
		}
	}
	get := func(lastID string) string {
		t.Helper()
		req, err := http.NewRequest("GET", h.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Mcp-Session-Id", c.session)
		req.Header.Set("Last-Event-ID", lastID)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return string(body)
	}
	if got, want := get("poll-1"), "id: poll-3\nretry: 10\ndata:\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, id := range []string{"poll-2", "poll-3"} {
		if got := get(id); !strings.Contains(got, `"id":7`) || !strings.Contains(got, `"text":"hi"`) {
			t.Errorf("%s: got %q", id, got)
		}
	}
}

// TestHTTP_Refusals: sessions and notifications are refused with the response that the test has set.
func TestHTTP_Refusals(t *testing.T) {
	NoLeaks(t)
	h := Spec{Forgotten: Refusal{Status: 400, Type: "text/plain", Body: "who is $ID?"}}.HTTP(t)
	c := newWebClient(t, h.URL)
	_, header, _, _ := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":` + initParams + `}`)
	c.session = header.Get("Mcp-Session-Id")
	h.Script(Fault{Kind: FaultStatusAfter, Status: 405}.On("notifications/initialized"))
	if status, _, _, _ := c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != 405 {
		t.Errorf("initialized: %d", status)
	}
	if _, _, said, _ := c.post(callMessage(7, "echo", `{"text":"hi"}`)); textOf(t, decode(t, said[0])) != "hi" {
		t.Errorf("the refused notification was not taken: %v", said)
	}
	h.Script(Fault{Kind: FaultStatusAfter, Status: 200, Body: "$ID"}.On("tools/call"))
	if _, _, said, _ := c.post(callMessage(8, "echo", `{"text":"hi"}`)); len(said) != 1 || said[0] != "8" || len(h.Log().Calls("echo")) != 2 {
		t.Errorf("call: %q", said)
	}
	h.KillSessions()
	resp, err := c.do(context.Background(), "POST", callMessage(9, "pid", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 400 || string(body) != "who is 9?" {
		t.Errorf("%d %q", resp.StatusCode, body)
	}
}

func TestHTTP_Stalls(t *testing.T) {
	NoLeaks(t)
	h := Spec{}.HTTP(t)
	c := newWebClient(t, h.URL)
	c.handshake()
	h.Script(Stall(), StallAfter())
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if resp, err := c.do(ctx, "POST", callMessage(1, "pid", `{}`)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stall: %v, %v", resp, err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	resp, err := c.do(ctx, "POST", callMessage(2, "pid", `{}`))
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("stall after: %v, %v", resp, err)
	}
	context.AfterFunc(ctx, func() { resp.Body.Close() })
	time.AfterFunc(50*time.Millisecond, cancel)
	if data, err := io.ReadAll(resp.Body); err == nil || len(data) > 0 {
		t.Errorf("stall after: read %q, %v", data, err)
	}
	if got := len(h.Log().Calls("pid")); got != 1 {
		t.Errorf("%d calls, want 1", got)
	}
}

func TestHTTP_ScriptOrder(t *testing.T) {
	NoLeaks(t)
	h := Spec{NoSession: true}.HTTP(t)
	c := newWebClient(t, h.URL)
	h.Script(Fault{Kind: FaultStatus, Status: 503, Method: "ping", Skip: 1, Times: 2}, BadGateway().On("tools/list").Always())
	var got []int
	for _, method := range []string{"ping", "ping", "tools/list", "ping", "ping", "tools/list"} {
		status, _, _, err := c.post(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, status)
	}
	h.Heal()
	status, _, _, _ := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	got = append(got, status)
	want := []int{200, 503, 502, 503, 200, 502, 200}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestHTTP_TokenAndHeaders(t *testing.T) {
	NoLeaks(t)
	h := Spec{Token: "s3cret"}.HTTP(t)
	c := newWebClient(t, h.URL)
	if status, header, _, _ := c.post(`{}`); status != 401 || header.Get("WWW-Authenticate") == "" {
		t.Errorf("without a token: %d %v", status, header)
	}
	c.header["Authorization"] = "Bearer s3cret"
	c.handshake()
	if got := h.Log().Event(EventHTTP); got[0].Header.Get("Authorization") != "" || got[1].Header.Get("Authorization") != "Bearer s3cret" || got[1].Text != "POST /mcp" {
		t.Errorf("headers %+v", got)
	}
}

func TestHTTP_CrashAndDown(t *testing.T) {
	NoLeaks(t)
	h := Spec{Era: EraBoth}.HTTP(t)
	c := newWebClient(t, h.URL)
	c.handshake()
	if _, _, said, err := c.post(callMessage(1, "crash", `{}`)); err == nil {
		t.Errorf("crash answered %q", said)
	}
	if status, _, _, err := c.post(callMessage(2, "pid", `{}`)); status != 404 || err != nil {
		t.Errorf("after the crash: %d %v", status, err)
	}
	m := newWebClient(t, h.URL)
	if _, _, said, err := m.post(m.modern(1, "tools/call", "crash", `"arguments":{"partial":true}`)); err == nil || len(said) > 0 {
		t.Errorf("crash answered %q", said)
	}
	if got := h.Log().Event(EventCancel); len(got) > 0 {
		t.Errorf("a crash is recorded as a cancel: %+v", got)
	}
	h.Down()
	if _, _, _, err := c.post(`{}`); err == nil {
		t.Error("answers while down")
	}
	h.Up()
	c.session = ""
	c.handshake()
}

func TestHTTP_ExitAfterCalls(t *testing.T) {
	NoLeaks(t)
	for _, h := range []*HTTPServer{Spec{ExitAfterCalls: 1}.HTTP(t), Spec{ExitAfterCalls: 1, AnswerSSE: true}.HTTP(t)} {
		c := newWebClient(t, h.URL)
		c.handshake()
		if status, _, said, err := c.post(callMessage(1, "echo", `{"text":"hi"}`)); err != nil || status != 200 || textOf(t, decode(t, said[0])) != "hi" {
			t.Errorf("the last answer: %d %q %v", status, said, err)
		}
		if status, _, _, err := c.post(callMessage(2, "pid", `{}`)); status != 404 || err != nil {
			t.Errorf("afterwards: %d %v, want 404", status, err)
		}
	}
}
