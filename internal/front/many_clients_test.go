package front

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

const (
	legacyEra = "2025-06-18"
	modernEra = "2026-07-28"
)

// site serves a front over HTTP.
func site(t *testing.T, servers ...registry.Server) (shown, *httptest.Server) {
	t.Helper()
	return siteWith(t, Options{Version: "1"}, servers...)
}

func siteWith(t *testing.T, options Options, servers ...registry.Server) (shown, *httptest.Server) {
	t.Helper()
	f := connectWith(t, options, view.Options{}, servers...)
	web := httptest.NewUnstartedServer(f)
	// Small socket buffers, so that mcpx soon notices a client that does not read.
	web.Config.ConnContext = func(ctx context.Context, connection net.Conn) context.Context {
		_ = connection.(*net.TCPConn).SetWriteBuffer(4 << 10)
		return ctx
	}
	web.Start()
	t.Cleanup(func() {
		web.CloseClientConnections() // ends streams that the test has left open
		web.Close()
	})
	return f, web
}

func stdio(t *testing.T, name string, fake mcptest.Spec) registry.Server {
	t.Helper()
	command, args, env := fake.Stdio(t)
	spec := upstream.Spec{Options: transport.Options{Name: name, Type: transport.Stdio, Launch: transport.Launch{Command: command, Args: args}}}
	for variable, value := range env {
		spec.Launch.Env = append(spec.Launch.Env, variable+"="+value)
	}
	return registry.Server{Spec: spec}
}

// webClient is one client over HTTP. If newWebClient makes it, it shares no connections with other clients.
type webClient struct {
	url, era, session string
	http              *http.Client
}

