package front

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/view"
)

// modernCall is a call by a modern client that supports elicitation. more has further members of its params,
// each preceded by a comma.
func modernCall(id, tool, arguments, more string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernEra +
		`","io.modelcontextprotocol/clientInfo":{"name":"many","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}},` +
		`"name":"exec","arguments":{"server_name":"fake","tool_name":"` + tool + `","arguments":` + arguments + `}` + more + `}}`
}

// inputResult is an input_required answer, or the final result.
type inputResult struct {
	Result struct {
		ResultType    string
		InputRequests map[string]struct {
			Method string
			Params json.RawMessage
		}
		RequestState *string
		Content      []struct{ Text string }
		IsError      bool
	}
	Error *struct {
		Code    int
		Message string
	}
}

// reply returns the members of params that answer the questions of r with the given word, together with the
// state of r.
func (r inputResult) reply(t *testing.T, word string) string {
	t.Helper()
	if r.Result.ResultType != "input_required" || len(r.Result.InputRequests) != 1 || r.Result.RequestState == nil {
		t.Fatalf("no question: %+v", r)
	}
	for key, q := range r.Result.InputRequests {
		if q.Method != "elicitation/create" || !strings.Contains(string(q.Params), "Which word?") {
			t.Errorf("asked %+v", q)
		}
		state, _ := json.Marshal(*r.Result.RequestState)
		return `,"inputResponses":{"` + key + `":{"action":"accept","content":{"word":"` + word + `"}}},"requestState":` + string(state)
	}
	return ""
}

// ask sends a call over HTTP and reads its answer.
func (c *webClient) ask(t *testing.T, call string) (r inputResult) {
	t.Helper()
	response, err := c.send(t.Context(), "POST", "tools/call", call)
	if err != nil {
		t.Fatal(err)
	}
	body := bodyOf(t, response)
	for line := range strings.Lines(string(body)) {
		line = strings.TrimPrefix(line, "data: ")
		if strings.HasPrefix(line, "{") && strings.Contains(line, `"id":`) {
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%v: %s", err, body)
			}
		}
	}
	return r
}

// eachUpstream runs a test with a server of each era over each transport.
func eachUpstream(t *testing.T, test func(t *testing.T, server registry.Server)) {
	for over, server := range map[string]registry.Server{
		"legacy stdio": stdio(t, "fake", mcptest.Spec{}),
		"legacy http":  remote("fake", mcptest.Spec{}.HTTP(t)),
		"modern stdio": stdio(t, "fake", mcptest.Spec{Era: mcptest.EraModern}),
		"modern http":  remote("fake", mcptest.Spec{Era: mcptest.EraModern}.HTTP(t)),
	} {
		t.Run(over, func(t *testing.T) { test(t, server) })
	}
}

// TestInput_OtherMcpx: behind mcpx is another mcpx, which suspends the call. The answer of the client resumes it there.
func TestInput_OtherMcpx(t *testing.T) {
	mcptest.NoLeaks(t)
	_, inner := site(t, stdio(t, "fake", mcptest.Spec{}))
	_, outer := site(t, remote("fake", &mcptest.HTTPServer{URL: inner.URL}))
	c := newWebClient(t, outer, modernEra)
	const inside = `{"server_name":"fake","tool_name":"ask","arguments":{}}`
	reply := c.ask(t, modernCall("1", "exec", inside, "")).reply(t, "mellon")
	last := c.ask(t, modernCall("2", "exec", inside, reply))
	if last.Error != nil || last.Result.ResultType != "complete" || len(last.Result.Content) != 1 || !strings.Contains(last.Result.Content[0].Text, "mellon") {
		t.Errorf("got %+v", last)
	}
	again := c.ask(t, modernCall("3", "exec", inside, reply))
	if !again.Result.IsError || !strings.Contains(again.Result.Content[0].Text, "answered already") {
		t.Errorf("again: %+v", again)
	}
}

