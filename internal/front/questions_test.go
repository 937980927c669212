package front

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

// able is the initialize message of a client that supports elicitation.
func able(client string) string {
	return strings.Replace(hello(client), `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)
}

// asked waits for the n-th question to the client and returns its id.
func (p *pipe) asked(t *testing.T, n int) (id string) {
	t.Helper()
	mcptest.WaitFor(t, "the question", patience, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		found := 0
		for _, line := range p.lines {
			var m webMessage
			if json.Unmarshal([]byte(line), &m) == nil && m.Method == "elicitation/create" {
				if found++; found == n {
					if !strings.Contains(string(m.Params), "Which word?") {
						t.Errorf("asked %s", line)
					}
					id = string(m.ID)
					return true
				}
			}
		}
		return false
	})
	return id
}

func answerLine(id, word string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"word":"` + word + `"}}}` + "\n"
}

// legacyUpstreams returns, for each transport, a server that asks the client something in the middle of a
// call.
func legacyUpstreams(t *testing.T) map[string]registry.Server {
	return map[string]registry.Server{
		"stdio": stdio(t, "fake", mcptest.Spec{}),
		"http":  remote("fake", mcptest.Spec{}.HTTP(t)),
	}
}

// TestAsk_Stdio: a server asks the client something in the middle of a call. mcpx gives the question an id of
// its own and passes the answer on to the server. If a client answers late, its other calls still work.
func TestAsk_Stdio(t *testing.T) {
	mcptest.NoLeaks(t)
	for over, server := range legacyUpstreams(t) {
		t.Run(over, func(t *testing.T) {
			p := dialSilent(t, connect(t, view.Options{}, server), StdioOptions{})
			p.send(t, able("agent"))
			p.send(t, execLine("11", "fake", "ask", `{}`)+execLine("12", "fake", "echo", `{"text":"meanwhile"}`))
			id := p.asked(t, 1)
			mcptest.WaitFor(t, "the other call", patience, func() bool { return len(p.answers("12")) == 1 })
			p.send(t, answerLine("77", "nobody asked this")+answerLine(id, "mellon")+answerLine(id, "twice"))
			mcptest.WaitFor(t, "the answer", patience, func() bool { return len(p.answers("11")) == 1 })
			if got := p.answers("11")[0]; !strings.Contains(got, `mellon`) {
				t.Errorf("got %s", got)
			}

			// The client answers the question with an error.
			p.send(t, execLine("13", "fake", "ask", `{}`))
			p.send(t, `{"jsonrpc":"2.0","id":`+p.asked(t, 2)+`,"error":{"code":-1,"message":"not in the mood"}}`+"\n")
			mcptest.WaitFor(t, "the answer", patience, func() bool { return len(p.answers("13")) == 1 })
			if got := p.answers("13")[0]; !strings.Contains(got, "not in the mood") {
				t.Errorf("got %s", got)
			}

			// Some clients write the id in another form.
			for i, form := range []string{`"%s"`, `%s.0`} {
				p.send(t, execLine("13", "fake", "ask", `{}`))
				p.send(t, answerLine(fmt.Sprintf(form, p.asked(t, 3+i)), "friend"))
				mcptest.WaitFor(t, "the answer", patience, func() bool { return len(p.answers("13")) == 2+i })
				if got := p.answers("13")[1+i]; !strings.Contains(got, "friend") {
					t.Errorf("got %s", got)
				}
			}

			// The answer has neither result nor error, as of a handler that returns undefined. This is no request without a method: an
			// error with its id would be the answer to a request of the client that happens to have the same id.
			p.send(t, execLine("13", "fake", "ask", `{}`))
			id = p.asked(t, 5)
			p.send(t, `{"jsonrpc":"2.0","id":`+id+"}\n")
			mcptest.WaitFor(t, "the answer", patience, func() bool { return len(p.answers("13")) == 4 })
			if got := p.answers("13")[3]; !strings.Contains(got, "neither result nor error") || len(p.answers(id)) != 1 { // the question itself
				t.Errorf("got %s, and %s", got, p.answers(id))
			}

			// If the client cancels the call, mcpx cancels the question too.
			p.send(t, execLine("14", "fake", "ask", `{}`))
			id = p.asked(t, 6)
			p.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":14}}`+"\n")
			mcptest.WaitFor(t, "the end of the question", patience, func() bool {
				return p.with(`"method":"notifications/cancelled","params":{"requestId":`+id+`,`) == 1
			})
		})
	}
}

// webStream reads the events of a response as they arrive.
type webStream struct {
	body *http.Response
	scan *bufio.Scanner
}

func (c *webClient) stream(t *testing.T, method, body string) *webStream {
	t.Helper()
	verb := "POST"
	if method == "" {
		verb = "GET"
	}
	response, err := c.send(t.Context(), verb, method, body)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	s := &webStream{body: response, scan: bufio.NewScanner(response.Body)}
	s.scan.Buffer(nil, 1<<20)
	return s
}

// next returns the next message of the stream. If the response is JSON, it returns its only message.
func (s *webStream) next(t *testing.T) (m webMessage, raw string) {
	t.Helper()
	for s.scan.Scan() {
		data, event := strings.CutPrefix(s.scan.Text(), "data: ")
		if event || strings.HasPrefix(data, "{") {
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				t.Fatal(err)
			}
			return m, data
		}
	}
	t.Fatalf("the stream ended: %v", s.scan.Err())
	return m, ""
}

