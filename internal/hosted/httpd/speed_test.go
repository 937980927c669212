package httpd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/executor"
	"mcpx/internal/front"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

// served serves an endpoint until the benchmark ends, and returns its address. If endpoint is nil, it serves the
// whole of mcpx with one upstream, which runs in another process.
func served(b testing.TB, endpoint Endpoint) string {
	o := Options{Endpoint: endpoint, Logger: slog.New(slog.DiscardHandler)}
	if endpoint == nil {
		command, args, env := mcptest.Spec{}.Stdio(b)
		spec := upstream.Spec{Options: transport.Options{Name: "fake", Type: transport.Stdio, Launch: transport.Launch{Command: command, Args: args}}}
		for variable, value := range env {
			spec.Launch.Env = append(spec.Launch.Env, variable+"="+value)
		}
		r := registry.New([]registry.Server{{Spec: spec}}, registry.Options{})
		e := executor.New(r, executor.Options{TOON: true, TypeScript: true})
		r.Use(e.Chain(nil, nil)...)
		two := view.NewTwoTools(r, e, view.Options{})
		sealed := front.NewSessions(state.NewSecret())
		f := front.New(two, front.Options{Version: "1", Sessions: sealed})
		r.Start()
		b.Cleanup(func() {
			f.Close()
			two.Close()
			r.Close(time.Second)
		})
		r.WaitTried(context.Background())
		o.Endpoint = f
	}
	listener, err := Listen(context.Background(), "127.0.0.1:0", false)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, listener, o) }() // ends when cancel is called
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	return listener.Addr().String()
}

// rawClient is an HTTP connection on which making a request allocates no memory.
type rawClient struct {
	net.Conn
	in *bufio.Reader
}

func rawConnect(b testing.TB, addr string) *rawClient {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return &rawClient{conn, bufio.NewReaderSize(conn, 4<<10)}
}

func rawRequest(body string, headers ...string) []byte {
	headers = append(headers, "Host: localhost", "Content-Type: application/json", "Accept: application/json, text/event-stream")
	return fmt.Appendf(nil, "POST /mcp HTTP/1.1\r\n%s\r\nContent-Length: %d\r\n\r\n%s", strings.Join(headers, "\r\n"), len(body), body)
}

var lengthHeader = []byte("Content-Length: ")

// do sends a request and reads the response, which must be successful. If wantSession is true, it returns the session
// ID in the response.
func (c *rawClient) do(b testing.TB, request []byte, wantSession bool) (session string) {
	if _, err := c.Write(request); err != nil {
		b.Fatal(err)
	}
	length := 0
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		switch {
		case err != nil || first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200")):
			b.Fatalf("%s, %v", line, err)
		case len(line) == 2:
			if answer, err := c.in.Peek(min(length, 60)); err != nil || bytes.Contains(answer, []byte(`"error"`)) {
				b.Fatalf("%s, %v", answer, err)
			}
			_, _ = c.in.Discard(length)
			return session
		case bytes.HasPrefix(line, lengthHeader):
			for _, digit := range line[len(lengthHeader) : len(line)-2] {
				length = 10*length + int(digit-'0')
			}
		case wantSession && bytes.HasPrefix(line, []byte("Mcp-Session-Id: ")):
			session = strings.TrimSpace(string(line[len("Mcp-Session-Id: "):]))
		}
	}
}

// open opens a session and returns the header with its ID.
func (c *rawClient) open(b testing.TB) string {
	return "Mcp-Session-Id: " + c.do(b, rawRequest(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`), true)
}

const (
	echoStart = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`
	echoRest  = `"name":"exec","arguments":{"server_name":"fake","tool_name":"echo","arguments":{"text":"hello"}}}}`
)

// empty is an endpoint that does as little as possible: it reads the body and sends it back.
func empty(w http.ResponseWriter, r *http.Request) {
	body := make([]byte, r.ContentLength)
	_, _ = io.ReadFull(r.Body, body)
	w.Header()["Content-Type"] = []string{"application/json"}
	_, _ = w.Write(body)
}

// smallCalls returns functions that make one small call each: to the endpoint empty, and to the whole of mcpx as a
// legacy and as a modern client.
func smallCalls(b testing.TB) map[string]func() {
	call := func(addr string, header func(*rawClient) string, body string) func() {
		c := rawConnect(b, addr)
		request := rawRequest(body, header(c))
		return func() { c.do(b, request, false) }
	}
	plain := func(*rawClient) string { return "Mcp-Protocol-Version: 2025-06-18" }
	whole := served(b, nil)
	return map[string]func(){
		"empty":  call(served(b, stub(empty)), plain, echoStart+echoRest),
		"legacy": call(whole, func(c *rawClient) string { return c.open(b) }, echoStart+echoRest),
		"modern": call(whole, func(*rawClient) string {
			return "Mcp-Protocol-Version: " + modernVersion + "\r\nMcp-Method: tools/call\r\nMcp-Name: exec"
		}, echoStart+meta+","+echoRest),
	}
}

// BenchmarkSmallCall measures a small call from the client's socket to the pipe of a child process and back. For
// comparison, it also measures an endpoint that does nothing. The allocations include the server and net/http, but
// not the child process.
func BenchmarkSmallCall(b *testing.B) {
	calls := smallCalls(b)
	for _, name := range []string{"empty", "legacy", "modern"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				calls[name]()
			}
		})
	}
}

// TestSmallCall_Allocations bounds how many allocations a small call makes in addition to the allocations of an empty endpoint.
// It takes the least of several measurements, since a garbage collection empties each sync.Pool. Under the race detector, where
// a sync.Pool drops items at random, it is skipped.
func TestSmallCall_Allocations(t *testing.T) {
	mcptest.OneGoroutine(t)
	calls := smallCalls(t)
	allocations := func(name string) float64 {
		least := math.Inf(1)
		for range 8 {
			least = min(least, testing.AllocsPerRun(50, calls[name]))
		}
		return least
	}
	least := allocations("empty")
	for name, most := range map[string]float64{"legacy": 36, "modern": 47} {
		if n := allocations(name) - least; n > most {
			t.Errorf("%s: %v allocations more than an empty handler's %v, want at most %v", name, n, least, most)
		}
	}
}

// BenchmarkIdleSession opens sessions, each on a new connection. It reports how much memory an idle session uses, in
// the heap and in stacks, after its first call was answered. The client's half of the connection is not included.
func BenchmarkIdleSession(b *testing.B) {
	addr := served(b, nil)
	clients := make([]*rawClient, 0, b.N)
	before := kept()
	for b.Loop() {
		c := rawConnect(b, addr)
		c.do(b, rawRequest(echoStart+echoRest, c.open(b)), false)
		c.in = nil
		clients = append(clients, c)
	}
	b.ReportMetric(float64(kept()-before)/float64(len(clients)), "B/session")
	runtime.KeepAlive(clients)
}

// kept returns how many bytes of memory are in use after a garbage collection.
func kept() uint64 {
	runtime.GC()
	runtime.GC() // frees what a sync.Pool still kept during the first collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
