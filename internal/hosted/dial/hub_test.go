package dial

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/transport"
)

const patience = 30 * time.Second

// board is a hub that an HTTP server serves. The token of a request is the name of its principal.
type board struct {
	*Hub
	addr   string
	until  time.Time     // when the tokens expire; zero means never
	revoke chan struct{} // closed when they are revoked
}

func newBoard(t *testing.T, o Options) *board {
	t.Helper()
	rules := &conf.Dial{Allow: []conf.DialRule{{Names: []string{"mine*"}, For: conf.DialSelf}, {Names: []string{"shared*"}, For: conf.DialAll}}}
	b := &board{revoke: make(chan struct{})}
	o.Current, o.Taken, o.Changed = func() *conf.Dial { return rules }, func(string) bool { return false }, func() {}
	o.Logger = slog.New(slog.DiscardHandler)
	if o.MaxMessage == 0 {
		o.MaxMessage = 1 << 20
	}
	b.Hub = New(o)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		over := make(chan struct{})
		defer close(over)
		go func() { // ends with the request
			select {
			case <-b.revoke:
				cancel(caller.ErrRevoked)
			case <-over:
			}
		}()
		b.ServeHTTP(w, r.WithContext(caller.With(ctx, &caller.Principal{ID: who, Name: who}, b.until)))
	}))
	b.addr = server.Listener.Addr().String()
	t.Cleanup(func() {
		b.Close()
		server.Close()
	})
	return b
}

// wireConn is a device that writes its own frames.
type wireConn struct {
	net.Conn
	in *bufio.Reader
}

// dial opens a WebSocket by hand. It returns the status and the headers of the answer.
func (b *board) dial(t *testing.T, who, name string, headers ...string) (*wireConn, *http.Response) {
	t.Helper()
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "GET /dial/%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: mcp\r\nAuthorization: Bearer %s\r\n", name, b.addr, who)
	for _, header := range headers {
		fmt.Fprintf(c, "%s\r\n", header)
	}
	fmt.Fprint(c, "\r\n")
	in := bufio.NewReader(c)
	response, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &wireConn{c, in}, response
}

// frame returns a frame from a client, masked with zeros. The parameter first is the first byte of the frame: flags and opcode.
func frame(first byte, payload []byte) []byte {
	head := []byte{first}
	switch n := len(payload); {
	case n < 126:
		head = append(head, 0x80|byte(n))
	case n < 1<<16:
		head = binary.BigEndian.AppendUint16(append(head, 0x80|126), uint16(n))
	default:
		head = binary.BigEndian.AppendUint64(append(head, 0x80|127), uint64(n))
	}
	return append(append(head, 0, 0, 0, 0), payload...)
}

// next dials in as a device that answers pings, and sends a message.
func (b *board) next(t *testing.T, message string) {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), "ws://"+b.addr+"/dial/mine", &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer ann"}}, Subprotocols: []string{"mcp"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.CloseRead(t.Context())
	t.Cleanup(func() { _ = c.CloseNow() })
	if err := c.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
		t.Error(err)
	}
}

// closing reads until the close frame, and returns its code and reason; 0 if the connection ends without one.
func (c *wireConn) closing() (code int, reason string) {
	_ = c.SetReadDeadline(time.Now().Add(patience))
	for {
		head := make([]byte, 2)
		if _, err := io.ReadFull(c.in, head); err != nil {
			return 0, err.Error()
		}
		payload := make([]byte, head[1]&0x7f) // what the hub writes here is short
		if _, err := io.ReadFull(c.in, payload); err != nil {
			return 0, err.Error()
		}
		if head[0]&0xf == 8 && len(payload) >= 2 {
			return int(binary.BigEndian.Uint16(payload)), string(payload[2:])
		}
	}
}

