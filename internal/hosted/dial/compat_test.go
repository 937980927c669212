package dial

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
)

// unnamedHub serves a hub at which one agent dials in without a name.
func unnamedHub(t *testing.T) (h *Hub, dial func() *websocket.Conn) {
	t.Helper()
	h = New(Options{
		Current: func() *conf.Dial {
			return &conf.Dial{Allow: []conf.DialRule{{Names: []string{"*"}, For: conf.DialSelf}}}
		},
		Taken: func(string) bool { return false }, Changed: func() {}, MaxMessage: 1 << 20, Logger: slog.New(slog.DiscardHandler),
		Alive: 200 * time.Millisecond,
	})
	who := &caller.Principal{ID: "agent a", Name: "agent:a"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeAgent(w, r.WithContext(caller.With(r.Context(), who, time.Time{})))
	}))
	t.Cleanup(func() {
		h.Close()
		server.Close()
	})
	return h, func() *websocket.Conn {
		conn, _, err := websocket.Dial(t.Context(), strings.Replace(server.URL, "http", "ws", 1)+"/mcp_endpoint/mcp/?token=x", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		return conn
	}
}

// names returns the names of the servers in a state.
func (h *Hub) names(state string) (names []string) {
	for _, s := range h.Servers() {
		if h.State(s.Dialled.Server) == state {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// use reads the connection of each server, as its upstream does.
func use(t *testing.T, h *Hub) {
	t.Helper()
	for _, s := range h.Servers() {
		if c, err := s.Connect(t.Context()); err == nil {
			go func() { // ends with the connection
				for err := error(nil); err == nil; {
					_, err = c.Read()
				}
				_ = c.Close()
			}()
		}
	}
}

// TestUnnamed: servers that bring no name get one each, also at the same time. One that comes back gets the name that was left last,
// and one whose older connection does not answer any more takes its place.
func TestUnnamed(t *testing.T) {
	mcptest.NoLeaks(t)
	h, dial := unnamedHub(t)
	wait := func(state string, want ...string) {
		t.Helper()
		var got []string
		mcptest.WaitFor(t, state, 30*time.Second, func() bool { got = h.names(state); return slices.Equal(got, want) })
	}
	answers := func(conn *websocket.Conn) { go func() { _, _, _ = conn.Read(context.Background()) }() } // answers pings until it ends
	first, second := make(chan *websocket.Conn), make(chan *websocket.Conn)
	go func() { first <- dial() }()
	go func() { second <- dial() }()
	one, two := <-first, <-second
	answers(one)
	answers(two)
	wait("dialled in", "default", "default-2")
	use(t, h)
	three := dial() // does not answer pings
	wait("dialled in", "default", "default-2", "default-3")
	use(t, h)
	four := dial()
	answers(four)
	wait("dialled in", "default", "default-2", "default-3")
	if _, _, err := three.Read(t.Context()); err == nil {
		t.Error("the silent connection is still open")
	}
	use(t, h)
	_ = one.CloseNow()
	left := func(count int) (names []string) {
		t.Helper()
		mcptest.WaitFor(t, "names that were left", 30*time.Second, func() bool { names = h.names("away"); return len(names) == count })
		return names
	}
	before := left(1)
	_ = two.CloseNow()
	left(2)
	dial()
	if got := left(1); !slices.Equal(got, before) {
		t.Errorf("the name that was left last is not given again; away: %q, before %q", got, before)
	}
}