func newWebClient(t *testing.T, web *httptest.Server, era string) *webClient {
	t.Helper()
	c := &webClient{url: web.URL, era: era, http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(c.http.CloseIdleConnections)
	if era == legacyEra {
		c.initialize(t)
	}
	return c
}

func (c *webClient) initialize(t *testing.T) {
	t.Helper()
	c.initializeWith(t, "{}")
}

func (c *webClient) initializeWith(t *testing.T, capabilities string) {
	t.Helper()
	response, err := c.send(context.Background(), "POST", "initialize", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+legacyEra+`","capabilities":`+capabilities+`,"clientInfo":{"name":"many","version":"1"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Fatal(err)
	}
	if c.session = response.Header.Get("Mcp-Session-Id"); c.session == "" {
		t.Fatalf("no session: %s", response.Status)
	}
	c.notify(t, "notifications/initialized", `{}`)
}

func (c *webClient) send(ctx context.Context, verb, method, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, verb, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if method != "initialize" {
		request.Header.Set("Mcp-Protocol-Version", c.era)
	}
	if c.session != "" {
		request.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.era == modernEra {
		request.Header.Set("Mcp-Method", method)
		var named struct{ Params struct{ Name, URI string } }
		_ = json.Unmarshal([]byte(body), &named) // if this fails, the message has no name
		if name := named.Params.Name + named.Params.URI; name != "" {
			request.Header.Set("Mcp-Name", name)
		}
	}
	return c.http.Do(request)
}

func (c *webClient) notify(t *testing.T, method, params string) {
	t.Helper()
	response, err := c.send(context.Background(), "POST", method, `{"jsonrpc":"2.0","method":"`+method+`","params":`+params+`}`)
	if err != nil {
		t.Errorf("%s: %v", method, err)
		return
	}
	response.Body.Close()
}

// call returns the message of a call to the tool exec; an empty progress token is left out.
func (c *webClient) call(id, tool, arguments, token string) string {
	var meta []string
	if c.era == modernEra {
		meta = append(meta, `"io.modelcontextprotocol/protocolVersion":"`+modernEra+`","io.modelcontextprotocol/clientInfo":{"name":"many","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`)
	}
	if token != "" {
		meta = append(meta, `"progressToken":`+token)
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"_meta":{` + strings.Join(meta, ",") + `},"name":"exec","arguments":{"server_name":"fake","tool_name":"` +
		tool + `","arguments":` + arguments + `}}}`
}

// webMessage is one message in the answer to a request.
type webMessage struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result struct{ Content []struct{ Text string } }
	Error  json.RawMessage
}

func (m webMessage) text() string {
	if len(m.Result.Content) != 1 {
		return ""
	}
	return m.Result.Content[0].Text
}

// exec makes a call and returns all messages of its response.
func (c *webClient) exec(ctx context.Context, id, tool, arguments, token string) ([]webMessage, error) {
	response, err := c.send(ctx, "POST", "tools/call", c.call(id, tool, arguments, token))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return messagesOf(response)
}

func readMessages(t *testing.T, response *http.Response) []webMessage {
	t.Helper()
	all, err := messagesOf(response)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// messagesOf reads a response to its end, whether it is JSON or an event stream.
func messagesOf(response *http.Response) ([]webMessage, error) {
	all, err := messagesIn(response.Header.Get("Content-Type"), response.Body)
	if err != nil {
		err = fmt.Errorf("status %s: %w", response.Status, err)
	}
	return all, err
}

func messagesIn(media string, body io.Reader) ([]webMessage, error) {
	stream := strings.HasPrefix(media, "text/event-stream")
	var all []webMessage
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		line, data := strings.CutPrefix(lines.Text(), "data:")
		if strings.TrimSpace(line) == "" || stream && !data {
			continue
		}
		var m webMessage
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			return all, fmt.Errorf("%w: %.200s", err, line)
		}
		all = append(all, m)
	}
	return all, lines.Err()
}

// answerOf returns the answer with this id. It is an error if there is not exactly one answer among the
// messages.
func answerOf(all []webMessage, id string) (webMessage, error) {
	var answers []webMessage
	for _, m := range all {
		if m.Method == "" {
			answers = append(answers, m)
		}
	}
	if len(answers) != 1 || string(answers[0].ID) != id {
		return webMessage{}, fmt.Errorf("answers %+v", answers)
	}
	return answers[0], nil
}

// crowd makes n clients, of both eras in turn.
func crowd(t *testing.T, web *httptest.Server, n int) []*webClient {
	t.Helper()
	clients := make([]*webClient, n)
	for i := range clients {
		clients[i] = newWebClient(t, web, []string{legacyEra, modernEra}[i%2])
	}
	return clients
}

// TestManyClients: clients use the same ids and the same progress tokens at the same time, over one session
// with the upstream server. Each gets its own answer and its own progress.
func TestManyClients(t *testing.T) {
	mcptest.Parallel(t)
	fake := mcptest.Spec{}.HTTP(t)
	_, web := site(t, remote("fake", fake))
	var all sync.WaitGroup
	for n, c := range crowd(t, web, 24) {
		for id := range 4 {
			all.Go(func() {
				canary := fmt.Sprintf("client %d, request %d", n, id)
				got, err := c.exec(context.Background(), fmt.Sprint(id), "echo", `{"text":"`+canary+`"}`, "")
				if err != nil {
					t.Errorf("%s: %v", canary, err)
					return
				}
				if m, err := answerOf(got, fmt.Sprint(id)); err != nil || m.text() != canary {
					t.Errorf("%s: got %q, %v", canary, m.text(), err)
				}
			})
			all.Go(func() {
				// The number of steps is different for each request, so that the test can distinguish the requests.
				steps := 2 + 4*n + id
				request := fmt.Sprint(100 + id)
				got, err := c.exec(context.Background(), request, "progress", fmt.Sprintf(`{"steps":%d,"ms":1}`, steps), `"token-`+request+`"`)
				if err != nil {
					t.Errorf("client %d, request %s: %v", n, request, err)
					return
				}
				checkSteps(t, fmt.Sprintf("client %d, request %s", n, request), got, request, steps)
			})
		}
	}
	all.Wait()
	if n := fake.Count("initialize"); n != 1 {
		t.Errorf("%d sessions with the upstream, want 1", n)
	}
}

// checkSteps checks that all progress notifications belong to this call and come in order and before the
// answer.
func checkSteps(t *testing.T, what string, got []webMessage, id string, steps int) {
	t.Helper()
	m, err := answerOf(got, id)
	if want := fmt.Sprintf("did %d steps", steps); err != nil || m.text() != want {
		t.Errorf("%s: got %q, %v, want %q", what, m.text(), err, want)
	}
	last := 0.0
	for i, note := range got {
		if note.Method == "notifications/tools/list_changed" {
			continue // a notification that belongs to no call
		}
		if note.Method == "" {
			if i != len(got)-1 {
				t.Errorf("%s: %d messages after the answer", what, len(got)-1-i)
			}
			continue
		}
		var p struct {
			ProgressToken   string
			Progress, Total float64
		}
		if err := json.Unmarshal(note.Params, &p); err != nil || p.ProgressToken != "token-"+id || int(p.Total) != steps || p.Progress <= last {
			t.Errorf("%s: after step %v: %s %s", what, last, note.Method, note.Params)
		}
		last = p.Progress
	}
	if last == 0 {
		t.Errorf("%s: no progress", what)
	}
}

// TestManyClients_Cancel: many calls have the same id, and some clients cancel theirs. Only these calls end.
func TestManyClients_Cancel(t *testing.T) {
	for _, token := range []string{"", `"same"`} {
		t.Run("token "+token, func(t *testing.T) {
			mcptest.Parallel(t)
			fake := mcptest.Spec{}.HTTP(t)
			_, web := site(t, remote("fake", fake))
			clients := crowd(t, web, 16)
			type end struct {
				client int
				text   string
			}
			ends := make(chan end, len(clients))
			cancels := make([]context.CancelFunc, len(clients))
			stay := func(n int) bool { return n%4 < 2 } // true for half of the clients of each era
			for n, c := range clients {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				cancels[n] = cancel
				go func() { // the goroutine ends with its call
					ms := 600000
					if stay(n) {
						ms = 700
					}
					got, _ := c.exec(ctx, "7", "slow", fmt.Sprintf(`{"ms":%d}`, ms), token)
					m, _ := answerOf(got, "7")
					ends <- end{n, m.text()}
				}()
			}
			mcptest.WaitFor(t, "the calls", patience, func() bool { return len(fake.Log().Calls("slow")) == len(clients) })
			for n, c := range clients {
				switch {
				case stay(n):
				case c.era == modernEra:
					cancels[n]()
				default:
					c.notify(t, "notifications/cancelled", `{"requestId":7,"reason":"test"}`)
				}
			}
			for range clients {
				e := <-ends
				if slept := e.text == "slept 700 ms"; slept != stay(e.client) {
					t.Errorf("client %d (%s): got %q", e.client, clients[e.client].era, e.text)
				}
			}
			mcptest.WaitFor(t, "the cancellations", patience, func() bool { return len(fake.Log().Event(mcptest.EventCancel)) == len(clients)/2 })
		})
	}
}

// TestSlowClient: clients that do not read their responses, and then disconnect, do not delay the other clients.
func TestSlowClient(t *testing.T) {
	mcptest.NoLeaks(t)
	// All calls to the child process share one reader.
	fake, heavy := mcptest.Spec{}.WithFiles(t), mcptest.Spec{}.HTTP(t)
	_, web := siteWith(t, Options{Version: "1", writeWithin: time.Hour}, stdio(t, "fake", fake), remote("heavy", heavy))
	reader := newWebClient(t, web, legacyEra)
	calls := func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for i := range 40 {
			got, err := reader.exec(ctx, fmt.Sprint(i), "slow", `{"ms":10}`, "")
			if m, idErr := answerOf(got, fmt.Sprint(i)); err != nil || idErr != nil || m.text() != "slept 10 ms" {
				t.Errorf("got %+v, %v, %v", got, err, idErr)
			}
		}
	}
	calls()
	var connections []net.Conn
	for n, c := range crowd(t, web, 8) {
		message := c.call("1", "progress", `{"steps":5000}`, `"mine"`)
		if n >= 4 {
			message = strings.Replace(c.call("1", "big", `{"bytes":1000000}`, ""), `"fake"`, `"heavy"`, 1)
		}
		connections = append(connections, ignore(t, web, c, message))
	}
	// The child has written a megabyte of progress, although the client does not read it.
	mcptest.WaitFor(t, "the answers to their calls", patience, func() bool {
		answered := 0
		for _, entry := range fake.Log(t).Event(mcptest.EventAnswer) {
			if entry.Tool == "progress" {
				answered++
			}
		}
		return answered == 4 && len(heavy.Log().Calls("big")) == 4
	})
	calls() // a call that is delayed would be delayed for writeWithin, so long that the test fails
	for _, c := range connections {
		c.Close()
	}
	calls()
}

// TestDeafClient: if a client never reads, mcpx gives up writing the answer after writeWithin.
func TestDeafClient(t *testing.T) {
	mcptest.Parallel(t)
	f := connectWith(t, Options{writeWithin: 2 * time.Second}, view.Options{}, remote("fake", mcptest.Spec{}.HTTP(t)))
	endpoint, ended := f, make(chan struct{}, 10)
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		endpoint.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	web.Config.ConnContext = func(ctx context.Context, connection net.Conn) context.Context {
		_ = connection.(*net.TCPConn).SetWriteBuffer(4 << 10) // otherwise the kernel takes 4 MB
		return ctx
	}
	web.Start()
	t.Cleanup(web.Close)
	for _, era := range []string{legacyEra, modernEra} {
		c := newWebClient(t, web, era)
		for range len(ended) {
			<-ended
		}
		image := `{\"content\":[{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"` + strings.Repeat("A", 1_000_000) + `\"}]}` // it is not cut
		began := time.Now()
		ignore(t, web, c, c.call("1", "raw", `{"result":"`+image+`"}`, ""))
		select {
		case <-ended:
			if took := time.Since(began); took < 2*time.Second {
				t.Errorf("%s: the answer did not have to wait: %s", era, took)
			}
		case <-time.After(patience):
			t.Fatalf("%s: the answer is held for ever", era)
		}
	}
}

// ignore posts a message on a connection that is never read.
func ignore(t *testing.T, web *httptest.Server, c *webClient, body string) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(web.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10)
	}
	header := "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nMcp-Protocol-Version: " + c.era + "\r\n"
	if c.era == modernEra {
		header += "Mcp-Method: tools/call\r\nMcp-Name: exec\r\n"
	} else {
		header += "Mcp-Session-Id: " + c.session + "\r\n"
	}
	if _, err := fmt.Fprintf(connection, "%sContent-Length: %d\r\n\r\n%s", header, len(body), body); err != nil {
		t.Fatal(err)
	}
	return connection
}