// reading takes each connection of the only server, as its upstream does, and reads messages until the connection ends. The
// channel gets the messages, "over" and the limit for a message that is too long, and "ended" at the end of each connection.
func (b *board) reading(t *testing.T) (messages <-chan string) {
	t.Helper()
	out := make(chan string, 10_000)
	ctx, stop := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	t.Cleanup(func() {
		stop()
		loop.Wait()
	})
	s := b.Servers()[0]
	loop.Go(func() { // ends with the test
		for s.Arrived(ctx) == nil {
			c, err := s.Connect(ctx)
			if err != nil {
				continue
			}
			end := context.AfterFunc(ctx, func() { _ = c.Close() })
			for {
				data, err := c.Read()
				if large, ok := errors.AsType[*wire.TooLargeError](err); ok {
					out <- fmt.Sprintf("over %d", large.Limit)
					continue
				}
				if err != nil {
					out <- "ended"
					break
				}
				out <- string(data)
			}
			end()
			_ = c.Close()
		}
	})
	return out
}

func (b *board) await(t *testing.T, state string) {
	t.Helper()
	mcptest.WaitFor(t, "the state "+state, patience, func() bool { return b.State(b.Servers()[0].Dialled.Server) == state })
}

// TestHub_Hostile: after each of these faults of a device, its connection ends, and the next one works.
func TestHub_Hostile(t *testing.T) {
	mcptest.NoLeaks(t)
	const text, half = 0x81, 0x01
	for _, test := range []struct {
		name string
		do   func(c *wireConn)
	}{
		{"RST", func(c *wireConn) {
			_ = c.Conn.(*net.TCPConn).SetLinger(0)
			c.Close()
		}},
		{"FIN", func(c *wireConn) { c.Close() }},
		{"silence", func(*wireConn) {}},
		{"half a frame", func(c *wireConn) { _, _ = c.Write(frame(text, make([]byte, 500))[:100]) }},
		{"half a head", func(c *wireConn) { _, _ = c.Write([]byte{text}) }},
		{"half a message", func(c *wireConn) { _, _ = c.Write(frame(half, []byte("{"))) }},
		{"a compressed frame", func(c *wireConn) { _, _ = c.Write(frame(0xc1, []byte{0xaa, 0x56, 0})) }},
		{"an unmasked frame", func(c *wireConn) { _, _ = c.Write([]byte{text, 2, '{', '}'}) }},
		{"an unknown opcode", func(c *wireConn) { _, _ = c.Write(frame(0x83, nil)) }},
		{"a frame of 2^63 bytes", func(c *wireConn) {
			_, _ = c.Write([]byte{text, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
		}},
		{"a continuation of nothing", func(c *wireConn) { _, _ = c.Write(frame(0x80, []byte("{}"))) }},
		{"a ping of 1000 bytes", func(c *wireConn) { _, _ = c.Write(frame(0x89, make([]byte, 1000))) }},
		{"a close frame", func(c *wireConn) { _, _ = c.Write(frame(0x88, []byte{3, 232})) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBoard(t, Options{Ping: 20 * time.Millisecond, Pong: time.Second})
			c, response := b.dial(t, "ann", "mine", "Sec-WebSocket-Extensions: permessage-deflate")
			if response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Sec-WebSocket-Extensions") != "" {
				t.Fatalf("%d, extensions %q", response.StatusCode, response.Header.Get("Sec-WebSocket-Extensions"))
			}
			b.await(t, "dialled in")
			messages := b.reading(t)
			_, _ = c.Write(frame(text, []byte("first"))) // before the hub gives up this device, which answers no pings
			if said := <-messages; said != "first" {
				t.Errorf("the upstream gets %q", said)
			}
			test.do(c)
			b.await(t, "away")
			if said := <-messages; said != "ended" {
				t.Errorf("the upstream gets %q", said)
			}
			c.Close()
			b.next(t, "second")
			if said := <-messages; said != "second" {
				t.Errorf("then it gets %q", said)
			}
		})
	}
}

// TestHub_TooMuch: a message over the limit is refused, but the connection stays open. Refused messages and pings count as bytes
// too. A notification of a changed list is counted even if it is escaped, padded or in a batch. If a principal exceeds the
// bounds, its connection is closed with the reason; other principals are not affected.
func TestHub_TooMuch(t *testing.T) {
	mcptest.NoLeaks(t)
	b := newBoard(t, Options{MaxMessage: 5000, Bounds: Bounds{Bytes: 100_000, Changes: 5}})
	bob, _ := b.dial(t, "bob", "mine")
	b.await(t, "dialled in")
	messages := b.reading(t)
	for i, test := range []struct {
		flood []byte
		count int
		why   string
	}{
		{frame(0x81, make([]byte, 6000)), 17, "100000 bytes"},
		{frame(0x89, make([]byte, 100)), 1000, "100000 bytes"},
		{frame(0x81, []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)), 6, "5 changes"},
		{frame(0x81, []byte(`{"method":"notifications/tools/list_changed","params":"`+strings.Repeat("x", 4200)+`"}`)), 6, "5 changes"},
		{frame(0x81, []byte(`{"method":"notifications/tools/list\u005fchanged"}`)), 6, "5 changes"},
		{frame(0x81, []byte("["+strings.Repeat(`{"method":"notifications/tools/list_changed"},`, 5)+`{"method":"notifications/prompts/list_changed"}]`)), 1, "5 changes"},
	} {
		who := fmt.Sprint("mallory", i)
		c, _ := b.dial(t, who, "mine")
		s := b.of(t, who)
		up, err := s.Connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var reader sync.WaitGroup
		reader.Go(func() {
			for {
				_, err := up.Read()
				if _, large := errors.AsType[*wire.TooLargeError](err); err != nil && !large {
					return
				}
			}
		})
		go func() { _, _ = c.Write(bytes.Repeat(test.flood, test.count)) }() // ends with the connection
		// Who still sends may get a reset instead of the close frame.
		if code, reason := c.closing(); code != 0 && (code != transport.ClosePolicy || !strings.Contains(reason, test.why)) {
			t.Errorf("%s: closed with %d %s", test.why, code, reason)
		}
		mcptest.WaitFor(t, "the end", patience, func() bool { return b.State(s.Dialled.Server) == "away" })
		c.Close()
		reader.Wait()
		_ = up.Close()
	}
	for _, send := range []string{strings.Repeat("x", 6000), `{"id":1}`} {
		_, _ = bob.Write(frame(0x81, []byte(send)))
	}
	if first, second := <-messages, <-messages; first != "over 5000" || second != `{"id":1}` {
		t.Errorf("%q, %q", first, second)
	}
}

