package front

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// TestLimits_Sessions: the limit on a principal's sessions covers both eras and the older HTTP+SSE transport,
// whose streams count as sessions. A refusal is an answer with the id of the request. When a session ends,
// another may begin.
func TestLimits_Sessions(t *testing.T) {
	mcptest.NoLeaks(t)
	l := limits.New(conf.Limits{Principal: conf.Quota{Sessions: 2}})
	f := connectWith(t, Options{Admission: l}, view.Options{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(caller.With(r.Context(), &caller.Principal{ID: r.Header.Get("Who")}, time.Time{}))
		if r.URL.Path == "/sse" {
			f.ServeSSE(w, r, "/messages")
			return
		}
		f.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	send := func(ctx context.Context, who, method, path, body string, headers ...string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, method, web.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Who", who)
		request.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := web.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response
	}
	const initialize = `{"jsonrpc":"2.0","id":"first","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	const listen = `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + modernMeta + `}}`
	modern := []string{"Mcp-Protocol-Version", modernEra, "Mcp-Method", "subscriptions/listen", "Accept", "application/json, text/event-stream"}
	const refused = `"error":{"code":-32000,"message":"over the limit of 2 open sessions; retry_after: 60 s","data":{"code":"RATE_LIMITED","retry_after":60}}`

	first := send(t.Context(), "alice", "POST", "/", initialize)
	streaming, leave := context.WithCancel(t.Context())
	defer leave()
	if stream := send(streaming, "alice", "POST", "/", listen, modern...); stream.StatusCode != 200 {
		t.Fatal(stream.Status)
	}
	for name, answer := range map[string]*http.Response{
		`{"jsonrpc":"2.0","id":"first",`: send(t.Context(), "alice", "POST", "/", initialize),
		`{"jsonrpc":"2.0","id":7,`:       send(t.Context(), "alice", "POST", "/", listen, modern...),
	} {
		if got := body(t, answer); !strings.Contains(got, name+refused) || answer.StatusCode != 200 || answer.Header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s %s, want %s", answer.Status, got, name+refused)
		}
	}
	if answer := send(t.Context(), "alice", "GET", "/sse", ""); answer.StatusCode != 429 || answer.Header.Get("Retry-After") != "60" {
		t.Errorf("the older transport: %s", answer.Status)
	}
	if other := send(t.Context(), "bob", "POST", "/", initialize); other.Header.Get("Mcp-Session-Id") == "" {
		t.Errorf("another principal: %s", body(t, other))
	}
	leave()
	mcptest.WaitFor(t, "the end of the stream", patience, func() bool { return l.OpenSession(alice) == nil })
	l.CloseSession(alice)
	send(t.Context(), "alice", "DELETE", "/", "", "Mcp-Session-Id", first.Header.Get("Mcp-Session-Id"))
	for range 2 {
		if again := send(t.Context(), "alice", "POST", "/", initialize); again.Header.Get("Mcp-Session-Id") == "" {
			t.Error(body(t, again))
		}
	}
	f.Close()
	if over := l.OpenSession(alice); over != nil {
		t.Errorf("after the end of the front: %v", over)
	}
}

var alice = &caller.Principal{ID: "alice"}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// TestLimits_Batch: each message of a batch counts for its principal, over both transports that allow batches.
// Messages over the limit get errors, also in the principal's next HTTP request. Another principal is counted
// separately.
func TestLimits_Batch(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		// The limiter allows 2 * 10 + 100 requests at once. Package httpd, which this test omits, would count the
		// first message of each batch.
		f := connectWith(t, Options{Admission: limits.New(conf.Limits{Principal: conf.Quota{RequestsPerSecond: 10}})}, view.Options{})
		send := func(who *caller.Principal, body, session string) *httptest.ResponseRecorder {
			r := asking("POST", body)
			r.Header.Set("Mcp-Session-Id", session)
			w := httptest.NewRecorder()
			f.ServeHTTP(w, r.WithContext(caller.With(r.Context(), who, time.Time{})))
			return w
		}
		const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		batch := "[" + ping + strings.Repeat(","+ping, 199) + "]"
		const refused = `"error":{"code":-32000,"message":"over the limit of 10 requests a second; retry_after: 1 s"`
		check := func(what, answers string, want int) {
			t.Helper()
			if done := strings.Count(answers, `"result":{}`); done != want || strings.Count(answers, refused) != 200-want {
				t.Errorf("%s: %d answers, %d refusals, want %d answers", what, done, strings.Count(answers, refused), want)
			}
		}
		sessions := map[*caller.Principal]string{}
		for _, who := range []*caller.Principal{alice, bob} {
			sessions[who] = send(who, strings.Split(hello("x"), "\n")[0], "").Header().Get("Mcp-Session-Id")
		}
		check("a batch", send(alice, batch, sessions[alice]).Body.String(), 121)
		check("the next one", send(alice, batch, sessions[alice]).Body.String(), 1)
		check("another principal", send(bob, batch, sessions[bob]).Body.String(), 121)
		time.Sleep(time.Minute)
		check("later", send(alice, batch, sessions[alice]).Body.String(), 121)

		out := &strings.Builder{}
		input := strings.NewReader(batch + "\n")
		if err := f.ServeStdio(t.Context(), input, out, StdioOptions{Session: "sse", Principal: bob}); err != nil {
			t.Fatal(err)
		}
		check("the older transport", out.String(), 121)
		out.Reset()
		if err := f.ServeStdio(t.Context(), strings.NewReader(batch+"\n"), out, StdioOptions{}); err != nil {
			t.Fatal(err)
		}
		check("stdio, which has no limit", out.String(), 200)
	})
}