func (c *webClient) answer(t *testing.T, id, word string) {
	t.Helper()
	response, err := c.send(t.Context(), "POST", "", answerLine(id, word))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusAccepted {
		t.Errorf("the answer got %s", response.Status)
	}
}

// newAbleClient returns a legacy client over HTTP with these capabilities.
func newAbleClient(t *testing.T, web *httptest.Server, capabilities string) *webClient {
	t.Helper()
	c := &webClient{url: web.URL, era: legacyEra, http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(c.http.CloseIdleConnections)
	c.initializeWith(t, capabilities)
	return c
}

// TestAnswer_Error: an error of a client keeps its message and data, whatever its code is written like.
func TestAnswer_Error(t *testing.T) {
	for sent, want := range map[string]string{
		`{"code":-1,"message":"no","data":[1.0]}`:   `-1 "no (code -1)" [1.0]`,
		`{"code":-1.0,"message":"no","data":[1.0]}`: `-1 "no (code -1)" [1.0]`,
		`{"code":"-1","message":"no"}`:              `-1 "no (code -1)" `,
		`{"code":"E_NO","message":"no"}`:            `0 "no (code E_NO)" `,
		`{"message":"no"}`:                          `0 "no" `,
		`"no"`:                                      `0 "an error that is not JSON-RPC's" "no"`,
	} {
		m := &message{Message: wire.Message{Error: json.RawMessage(sent)}}
		_, err := m.answer()
		rpc, _ := errors.AsType[*wire.RPCError](err)
		if rpc == nil {
			t.Errorf("%s: %v", sent, err)
		} else if got := fmt.Sprintf("%d %q %s", rpc.Code, rpc.Error(), rpc.Data); got != want {
			t.Errorf("%s: got %s", sent, got)
		}
	}
}

// TestAsk_HTTP: mcpx sends a server's question on the stream of the call, to the client that made the call. If
// the client cannot be asked, the call gets the server's own refusal.
func TestAsk_HTTP(t *testing.T) {
	mcptest.NoLeaks(t)
	for over, server := range legacyUpstreams(t) {
		t.Run(over, func(t *testing.T) {
			_, web := site(t, server)
			deaf, client := newAbleClient(t, web, `{}`), newAbleClient(t, web, `{"elicitation":{}}`)
			_, refused := deaf.stream(t, "tools/call", deaf.call("1", "ask", `{}`, "")).next(t)
			if !strings.Contains(refused, "the client many has not declared the capability elicitation") {
				t.Errorf("got %s", refused)
			}
			for i := range 3 {
				call := client.stream(t, "tools/call", client.call("1", "ask", `{}`, ""))
				question, _ := call.next(t)
				client.answer(t, string(question.ID), fmt.Sprint("word ", i))
				if _, got := call.next(t); !strings.Contains(got, fmt.Sprint("word ", i)) {
					t.Errorf("got %s", got)
				}
			}
			call := client.stream(t, "tools/call", client.call("1", "ask", `{}`, ""))
			question, _ := call.next(t)
			response, err := client.send(t.Context(), "POST", "", `{"jsonrpc":"2.0","id":`+string(question.ID)+`}`)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if _, got := call.next(t); !strings.Contains(got, "neither result nor error") || response.StatusCode != http.StatusBadRequest {
				t.Errorf("the answer got %s, the call %s", response.Status, got)
			}
		})
	}
}

// takes is a sender that calls sent for each request or cancellation, and refuses those for which sent returns false.
type takes struct {
	sender
	sent func(message string) bool
}

func (s *takes) send(message []byte) bool { return s.sent(string(message)) }

func (*takes) notify(string, json.RawMessage) {}

// TestAsk_TakenBack: a client cancels its call while a question of the call is open, and the stream of the call ends. The client hears
// on its other stream that the question is taken back.
func TestAsk_TakenBack(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked, heard := false, ""
	call := &takes{sent: func(string) bool {
		cancel()
		defer func() { asked = true }()
		return !asked
	}}
	outside := &takes{sent: func(message string) bool {
		heard += message
		return true
	}}
	var q questions
	_, err := q.ask(ctx, []sender{call, outside}, "elicitation/create", json.RawMessage(`{}`), nil)
	const want = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"context canceled"}}`
	if !errors.Is(err, context.Canceled) || heard != want {
		t.Errorf("heard %s, %v", heard, err)
	}
}

// TestAsk_Whose: if two clients have calls open on one shared session with a child process, mcpx does not know
// which call a question belongs to, and asks neither client. Over HTTP the question comes on the stream of the
// call. In a session that only one client uses, the question is for this client.
func TestAsk_Whose(t *testing.T) {
	mcptest.NoLeaks(t)
	shared := stdio(t, "fake", mcptest.Spec{})
	own := shared
	own.PerClient = true
	for name, tt := range map[string]struct {
		server registry.Server
		asks   bool
	}{
		"shared":     {shared, false},
		"per client": {own, true},
		"http":       {remote("fake", mcptest.Spec{}.HTTP(t)), true},
	} {
		t.Run(name, func(t *testing.T) {
			f, web := site(t, tt.server)
			a, b := newAbleClient(t, web, `{"elicitation":{}}`), newAbleClient(t, web, `{"elicitation":{}}`)
			f.registry.WaitTried(t.Context())
			first := a.stream(t, "tools/call", a.call("2", "ask", `{}`, ""))
			question, raw := first.next(t)
			second := b.stream(t, "tools/call", b.call("2", "ask", `{}`, ""))
			other, got := second.next(t)
			if !tt.asks {
				if !strings.Contains(got, "session: per_client") {
					t.Errorf("got %s", got)
				}
			} else {
				b.answer(t, string(other.ID), "of b")
				if _, got := second.next(t); !strings.Contains(got, "of b") {
					t.Errorf("got %s", got)
				}
			}
			if question.Method != "elicitation/create" {
				t.Fatalf("got %s", raw)
			}
			a.answer(t, string(question.ID), "of a")
			if _, got := first.next(t); !strings.Contains(got, "of a") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestHandedOn: a client's own members of _meta reach the upstream server; members with the protocol's names do not.
// If this client alone uses the upstream session, its notification of changed roots reaches the server too.
func TestHandedOn(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	f := connect(t, view.Options{}, remote("fake", fake))
	f.registry.WaitTried(t.Context())
	p := dialSilent(t, f, StdioOptions{})
	p.send(t, able("agent")+`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`+"\n")
	call := strings.Replace(execLine("1", "fake", "echo", `{"text":"x"}`), `"params":{`,
		`"params":{"_meta":{"traceparent":"00-1-2-03","x.example/own":{"a":1.10},"io.modelcontextprotocol/related-task":{"taskId":"7"}},`, 1)
	p.send(t, call)
	mcptest.WaitFor(t, "the answer", patience, func() bool { return len(p.answers("1")) == 1 })
	sent := fake.Log().Method("tools/call")
	if len(sent) != 1 {
		t.Fatalf("%d calls", len(sent))
	}
	if got := string(sent[0].Message); !strings.Contains(got, `"traceparent":"00-1-2-03"`) || !strings.Contains(got, `"x.example/own":{"a":1.10}`) || strings.Contains(got, "related-task") {
		t.Errorf("sent %s", got)
	}
	mcptest.WaitFor(t, "the change of roots", patience, func() bool { return fake.Count("notifications/roots/list_changed") == 1 })

	// Over HTTP several clients share the upstream session, so no client may announce changed roots.
	_, web := site(t, remote("fake", fake))
	c := newAbleClient(t, web, `{"roots":{"listChanged":true}}`)
	c.notify(t, "notifications/roots/list_changed", `{}`)
	if _, err := c.exec(t.Context(), "1", "echo", `{"text":"x"}`, ""); err != nil {
		t.Error(err)
	}
	if n := fake.Count("notifications/roots/list_changed"); n != 1 {
		t.Errorf("%d changes", n)
	}
}

// TestAsk_Progress: progress that a client reports while it answers a question reaches the server with the
// server's own token. A server may also cancel its question.
func TestAsk_Progress(t *testing.T) {
	mcptest.NoLeaks(t)
	heard := make(chan string, 10)
	serve := func(_ context.Context, in io.Reader, out io.Writer) error {
		call := ""
		for lines := bufio.NewScanner(in); lines.Scan(); {
			var m webMessage
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				return err
			}
			answer := `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"Method not found"}}`
			switch {
			case m.Method == "initialize":
				answer = `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x"}}}`
			case m.Method == "tools/list":
				answer = `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"tools":[{"name":"ask","inputSchema":{}}]}}`
			case m.Method == "tools/call":
				call = string(m.ID)
				answer = `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Which word?","_meta":{"a":1,"progressToken":"mine"}}}`
			case m.Method == "notifications/progress":
				heard <- string(m.Params)
				answer = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}` + "\n" +
					`{"jsonrpc":"2.0","id":` + call + `,"result":{"content":[{"type":"text","text":"done"}]}}`
			case m.Method == "":
				heard <- "answered"
				continue
			case m.ID == nil:
				continue
			}
			if _, err := io.WriteString(out, answer+"\n"); err != nil {
				return err
			}
		}
		return nil
	}
	p := dialSilent(t, connect(t, view.Options{}, registry.Server{Spec: upstream.Spec{Options: transport.Options{Name: "fake", Type: transport.InProcess, Serve: serve}}}), StdioOptions{})
	p.send(t, able("agent")+execLine("11", "fake", "ask", `{}`))
	id := p.asked(t, 1)
	if p.with(`"_meta":{"a":1,"progressToken":`+id+`}`) != 1 {
		t.Errorf("asked %q", p.lines)
	}
	p.send(t, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":99,"progress":1}}`+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+id+`,"progress":1}}`+"\n")
	mcptest.WaitFor(t, "the answer", patience, func() bool { return len(p.answers("11")) == 1 })
	mcptest.WaitFor(t, "the end of the question", patience, func() bool { return p.with(`"params":{"requestId":`+id+`,`) == 1 })
	if got := <-heard; got != `{"progressToken":"mine","progress":1}` {
		t.Errorf("heard %s", got)
	}
	if len(heard) != 0 {
		t.Errorf("heard %s", <-heard)
	}
}

