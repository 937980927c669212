package semaphore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// callers make calls that wait for a semaphore, and record the order in which they are let in.
type callers struct {
	t *testing.T
	s *Semaphore

	mu    sync.Mutex
	order []string // of the calls that were let in, or refused
}

func (c *callers) record(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order = append(c.order, what)
}

// call makes a call whose name begins with its owner: a1. It returns once the call is in, waits, or is refused.
func (c *callers) call(ctx context.Context, names ...string) {
	for _, name := range names {
		go func() { // ends with the bubble
			err := c.s.Enter(ctx, strings.TrimRight(name, "0123456789"))
			busy, _ := errors.AsType[*BusyError](err)
			switch {
			case err == nil:
				c.record(name)
			case busy.Refused:
				c.record("-" + name)
			}
		}()
		synctest.Wait()
	}
}

func (c *callers) leave(owners ...string) {
	for _, owner := range owners {
		c.s.Leave(owner)
		synctest.Wait()
	}
}

func (c *callers) check(want string) {
	c.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := strings.Join(c.order, " "); got != want {
		c.t.Errorf("got %s, want %s", got, want)
	}
	c.order = nil
}

// However many calls one owner makes, the next room is for another one: after the first of its calls that ends, not after all.
func TestFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callers{t: t, s: New(2, Queue{})}
		c.call(t.Context(), "a1", "a2", "a3", "a4", "a5", "a6", "b1", "c1", "b2", "c2")
		c.check("a1 a2")
		c.leave("a")
		c.check("b1")
		c.leave("b")
		c.check("c1")
		c.leave("a")
		c.check("a3") // c has a call open, a and b have none, and a was let in before b
		c.leave("c")
		c.check("b2")
		c.leave("b")
		c.check("c2")
		c.leave("a", "c", "a", "a")
		c.check("a4 a5 a6")
	})
}

// Room that one principal may not use is there for another at once. Calls without a principal may use all of it.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callers{t: t, s: Shared(2, Queue{})}
		c.call(t.Context(), "a1", "a2", "a3", "b1")
		c.check("a1 b1")
		c.leave("b")
		c.check("")
		c.call(t.Context(), "b2")
		c.check("b2")
		c.leave("a")
		c.check("a2")
		c.leave("a", "b", "a")
		c.check("a3")
		c.call(t.Context(), "1", "2", "3")
		c.check("1 2")
		c.leave("", "", "")
	})
}

// A full queue is shared fairly too: the newest call of the owner with the most waiting calls is refused for another's.
func TestQueue_Fair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callers{t: t, s: New(1, Queue{Calls: 3})}
		c.call(t.Context(), "a1", "a2", "a3", "a4", "a5")
		c.check("a1 -a5")
		c.call(t.Context(), "b1", "b2", "c1", "c2")
		c.check("-a4 -b2 -a3 -c2")
		c.leave("a", "b", "c", "a")
		c.check("b1 c1 a2")
	})
}

// A call that yields goes on at once unless another owner waits; then that one is let in first.
func TestYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callers{t: t, s: New(1, Queue{})}
		ctx, cancel := context.WithCancel(t.Context())
		yield := func(want error) {
			began := time.Now()
			waited, err := c.s.Yield(ctx, "a")
			if (err == nil) != (want == nil) || waited != time.Since(began) {
				t.Errorf("%v after %v, want %v", err, waited, want)
			}
			if err == nil {
				c.record("yielded")
			}
		}
		c.call(t.Context(), "a1", "a2")
		yield(nil)
		c.check("a1 yielded")
		c.call(t.Context(), "b1")
		go func() { // ends with the bubble
			yield(nil)
			c.s.Leave("a")
		}()
		synctest.Wait()
		c.check("b1")
		c.leave("b")
		c.check("yielded a2")
		c.call(t.Context(), "b2")
		cancel()
		yield(ctx.Err()) // its room is b's
		c.check("b2")
		c.leave("b")
		if open, waiting := c.s.Use(); open != 0 || waiting != 0 || len(c.s.owners) != 0 {
			t.Errorf("%d are open, %d wait, owners: %v", open, waiting, c.s.owners)
		}
	})
}

// A call that gives up leaves the queue of its owner, and no trace.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callers{t: t, s: New(1, Queue{Wait: time.Second})}
		ctx, cancel := context.WithCancel(t.Context())
		c.call(t.Context(), "a1")
		c.call(ctx, "b1")
		c.call(t.Context(), "c1")
		cancel()
		synctest.Wait()
		c.leave("a")
		c.check("a1 c1")
		c.call(t.Context(), "b2")
		<-time.After(time.Second)
		synctest.Wait()
		c.check("-b2")
		c.leave("c")
		if owners := len(c.s.owners); owners != 0 {
			t.Errorf("%d owners are kept", owners)
		}
	})
}