// TestInput_HTTP: a modern client gets input_required, whichever era the asking server uses, and the client's
// next request has the answer. If mcpx has suspended the call, its state is refused when it is used again.
func TestInput_HTTP(t *testing.T) {
	mcptest.NoLeaks(t)
	eachUpstream(t, func(t *testing.T, server registry.Server) {
		_, web := site(t, server)
		c := newWebClient(t, web, modernEra)
		first := c.ask(t, modernCall("1", "ask", `{}`, ""))
		reply := first.reply(t, "mellon")
		last := c.ask(t, modernCall("2", "ask", `{}`, reply))
		if last.Result.ResultType != "complete" || len(last.Result.Content) != 1 || !strings.Contains(last.Result.Content[0].Text, "mellon") {
			t.Errorf("got %+v", last)
		}
		if !strings.HasPrefix(*first.Result.RequestState, suspendedState) {
			return // the state has all that the server needs, so any process can continue the call
		}
		if again := c.ask(t, modernCall("3", "ask", `{}`, reply)); again.Error == nil || !strings.Contains(again.Error.Message, "answered already") {
			t.Errorf("again: %+v", again)
		}
		// The state is refused for another call, and in another process.
		second := c.ask(t, modernCall("4", "ask", `{}`, ""))
		reply = second.reply(t, "x")
		if other := c.ask(t, modernCall("5", "ask", `{"other":1}`, reply)); other.Error == nil || !strings.Contains(other.Error.Message, "other params") {
			t.Errorf("other params: %+v", other)
		}
		_, elsewhere := site(t, server)
		if other := newWebClient(t, elsewhere, modernEra).ask(t, modernCall("6", "ask", `{}`, reply)); other.Error == nil || !strings.Contains(other.Error.Message, "another process or endpoint of mcpx") {
			t.Errorf("another process: %+v", other)
		}
		// Copilot CLI encodes the params again, with the members in another order.
		written := modernCall("7", "ask", `{}`, reply)
		const arguments = `"arguments":{"server_name":"fake","tool_name":"ask","arguments":{}}`
		anew := strings.Replace(written, `"name":"exec",`+arguments, `"arguments": {"arguments": { }, "tool_name":"\u0061sk", "server_name":"fake"},"name":"exec"`, 1)
		if anew == written {
			t.Fatal(written)
		}
		if own := c.ask(t, anew); own.Error != nil || own.Result.ResultType != "complete" {
			t.Errorf("after all that: %+v", own)
		}
		// If the client sends no answer, or an answer to another question, mcpx asks again.
		third := c.ask(t, modernCall("8", "ask", `{}`, ""))
		reply = third.reply(t, "late")
		bare := `,"inputResponses":{"z":{}}` + reply[strings.Index(reply, `,"requestState"`):]
		fourth := c.ask(t, modernCall("9", "ask", `{}`, bare))
		if got := c.ask(t, modernCall("10", "ask", `{}`, fourth.reply(t, "late"))); len(got.Result.Content) != 1 || !strings.Contains(got.Result.Content[0].Text, "late") {
			t.Errorf("got %+v", got)
		}
	})
}

// TestInput_Stdio: a modern client over stdio gets input_required too, and answers with its next request.
func TestInput_Stdio(t *testing.T) {
	mcptest.NoLeaks(t)
	eachUpstream(t, func(t *testing.T, server registry.Server) {
		p := dialSilent(t, connect(t, view.Options{}, server), StdioOptions{})
		ask := func(id, more string) (r inputResult) {
			t.Helper()
			p.send(t, modernCall(id, "ask", `{}`, more)+"\n")
			mcptest.WaitFor(t, "the answer", patience, func() bool { return len(p.answers(id)) == 1 })
			if err := json.Unmarshal([]byte(p.answers(id)[0]), &r); err != nil {
				t.Fatal(err)
			}
			return r
		}
		first := ask("1", "")
		last := ask("2", first.reply(t, "mellon"))
		if last.Result.ResultType != "complete" || len(last.Result.Content) != 1 || !strings.Contains(last.Result.Content[0].Text, "mellon") {
			t.Errorf("got %+v", last)
		}
	})
}

// TestInput_Legacy: if a modern server asks for input, mcpx asks a legacy client on its session and then sends
// the call to the server again.
func TestInput_Legacy(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{Era: mcptest.EraModern}.HTTP(t)
	_, web := site(t, remote("fake", fake))
	c := newAbleClient(t, web, `{"elicitation":{}}`)
	call := c.stream(t, "tools/call", c.call("1", "ask", `{}`, ""))
	question, _ := call.next(t)
	c.answer(t, string(question.ID), "mellon")
	if _, got := call.next(t); !strings.Contains(got, "mellon") {
		t.Errorf("got %s", got)
	}
	for _, sent := range fake.Log().Method("tools/call") {
		if !strings.Contains(string(sent.Message), `"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}`) {
			t.Errorf("sent %s", sent.Message)
		}
	}
	deaf := newAbleClient(t, web, `{}`)
	if _, got := deaf.stream(t, "tools/call", deaf.call("1", "ask", `{}`, "")).next(t); !strings.Contains(got, "Missing required client capability") {
		t.Errorf("got %s", got)
	}
}