// of waits for the connection of a principal's server, and returns the server.
func (b *board) of(t *testing.T, owner string) (server Server) {
	t.Helper()
	mcptest.WaitFor(t, "the server of "+owner, patience, func() bool {
		servers := b.Servers()
		i := slices.IndexFunc(servers, func(s Server) bool { return s.Owner == owner && b.State(s.Dialled.Server) == "dialled in" })
		if i >= 0 {
			server = servers[i]
		}
		return i >= 0
	})
	return server
}

// TestHub_Token: a connection ends with the token that opened it, when it expires and when it is revoked.
func TestHub_Token(t *testing.T) {
	mcptest.NoLeaks(t)
	b := newBoard(t, Options{})
	c, _ := b.dial(t, "ann", "mine")
	b.await(t, "dialled in")
	close(b.revoke)
	if code, reason := c.closing(); code != transport.ClosePolicy || !strings.Contains(reason, "not valid any more") {
		t.Errorf("revoked: %d %s", code, reason)
	}
	b = newBoard(t, Options{})
	b.until = time.Now().Add(50 * time.Millisecond)
	c, _ = b.dial(t, "ann", "mine")
	if code, reason := c.closing(); code != transport.ClosePolicy || !strings.Contains(reason, "expired") {
		t.Errorf("expired: %d %s", code, reason)
	}
}

// TestHub_Place: a server keeps its name for ten minutes after it has lost its connection. After that, another principal can use
// the name.
func TestHub_Place(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := &conf.Dial{Allow: []conf.DialRule{{Names: []string{"*"}, For: conf.DialAll}}}
		changes := 0
		h := New(Options{
			Current: func() *conf.Dial { return rules }, Taken: func(string) bool { return false }, Changed: func() { changes++ },
			Logger: slog.New(slog.DiscardHandler),
		})
		ann, bob := &caller.Principal{ID: "ann"}, &caller.Principal{ID: "bob"}
		s, fresh, err := h.place(ann, "x")
		if err != nil || !fresh {
			t.Fatal(fresh, err)
		}
		for range 3 { // the ten minutes begin anew whenever the server was connected again
			c := &conn{}
			if _, ok := s.use(c); !ok {
				t.Fatal("no place")
			}
			s.gone(c)
			time.Sleep(awayTime - time.Second)
			if _, _, err := h.place(bob, "x"); err == nil || len(h.Servers()) != 1 || h.State("x") != "away" {
				t.Fatalf("after less than ten minutes: %v, %d servers", err, len(h.Servers()))
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(h.Servers()) != 0 || changes != 1 || len(h.meters) != 0 {
			t.Errorf("after ten minutes: %d servers, %d changes", len(h.Servers()), changes)
		}
		next, _, err := h.place(bob, "x")
		if err != nil || next.Serial == s.Serial {
			t.Error(err, next)
		}
	})
}

