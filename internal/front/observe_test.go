package front

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
	"mcpx/internal/view"
)

// hearing is an observer that records events.
type hearing struct {
	hold chan struct{} // the observer of a client's call blocks until this is closed; nil means that it does not block

	mu    sync.Mutex
	heard []string
}

func (h *hearing) add(e *request.Event) {
	if h.hold != nil && e.Request && e.IsCall() {
		<-h.hold
	}
	of := "request "
	if !e.Request {
		of = "message "
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, of+e.Method+" "+e.Outcome)
}

// take returns the recorded events, and forgets them.
func (h *hearing) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	heard := h.heard
	h.heard = nil
	return heard
}

func (h *hearing) journal() *request.Journal {
	journal := &request.Journal{}
	journal.Observe(h.add)
	return journal
}

func (h *hearing) front(t *testing.T, servers ...registry.Server) shown {
	return connectWith(t, Options{Journal: h.journal()}, view.Options{}, servers...)
}

// answered is an HTTP response together with the events of its requests.
type answered struct {
	*httptest.ResponseRecorder
	events []*request.Event
}

// TestEvents_AfterAnswer: the answer reaches the client before the observers get the event of its request.
func TestEvents_AfterAnswer(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"none","tool_name":"x","arguments":{}}}}`
	var h hearing
	f := h.front(t)
	post := func(body string, headers ...string) *answered {
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.take()
		return &answered{w, f.Serve(w, r)}
	}
	check := func(name string, w *answered, before, after []string) {
		t.Helper()
		if body := w.Body.String(); !strings.Contains(body, `"id":5`) || !strings.Contains(body, results.CodeServerNotFound) || w.Header().Get("Content-Length") != strconv.Itoa(len(body)) {
			t.Errorf("%s: %v %s", name, w.Header(), body)
		}
		if heard := h.take(); !slices.Equal(heard, before) {
			t.Errorf("%s: before the answer: %q, want %q", name, heard, before)
		}
		f.ended(w.events...)
		if heard := h.take(); !slices.Equal(heard, after) {
			t.Errorf("%s: after it: %q, want %q", name, heard, after)
		}
	}
	session := post(strings.SplitN(hello("a"), "\n", 2)[0]).Header().Get("Mcp-Session-Id")
	whole := []string{"request tools/call " + results.CodeServerNotFound}
	check("legacy", post(call, "Mcp-Session-Id", session), nil, whole)
	// If the client can be asked questions, its call has an event of its own, which may end after the answer.
	check("modern", post(strings.Replace(modernCall("5", "x", "{}", ""), `"fake"`, `"none"`, 1),
		"Mcp-Protocol-Version", modernEra, "Mcp-Method", "tools/call", "Mcp-Name", "exec"),
		[]string{"message tools/call " + results.CodeServerNotFound}, whole)

	t.Run("stdio", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := hearing{hold: make(chan struct{})}
			p := dial(t, h.front(t), "a")
			p.send(t, call+"\n")
			synctest.Wait()
			if heard := h.take(); p.with(`"id":5`) != 1 || !slices.Equal(heard, []string{"request initialize RESULT"}) {
				t.Errorf("%q, heard %q", p.lines, heard)
			}
			close(h.hold)
			synctest.Wait()
			if heard := h.take(); !slices.Equal(heard, whole) {
				t.Errorf("heard %q", heard)
			}
		})
	})
	t.Run("end of stdin", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := hearing{hold: make(chan struct{})}
			served := make(chan struct{})
			go func() { // the goroutine ends when the test closes the input below
				defer close(served)
				_ = h.front(t).ServeStdio(t.Context(), strings.NewReader(hello("a")+call+"\n"), io.Discard, StdioOptions{})
			}()
			time.Sleep(2 * lastAnswers)
			select {
			case <-served:
				t.Error("nobody waited for the observers")
			default:
			}
			close(h.hold)
			<-served
			if heard := h.take(); !slices.Equal(heard[1:], whole) {
				t.Errorf("heard %q", heard)
			}
		})
	})
}

// once is an observer that records which events have ended. It fails the test if an event ends twice, or is
// incomplete when it ends.
type once struct {
	t *testing.T

	mu    sync.Mutex
	ended map[*request.Event]bool
	heard []string
}

func (o *once) front(options Options, shows view.Options, servers ...registry.Server) shown {
	options.Journal = &request.Journal{}
	options.Journal.Observe(o.add)
	return connectWith(o.t, options, shows, servers...)
}

func (o *once) add(e *request.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended == nil {
		o.ended = make(map[*request.Event]bool)
	}
	if o.ended[e] {
		o.t.Errorf("%+v has ended again", e)
	}
	o.ended[e] = true // keeps the event alive, so that no later event has the same address
	text := "message "
	if e.Request {
		text = "request "
	}
	text += e.Method + " " + e.Outcome
	if e.Attempted {
		text += " to " + e.Server + " " + e.Tool + e.Item
	}
	if e.Outcome == "" || e.Began.IsZero() || e.Duration <= 0 || e.Attempted != (e.Number > 0) || (e.Upstream > 0) != !e.Asked.IsZero() {
		o.t.Errorf("%s: %+v", text, e)
	}
	o.heard = append(o.heard, text)
}

// expect waits until the wanted events have ended, and fails if others have.
func (o *once) expect(way string, want ...string) {
	o.t.Helper()
	slices.Sort(want)
	mcptest.WaitFor(o.t, way, patience, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.heard) >= len(want)
	})
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Sort(o.heard); !slices.Equal(o.heard, want) {
		o.t.Errorf("%s:\n%s\nwant\n%s", way, strings.Join(o.heard, "\n"), strings.Join(want, "\n"))
	}
	o.heard = nil
}

// TestEvents_HTTP: each request over HTTP has one event, which ends once, however the request ends.
func TestEvents_HTTP(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := offering("fake", mcptest.EraLegacy).HTTP(t)
	events := &once{t: t}
	f := events.front(Options{}, view.Options{}, remote("fake", fake))
	f.registry.WaitListed(t.Context(), nil)
	web := httptest.NewServer(f)
	t.Cleanup(web.Close)
	t.Cleanup(f.Close)

	old := newWebClient(t, web, legacyEra)
	events.expect("initialize", "request initialize RESULT")
	send := func(ctx context.Context, c *webClient, method, body string) {
		if response, err := c.send(ctx, "POST", method, body); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
	}
	request := func(method, params string) {
		send(t.Context(), old, method, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
	}
	request("tools/list", `{}`)
	request("nope", `{}`)
	request("notifications/made_up", `{}`)
	events.expect("what asks no server", "request tools/list RESULT", "request nope ERROR -32601", "request notifications/made_up ERROR -32601")
	send(t.Context(), old, "", `{"jsonrpc":"2.0","method":"notifications/made_up"}`)
	send(t.Context(), old, "", `{"jsonrpc":"2.0","id":1}`)
	send(t.Context(), old, "", `{`)
	request("resources/read", `{"uri":"fake://1"}`)
	request("resources/read", `{"uri":"fake://none"}`)
	request("resources/read", `{}`)
	request("resources/subscribe", `{"uri":"fake://1"}`)
	request("resources/subscribe", `{"uri":"fake://1"}`) // a repeated subscription
	request("resources/unsubscribe", `{"uri":"fake://1"}`)
	request("resources/unsubscribe", `{"uri":"fake://1"}`)
	request("prompts/get", `{"name":"fake__greet","arguments":{"who":"x"}}`)
	request("completion/complete", `{"ref":{"type":"ref/prompt","name":"fake__greet"},"argument":{"name":"who","value":"x"}}`)
	events.expect("what is beside tools", "request resources/read RESULT to fake fake://1", "request resources/read ERROR -32002 to fake fake://none",
		"request resources/read ERROR -32602",
		"request resources/subscribe RESULT to fake fake://1", "request resources/subscribe RESULT",
		"request resources/unsubscribe RESULT to fake fake://1", "request resources/unsubscribe RESULT",
		"request prompts/get RESULT to fake greet", "request completion/complete RESULT to fake greet")
	for _, tool := range []string{"echo", "fail", "none"} {
		send(t.Context(), old, "tools/call", execLine("1", "fake", tool, `{"text":"x"}`))
	}
	send(t.Context(), old, "tools/call", execLine("1", "none", "x", `{}`))
	send(t.Context(), old, "tools/call", execLine("1", "mcpx", "read_resource", `{"uri":"fake://1"}`))
	request("tools/call", `{"name":"inspect","arguments":{"server_name":"none"}}`)
	request("tools/call", `{"name":"none"}`)
	request("tools/call", `{}`)
	events.expect("calls", "request tools/call RESULT to fake echo", "request tools/call TOOL_ERROR to fake fail",
		"request tools/call TOOL_NOT_FOUND to fake none", "request tools/call SERVER_NOT_FOUND to none x",
		"request tools/call RESULT to mcpx read_resource", "message resources/read RESULT to fake fake://1",
		"request tools/call TOOL_ERROR", "request tools/call TOOL_NOT_FOUND to  none", "request tools/call ERROR -32602")
	send(t.Context(), old, "", `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},`+
		strings.TrimSpace(execLine("2", "fake", "echo", `{"text":"x"}`))+`,{"jsonrpc":"2.0","id":3,"method":"initialize"},7]`)
	events.expect("a batch", "request ping RESULT", "request tools/call RESULT to fake echo")

	cancelled := func(way string, c *webClient, call string, end func(leave func()), want ...string) {
		t.Helper()
		before := len(fake.Log().Calls("slow"))
		ctx, leave := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { // the goroutine ends with the call
			defer close(over)
			send(ctx, c, "tools/call", call)
		}()
		mcptest.WaitFor(t, "the call", patience, func() bool { return len(fake.Log().Calls("slow")) > before })
		end(leave)
		events.expect(way, want...)
		leave()
		<-over
	}
	slow := execLine("7", "fake", "slow", `{"ms":3600000}`)
	whole := "request tools/call CANCELLED to fake slow"
	cancelled("a cancelled call", old, slow, func(func()) {
		old.notify(t, "notifications/cancelled", `{"requestId":7}`)
	}, whole)
	cancelled("a call whose client is gone", old, slow, func(leave func()) { leave() }, whole)
	now := newWebClient(t, web, modernEra)
	cancelled("a modern call whose client is gone", now, modernExec("7", "fake", "slow", `{"ms":3600000}`), func(leave func()) { leave() }, whole)
	cancelled("the same of a client that can be asked", now, modernCall("7", "slow", `{"ms":3600000}`, ""), func(leave func()) { leave() },
		"message tools/call CANCELLED to fake slow", "request tools/call CANCELLED")

	first := now.ask(t, modernCall("1", "ask", `{}`, ""))
	events.expect("a call that is suspended", "request tools/call RESULT")
	now.ask(t, modernCall("2", "ask", `{}`, first.reply(t, "x")))
	events.expect("its end", "message tools/call RESULT to fake ask", "request tools/call RESULT")
	now.ask(t, modernCall("3", "fail", `{}`, ""))
	events.expect("a tool that fails", "message tools/call TOOL_ERROR to fake fail", "request tools/call TOOL_ERROR")
	send(t.Context(), now, "tools/call", strings.Replace(modernCall("3", "fail", `{}`, ""), `"exec"`, `"none"`, 1))
	events.expect("a tool that is not there", "message tools/call TOOL_NOT_FOUND to  none", "request tools/call TOOL_NOT_FOUND")
	now.ask(t, modernCall("4", "ask", `{}`, ""))
	events.expect("another that is suspended", "request tools/call RESULT")
	f.suspended.end(errNoAnswer)
	events.expect("and not answered", "message tools/call CANCELLED to fake ask")

	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	response, err := now.send(ctx, "POST", "subscriptions/listen", listenLine("1", `{"toolsListChanged":true,"resourceSubscriptions":["fake://1"]}`))
	if err != nil {
		t.Fatal(err)
	}
	events.expect("the beginning of a subscription", "message resources/subscribe RESULT to fake fake://1")
	leave()
	response.Body.Close()
	events.expect("its end", "request subscriptions/listen RESULT")
	if gone, err := old.send(t.Context(), "DELETE", "", ""); err != nil || f.Sessions() != 0 {
		t.Error(gone, err)
	} else {
		gone.Body.Close()
	}
	f.Close()
	events.expect("the end")
}

// TestEvents_Pipes: over stdio and over the older HTTP+SSE transport each request has one event, which ends
// once.
func TestEvents_Pipes(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	events := &once{t: t}
	f := events.front(Options{}, view.Options{}, remote("fake", fake))
	f.registry.WaitTried(t.Context())
	s := openStream(t, asPrincipals(t, f.Front), "alice")
	p := dialSilent(t, f, StdioOptions{})
	hello, slow := strings.Split(hello("a"), "\n"), execLine("7", "fake", "slow", `{"ms":3600000}`)
	calls := func(n int) func() bool { return func() bool { return len(fake.Log().Calls("slow")) == n } }
	for way, client := range map[string]struct {
		send func(message string)
		end  func()
	}{
		"sse":   {func(message string) { s.send(t, strings.TrimSpace(message)) }, s.end},
		"stdio": {func(message string) { p.send(t, strings.TrimSpace(message)+"\n") }, func() { p.in.Close() }},
	} {
		before := len(fake.Log().Calls("slow"))
		for _, message := range []string{
			hello[0], hello[1], `{"jsonrpc":"2.0","method":"notifications/made_up"}`, `{"jsonrpc":"2.0","id":1}`, `{"id":2}`,
			`{"jsonrpc":"2.0","id":3,"method":"nope"}`, execLine("4", "fake", "echo", `{"text":"x"}`), modernExec("5", "fake", "fail", `{}`),
			`{"jsonrpc":"2.0","id":6,"method":"tools/list","params":{` + strings.Replace(modernMeta, `Capabilities":{}`, `Capabilities":1`, 1) + `}}`,
			`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`,
			listenLine("8", `{"toolsListChanged":true}`), slow,
		} {
			client.send(message)
		}
		events.expect(way, "request initialize RESULT", "request nope ERROR -32601", "request tools/call RESULT to fake echo",
			"request tools/call TOOL_ERROR to fake fail", "request ping RESULT", "request ping RESULT")
		mcptest.WaitFor(t, "the call", patience, calls(before+1))
		client.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		events.expect(way+": a cancelled call", "request tools/call CANCELLED to fake slow")
		client.send(slow)
		mcptest.WaitFor(t, "the call", patience, calls(before+2))
		client.end()
		events.expect(way+": the end", "request tools/call CANCELLED to fake slow", "request subscriptions/listen RESULT")
	}
	f.Close()
	events.expect("the end of all")
}

// breaking is a view that panics when a message is sent to a server.
type breaking struct{ view.View }

func (breaking) Send(context.Context, *request.Request) (json.RawMessage, error) { panic("on purpose") }

// TestEvents_Panic: if a request panics, only this request gets an error, and its event ends as usual.
func TestEvents_Panic(t *testing.T) {
	mcptest.NoLeaks(t)
	var said strings.Builder
	events := &once{t: t}
	f := events.front(Options{}, view.Options{})
	options := f.options
	options.Logger = slog.New(slog.NewTextHandler(&said, nil))
	front := New(breaking{f.two}, options)
	t.Cleanup(front.Close)
	const message = `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x://y"}}`
	p := dialSilent(t, shown{Front: front}, StdioOptions{})
	mustFail := func(way, answer string) {
		t.Helper()
		if !strings.Contains(answer, `"id":1,"error":{"code":-32603,`) || strings.Contains(answer, "purpose") ||
			!strings.Contains(said.String(), "on purpose") || !strings.Contains(said.String(), "observe_test.go") {
			t.Errorf("%s: %s, %s", way, answer, said.String())
		}
		said.Reset()
	}
	p.send(t, message+"\n")
	events.expect("stdio", "request resources/read ERROR -32603")
	mcptest.WaitFor(t, "the answer", patience, func() bool { return len(p.answers("1")) == 1 }) // written after the event has ended
	mustFail("stdio", p.answers("1")[0])
	for capabilities, want := range map[string][]string{
		`{}`:                 {"request resources/read ERROR -32603"},
		`{"elicitation":{}}`: {"message resources/read ERROR -32603", "request resources/read ERROR -32603"}, // such a call may be suspended
	} {
		meta := strings.Replace(modernMeta, `Capabilities":{}`, `Capabilities":`+capabilities, 1)
		r := asking("POST", strings.Replace(message, `"params":{`, `"params":{`+meta+`,`, 1))
		for header, value := range map[string]string{"Mcp-Protocol-Version": modernEra, "Mcp-Method": "resources/read", "Mcp-Name": "x://y"} {
			r.Header.Set(header, value)
		}
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		events.expect("http with "+capabilities, want...)
		mustFail("http", w.Body.String())
	}
	p.send(t, strings.Replace(message, "resources/read", "ping", 1)+"\n")
	events.expect("after that", "request ping RESULT")
}