// held is the response to a client that reads nothing until release is closed. begun is closed when the answer comes.
type held struct {
	*httptest.ResponseRecorder
	begun, release chan struct{}
}

func (h *held) Write(data []byte) (int, error) {
	close(h.begun)
	<-h.release
	return h.ResponseRecorder.Write(data)
}

// TestLimits_Unread: the large answers that the clients of one principal have not read yet are bounded together, since mcpx keeps
// them in memory for minutes. Instead of a further large answer, the client gets an error with the id of the request, and the event
// of the request has this error. Small answers, and the answers to other principals, are sent as usual.
func TestLimits_Unread(t *testing.T) {
	mcptest.NoLeaks(t)
	l := limits.New(conf.Limits{Principal: conf.Quota{AnswerBytes: 128 << 10}})
	var h hearing
	f := connectWith(t, Options{Admission: l, Journal: h.journal()}, view.Options{}, remote("fake", mcptest.Spec{}.HTTP(t)))
	c := &webClient{era: modernEra}
	ask := func(w http.ResponseWriter, who *caller.Principal, id, tool, arguments, accept string) {
		r := httptest.NewRequest("POST", "/mcp", strings.NewReader(c.call(id, tool, arguments, "")))
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": accept, "Mcp-Protocol-Version": modernEra, "Mcp-Method": "tools/call", "Mcp-Name": "exec",
		} {
			r.Header.Set(name, value)
		}
		f.ServeHTTP(w, r.WithContext(caller.With(t.Context(), who, time.Time{})))
	}
	image := func(bytes int) string { // unlike a text, an image is never cut
		return `{"result":"{\"content\":[{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"` + strings.Repeat("A", bytes) + `\"}]}"}`
	}
	call := func(who *caller.Principal, tool, arguments, accept string) string {
		w := httptest.NewRecorder()
		ask(w, who, "7", tool, arguments, accept)
		return w.Body.String()
	}
	w, ended := &held{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}, make(chan struct{})
	go func() { // ends with release
		ask(w, alice, "1", "raw", image(400_000), "application/json")
		close(ended)
	}()
	<-w.begun
	for _, accept := range []string{"application/json", "text/event-stream"} {
		got := call(alice, "raw", image(300_000), accept)
		if !strings.Contains(got, `"id":7,"error":{"code":-32000,"message":"the request was executed, but its answer`) || len(got) > 1000 {
			t.Errorf("one more large answer (%s): %.500s", accept, got)
		}
		if heard := h.take(); !slices.Contains(heard, "request tools/call ERROR -32000") {
			t.Errorf("one more large answer (%s): %q", accept, heard)
		}
	}
	if got := call(alice, "echo", `{"text":"small"}`, "application/json"); !strings.Contains(got, "small") {
		t.Errorf("a small answer: %.500s", got)
	}
	if got := call(bob, "raw", image(300_000), "application/json"); len(got) < 300_000 {
		t.Errorf("another principal: %.500s", got)
	}
	close(w.release)
	<-ended
	if w.Body.Len() < 400_000 {
		t.Errorf("the one that was read late: %.500s", w.Body)
	}
	if got := call(alice, "raw", image(300_000), "application/json"); len(got) < 300_000 {
		t.Errorf("after that: %.500s", got)
	}
}