// TestSuspended: a suspended call ends when mcpx stops, and when suspendedTime is over.
func TestSuspended(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	f, web := site(t, remote("fake", fake))
	c := newWebClient(t, web, modernEra)
	c.ask(t, modernCall("1", "ask", `{}`, "")).reply(t, "x")
	f.suspended.mu.Lock()
	if len(f.suspended.calls) != 1 {
		t.Errorf("%d calls are suspended", len(f.suspended.calls))
	}
	for _, p := range f.suspended.calls {
		p.expiry.Reset(time.Millisecond)
	}
	f.suspended.mu.Unlock()
	mcptest.WaitFor(t, "the end of the call", patience, func() bool {
		f.suspended.mu.Lock()
		defer f.suspended.mu.Unlock()
		return len(f.suspended.calls)+len(f.suspended.open) == 0
	})
	mcptest.WaitFor(t, "the cancellation", patience, func() bool { return len(fake.Log().Event(mcptest.EventCancel)) == 1 })
	// A client that disconnects during a call without questions cancels this call too.
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() { // the goroutine ends with ctx
		defer close(gone)
		if response, err := c.send(ctx, "POST", "tools/call", modernCall("9", "slow", `{"ms":60000}`, "")); err == nil {
			response.Body.Close()
		}
	}()
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(fake.Log().Calls("slow")) == 1 })
	cancel()
	<-gone
	mcptest.WaitFor(t, "the cancellation", patience, func() bool { return len(fake.Log().Event(mcptest.EventCancel)) == 2 })
	c.ask(t, modernCall("2", "ask", `{}`, "")).reply(t, "x")
	f.Close()
	if len(f.suspended.calls)+len(f.suspended.open) != 0 {
		t.Error("calls are left")
	}
	late := c.ask(t, modernCall("3", "ask", `{}`, ""))
	if late.Error == nil {
		t.Errorf("after the end: %+v", late)
	}
}

// heardParams also records the params of notifications.
type heardParams struct{ heard }

func (h *heardParams) notify(method string, params json.RawMessage) {
	h.heard.notify(method+" "+string(params), nil)
}

// TestSuspended_Kept: the log messages and the newest progress of the time while a call is suspended go to the request that resumes
// it, and come before all later ones. A flood of log messages takes no more memory than maxKept.
func TestSuspended_Kept(t *testing.T) {
	p, out := &suspendedCall{}, &heardParams{}
	p.notify("notifications/message", json.RawMessage(`{"data":1}`))
	p.notify("notifications/progress", json.RawMessage(`{"progressToken":"old","progress":1}`))
	p.notify("notifications/progress", json.RawMessage(`{"progressToken":"old","progress":2}`))
	p.notify("notifications/message", json.RawMessage(`{"data":"`+strings.Repeat("x", maxKept)+`"}`))
	p.notify("notifications/message", json.RawMessage(`{"data":2}`))
	p.goOn(&incoming{message: &message{requestMeta: requestMeta{token: json.RawMessage(`"new"`)}}, out: out})
	p.notify("notifications/message", json.RawMessage(`{"data":3}`))
	want := []string{
		`notifications/message {"data":1}`, `notifications/message {"data":2}`,
		`notifications/progress {"progressToken":"new","progress":2}`, `notifications/message {"data":3}`,
	}
	if !slices.Equal(out.methods, want) {
		t.Errorf("got %q, want %q", out.methods, want)
	}
}

// TestSuspended_KeptMemory: what a suspended call keeps is bounded, also if a notification is huge, is a small part of a huge message, or
// has no params at all.
func TestSuspended_KeptMemory(t *testing.T) {
	p := &suspendedCall{}
	p.notify("notifications/progress", append(make(json.RawMessage, 0, 1<<20), `{"progress":1}`...))
	p.notify("notifications/progress", json.RawMessage(`{"message":"`+strings.Repeat("x", maxKept)+`"}`))
	if string(p.progress) != `{"progress":1}` || cap(p.progress) > maxKept {
		t.Errorf("kept progress of %d bytes in %d", len(p.progress), cap(p.progress))
	}
	for range maxKept {
		p.notify("notifications/message", nil)
	}
	if len(p.kept) > maxKept/len("notifications/message") {
		t.Errorf("kept %d log messages without params", len(p.kept))
	}
}

