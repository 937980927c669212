package front

import (
	"io"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/view"
)

// scripted is a Socket whose client sends these messages and leaves.
type scripted []string

func (s *scripted) Read() ([]byte, error) {
	if len(*s) == 0 {
		return nil, io.EOF
	}
	next := (*s)[0]
	*s = (*s)[1:]
	return []byte(next), nil
}

func (*scripted) Write(...[]byte) error { return nil }

// TestTrace_Peers: traces name the kind of each connection.
func TestTrace_Peers(t *testing.T) {
	mcptest.NoLeaks(t)
	var mu sync.Mutex
	peers := map[string]bool{}
	f := connectWith(t, Options{Trace: func(peer string, _ bool, _ []byte) {
		mu.Lock()
		defer mu.Unlock()
		peers[peer] = true
	}}, view.Options{})
	seen := func() string {
		mu.Lock()
		defer mu.Unlock()
		all := strings.Join(slices.Sorted(maps.Keys(peers)), " ")
		clear(peers)
		return all
	}
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if err := f.ServeStdio(t.Context(), strings.NewReader(ping+"\n"), io.Discard, StdioOptions{}); err != nil || seen() != "stdio" {
		t.Errorf("stdio: %v", err)
	}
	dialled := StdioOptions{Session: "dial-1", Peer: "dial"}
	if err := f.ServeStdio(t.Context(), strings.NewReader(ping+"\n"), io.Discard, dialled); err != nil || seen() != "dial" {
		t.Errorf("dial: %v", err)
	}
	if err := f.ServeSocket(httptest.NewRequest("GET", "/", nil), &scripted{ping}, time.Second); err != nil || seen() != "socket" {
		t.Errorf("a socket: %v", err)
	}
	s := openStream(t, asPrincipals(t, f.Front), "")
	s.send(t, ping)
	mcptest.WaitFor(t, "the answer", patience, func() bool { return seen() == "sse" })
}
