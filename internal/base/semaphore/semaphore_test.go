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

// callers makes calls that wait for a semaphore, and records the order in which they are let in.
type callers struct {
	t *testing.T
	s *Semaphore

	mu    sync.Mutex
	order []string // names of the calls that were let in; with "-" if refused
}

func (c *callers) record(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order = append(c.order, what)
}

// call makes calls, one after the other. A name is the owner and a number, such as a1. call goes on once the call was
// let in, waits, or was refused.
func (c *callers) call(ctx context.Context, names ...string) {
	for _, name := range names {
		go func() { // ends with the bubble of synctest
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

// TestFair: however many calls one owner makes, another owner's call is let in as soon as one of them ends.
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
		c.check("a3") // c has an open call, a and b have none, and a's last call was let in before b's
		c.leave("c")
		c.check("b2")
		c.leave("b")
		c.check("c2")
		c.leave("a", "c", "a", "a")
		c.check("a4 a5 a6")
	})
}

// TestShared: calls of another principal are let in at once where one principal has used up its half. Calls without a
// principal may use the whole limit.
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

// TestQueue_Fair: if the queue is full, a call of another owner displaces the newest call of the owner with the most
// waiting calls.
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

// TestYield: a call that yields goes on at once if no other owner waits. Otherwise it goes on after a call of that
// owner.
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
		go func() { // ends with the bubble of synctest
			yield(nil)
			c.s.Leave("a")
		}()
		synctest.Wait()
		c.check("b1")
		c.leave("b")
		c.check("yielded a2")
		c.call(t.Context(), "b2")
		cancel()
		yield(ctx.Err()) // b2 is let in, the yielding call is not
		c.check("b2")
		c.leave("b")
		if open, waiting := c.s.Use(); open != 0 || waiting != 0 || len(c.s.owners) != 0 {
			t.Errorf("%d are open, %d wait, owners: %v", open, waiting, c.s.owners)
		}
	})
}

// TestGivesUp: a call whose wait ends leaves the queue, and its owner is forgotten.
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

// TestSet: a raised limit lets waiting calls in at once. If the limit is lowered, the open calls stay open. 0 is no limit.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &callers{t: t, s: New(2, Queue{})}
		c.call(t.Context(), "1", "2", "3", "4", "5")
		c.check("1 2")
		c.s.Set(3, Queue{})
		c.check("3")
		c.s.Set(1, Queue{})
		c.leave("", "")
		c.check("")
		c.leave("")
		c.check("4")
		c.s.Set(0, Queue{})
		c.check("5")
		c.call(t.Context(), "6")
		c.check("6")
	})
}

// TestRace: if a call gives up at the moment when it could be let in, it either is let in or leaves its turn to another call.
func TestRace(t *testing.T) {
	s := New(1, Queue{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 300 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*time.Microsecond)
				if s.Enter(ctx, "") == nil {
					s.Leave("")
				}
				cancel()
			}
		})
	}
	all.Wait()
	if open, waiting := s.Use(); open != 0 || waiting != 0 {
		t.Errorf("%d in, %d wait", open, waiting)
	}
}