// TestForeignSession: a client that names an unknown session, or no session, is refused. Other clients are not
// affected.
func TestForeignSession(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	_, web := site(t, remote("fake", fake))
	good := newWebClient(t, web, legacyEra)
	for session, want := range map[string]int{"mcp-session-00000000-0000-4000-8000-000000000000": 404, "nonsense": 404, "": 400} {
		bad := *good
		bad.session = session
		response, err := bad.send(context.Background(), "POST", "tools/call", bad.call("1", "echo", `{"text":"x"}`, ""))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("session %q: %s", session, response.Status)
		}
	}
	if n := len(fake.Log().Calls("echo")); n != 0 {
		t.Errorf("%d calls without a session were executed", n)
	}
	got, err := good.exec(context.Background(), "1", "echo", `{"text":"mine"}`, "")
	if m, idErr := answerOf(got, "1"); err != nil || idErr != nil || m.text() != "mine" {
		t.Errorf("got %+v, %v, %v", got, err, idErr)
	}
}

// TestBrokenStreams: two streams of a client break, the stream of a call and the GET stream of its session. The
// client keeps its session and its other calls.
func TestBrokenStreams(t *testing.T) {
	mcptest.Parallel(t)
	fake := mcptest.Spec{}.HTTP(t)
	_, web := site(t, remote("fake", fake))
	c := newWebClient(t, web, legacyEra)
	for round, token := range []string{"", `"mine"`} { // the client has no progress token, or has one
		other := make(chan webMessage, 1)
		go func() { // the goroutine ends with its call
			got, _ := c.exec(context.Background(), "1", "slow", `{"ms":500}`, token)
			m, _ := answerOf(got, "1")
			other <- m
		}()
		broken, breakAll := context.WithCancel(context.Background())
		defer breakAll()
		stream, err := c.send(broken, "GET", "", "")
		if err != nil || stream.StatusCode != http.StatusOK {
			t.Fatalf("listening: %+v, %v", stream, err)
		}
		defer stream.Body.Close()
		lost := make(chan error, 1)
		go func() { // the goroutine ends with breakAll
			_, err := c.exec(broken, "2", "slow", `{"ms":600000}`, token)
			lost <- err
		}()
		mcptest.WaitFor(t, "the calls", patience, func() bool { return len(fake.Log().Calls("slow")) == 2*round+2 })
		breakAll()
		if err := <-lost; err == nil {
			t.Error("the broken call has an answer")
		}
		mcptest.WaitFor(t, "the cancellation", patience, func() bool { return len(fake.Log().Event(mcptest.EventCancel)) == round+1 })
		if m := <-other; m.text() != "slept 500 ms" {
			t.Errorf("token %s: the other call got %+v", token, m)
		}
		got, err := c.exec(context.Background(), "3", "echo", `{"text":"mine"}`, token)
		if m, idErr := answerOf(got, "3"); err != nil || idErr != nil || m.text() != "mine" {
			t.Errorf("token %s: got %+v, %v, %v", token, got, err, idErr)
		}
		again, err := c.send(t.Context(), "GET", "", "")
		if err != nil || again.StatusCode != http.StatusOK {
			t.Errorf("token %s: listening again: %+v, %v", token, again, err)
			continue
		}
		again.Body.Close()
	}
}

