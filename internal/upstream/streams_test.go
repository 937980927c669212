package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/mcptest"
	"mcpx/internal/transport"
)

// wireless is an HTTP+SSE server that needs no network, so it works in fake time. Its stream carries what the test
// writes to events.
type wireless struct {
	events *io.PipeWriter
	stream *io.PipeReader
	// quiet is how long the answer to a call takes.
	quiet time.Duration
}

// RoundTrip implements http.RoundTripper.
func (w *wireless) RoundTrip(r *http.Request) (*http.Response, error) {
	response := &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: r}
	if r.Method == http.MethodGet {
		response.Body = w.stream
		context.AfterFunc(r.Context(), func() { _ = w.stream.CloseWithError(context.Canceled) })
		go w.say("endpoint", "/messages") // the goroutine ends when the event has been read
		return response, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var m struct {
		ID     json.Number
		Method string
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, err
	}
	answers := map[string]string{
		"initialize": `{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"x"}}`,
		"tools/list": `{"tools":[{"name":"echo"}]}`,
		"ping":       `{}`,
		"tools/call": `{"content":[{"type":"text","text":"at last"}]}`,
	}
	if answer, ok := answers[m.Method]; ok {
		go func() { // the goroutine ends when the answer has been read, or with the stream
			if m.Method == "tools/call" {
				<-time.After(w.quiet)
			}
			w.say("message", `{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":`+answer+`}`)
		}()
	}
	response.StatusCode, response.Body = http.StatusAccepted, io.NopCloser(bytes.NewReader(nil))
	return response, nil
}

func (w *wireless) say(event, data string) {
	_, _ = io.WriteString(w.events, "event: "+event+"\ndata: "+data+"\n\n")
}

// TestQuietStream: an event stream may be silent for any time. A call may be silent for as long as its own time
// allows.
func TestQuietStream(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := &wireless{quiet: 4 * time.Minute}
		server.stream, server.events = io.Pipe()
		u := connect(t, Spec{Options: transport.Options{Type: transport.SSE, Remote: transport.Remote{URL: "http://nowhere.example/sse", Transport: server}}})
		synctest.Wait()
		for range 3 {
			pause(time.Hour)
			if status := u.Status(); status.State != catalog.Ready || status.Restarts != 0 {
				t.Fatalf("after a quiet hour: %s (%s)", status.State, status.Reason)
			}
			if got, err := text(u, "echo", `{}`); err != nil || got != "at last" {
				t.Errorf("got %q, %v", got, err)
			}
		}
	})
}

// TestNoListeningStream: if the server refuses the listening stream, mcpx does not request it again. It reads no list again
// because of that, and the session goes on.
func TestNoListeningStream(t *testing.T) {
	mcptest.Parallel(t)
	server := mcptest.Spec{NoGET: true}.HTTP(t)
	u := ready(t, Spec{Options: over(transport.HTTP, server.URL), Health: conf.Health{Interval: 5 * time.Millisecond, Timeout: patience}})
	// The test lasts longer than the pause after which mcpx opens a lost stream again.
	began := time.Now()
	mcptest.WaitFor(t, "some health checks", patience, func() bool {
		return server.Count("ping") >= 10 && time.Since(began) > 1200*time.Millisecond
	})
	mustEcho(t, u)
	gets := 0
	for _, entry := range server.Log().Event(mcptest.EventHTTP) {
		if strings.HasPrefix(entry.Text, "GET ") {
			gets++
		}
	}
	if lists, sessions := server.Count("tools/list"), server.Count("initialize"); gets != 1 || lists != 1 || sessions != 1 {
		t.Errorf("%d GET, %d tools/list, %d initialize, want one of each", gets, lists, sessions)
	}
}

// TestHeartbeatOnListeningStream: a server that sends pings on the listening stream gets an answer to each.
func TestHeartbeatOnListeningStream(t *testing.T) {
	mcptest.NoLeaks(t)
	const beats = 5
	pongs, over := make(chan string), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			for n := range beats {
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"beat/%d\",\"method\":\"ping\"}\n\n", n)
				_ = http.NewResponseController(w).Flush()
				select {
				case got := <-pongs:
					if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":"beat/%d","result":{}}`, n); got != want {
						t.Errorf("got %s, want %s", got, want)
					}
				case <-r.Context().Done():
					return
				}
			}
			close(over)
			<-r.Context().Done()
		case http.MethodPost:
			w.Header().Set("Mcp-Session-Id", "s")
			beaten(w, r, pongs)
		}
	}))
	t.Cleanup(server.Close)
	u := ready(t, at(transport.HTTP, server.URL))
	select {
	case <-over:
	case <-time.After(patience):
		t.Fatal("no answer to a heartbeat")
	}
	if status := u.Status(); status.State != catalog.Ready || status.Restarts != 0 {
		t.Errorf("%s (%s), %d restarts", status.State, status.Reason, status.Restarts)
	}
}

