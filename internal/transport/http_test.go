package transport

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestHTTPClient_Unbounded: the HTTP client has no timeouts for how long an event stream or a call may be silent.
func TestHTTPClient_Unbounded(t *testing.T) {
	client := newHTTPClient(Remote{})
	if transport := client.Transport.(*http.Transport); client.Timeout != 0 || transport.ResponseHeaderTimeout != 0 {
		t.Errorf("the HTTP client gives up after %v, or %v without a header", client.Timeout, transport.ResponseHeaderTimeout)
	}
}

// TestHTTPClient_Idle: a server may close a connection that was idle for 5 s just when the next request arrives, and the
// request would be lost. So the client sends that request over a new connection.
func TestHTTPClient_Idle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newHTTPClient(Remote{URL: "http://server/mcp"})
		listener := &pipes{made: make(chan net.Conn, 10)}
		client.Transport.(*http.Transport).DialContext = listener.dial
		server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.RemoteAddr)
		})}
		go func() { _ = server.Serve(listener) }() // ends with Close
		defer server.Close()
		defer client.CloseIdleConnections()
		for _, one := range []struct {
			idle        time.Duration
			connections int
		}{{0, 1}, {time.Second, 1}, {4900 * time.Millisecond, 2}} {
			time.Sleep(one.idle)
			resp, err := client.Post("http://server/mcp", "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if listener.dialled != one.connections {
				t.Errorf("after %v without a request: %d connections, want %d", one.idle, listener.dialled, one.connections)
			}
		}
	})
}

// pipes is a listener whose connections are pipes in memory.
type pipes struct {
	made    chan net.Conn
	dialled int
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	p.dialled++
	client, server := net.Pipe()
	p.made <- server
	return client, nil
}

func (p *pipes) Accept() (net.Conn, error) {
	conn, open := <-p.made
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p *pipes) Close() error   { close(p.made); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
