package limits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/caller"
	"mcpx/internal/request"
)

var alice, bob = &caller.Principal{ID: "alice"}, &caller.Principal{ID: "bob"}

// once makes a call that ends at once, with a result of this size in bytes.
func once(l *Limits, p *caller.Principal, server string, bytes int) error {
	c, err := l.Begin(context.Background(), p, server, false)
	if err == nil {
		c.End(bytes)
	}
	return err
}

// mustRefuse checks that err is the refusal of a call, with this text.
func mustRefuse(t *testing.T, err error, want string) {
	t.Helper()
	if over, ok := errors.AsType[*request.LimitError](err); !ok || over.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestCalls: used calls become available again evenly over the minute, separately for each principal.
func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := conf.Limits{
			Principal: conf.Quota{CallsPerMinute: 6}, Server: conf.Quota{CallsPerMinute: 60, Burst: 8}, All: conf.Quota{CallsPerMinute: 600, Burst: 15},
		}
		l := Following(func() *conf.Limits { return &options }, NewCounters())
		for range 6 {
			if err := once(l, alice, "a", 0); err != nil {
				t.Fatal(err)
			}
		}
		mustRefuse(t, once(l, alice, "a", 0), "over the limit of 6 calls a minute; retry_after: 10 s")
		for range 2 {
			if err := once(l, bob, "a", 0); err != nil {
				t.Fatal(err)
			}
		}
		mustRefuse(t, once(l, bob, "a", 0), "over the limit of 60 calls a minute of this server; retry_after: 1 s")
		for range 4 { // the server's refusal took none of bob's own calls
			if err := once(l, bob, "b", 0); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			if err := once(l, nil, "b", 0); err != nil {
				t.Fatal(err)
			}
		}
		mustRefuse(t, once(l, nil, "b", 0), "over the limit of 600 calls a minute of all callers together; retry_after: 1 s")
		<-time.After(10 * time.Second)
		if err := once(l, alice, "a", 0); err != nil {
			t.Error(err)
		}
		mustRefuse(t, once(l, alice, "a", 0), "over the limit of 6 calls a minute; retry_after: 10 s")
		options = conf.Limits{}
		if err := once(l, alice, "a", 0); err != nil {
			t.Error(err)
		}
	})
}

// TestBytes: one result may exceed the limit; the calls after it are then refused for a longer time. A request that
// is part of a call is never refused, but its bytes are counted.
func TestBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(conf.Limits{Principal: conf.Quota{ResultBytesPerMinute: 6000}})
		if err := once(l, alice, "a", 9000); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, once(l, alice, "a", 0), "over the limit of 6000 bytes of results a minute; retry_after: 31 s")
		c, err := l.Begin(t.Context(), alice, "a", true)
		if err != nil {
			t.Fatal(err)
		}
		c.End(3000)
		mustRefuse(t, once(l, alice, "a", 0), "over the limit of 6000 bytes of results a minute; retry_after: 61 s")
		<-time.After(time.Minute + time.Second)
		c, err = l.Begin(t.Context(), alice, "a", false)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour) // after a long call, no more bytes are available than the limit
		c.End(9000)
		mustRefuse(t, once(l, alice, "a", 0), "over the limit of 6000 bytes of results a minute; retry_after: 31 s")
		if err := once(l, bob, "a", 9000); err != nil {
			t.Error(err)
		}
	})
}

