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
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// script is a Conn on which the test plays the server.
type script struct {
	says  chan []byte // what the method Read returns; closed at the end of the stream
	hears chan string // what mcpx wrote
	once  sync.Once
}

func (c *script) Read() ([]byte, error) {
	if data, ok := <-c.says; ok {
		return data, nil
	}
	return nil, io.EOF
}

func (c *script) Write(messages ...[]byte) error {
	for _, message := range messages {
		c.hears <- string(message)
	}
	return nil
}

func (c *script) Close() error {
	c.once.Do(func() { close(c.says) })
	return nil
}

// linkTo returns a link over conn. The link is not started yet.
func linkTo(t testing.TB, conn transport.Conn) transport.Link {
	t.Helper()
	l, err := transport.NewDialer(transport.Options{Connect: func(context.Context) (transport.Conn, error) { return conn, nil }}).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestRequestsOfTheServer: a server may send a request before any other message, and gets an answer. A request whose id is
// too long gets none.
func TestRequestsOfTheServer(t *testing.T) {
	spec := Spec{}.withDefaults()
	s := newSession(&spec)
	conn := &script{says: make(chan []byte), hears: make(chan string, 10)}
	s.connected(linkTo(t, conn))
	for _, id := range []string{"p", strings.Repeat("x", maxID), "q"} {
		conn.says <- []byte(`{"jsonrpc":"2.0","id":"` + id + `","method":"ping"}`)
	}
	for _, id := range []string{"p", "q"} {
		if got := <-conn.hears; got != `{"jsonrpc":"2.0","id":"`+id+`","result":{}}` {
			t.Errorf("got %s", got)
		}
	}
	s.close()
}

// TestLossIsOneChange: after a loss, a caller never gets the error "no session" while the server is ready.
func TestLossIsOneChange(t *testing.T) {
	u := New(Spec{})
	over := make(chan struct{})
	var losses sync.WaitGroup
	losses.Go(func() {
		defer close(over)
		for range 3000 {
			l := linkTo(t, &script{})
			u.update(func(st *Status) { u.session, st.State = &session{link: l}, catalog.Ready })
			l.Life().Fail(errors.New("fell over"))
			u.lost(errors.New("fell over"), degradation{}, 0)
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

// TestRetryTakesNoPlace: a lost call that waits for its server to come back takes no place within the concurrency
// limit, so it does not block calls of other servers. In the end its error says that it may have been executed.
func TestRetryTakesNoPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		all := semaphore.New(1, semaphore.Queue{})
		bad, starts := inProcess(t, mcptest.Spec{})
		good, _ := inProcess(t, mcptest.Spec{})
		bad.Concurrency.All, good.Concurrency.All = all, all
		serve := bad.Serve
		bad.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
			if starts.starts() == 0 {
				return serve(ctx, in, out)
			}
			<-ctx.Done() // the server never comes back
			return ctx.Err()
		}
		a, b := connect(t, bad), connect(t, good)
		var calls sync.WaitGroup
		began := time.Now()
		calls.Go(func() {
			_, err := a.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("crash", nil), Repeatable: true, Times: request.Times{Wait: 20 * time.Second}})
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

// TestRetryAfterUnavailable: mcpx also obeys the Retry-After of a 503: the next attempt to connect comes not before that
// time, but at the latest after ten minutes.
func TestRetryAfterUnavailable(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	server.Script(mcptest.Fault{Kind: mcptest.FaultStatus, Status: 503, Header: map[string]string{"Retry-After": "3600"}}.Always())
	status := awaitState(t, connect(t, at(transport.HTTP, server.URL)), catalog.Unavailable)
	const most = 10 * time.Minute
	if wait := time.Until(status.RetryAfter); wait < most-patience || wait > most {
		t.Errorf("the next attempt is in %v, want %v", wait, most)
	}
	contains(t, "reason", status.Reason, "503 Service Unavailable", "retry after 3600")
}

// TestStreamBehindNotification: a server may answer a notification with a stream that stays open. mcpx does not wait for the end of
// the stream.
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

// TestForgottenSessionIsNotEnded: mcpx sends no DELETE for a session that the server has forgotten, so the fresh
// session does not have to wait for it.
func TestForgottenSessionIsNotEnded(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	u := ready(t, at(transport.HTTP, server.URL))
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

// TestRepeatableCallOfStopped: if an upstream is stopped, the error of a repeatable call says so. The caller can
// then send the call to the upstream that replaces it.
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
