package transport

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestPeer_Silent: a connection that ends because the other end does not answer a ping says so, as after the sleep of a laptop.
func TestPeer_Silent(t *testing.T) {
	mcptest.NoLeaks(t)
	ended := make(chan error, 1)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := AcceptPeer(w, r, PeerOptions{MaxMessage: 1 << 20, Name: "the laptop", Ping: time.Millisecond, Pong: 20 * time.Millisecond})
		if err == nil {
			_, err = p.Read()
			p.Close()
		}
		ended <- err
	}))
	defer web.Close()
	silent, err := net.Dial("tcp", web.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	fmt.Fprintf(silent, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the laptop has not answered a ping within 20ms") {
		t.Errorf("it ended with %v", err)
	}
}

// TestDialPeer_Refused: the text of a refusal, which may come from any proxy, is one line.
func TestDialPeer_Refused(t *testing.T) {
	mcptest.NoLeaks(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "not here\nand \x1b[31mnot now", http.StatusForbidden)
	}))
	defer server.Close()
	_, err := DialPeer(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), nil, PeerOptions{})
	if err == nil || err.Error() != "refused with HTTP 403: not here and not now" {
		t.Errorf("got %q", err)
	}
}