// unreadSocket is a Socket whose client sends the messages of posted, and reads nothing until release is closed.
type unreadSocket struct {
	posted, release chan struct{}
	messages        scripted
	mu              sync.Mutex
	got             []string
}

func (s *unreadSocket) Read() ([]byte, error) {
	if data, err := s.messages.Read(); err == nil {
		return data, nil
	}
	<-s.posted
	return nil, io.EOF
}

func (s *unreadSocket) Write(messages ...[]byte) error {
	<-s.release
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range messages {
		s.got = append(s.got, string(one))
	}
	return nil
}

// TestLimits_UnreadSocket: answers that wait in the queue of a socket count as those over streamable HTTP do, also small ones, since one
// client can have many of them.
func TestLimits_UnreadSocket(t *testing.T) {
	mcptest.NoLeaks(t)
	l := limits.New(conf.Limits{Principal: conf.Quota{AnswerBytes: 100 << 10}})
	var h hearing
	f := connectWith(t, Options{Admission: l, Journal: h.journal()}, view.Options{}, remote("fake", mcptest.Spec{}.HTTP(t)))
	const calls = 20
	s := &unreadSocket{posted: make(chan struct{}), release: make(chan struct{})}
	for range calls {
		s.messages = append(s.messages, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"fake","tool_name":"raw","arguments":`+
			`{"result":"{\"content\":[{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"`+strings.Repeat("A", 50<<10)+`\"}]}"}}}}`)
	}
	r := httptest.NewRequest("GET", "/", nil)
	ended := make(chan error, 1)
	go func() { // ends when posted is closed
		ended <- f.ServeSocket(r.WithContext(caller.With(t.Context(), alice, time.Time{})), s, time.Minute)
	}()
	var heard []string
	mcptest.WaitFor(t, "the calls", patience, func() bool {
		heard = append(heard, h.take()...)
		return len(heard) == calls-1 // one waits for its write to end
	})
	close(s.release)
	close(s.posted)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	heard = append(heard, h.take()...)
	counts := map[string]int{}
	for _, one := range heard {
		counts[one]++
	}
	refused := 0
	for _, one := range s.got {
		if strings.HasPrefix(one, `{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"the request was executed, but its answer`) {
			refused++
		} else if len(one) < 50<<10 {
			t.Errorf("%.500s", one)
		}
	}
	// 7 of more than 50 KiB are less than 4 times 100 KiB.
	if refused != calls-7 || len(s.got) != calls || counts["request tools/call ERROR -32000"] != refused {
		t.Errorf("%d answers, %d refused, events %v", len(s.got), refused, counts)
	}
	if !l.WriteAnswer(alice, 400<<10) {
		t.Error("something is still counted")
	}
}