// TestEvents_Sizes: the event of a call records the size of its content, whether or not the client can be
// asked questions. The event of another request records the size of the answer.
func TestEvents_Sizes(t *testing.T) {
	var seen []request.Sizes
	journal := &request.Journal{}
	journal.Observe(func(e *request.Event) {
		if e.Attempted {
			seen = append(seen, e.Sizes)
		}
	})
	f := connectWith(t, Options{Journal: journal}, view.Options{}, remote("fake", offering("fake", mcptest.EraLegacy).HTTP(t)))
	f.registry.WaitListed(t.Context(), nil)
	ask := func(message, method, name string) string {
		t.Helper()
		w := posted(f.Front, nil, strings.NewReader(message), int64(len(message)), "Mcp-Protocol-Version", modernEra, "Mcp-Method", method, "Mcp-Name", name)
		if w.Code != 200 {
			t.Fatal(w.Code, w.Body)
		}
		return w.Body.String()
	}
	ask(modernExec("1", "fake", "echo", `{"text":"hello"}`), "tools/call", "exec")
	ask(modernCall("2", "echo", `{"text":"hello"}`, ""), "tools/call", "exec") // such a call may be suspended
	const read = `{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"fake://1",` + modernMeta + `}}`
	answer := ask(read, "resources/read", "fake://1")
	ask(strings.Replace(read, `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1), "resources/read", "fake://1")
	if len(seen) != 4 {
		t.Fatalf("%+v", seen)
	}
	if content := len(`{"type":"text","text":"hello"}`); seen[0].SentBytes != content || seen[1].SentBytes != content || seen[0] != seen[1] {
		t.Errorf("of calls %+v and %+v, want %d", seen[0], seen[1], content)
	}
	if seen[2].SentBytes != len(answer) || seen[3].SentBytes < len(answer)-50 || seen[2].ReceivedBytes == 0 || seen[2].ReceivedBytes != seen[3].ReceivedBytes ||
		seen[2].ArgumentBytes != len(`{"uri":"fake://1"}`) {
		t.Errorf("of reads %+v and %+v, want %d", seen[2], seen[3], len(answer))
	}
}

// TestEvents_Listed: the event of a tools/list counts the definitions that mcpx saves the client (Event.Definitions) only for the
// first list of a session. For a client without a session, it counts them again after half an hour without a tools/list.
func TestEvents_Listed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const list = `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`
		counted := 0
		journal := &request.Journal{}
		journal.Observe(func(e *request.Event) {
			if e.Definitions != nil {
				counted++
				if e.Method != "tools/list" || len(e.Definitions()) == 0 {
					t.Errorf("%+v", e)
				}
			}
		})
		f := connectWith(t, Options{Journal: journal}, view.Options{})
		post := func(body string, headers ...string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			w := httptest.NewRecorder()
			f.ended(f.Serve(w, r)...)
			return w
		}
		modern := func(name string) {
			t.Helper()
			w := post(`{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"`+modernEra+
				`","io.modelcontextprotocol/clientInfo":{"name":"`+name+`","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
				"Mcp-Protocol-Version", modernEra, "Mcp-Method", "tools/list")
			if !strings.Contains(w.Body.String(), `"inspect"`) {
				t.Fatal(w.Body.String())
			}
		}
		for range 2 {
			session := post(strings.SplitN(hello("a"), "\n", 2)[0]).Header().Get("Mcp-Session-Id")
			for range 3 {
				if w := post(list, "Mcp-Session-Id", session); !strings.Contains(w.Body.String(), `"inspect"`) {
					t.Fatal(w.Body.String())
				}
			}
		}
		if counted != 2 {
			t.Errorf("two sessions counted %d times", counted)
		}
		counted = 0
		for range 5 {
			modern("a")
			time.Sleep(listingTime - time.Second)
		}
		modern("b")
		if counted != 2 {
			t.Errorf("two clients without a session counted %d times", counted)
		}
		time.Sleep(listingTime + time.Second)
		if modern("a"); counted != 3 {
			t.Errorf("counted %d times half an hour later", counted)
		}
	})
}
