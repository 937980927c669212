package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// stub is a link that answers nothing and notes what it is to say.
type stub struct {
	*mux
	in   incoming
	said chan string
}

func newStub() *stub { return &stub{mux: newMux(), said: make(chan string, 10)} }

func (s *stub) request(ctx context.Context, _ outgoing) (wire.Message, error) {
	<-ctx.Done()
	return wire.Message{}, ctx.Err()
}

func (s *stub) notify(_ context.Context, message []byte) error {
	s.said <- string(message)
	return nil
}

func (s *stub) start(in incoming) { s.in = in }

func (s *stub) close() {}

func (s *stub) traits() traits { return traits{oneStream: true} }

var _ link = (*stub)(nil)

// What was answered counts, also if the caller leaves at the same moment.
func TestAnswerAndCancellationTogether(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for id := range int64(100) {
		m := newMux()
		p, _, err := m.register(outgoing{id: id})
		if err != nil {
			t.Fatal(err)
		}
		m.resolve(id, answer{message: wire.Message{Result: json.RawMessage(`{}`)}})
		if _, err := m.wait(ctx, p); err != nil {
			t.Fatalf("an answer and a cancellation: got %v", err)
		}
	}
	m := newMux()
	p, _, err := m.register(outgoing{id: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.wait(ctx, p); !errors.Is(err, context.Canceled) || len(m.pending) != 0 {
		t.Errorf("no answer: got %v, %d are waited for", err, len(m.pending))
	}
}

// scriptedConn is a Conn whose server is the test.
type scriptedConn struct {
	said    chan []byte // what Read returns; closed at the end of the stream
	written func(messages [][]byte) error
	once    sync.Once
}

func (c *scriptedConn) Read() ([]byte, error) {
	if data, ok := <-c.said; ok {
		return data, nil
	}
	return nil, io.EOF
}

func (c *scriptedConn) Write(messages ...[]byte) error { return c.written(messages) }

func (c *scriptedConn) Close() error {
	c.once.Do(func() { close(c.said) })
	return nil
}

// A server may answer and end before the write of the request has returned.
func TestAnswerBeforeTheWriteIsOver(t *testing.T) {
	mcptest.NoLeaks(t)
	spec := Spec{}.withDefaults()
	over := make(chan struct{})
	conn := &scriptedConn{said: make(chan []byte, 1)}
	l := newStreamLink(&spec).use(conn, nil)
	conn.written = func([][]byte) error {
		conn.said <- []byte(`{"jsonrpc":"2.0","id":7,"result":{"last":"words"}}`)
		_ = conn.Close()
		<-over
		return nil
	}
	l.start(func(wire.Message, int64) {})
	message, err := l.request(context.Background(), outgoing{id: 7, message: []byte("{}")})
	if err != nil || string(message.Result) != `{"last":"words"}` {
		t.Errorf("got %s, %v", message.Result, err)
	}
	close(over)
	l.close()
}

// A server may ask before anything else, and is answered. An id of any length is no
// reason to send as much back.
func TestRequestsOfTheServer(t *testing.T) {
	spec := Spec{}.withDefaults()
	s := newSession(&spec)
	l := newStub()
	s.connected(l)
	l.in(wire.Message{ID: json.RawMessage(`"p"`), Method: "ping"}, 0)
	l.in(wire.Message{ID: json.RawMessage(`"` + strings.Repeat("x", maxID) + `"`), Method: "ping"}, 0)
	if got := <-l.said; got != `{"jsonrpc":"2.0","id":"p","result":{}}` || len(l.said) != 0 {
		t.Errorf("got %s, and %d more", got, len(l.said))
	}
	s.close()
}

// At no moment of a loss does a caller hear that there is no session though the
// server is ready.
func TestLossIsOneChange(t *testing.T) {
	u := New(Spec{})
	over := make(chan struct{})
	var losses sync.WaitGroup
	losses.Go(func() {
		defer close(over)
		for range 3000 {
			l := newStub()
			u.update(func(st *Status) { u.session, st.State = &session{link: l}, catalog.Ready })
			l.fail(errors.New("fell over"))
			u.lost(errors.New("fell over"), troubles{}, 0)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for open := true; open; {
		var unavailable *request.UnavailableError
		if err := u.awaitSession(ctx, &waits{}); errors.As(err, &unavailable) && unavailable.State != catalog.Connecting {
			t.Errorf("got %v", err)
			break
		}
		select {
		case <-over:
			open = false
		default:
		}
	}
	losses.Wait()
}

// A call that is lost and waits for its server to come back takes no place from
// the calls of other servers, and says in the end that it may have been executed.
func TestRetryTakesNoPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		all := semaphore.New(1)
		bad, starts := inProcess(t, mcptest.Spec{})
		good, _ := inProcess(t, mcptest.Spec{})
		bad.AllGate, good.AllGate = all, all
		serve := bad.Serve
		bad.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
			if starts.starts() == 0 {
				return serve(ctx, in, out)
			}
			<-ctx.Done() // it never comes back
			return ctx.Err()
		}
		a, b := connect(t, bad), connect(t, good)
		var calls sync.WaitGroup
		began := time.Now()
		calls.Go(func() {
			_, err := a.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("crash", nil), Repeatable: true, Wait: 20 * time.Second})
			var lost *request.LostError
			if !errors.As(err, &lost) || !lost.MayHaveRun || time.Since(began) != 20*time.Second {
				t.Errorf("got %v after %v", err, time.Since(began))
			}
		})
		synctest.Wait()
		mustEcho(t, b)
		if took := time.Since(began); took != 0 {
			t.Errorf("the call of the other server took %v", took)
		}
		calls.Wait()
	})
}