// TestConcurrentCalls: a call over the limit waits for at most Queue.Wait. At most Queue.Calls calls wait at the same
// time; further calls are refused. If a caller gives up waiting, the error is not a LimitError.
func TestConcurrentCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(conf.Limits{Principal: conf.Quota{ConcurrentCalls: 1, Queue: semaphore.Queue{Calls: 2, Wait: 10 * time.Second}}})
		first, err := l.Begin(t.Context(), alice, "a", false)
		if err != nil {
			t.Fatal(err)
		}
		impatient, leave := context.WithTimeout(t.Context(), 3*time.Second)
		defer leave()
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if _, err := l.Begin(impatient, alice, "b", false); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("who gave up: %v", err)
			}
		})
		waiting.Go(func() {
			began := time.Now()
			_, err := l.Begin(t.Context(), alice, "b", false)
			mustRefuse(t, err, "over the limit of 1 calls at once; retry_after: 1 s")
			if waited := time.Since(began); waited != 10*time.Second {
				t.Errorf("waited %v", waited)
			}
		})
		synctest.Wait()
		began := time.Now()
		mustRefuse(t, once(l, alice, "c", 0), "over the limit of 1 calls at once; retry_after: 1 s")
		if err := once(l, bob, "a", 0); err != nil || time.Since(began) > 0 {
			t.Errorf("another principal: %v after %v", err, time.Since(began))
		}
		waiting.Wait()
		waiting.Go(func() {
			if err := once(l, alice, "c", 0); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		first.End(0)
		waiting.Wait()
		if open := l.principals.Get("alice").open; open != 0 {
			t.Errorf("%d calls are still counted", open)
		}
	})
}

func TestSessions(t *testing.T) {
	l := New(conf.Limits{All: conf.Quota{Sessions: 3}, Principal: conf.Quota{Sessions: 2}, Server: conf.Quota{Sessions: 5}})
	open := func(p *caller.Principal) string {
		if err := l.OpenSession(p); err != nil {
			return err.Error()
		}
		return ""
	}
	for _, step := range []struct {
		who  *caller.Principal
		want string
	}{
		{alice, ""}, {alice, ""}, {alice, "over the limit of 2 open sessions; retry_after: 60 s"},
		{bob, ""}, {bob, "over the limit of 3 open sessions of all callers together; retry_after: 60 s"},
	} {
		if got := open(step.who); got != step.want {
			t.Errorf("%s: %q, want %q", step.who.ID, got, step.want)
		}
	}
	l.CloseSession(alice)
	if got := open(bob); got != "" {
		t.Error(got)
	}
	if l.ServerSession(4) != nil || l.ServerSession(5) == nil {
		t.Error("the sessions of a server are not bounded by 5")
	}
}

// TestMadeUpKeys: callers who make up principals and addresses cannot fill the memory, and do not make the limits
// forget principals with open sessions or calls.
func TestMadeUpKeys(t *testing.T) {
	l := New(conf.Limits{Principal: conf.Quota{CallsPerMinute: 1, Sessions: 1}, AddressRequests: 1})
	if err := l.OpenSession(alice); err != nil {
		t.Fatal(err)
	}
	for i := range 5 * maxKept {
		_ = once(l, &caller.Principal{ID: fmt.Sprint("p", i)}, "a", 0)
		l.Arrived(netip.AddrFrom4([4]byte{1, byte(i >> 16), byte(i >> 8), byte(i)}), "")
		l.Known(bob, netip.Addr{}, fmt.Sprint("credential", i))
	}
	for name, n := range map[string]int{
		"principals": l.principals.Len(),
		"proved":     l.proved.Len(),
	} {
		if n > 2*maxKept+1 {
			t.Errorf("%d %s are kept", n, name)
		}
	}
	if l.OpenSession(alice) == nil {
		t.Error("the open session was forgotten")
	}
}