// TestAsk_Ended: with the session its open questions end, and later ones are refused: a call that goes on after its answer would
// wait an hour for a client that is gone.
func TestAsk_Ended(t *testing.T) {
	mcptest.NoLeaks(t)
	f, web := site(t, remote("fake", mcptest.Spec{}.HTTP(t)))
	for over, open := range map[string]func() (s *session, end func()){
		"http": func() (*session, func()) {
			c := newAbleClient(t, web, `{"elicitation":{}}`)
			s := f.sessions.get(c.session)
			c.stream(t, "", "")
			mcptest.WaitFor(t, "the stream", patience, func() bool { return s.outside() != nil })
			return s, func() { f.Ended(c.session) }
		},
		"pipes": func() (*session, func()) {
			input, client := io.Pipe()
			server, over := f.newStdioServer(StdioOptions{}), make(chan struct{})
			go func() { // ends with the input
				defer close(over)
				_ = server.serve(t.Context(), &lines{wire.NewReader(input, 1<<20, nil), wire.NewWriter(io.Discard, wire.Newline)})
			}()
			_, _ = client.Write([]byte(able("agent") + "\n"))
			_, _ = client.Write([]byte(execLine("1", "fake", "echo", `{"text":"x"}`)))
			return server.session, func() { client.Close(); <-over }
		},
	} {
		t.Run(over, func(t *testing.T) {
			s, end := open()
			failed := make(chan error, 1)
			ask := func() { // ends with the session
				_, err := s.ask(nil)(t.Context(), "elicitation/create", json.RawMessage(`{}`), nil)
				failed <- err
			}
			go ask()
			mcptest.WaitFor(t, "the question", patience, func() bool {
				s.questions.mu.Lock()
				defer s.questions.mu.Unlock()
				return len(s.questions.open) == 1
			})
			end()
			for range 2 {
				select {
				case err := <-failed:
					if err == nil || !strings.Contains(err.Error(), "the client's session has ended") {
						t.Errorf("got %v", err)
					}
				case <-time.After(patience):
					t.Fatal("the question is still open")
				}
				go ask()
			}
			<-failed
		})
	}
}