// Retry-After is seconds or a date, and no reason to wait for ever.
func TestParseRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"7": 7 * time.Second, " 120 ": 2 * time.Minute, "0": 0, "-5": 0, "1h": 0, "soon": 0, "": 0,
		"99999999999": maxRetryAfter, "99999999999999999999": 0,
		"Wed, 21 Oct 2015 07:28:00 GMT": 0, "Fri, 01 Jan 2999 00:00:00 GMT": maxRetryAfter,
	} {
		if got := parseRetryAfter(value); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(90 * time.Second)
		if got := parseRetryAfter(at.UTC().Format(http.TimeFormat)); got != 90*time.Second {
			t.Errorf("a date in 90 s: got %v", got)
		}
	})
	if got := retryAfterOf(&statusError{retryAfter: time.Hour}); got != maxOwnWait {
		t.Errorf("mcpx itself would wait for %v", got)
	}
}

// 503 can say when to come back, too; what is not offered is asked for no sooner.
func TestRetryAfterUnavailable(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	server.Script(mcptest.Fault{Kind: mcptest.FaultStatus, Status: 503, Header: map[string]string{"Retry-After": "3600"}}.Always())
	status := awaitState(t, connect(t, Spec{Type: HTTP, URL: server.URL}), catalog.Unavailable)
	if wait := time.Until(status.RetryAfter); wait < maxOwnWait-patience || wait > maxOwnWait {
		t.Errorf("the next attempt is in %v, want %v", wait, maxOwnWait)
	}
	contains(t, "reason", status.Reason, "503 Service Unavailable", "retry after 3600")
}

// A server may leave a stream open behind a notification, which has no answer.
func TestStreamBehindNotification(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := &changing{tool: "old", endless: true}
		u := connect(t, server.spec())
		synctest.Wait()
		if status := u.Status(); status.State != catalog.Ready {
			t.Errorf("%s (%s)", status.State, status.Reason)
		}
	})
}

// A session that the server has forgotten is not ended once more: who waits for
// the fresh one need not wait for that.
func TestForgottenSessionIsNotEnded(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	u := ready(t, Spec{Type: HTTP, URL: server.URL})
	server.KillSessions()
	mustEcho(t, u)
	for _, entry := range server.Log().Event(mcptest.EventHTTP) {
		if strings.HasPrefix(entry.Text, http.MethodDelete) {
			t.Error("the forgotten session was ended")
		}
	}
	u.Close(0)
	if n := server.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// A secret is struck out in each of the spellings that servers have for it.
func TestSecretSpellings(t *testing.T) {
	key := "-----BEGIN KEY-----\nMIIabcdefgh\nijklmnopqr\n-----END KEY-----\n"
	spec := Spec{Secrets: []string{"to ken/+\"1", key, "abc", "word"}}.withDefaults()
	for text, want := range map[string]string{
		`bad token to ken/+"1 given`:                    "bad token [secret] given",
		"GET /x?key=to+ken%2F%2B%221":                   "GET /x?key=[secret]",
		"GET /to%20ken%2F+%221/x":                       "GET /[secret]/x",
		`{"token":"to ken/+\"1"}`:                       `{"token":"[secret]"}`,
		"bad key: " + key + " read":                     "bad key: [secret] read",
		"ijklmnopqr\n-----END KEY-----":                 "[secret] [secret]",
		"abc is too short to be struck out":             "abc is too short to be struck out",
		"a word is not":                                 "a [secret] is not",
		strings.Repeat("x", cleanBytes) + "to ken/+\"1": strings.Repeat("x", 97) + "...",
	} {
		if got := spec.clean(text, 100); got != want {
			t.Errorf("%.60q: got %q, want %q", text, got, want)
		}
	}
}

// A call that may be repeated says that its upstream was stopped, so that it can
// be made where that was replaced.
func TestRepeatableCallOfStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{})
		u := connect(t, spec)
		var calls sync.WaitGroup
		calls.Go(func() {
			_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(`{"ms":60000}`)), Repeatable: true})
			var unavailable *request.UnavailableError
			if !errors.As(err, &unavailable) || !unavailable.Stopped {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		u.Close(0)
		calls.Wait()
	})
}
