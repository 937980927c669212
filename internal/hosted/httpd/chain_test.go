package httpd

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// TestRecovered_Events: each event of a response ends exactly once, after the handlers have returned and the client
// has received the response. This holds also if a handler panics after it has stored the events.
func TestRecovered_Events(t *testing.T) {
	var hold, over chan struct{}
	var released bool
	var all []*request.Event
	journal := &request.Journal{}
	journal.Observe(func(e *request.Event) {
		if !released {
			t.Error("a handler is not done")
		}
		if all = append(all, e); len(all) == 1 {
			<-hold
		} else {
			close(over)
		}
	})
	server := httptest.NewServer(&recovered{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { released = true }()
		answerOf(w).events = []*request.Event{journal.Begin("ping", nil), journal.Begin("tools/call", nil)}
		if r.URL.Path == "/panic" {
			panic("on purpose")
		}
		_, _ = io.WriteString(w, "the answer")
	}), journal, slog.New(slog.DiscardHandler)})
	defer server.Close()
	for path, want := range map[string]struct {
		status int
		body   string
	}{"/": {200, "the answer"}, "/panic": {500, "internal error\n"}} {
		hold, over, released, all = make(chan struct{}), make(chan struct{}), false, nil
		response, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body := make([]byte, len(want.body))
		if _, err := io.ReadFull(response.Body, body); err != nil || response.StatusCode != want.status || string(body) != want.body {
			t.Errorf("%s: %d %q, %v", path, response.StatusCode, body, err)
		}
		close(hold)
		<-over
		response.Body.Close()
		if len(all) != 2 || all[0].Method != "ping" || all[1].Method != "tools/call" {
			t.Errorf("%s: the events %+v", path, all)
		}
	}
}

// TestEvents: the event of each request ends exactly once, after the client has received the response. By then the
// caller's slot for concurrent calls is free again.
func TestEvents(t *testing.T) {
	mcptest.NoLeaks(t)
	hold, over := make(chan struct{}), make(chan string, 10)
	journal := &request.Journal{}
	journal.Observe(func(e *request.Event) {
		<-hold
		if e.Refused != nil {
			over <- fmt.Sprint("refused ", e.Refused.Status)
			return
		}
		over <- e.Method + " " + e.Outcome
	})
	s, fake := wholeWith(t, Options{
		Journal: journal,
		Limits:  limits.New(conf.Limits{Anybody: conf.Quota{ConcurrentCalls: 1, Queue: semaphore.Queue{Calls: -1}}}),
	})
	mcptest.WaitFor(t, "the server", patience, func() bool { return fake.Count("tools/list") > 0 })
	const own = "Connection: close" // a new connection per request, which the server closes before the event ends
	for range 2 {
		status, answer := s.do(t, "POST", "/mcp", echoStart+meta+","+echoRest, own,
			"Mcp-Protocol-Version: "+modernVersion, "Mcp-Method: tools/call", "Mcp-Name: exec")
		if status != 200 || !strings.Contains(answer, `"text":"hello"`) {
			t.Errorf("%d %s", status, answer)
		}
	}
	if len(over) != 0 {
		t.Errorf("%d events have ended", len(over))
	}
	close(hold)
	if refused := s.answer(t, "GET", "/nowhere"); refused.StatusCode != 404 || refused.ContentLength <= 0 {
		t.Errorf("%s with %d bytes", refused.Status, refused.ContentLength)
	}
	got := []string{<-over, <-over, <-over}
	if slices.Sort(got); !slices.Equal(got, []string{"refused 404", "tools/call RESULT", "tools/call RESULT"}) {
		t.Errorf("%q", got)
	}
	s.stop()
	<-s.served
	if len(over) != 0 {
		t.Errorf("another: %s", <-over)
	}
}

// endedPage is a page that knows whether its streams were ended.
type endedPage struct {
	http.Handler
	ended bool
}

// EndStreams implements Page.
func (p *endedPage) EndStreams() { p.ended = true }

// TestHandler_Page: stop also ends the event streams of the page. A handler without a page has none.
func TestHandler_Page(t *testing.T) {
	page := &endedPage{Handler: http.NotFoundHandler()}
	_, stop := Handler(Options{Endpoint: echoes, Page: page}, true)
	if stop(); !page.ended {
		t.Error("the streams of the page go on")
	}
	_, stop = Handler(Options{Endpoint: echoes}, true)
	stop()
}