// TestHub_Failed: a server that is away makes room for a connection that then fails. The hub reports that as a change, since the
// server would stay in the catalogue otherwise.
func TestHub_Failed(t *testing.T) {
	rules := &conf.Dial{Allow: []conf.DialRule{{Names: []string{"*"}, For: conf.DialSelf}}}
	changes := 0
	h := New(Options{
		Current: func() *conf.Dial { return rules }, Taken: func(string) bool { return false }, Changed: func() { changes++ },
		Logger: slog.New(slog.DiscardHandler),
	})
	defer h.Close()
	ann := &caller.Principal{ID: "ann"}
	for i := range maxServers {
		s, _, err := h.place(ann, fmt.Sprint("x", i))
		if err != nil {
			t.Fatal(err)
		}
		c := &conn{}
		s.use(c)
		s.gone(c)
	}
	r := httptest.NewRequest(http.MethodGet, "/dial/more", nil)
	r.Header.Set("Upgrade", "websocket") // and nothing else that a WebSocket needs
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(caller.With(r.Context(), ann, time.Time{})))
	if n := len(h.Servers()); w.Code < 400 || n != maxServers-1 || changes != 1 {
		t.Errorf("%d: %d servers, %d changes", w.Code, n, changes)
	}
}

// TestHub_Groups: if a principal dials in again with other groups, only these groups see its server, and not the groups that the
// principal had before.
func TestHub_Groups(t *testing.T) {
	rules := &conf.Dial{Allow: []conf.DialRule{{Names: []string{"*"}, For: conf.DialGroup}}}
	h := New(Options{
		Current: func() *conf.Dial { return rules }, Taken: func(string) bool { return false }, Changed: func() {},
		Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(h.Close)
	for _, groups := range [][]string{{"lab"}, {"lab"}, {"ops"}, nil} {
		s, fresh, err := h.place(&caller.Principal{ID: "ann", Groups: groups}, "x")
		if err != nil {
			t.Fatal(err)
		}
		c := &conn{}
		if _, ok := s.use(c); !ok {
			t.Fatal("no place")
		}
		s.gone(c)
		if all := h.Servers(); len(all) != 1 || !slices.Equal(all[0].Groups, groups) || !slices.Equal(all[0].By.Groups, groups) {
			t.Errorf("with the groups %v, fresh %v: %v", groups, fresh, all[0].Dialled)
		}
	}
}

// TestHub_Meter: a principal that disconnects all its servers and dials in again in the same minute may not send more than
// before.
func TestHub_Meter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := &conf.Dial{Allow: []conf.DialRule{{Names: []string{"*"}, For: conf.DialSelf}}}
		h := New(Options{
			Current: func() *conf.Dial { return rules }, Taken: func(string) bool { return false }, Changed: func() {},
			Logger: slog.New(slog.DiscardHandler), Bounds: Bounds{Bytes: 100},
		})
		t.Cleanup(h.Close)
		ann, bob := &caller.Principal{ID: "ann"}, &caller.Principal{ID: "bob"}
		come := func(who *caller.Principal) *slot {
			s, _, err := h.place(who, "x")
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := come(ann)
		h.meter("ann").add(90, 0, time.Now())
		h.unused(s, true)
		come(ann)
		if h.meter("ann").add(90, 0, time.Now()) == "" {
			t.Error("another 90 bytes in the same minute are accepted")
		}
		h.unused(h.slots[servedName("x", "ann", conf.DialSelf)], true)
		time.Sleep(time.Minute)
		come(bob)
		if h.meter("bob"); len(h.meters) != 1 {
			t.Errorf("%d meters are kept", len(h.meters))
		}
	})
}