// TestSessionChurn: sessions leave no goroutines and almost no memory behind, whether their clients end them, stop sending
// requests, or lose the connection of their stream.
func TestSessionChurn(t *testing.T) {
	mcptest.NoLeaks(t)
	f, web := site(t)
	connections := &http.Client{Transport: &http.Transport{}}
	defer connections.CloseIdleConnections()
	churn := func(n int) {
		for i := range n {
			c := &webClient{url: web.URL, era: legacyEra, http: connections}
			c.initialize(t)
			for _, token := range []string{"", `"mine"`} { // with and without a progress token
				if got, err := c.exec(context.Background(), "1", "echo", `{"text":"x"}`, token); err != nil || len(got) != 1 {
					t.Fatalf("got %+v, %v", got, err)
				}
			}
			for _, verb := range [][]string{{"DELETE"}, {}, {"GET"}}[i%3] {
				ctx, lose := context.WithCancel(context.Background())
				response, err := c.send(ctx, verb, "", "")
				if err != nil {
					t.Fatal(err)
				}
				lose()
				response.Body.Close()
			}
		}
		mcptest.WaitFor(t, "the end of the sessions", patience, func() bool {
			f.endIdle(time.Now().Add(time.Minute))
			return f.Sessions() == 0
		})
	}
	churn(100)
	goroutines, heap := usage()
	churn(500)
	after, grown := usage()
	if n := len(f.changes.subscribers); n != 0 {
		t.Errorf("%d sessions still get changes", n)
	}
	f.sessions.each(func(s *session) { t.Errorf("session %s is kept", s.client.Load().ID) })
	if after > goroutines+10 { // a few goroutines belong to connections that are opening or closing
		t.Errorf("%d goroutines became %d", goroutines, after)
	}
	if each := (grown - heap) / 500; each > 1000 { // mcpx keeps a little about sessions that have ended
		t.Errorf("%d bytes are left of each session", each)
	}
}

// usage returns the number of goroutines of this process, and the bytes of its heap after a garbage
// collection.
func usage() (goroutines int, heap int64) {
	runtime.GC()
	runtime.GC() // frees what the first collection has finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return runtime.NumGoroutine(), int64(stats.HeapAlloc)
}