// TestFlood: a flood from an address is refused. Requests with a credential that was valid earlier are not counted
// for the address; they have a limit of their own.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(conf.Limits{AddressRequests: 10, Principal: conf.Quota{RequestsPerSecond: 20}})
		if wait := l.Arrived(netip.MustParseAddr("1.2.3.4"), "Bearer good"); wait != 0 {
			t.Fatal(wait)
		}
		l.Known(alice, netip.MustParseAddr("1.2.3.4"), "Bearer good") // the request is no longer counted for the address
		passed := 0
		for range 300 {
			if l.Arrived(netip.MustParseAddr("1.2.3.4"), "Bearer bad") == 0 {
				passed++
			}
		}
		if passed != 120 {
			t.Errorf("%d requests passed, want 120", passed)
		}
		if wait := l.Arrived(netip.MustParseAddr("1.2.3.4"), ""); wait != 100*time.Millisecond {
			t.Errorf("to wait %v, want 100ms", wait)
		}
		if l.Arrived(netip.MustParseAddr("1.2.3.5"), "") != 0 || l.Arrived(netip.MustParseAddr("1.2.3.4"), "Bearer good") != 0 {
			t.Error("others are refused")
		}
		passed = known(l, alice)
		if passed != 139 || known(l, bob) != 140 {
			t.Errorf("%d requests of a principal passed, want 139 more", passed)
		}
		<-time.After(time.Second)
		passed = known(l, alice)
		if passed != 20 {
			t.Errorf("%d requests after a second, want 20", passed)
		}
	})
}

// known counts how many requests of a principal are accepted until one is refused as a flood.
func known(l *Limits, p *caller.Principal) (n int) {
	for {
		if _, flood := l.Known(p, netip.MustParseAddr("1.2.3.4"), "Bearer "+p.ID); flood {
			return n
		}
		n++
	}
}

// TestPace: requests above the pace are delayed, one after the other. Error answers are delayed if a sender causes
// too many.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(conf.Limits{Principal: conf.Quota{Pace: 100, BodyBytes: 1000, BodyPace: 100}})
		var wait time.Duration
		for range 400 {
			wait, _ = l.Known(alice, netip.Addr{}, "")
		}
		if wait != time.Second { // the first 300 of 400 are not delayed
			t.Errorf("the last of 400 waits %v", wait)
		}
		if wait, _ := l.Known(bob, netip.Addr{}, ""); wait != 0 {
			t.Errorf("another principal waits %v", wait)
		}
		for i, want := range []time.Duration{0, 10 * time.Millisecond, 8010 * time.Millisecond} {
			if wait, ok := l.ReadBody(alice, []int{99, 1, 800}[i]); wait != want || !ok {
				t.Errorf("body %d: %v %v", i, wait, ok)
			}
			l.BodyRead(alice, []int{99, 1, 800}[i])
		}
		for _, who := range []*caller.Principal{alice, nil} {
			late := 0
			for range 150 {
				if l.Refused(who, netip.MustParseAddr("1.2.3.4")) {
					late++
				}
			}
			if late != 50 || l.Refused(who, netip.MustParseAddr("1.2.3.5")) != (who != nil) {
				t.Errorf("%d late answers", late)
			}
		}
	})
}

// BenchmarkBegin measures what the limits cost a call: without limits, with the default limits of a principal, and
// with all limits.
func BenchmarkBegin(b *testing.B) {
	every := conf.Quota{CallsPerMinute: 1e9, ResultBytesPerMinute: 1e9, ConcurrentCalls: 100}
	for name, o := range map[string]conf.Limits{
		"none": {}, "default": {Principal: conf.Quota{ConcurrentCalls: 256}}, "all": {Principal: every, Server: every, All: every},
	} {
		b.Run(name, func(b *testing.B) {
			l := New(o)
			b.ReportAllocs()
			for b.Loop() {
				c, err := l.Begin(context.Background(), alice, "server", false)
				if err != nil {
					b.Fatal(err)
				}
				c.End(1)
			}
		})
	}
}