// beaten plays a server that sends pings: it answers the handshake, and sends the answers to the pings to pongs.
func beaten(w http.ResponseWriter, r *http.Request, pongs chan<- string) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal(body, &m)
	w.Header().Set("Content-Type", "application/json")
	switch m.Method {
	case "":
		w.WriteHeader(http.StatusAccepted)
		select {
		case pongs <- string(body):
		case <-r.Context().Done():
		}
	case "initialize":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x"}}}`, m.ID)
	case "tools/list":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`, m.ID)
	case "notifications/initialized":
		w.WriteHeader(http.StatusAccepted)
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, m.ID)
	}
}

// TestPingHasItsSession: a health check carries the session id; the fake server refuses requests without one.
func TestPingHasItsSession(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	u := ready(t, Spec{Options: over(transport.HTTP, server.URL), Health: conf.Health{Interval: 5 * time.Millisecond, Timeout: patience, Threshold: 1}})
	mcptest.WaitFor(t, "some health checks", patience, func() bool { return server.Count("ping") >= 10 })
	if status := u.Status(); status.State != catalog.Ready || status.Restarts != 0 {
		t.Errorf("%s (%s), %d restarts", status.State, status.Reason, status.Restarts)
	}
	for _, entry := range server.Log().Method("ping") {
		if entry.Session == "" {
			t.Error("a ping without a session")
		}
	}
}

// TestRestartListsAgain: after a restart, a server is not ready before its tools were read again.
func TestRestartListsAgain(t *testing.T) {
	mcptest.NoLeaks(t)
	file := filepath.Join(t.TempDir(), "tools")
	write := func(tools string) {
		if err := os.WriteFile(file, []byte(tools), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"name":"crash"}]`)
	spec, _ := inProcess(t, mcptest.Spec{ToolsFile: file})
	u := ready(t, spec)
	write(`[{"name":"crash"},{"name":"born_after_the_crash"}]`)
	if _, err := text(u, "crash", `{}`); err == nil {
		t.Fatal("crash has a result")
	}
	if _, err := text(u, "born_after_the_crash", `{}`); err != nil {
		t.Error(err)
	}
	if status := u.Status(); len(status.Tools) != 2 || status.Restarts != 1 {
		t.Errorf("%d tools after %d restarts", len(status.Tools), status.Restarts)
	}
}

// TestChecksAfterReconnects: however often a session was replaced, health checks are as frequent as at the
// beginning.
func TestChecksAfterReconnects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lives := make([]time.Duration, 40)
		for i := range lives {
			lives[i] = 61 * time.Second
		}
		spec, all := mortal(t, lives...)
		spec.Health = health
		u := connect(t, spec)
		pause(45 * time.Minute)
		if status := u.Status(); status.Restarts != len(lives) || status.State != catalog.Ready {
			t.Fatalf("%d restarts, %s", status.Restarts, status.State)
		}
		before := len(all.all().Method("ping"))
		pause(10 * time.Minute)
		if n := len(all.all().Method("ping")) - before; n < 19 || n > 21 {
			t.Errorf("%d checks in ten minutes, want 20", n)
		}
	})
}

// usage returns how many goroutines this process has, and the size of its heap in bytes after a garbage
// collection.
func usage() (goroutines int, heap int64) {
	runtime.GC()
	runtime.GC() // frees what the first collection finalized
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return runtime.NumGoroutine(), int64(stats.HeapAlloc)
}

// TestThousandReconnects: a thousand lost sessions of one server leave neither goroutines nor memory behind, while
// the server goes on.
func TestThousandReconnects(t *testing.T) {
	bubble(t, func(t *testing.T) {
		losses := make(chan struct{}, 1)
		var tools strings.Builder
		for i := range 10 {
			tools.WriteString(`,{"name":"tool_` + strconv.Itoa(i) + `","inputSchema":{"type":"object"}}`)
		}
		serve := scripted(map[string]string{
			"initialize": `"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x"}}`,
			"tools/list": `"result":{"tools":[` + tools.String()[1:] + `]}`,
			"":           "",
		})
		u := connect(t, Spec{Options: transport.Options{Type: transport.InProcess, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() { // the goroutine ends with this session
				select {
				case <-losses:
					_ = out.(io.Closer).Close()
				case <-ctx.Done():
				}
			}()
			return serve(ctx, in, out)
		}}, Era: EraLegacy})
		lose := func(n int) {
			for range n {
				losses <- struct{}{}
				pause(2 * time.Minute)
			}
		}
		synctest.Wait()
		lose(50)
		goroutines, heap := usage()
		lose(1000)
		after, grown := usage()
		if status := u.Status(); status.Restarts != 1050 || status.State != catalog.Ready || len(status.Tools) != 10 {
			t.Errorf("%d restarts, %s, %d tools", status.Restarts, status.State, len(status.Tools))
		}
		if after > goroutines {
			t.Errorf("%d goroutines became %d", goroutines, after)
		}
		// One catalogue of these tools takes over 2 KB.
		if each := (grown - heap) / 1000; each > 500 {
			t.Errorf("%d bytes are left of each session", each)
		}
	})
}