// TestSuspended_Unknown: a suspended call ends when its principal may not connect any more.
func TestSuspended_Unknown(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	var gone atomic.Bool
	f, web := siteWith(t, Options{Known: func(*caller.Principal) bool { return !gone.Load() }}, remote("fake", fake))
	newWebClient(t, web, modernEra).ask(t, modernCall("1", "ask", `{}`, "")).reply(t, "x")
	f.EndUnknown()
	if n := len(fake.Log().Event(mcptest.EventCancel)); n != 0 {
		t.Errorf("%d calls of a known principal were cancelled", n)
	}
	gone.Store(true)
	f.EndUnknown()
	f.suspended.mu.Lock()
	if n := len(f.suspended.calls); n != 0 {
		t.Errorf("%d calls still wait for an answer", n)
	}
	f.suspended.mu.Unlock()
	mcptest.WaitFor(t, "the cancellation", patience, func() bool { return len(fake.Log().Event(mcptest.EventCancel)) == 1 })
}

// TestRequests_odd: a transparent view's server may send requests with any method name. The name is encoded as
// JSON.
func TestRequests_odd(t *testing.T) {
	p := &suspendedCall{last: 1, questions: map[string]*question{"q1": {method: `x","params":{"a":"\n`}}}
	var requests map[string]struct{ Method string }
	if err := json.Unmarshal(p.requests(), &requests); err != nil || requests["q1"].Method != p.questions["q1"].method {
		t.Errorf("%s (%v)", p.requests(), err)
	}
}

// TestRequests_NoParams: a question without params, such as roots/list, gets empty params, because go-sdk 1.8
// refuses it otherwise. Another question keeps the params that it has. For a legacy client no params are added.
func TestRequests_NoParams(t *testing.T) {
	for _, none := range []json.RawMessage{nil, json.RawMessage("null"), json.RawMessage("{}")} {
		own := json.RawMessage(`{"message":"Which word?"}`)
		p := &suspendedCall{last: 2, questions: map[string]*question{
			"q1": {method: "roots/list", params: none}, "q2": {method: "elicitation/create", params: own},
		}}
		const want = `{"q1":{"method":"roots/list","params":{}},"q2":{"method":"elicitation/create","params":{"message":"Which word?"}}}`
		if got := string(p.requests()); got != want {
			t.Errorf("params %s: %s", none, got)
		}
		if got := string(notification("roots/list", none)); strings.Contains(got, "null") {
			t.Errorf("params %s: %s", none, got)
		}
	}
}

// TestClose: when a view is closed, its open calls get an error that says why they end.
func TestClose(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	f, web := site(t, remote("fake", fake))
	c := newWebClient(t, web, modernEra)
	said := make(chan string, 1)
	go func() { // the goroutine ends with the call
		response, err := c.send(t.Context(), "POST", "tools/call", modernCall("1", "slow", `{"ms":60000}`, ""))
		if err != nil {
			said <- err.Error()
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		said <- string(body)
	}()
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(fake.Log().Calls("slow")) == 1 })
	f.Close()
	if got := <-said; !strings.Contains(got, errClosed.Error()) {
		t.Errorf("got %s", got)
	}
}

