package dial

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"mcpx/internal/base/conf"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
)

// unnamedHub serves a hub at which one agent dials in, without a name or with the given id.
func unnamedHub(t *testing.T) (h *Hub, dial func(id ...string) *websocket.Conn) {
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
	return h, func(id ...string) *websocket.Conn {
		query := url.Values{"token": {"x"}, "server_id": id}.Encode()
		conn, _, err := websocket.Dial(t.Context(), strings.Replace(server.URL, "http", "ws", 1)+"/mcp_endpoint/mcp/?"+query, nil)
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

// TestUnnamed: each server that brings no name gets a name, even if two dial in at the same time. If exactly one of them has
// lost its connection, a new connection gets its name. A connection that answers no pings loses its name to a new connection.
func TestUnnamed(t *testing.T) {
	mcptest.NoLeaks(t)
	h, dial := unnamedHub(t)
	wait := func(state string, want ...string) {
		t.Helper()
		var got []string
		mcptest.WaitFor(t, state, 30*time.Second, func() bool { got = h.names(state); return slices.Equal(got, want) })
	}
	answers := func(conn *websocket.Conn) {
		go func() { _, _, _ = conn.Read(context.Background()) }() // answers pings until the connection ends
	}
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
	left := func(count int) {
		t.Helper()
		mcptest.WaitFor(t, "names that were left", 30*time.Second, func() bool { return len(h.names("away")) == count })
	}
	left(1)
	known := h.places()
	four = dial()
	answers(four)
	if left(0); !maps.Equal(h.places(), known) {
		t.Errorf("the name that was left is not given again: %v, before %v", h.places(), known)
	}
	use(t, h)
	_, _ = two.CloseNow(), four.CloseNow()
	left(2)
	dial()
	left(0)
	now := h.places()
	for name, place := range now {
		if len(now) != 2 || name != "default-3" && place == known[name] {
			t.Errorf("of two names that were left one was guessed: %v, before %v", now, known)
		}
	}
}

// TestServeAgent_Names: the older system takes any text as server_id. One that is no name here gets a safe name: the same each time, and
// another for each id.
func TestServeAgent_Names(t *testing.T) {
	mcptest.NoLeaks(t)
	h, dial := unnamedHub(t)
	for _, id := range []string{"calc_1", "计算器", "天气", "my server", strings.Repeat("x", 60), "-a", "计算器"} {
		dial(id)
	}
	want := []string{
		"a-c27489", "calc_1", "my_server-b12987", "server-1283dd", "server-4d9473", strings.Repeat("x", 33) + "-42f2d9",
	}
	mcptest.WaitFor(t, "the names", 30*time.Second, func() bool { return slices.Equal(h.names("dialled in"), want) })
}

// places returns the places of all servers by their names.
func (h *Hub) places() map[string]string {
	all := make(map[string]string)
	for _, s := range h.Servers() {
		all[s.Name] = s.Place
	}
	return all
}
