package front

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// stream is a client of the HTTP+SSE transport of revision 2024-11-05.
type stream struct {
	url  string // where the client posts its messages
	who  string
	http *http.Client
	end  func() // closes the connection

	mu    sync.Mutex
	lines []string // the data of the events
}

// asPrincipals serves a front over HTTP, including the older HTTP+SSE transport. The header Who names the
// principal; without it the client is unauthenticated.
func asPrincipals(t *testing.T, f *Front) *httptest.Server {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who := r.Header.Get("Who"); who != "" {
			r = r.WithContext(caller.With(r.Context(), &caller.Principal{ID: who}, time.Time{}))
		}
		switch r.URL.Path {
		case "/sse":
			f.ServeSSE(w, r, "/messages")
		case "/messages":
			f.PostSSE(w, r)
		default:
			f.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web
}

// openStream opens a stream for the principal who, with these headers.
func openStream(t *testing.T, web *httptest.Server, who string, headers ...string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, "GET", web.URL+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Who", who)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := web.Client().Do(request)
	if err != nil || response.StatusCode != 200 {
		t.Fatal(response, err)
	}
	s := &stream{who: who, http: web.Client(), end: cancel}
	events, ended := bufio.NewScanner(response.Body), make(chan struct{})
	events.Buffer(nil, 1<<20)
	for events.Scan() && s.url == "" {
		if path, ok := strings.CutPrefix(events.Text(), "data: "); ok {
			s.url = web.URL + path
		}
	}
	go func() { // the goroutine ends with the connection
		defer close(ended)
		for events.Scan() {
			if data, ok := strings.CutPrefix(events.Text(), "data: "); ok {
				s.mu.Lock()
				s.lines = append(s.lines, data)
				s.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		response.Body.Close()
	})
	return s
}

// session returns the id of the stream.
func (s *stream) session() string {
	_, id, _ := strings.Cut(s.url, "sessionId=")
	return id
}

func (s *stream) send(t *testing.T, message string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "POST", s.url, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Who", s.who)
	response, err := s.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusAccepted {
		t.Fatalf("%s for %s", response.Status, message)
	}
}

// with counts the events that contain piece.
func (s *stream) with(piece string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.lines {
		if strings.Contains(line, piece) {
			n++
		}
	}
	return n
}

// await waits until exactly one event contains piece.
func (s *stream) await(t *testing.T, piece string) {
	t.Helper()
	mcptest.WaitFor(t, piece, patience, func() bool { return s.with(piece) == 1 })
}

// modernExec returns a modern call of the tool exec.
func modernExec(id, server, tool, arguments string) string {
	return strings.Replace(strings.TrimSpace(execLine(id, server, tool, arguments)), `"params":{`, `"params":{`+modernMeta+`,`, 1)
}

// TestSSE_Listen: a subscription of a principal ends, but its stream stays open. The client keeps its session
// with the server.
func TestSSE_Listen(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	server := remote("fake", fake)
	server.PerClient = true
	f := connect(t, view.Options{}, server)
	f.registry.WaitTried(t.Context())
	seen, front := spied(t, f, Options{})
	s := openStream(t, asPrincipals(t, front), "alice")
	s.send(t, modernExec("1", "fake", "echo", `{"text":"x"}`))
	s.await(t, `"id":1,`)
	s.send(t, strings.TrimSpace(listenLine("2", `{"toolsListChanged":true}`)))
	s.await(t, "subscriptions/acknowledged")
	listeners := func() int { return seen.open(s.session(), true) }
	if n := listeners(); n != 2 { // one for the stream, one for the subscription
		t.Errorf("%d listeners", n)
	}
	s.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	mcptest.WaitFor(t, "the end of the subscription", patience, func() bool { return listeners() == 1 })
	s.send(t, modernExec("3", "fake", "echo", `{"text":"x"}`))
	s.await(t, `"id":3,`)
	if echoes := fake.Log().Calls("echo"); len(echoes) != 2 || echoes[0].Session == "" || echoes[0].Session != echoes[1].Session {
		t.Errorf("the calls are %+v", echoes)
	}
}

// TestSSE_Over: nothing is written into the response of a stream after its handler has returned, also if an answer is late: net/http
// then uses the buffers of the response for other clients.
func TestSSE_Over(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan struct{})
		f := connectWith(t, Options{Trace: func(_ string, received bool, message []byte) {
			if !received && bytes.Contains(message, []byte(`"id":7`)) {
				<-late // the answer is ready, and not written yet
			}
		}}, view.Options{})
		ctx, end := context.WithCancel(t.Context())
		w := httptest.NewRecorder()
		var returned atomic.Bool
		go func() { // ends with ctx
			f.ServeSSE(w, httptest.NewRequestWithContext(ctx, "GET", "/mcp/sse", nil), "/mcp/messages")
			returned.Store(true)
		}()
		synctest.Wait()
		_, id, _ := strings.Cut(strings.TrimSpace(w.Body.String()), "sessionId=")
		ping := strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
		f.PostSSE(httptest.NewRecorder(), httptest.NewRequest("POST", "/mcp/messages?sessionId="+id, ping))
		end()
		time.Sleep(time.Second)
		if !returned.Load() {
			t.Error("the stream has not ended")
		}
		close(late)
		synctest.Wait()
		if strings.Contains(w.Body.String(), `"id":7`) {
			t.Errorf("written after the end: %s", w.Body)
		}
	})
}