// TestInput_Prompts: a request for a prompt can also get input_required.
func TestInput_Prompts(t *testing.T) {
	mcptest.NoLeaks(t)
	const wants = `{"resultType":"input_required","inputRequests":{"word":{"method":"elicitation/create","params":{"message":"Which word?"}}},"requestState":"s"}`
	fake := mcptest.Spec{Era: mcptest.EraModern, MethodResults: map[string]json.RawMessage{
		"server/discover": json.RawMessage(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{}},"resultType":"complete"}`),
		"prompts/list":    json.RawMessage(`{"prompts":[{"name":"p"}],"resultType":"complete"}`),
		"prompts/get":     json.RawMessage(wants),
	}}.HTTP(t)
	f, web := site(t, remote("fake", fake))
	f.registry.WaitTried(t.Context())
	c := newWebClient(t, web, modernEra)
	get := func(id, more string) (r inputResult) {
		t.Helper()
		body := strings.Replace(strings.Replace(modernCall(id, "x", `{}`, more), "tools/call", "prompts/get", 1), `"name":"exec"`, `"name":"fake__p"`, 1)
		request, err := http.NewRequestWithContext(t.Context(), "POST", web.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": modernEra, "Mcp-Method": "prompts/get", "Mcp-Name": "fake__p"} {
			request.Header.Set(name, value)
		}
		response, err := c.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(&r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	again := get("2", get("1", "").reply(t, "mellon"))
	again.reply(t, "x")
	sent := fake.Log().Method("prompts/get")
	if len(sent) != 2 || !strings.Contains(string(sent[1].Message), `"requestState":"s"`) || !strings.Contains(string(sent[1].Message), "mellon") {
		t.Errorf("sent %d: %s", len(sent), sent[len(sent)-1].Message)
	}
}

// TestRequests_TwoFronts: modern requests have no session, so a front makes the id of their client from a counter. Each front
// counts from 1. The first requests of two fronts must still be from two clients, with one session each at the server.
func TestRequests_TwoFronts(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	server := remote("fake", fake)
	server.PerClient = true
	one, web := site(t, server)
	one.registry.WaitTried(t.Context())
	two := view.NewTwoTools(one.registry, executor.New(one.registry, executor.Options{}), view.Options{}) // has the registry of one
	defer two.Close()
	other := New(two, Options{})
	defer other.Close()
	elsewhere := httptest.NewServer(other)
	defer elsewhere.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { // the goroutine ends with ctx
		defer close(ended)
		if response, err := newWebClient(t, web, modernEra).send(ctx, "POST", "tools/call", modernCall("1", "slow", `{"ms":60000}`, "")); err == nil {
			response.Body.Close()
		}
	}()
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(fake.Log().Calls("slow")) == 1 })
	newWebClient(t, elsewhere, modernEra).ask(t, modernCall("1", "echo", `{"text":"x"}`, ""))
	calls := fake.Log()
	if echoes := calls.Calls("echo"); len(echoes) != 1 || echoes[0].Session == calls.Calls("slow")[0].Session {
		t.Errorf("%d calls, on the session of another", len(echoes))
	}
	cancel()
	<-ended
}

// usedUp is a state.Once that returns what the test wants for each state.
type usedUp struct {
	state.Once
	fresh atomic.Bool
	err   atomic.Pointer[error]
}

func (u *usedUp) Redeem(ctx context.Context, name string, until time.Time) (bool, error) {
	if err := u.err.Load(); err != nil {
		return true, *err
	}
	if !u.fresh.Load() {
		return false, nil
	}
	return u.Once.Redeem(ctx, name, until)
}

// TestInput_Once: a state that another process has used, or may have used, does not resume the call. The call
// continues to wait.
func TestInput_Once(t *testing.T) {
	mcptest.NoLeaks(t)
	once := &usedUp{Once: NewOnce()}
	_, web := siteWith(t, Options{Once: once}, remote("fake", mcptest.Spec{}.HTTP(t)))
	c := newWebClient(t, web, modernEra)
	reply := c.ask(t, modernCall("1", "ask", `{}`, "")).reply(t, "mellon")
	if got := c.ask(t, modernCall("2", "ask", `{}`, reply)); got.Error == nil || !strings.Contains(got.Error.Message, "answered already") {
		t.Errorf("used elsewhere: %+v", got)
	}
	once.err.Store(&state.ErrAway)
	if got := c.ask(t, modernCall("3", "ask", `{}`, reply)); got.Error == nil || got.Error.Code != codeRefused || !strings.Contains(got.Error.Message, "try again") {
		t.Errorf("nobody can tell: %+v", got)
	}
	once.err.Store(nil)
	once.fresh.Store(true)
	if got := c.ask(t, modernCall("4", "ask", `{}`, reply)); len(got.Result.Content) != 1 || !strings.Contains(got.Result.Content[0].Text, "mellon") {
		t.Errorf("in the end: %+v", got)
	}
}

// TestInput_Race: many requests use the same state at the same time. One of them resumes the call, and the
// others are refused.
func TestInput_Race(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	_, web := site(t, remote("fake", fake))
	c := newWebClient(t, web, modernEra)
	reply := c.ask(t, modernCall("1", "ask", `{}`, "")).reply(t, "mellon")
	var all sync.WaitGroup
	var done, refused atomic.Int32
	for range 8 {
		all.Go(func() {
			switch got := c.ask(t, modernCall("2", "ask", `{}`, reply)); {
			case got.Error != nil && strings.Contains(got.Error.Message, "answered already"):
				refused.Add(1)
			case got.Result.ResultType == "complete":
				done.Add(1)
			}
		})
	}
	all.Wait()
	if done.Load() != 1 || refused.Load() != 7 || len(fake.Log().Calls("ask")) != 1 {
		t.Errorf("%d went on, %d were refused, %d calls", done.Load(), refused.Load(), len(fake.Log().Calls("ask")))
	}
}