// TestLimit: the middleware counts calls and the bytes of results. A notification is counted as a call, but needs no
// concurrency slot: while it waited for one, the goroutine that reads the client's messages could not read the next
// one.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(conf.Limits{Principal: conf.Quota{CallsPerMinute: 4, ConcurrentCalls: 1, ResultBytesPerMinute: 60}})
		hold, sent := make(chan struct{}), 0
		send := l.Limit(func(_ context.Context, r *request.Request) (json.RawMessage, error) {
			if sent++; r.Notification {
				return nil, nil
			}
			<-hold
			return json.RawMessage(`"a result"`), nil
		})
		client := caller.New(caller.Place{Principal: alice}, caller.Said{})
		of := func(method string, notification bool) *request.Request {
			return &request.Request{From: request.From{Client: &client}, To: &catalog.Server{Name: "a"}, Method: method, Notification: notification}
		}
		first := make(chan error, 2)
		for range 2 {
			go func() { // ends when hold is closed
				_, err := send(t.Context(), of("tools/call", false))
				first <- err
			}()
		}
		synctest.Wait()
		began := time.Now()
		for range 2 {
			if _, err := send(t.Context(), of("notifications/made_up", true)); err != nil {
				t.Error(err)
			}
		}
		if sent != 3 || time.Since(began) > 0 {
			t.Errorf("%d of 3 were sent after %v", sent, time.Since(began))
		}
		_, err := send(t.Context(), of("notifications/made_up", true))
		mustRefuse(t, err, "over the limit of 4 calls a minute; retry_after: 15 s")
		// This notification belongs to the session, so it is not counted.
		if _, err := send(t.Context(), of("notifications/roots/list_changed", true)); err != nil {
			t.Error(err)
		}
		close(hold)
		for range 2 {
			if err := <-first; err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
		for range 4 {
			if _, err := send(t.Context(), of("tools/call", false)); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(15 * time.Second)
		if _, err := send(t.Context(), of("tools/call", false)); err != nil {
			t.Error(err)
		}
		big := l.Limit(func(context.Context, *request.Request) (json.RawMessage, error) {
			return make(json.RawMessage, 61), nil
		})
		time.Sleep(time.Minute)
		if _, err := big(t.Context(), of("resources/read", false)); err != nil {
			t.Error(err)
		}
		_, err = big(t.Context(), of("resources/read", false))
		mustRefuse(t, err, "over the limit of 60 bytes of results a minute; retry_after: 2 s")
		if n := l.of(alice).open; n != 0 {
			t.Errorf("%d are under way", n)
		}
	})
}

// TestLimit_Unread: while the answers that a principal has not read reach AnswerBytes, its next calls wait. Answers of calls that were
// made before that are still counted, up to four times as many. The calls of others, and notifications, do not wait. Without a
// principal no call waits, since the unread answers may be those of another client, and AnswerBytes is the bound.
func TestLimit_Unread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(conf.Limits{Principal: conf.Quota{AnswerBytes: 100}, Anybody: conf.Quota{AnswerBytes: 100}})
		send := l.Limit(func(context.Context, *request.Request) (json.RawMessage, error) { return nil, nil })
		call := func(ctx context.Context, p *caller.Principal, notification bool) error {
			client := caller.New(caller.Place{Principal: p}, caller.Said{})
			_, err := send(ctx, &request.Request{From: request.From{Client: &client}, To: &catalog.Server{Name: "a"}, Method: "tools/call", Notification: notification})
			return err
		}
		for _, size := range []int{60, 60, 60, 60, 60, 60} {
			if !l.WriteAnswer(alice, size) {
				t.Error("an answer was refused")
			}
		}
		if l.WriteAnswer(alice, 60) {
			t.Error("420 bytes are not refused")
		}
		began := time.Now()
		if !l.WriteAnswer(nil, 100) || l.WriteAnswer(nil, 60) {
			t.Error("without a principal, 100 bytes are refused or 160 are not")
		}
		if err := errors.Join(call(t.Context(), bob, false), call(t.Context(), alice, true), call(t.Context(), nil, false)); err != nil || time.Since(began) > 0 {
			t.Errorf("the others: %v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := call(ctx, alice, false); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("a call that gives up: %v after %v", err, time.Since(began))
		}
		time.AfterFunc(time.Second, func() {
			for range 5 {
				l.AnswerWritten(alice, 60)
			}
		})
		began = time.Now()
		if err := call(t.Context(), alice, false); err != nil || time.Since(began) != time.Second {
			t.Errorf("when the client has read: %v after %v", err, time.Since(began))
		}
		l.AnswerWritten(alice, 60)
		if l.of(alice).busy() {
			t.Error("something is still counted")
		}
	})
}
