//go:build unix

package attach

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestServe_Failed: if the daemon cannot begin a session after the welcome, the session ends with the reason, and not as if the
// daemon had crashed.
func TestServe_Failed(t *testing.T) {
	mcptest.NoLeaks(t)
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	d := New(nil, time.Minute, slog.New(slog.DiscardHandler))
	d.space = spaces()
	served := make(chan error, 1)
	go func() { // ends with the session
		conn, err := listener.Accept()
		if err == nil {
			d.serve(context.Background(), conn.(*net.UnixConn))
		}
		served <- err
	}()
	conn, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := &Conn{conn: conn.(*net.UnixConn)}
	defer c.Close()
	if err := c.greet(time.Now().Add(handshake)); err != nil {
		t.Fatal(err)
	}
	if err := say(c.conn, time.Now().Add(handshake), Start{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.conn.Write([]byte("no descriptors")); err != nil {
		t.Fatal(err)
	}
	_, err = c.await()
	if lost, ok := errors.AsType[*LostError](err); !ok || !strings.Contains(lost.Error(), "the daemon could not begin the session (") {
		t.Errorf("got %v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
