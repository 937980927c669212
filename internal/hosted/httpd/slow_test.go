package httpd

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestServe_SlowBodies: headerTimeout bounds only the header. The body and the response may take many times as long.
func TestServe_SlowBodies(t *testing.T) {
	mcptest.Parallel(t)
	const limit = 2 * time.Second
	s := serve(t, Options{timeouts: timeouts{headerTimeout: limit}, Endpoint: stub(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading the body: %v", err)
		}
		ticker := time.NewTicker(limit)
		defer ticker.Stop()
		for i := range 3 {
			<-ticker.C
			fmt.Fprintf(w, "data: %d\n\n", i)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("writing event %d: %v", i, err)
			}
		}
		w.Write(body)
	})})
	connection := s.dial(t)
	fmt.Fprintf(connection, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(ping))
	ticker := time.NewTicker(limit)
	defer ticker.Stop()
	for half := range slices.Chunk([]byte(ping), len(ping)/2+1) {
		<-ticker.C
		connection.Write(half)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || !strings.HasPrefix(string(answer), "data: 0\n") || !strings.HasSuffix(string(answer), "data: 2\n\n"+ping) {
		t.Errorf("got %q, %v", answer, err)
	}
}

// TestServe_BodyTimeout: the server gives up a request whose body does not arrive in time. A call, or a stream of
// events, may take longer than that.
func TestServe_BodyTimeout(t *testing.T) {
	mcptest.Parallel(t)
	const limit = 2 * time.Second
	s := serve(t, Options{timeouts: timeouts{headerTimeout: limit, bodyTimeout: limit}, Endpoint: stub(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(limit + limit/2):
			io.WriteString(w, "done")
		case <-r.Context().Done():
		}
	})})
	for _, method := range []string{"POST", "GET"} {
		if status, body := s.do(t, method, "/mcp", ping); status != 200 || body != "done" {
			t.Errorf("%s: %d %s", method, status, body)
		}
	}
	s, _ = wholeWith(t, Options{timeouts: timeouts{headerTimeout: limit, bodyTimeout: limit}})
	if status := s.raw(t, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"); status != 400 {
		t.Errorf("half a body: %d", status)
	}
}

// TestServe_LongCall: a client gets its answer even if the call took longer than writeTimeout.
func TestServe_LongCall(t *testing.T) {
	mcptest.Parallel(t)
	s, _ := wholeWith(t, Options{timeouts: timeouts{writeTimeout: 2 * time.Second}})
	for _, c := range []*visitor{s.legacy(t), s.modern()} {
		if status, body := c.post(t, slow(1, 3000)); status != 200 || !strings.Contains(body, "slept 3000 ms") {
			t.Errorf("%s: %d %s", c.version, status, body)
		}
	}
}
