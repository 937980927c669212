package httpd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
)

// exchange sends bytes over a new connection and returns the statuses of all responses until the server closes it.
func (s *site) exchange(t *testing.T, bytes string) (statuses []int) {
	t.Helper()
	connection := s.dial(t)
	defer connection.Close()
	// The server may answer and close the connection before it has read all bytes.
	_, _ = io.WriteString(connection, bytes)
	_ = connection.(*net.TCPConn).CloseWrite()
	in := bufio.NewReader(connection)
	for {
		answer, err := http.ReadResponse(in, nil)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the connection is still open after %q", bytes[:min(len(bytes), 200)])
		}
		if err != nil {
			return statuses
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		statuses = append(statuses, answer.StatusCode)
	}
}

// hostile lists malicious requests with the expected status. $AUTH is replaced by a header with a valid token.
var hostile = []struct {
	name, request string
	want          string
}{
	// Request smuggling: if two programs disagree where a request ends, a second request could be hidden in its body.
	{"two lengths", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", "[400]"},
	{"a length twice", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHContent-Length: 2, 2\r\n\r\n{}", "[400]"},
	{"a negative length", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHContent-Length: -2\r\n\r\n{}", "[400]"},
	{"a length with a sign", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHContent-Length: +2\r\n\r\n{}", "[400]"},
	{"an endless length", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHContent-Length: 99999999999999999999\r\n\r\n{}", "[400]"},
	{"an unknown coding", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHTransfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "[501]"},
	{"two codings", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "[501]"},
	{"two headers of codings", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", "[501]"},
	{"a coding behind a tab", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n", "[400]"},
	// The chunks decide where the body ends (RFC 9112, section 6.3).
	{"chunks and a length", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "[200 200]"},
	{"a chunk with a sign", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHTransfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n", "[200]"},
	{"a header with a space", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHContent-Length : 2\r\n\r\n{}", "[400]"},
	{"a folded header", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHX: a\r\n b\r\nContent-Length: 0\r\n\r\n", "[200]"},
	{"a header without a name", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTH: x\r\n\r\n", "[400]"},
	{"a zero byte", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHX: a\x00b\r\n\r\n", "[400]"},
	{"line feeds alone", "POST /mcp HTTP/1.1\nHost: localhost\nContent-Length: 0\n\n", "[401]"},
	{"carriage returns alone", "POST /mcp HTTP/1.1\r\nHost: localhost\rX: y\r\n\r\n", "[400]"},

	// Host: a web page must not reach mcpx by DNS rebinding.
	{"no host", "POST /mcp HTTP/1.1\r\n$AUTHContent-Length: 0\r\n\r\n", "[400]"},
	{"two hosts", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n$AUTHContent-Length: 0\r\n\r\n", "[400]"},
	{"a host in the line", "POST http://evil.example/mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHContent-Length: 0\r\n\r\n", "[403]"},
	{"a user in the host", "POST /mcp HTTP/1.1\r\nHost: localhost@evil.example\r\n$AUTHContent-Length: 0\r\n\r\n", "[400]"},
	{"a dot behind the host", "POST /mcp HTTP/1.1\r\nHost: evil.example.\r\n$AUTHContent-Length: 0\r\n\r\n", "[403]"},
	{"a host of an older version", "POST /mcp HTTP/1.0\r\nHost: evil.example\r\n$AUTHContent-Length: 0\r\n\r\n", "[403]"},
	{"an older version without one", "POST /mcp HTTP/1.0\r\n$AUTHContent-Length: 0\r\n\r\n", "[403]"},

	// Long or malformed requests.
	{"a long header", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHX: " + strings.Repeat("x", 100_000) + "\r\n\r\n", "[431]"},
	{"many headers", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTH" + strings.Repeat("X: y\r\n", 20_000) + "\r\n", "[431]"},
	{"a long path", "POST /mcp/" + strings.Repeat("x", 100_000) + " HTTP/1.1\r\nHost: localhost\r\n$AUTH\r\n", "[431]"},
	// This is the beginning of a TLS handshake.
	{"no request", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "[400]"},
	// This is parsed as a request with the method PRI and without a Host.
	{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", "[403]"},
	{"an upgrade to HTTP/2", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nContent-Length: 0\r\n\r\n", "[200]"},
	{"HTTP/9.9", "POST /mcp HTTP/9.9\r\nHost: localhost\r\n$AUTH\r\n", "[505]"},
	{"an expectation", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHExpect: 200-ok\r\nContent-Length: 0\r\n\r\n", "[417]"},
	{"a body for later", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5000000\r\n\r\n", "[401]"},
	{"half a header", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHX: ", "[400]"},
	{"half a body", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHContent-Length: 100\r\n\r\n{", "[200]"},

	// Methods and paths: no request without a token reaches the endpoint.
	{"no token", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "[401]"},
	{"two tokens", "POST /mcp HTTP/1.1\r\nHost: localhost\r\n$AUTH$AUTHContent-Length: 0\r\n\r\n", "[400]"},
	{"another method", "BREW /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "[401]"},
	{"CONNECT", "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", "[401]"},
	{"CONNECT with a path", "CONNECT /.well-known/../mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", "[404]"},
	{"TRACE", "TRACE /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", "[401]"},
	{"an asterisk", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", "[200]"}, // net/http itself answers this
	{"up from an open path", "POST /.well-known/../mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "[307]"},
	{"up, encoded", "POST /.well-known/%2e%2e/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "[404]"},
	{"up, slash encoded", "POST /.well-known/..%2fmcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "[404]"},
	{"up, encoded twice", "POST /.well-known/%252e%252e/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "[404]"},
	{"up with backslashes", "POST /.well-known/..\\mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "[404]"},
	{"slashes", "POST //mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "[401]"},
	{"slashes with a token", "POST //mcp HTTP/1.1\r\nHost: localhost\r\n$AUTHContent-Length: 0\r\n\r\n", "[307]"},
	{"down and up", "POST /mcp/../status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "[401]"},
	{"a semicolon", "POST /mcp;/healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "[401]"},
	{"other letters", "POST /MCP HTTP/1.1\r\nHost: localhost\r\n$AUTHContent-Length: 0\r\n\r\n", "[404]"},
	{"a question", "POST /mcp?/healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "[401]"},
	{"a fragment", "POST /mcp#/healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "[401]"},
	{"a token in the query", "POST /mcp?access_token=mcpx_a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", "[401]"},
	{"a bad escape", "POST /mcp/%zz HTTP/1.1\r\nHost: localhost\r\n$AUTHContent-Length: 0\r\n\r\n", "[400]"},
}

// noPanics returns a logger that fails the test if the server logs an error, such as a panic in a handler.
func noPanics(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		if strings.Contains(string(p), "level=ERROR") {
			t.Errorf("logged: %s", p)
		}
		return len(p), nil
	}), nil))
}

// TestHostile: no hostile request is misread as another request, reaches the endpoint without a token, or disturbs
// the requests after it.
func TestHostile(t *testing.T) {
	mcptest.NoLeaks(t)
	var strangers atomic.Int32
	endpoint := stub(func(w http.ResponseWriter, r *http.Request) {
		if caller.From(r.Context()) == nil {
			strangers.Add(1)
		}
	})
	v := verifierOf(guardedBy(t, "", "a"))
	s := serve(t, Options{Endpoint: endpoint, SSE: true, Identity: v.Verifier, Logger: noPanics(t), Status: func() any { return "up" }})
	const auth = "Authorization: Bearer mcpx_a\r\n"
	for _, test := range hostile {
		if got := fmt.Sprint(s.exchange(t, strings.ReplaceAll(test.request, "$AUTH", auth))); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
	if n := strangers.Load(); n > 0 {
		t.Errorf("%d requests without a token reached the endpoint", n)
	}
	if status, _ := s.do(t, "POST", "/mcp", ping, strings.TrimSpace(auth)); status != 200 {
		t.Errorf("after that: %d", status)
	}
}

// FuzzServe: whatever bytes come over a connection, the server answers or closes it, and only requests with a valid
// token reach the endpoint.
func FuzzServe(f *testing.F) {
	for _, one := range hostile {
		if len(one.request) < 1000 {
			f.Add(one.request)
		}
	}
	f.Fuzz(func(t *testing.T, request string) {
		synctest.Test(t, func(t *testing.T) {
			v := verifierOf(guardedBy(t, "", "a"))
			near, far := net.Pipe()
			listener := &oneConnection{Conn: far, ended: make(chan struct{})}
			ctx, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { // ends when stop is called
				served <- Serve(ctx, listener, Options{
					Endpoint: stub(func(_ http.ResponseWriter, r *http.Request) {
						if caller.From(r.Context()) == nil {
							t.Error("a stranger")
						}
					}),
					SSE: true, Identity: v.Verifier, Logger: noPanics(t),
					Ready: func() (Readiness, any) { return Readiness{}, nil }, Status: func() any { return 1 },
				})
			}()
			go func() { // ends when near is closed
				_, _ = io.WriteString(near, strings.ReplaceAll(request, "$AUTH", "Authorization: Bearer mcpx_a\r\n"))
				_, _ = io.WriteString(near, "\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
			}()
			_ = near.SetReadDeadline(time.Now().Add(time.Hour))
			in := bufio.NewReader(near)
			for {
				answer, err := http.ReadResponse(in, nil)
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("neither an answer nor an end in an hour")
				}
				if err != nil {
					break
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			near.Close()
			stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	})
}

// oneConnection is a listener that accepts one connection.
type oneConnection struct {
	net.Conn
	given atomic.Bool
	once  sync.Once
	ended chan struct{} // closed by Close
}

// Accept implements net.Listener.
func (l *oneConnection) Accept() (net.Conn, error) {
	if l.given.CompareAndSwap(false, true) {
		return l.Conn, nil
	}
	<-l.ended
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *oneConnection) Close() error {
	l.once.Do(func() { close(l.ended) })
	return nil
}

// Addr implements net.Listener.
func (l *oneConnection) Addr() net.Addr { return l.LocalAddr() }
