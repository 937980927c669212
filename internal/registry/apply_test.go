package registry

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// counted returns server, changed so that open is the number of its open sessions.
func counted(server Server, open *atomic.Int32) Server {
	serve := server.Spec.Serve
	server.Spec.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
		open.Add(1)
		defer open.Add(-1)
		return serve(ctx, in, out)
	}
	return server
}

// TestApply_Kept: a server whose definition is unchanged gets its other new settings and is not restarted.
func TestApply_Kept(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		one := piped(t, "one", mcptest.Spec{})
		one.Spec.Concurrency.Max = 1
		r := start(t, Options{MaxConcurrency: 2}, one, never("never"))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		r.WaitServer(ctx, "one")
		cancel()
		var calls sync.WaitGroup
		began := time.Now()
		for range 3 {
			calls.Go(func() {
				if _, err := call(r, "one", nil, "slow", `{"ms":10000}`); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		one.Description, one.Spec.Concurrency.Max = "described", 5
		changes := r.Apply([]Server{one}, Options{MaxConcurrency: 3}, nil)
		if changes.Started != nil || !slices.Equal(changes.Stopped, []string{"never"}) {
			t.Errorf("changes %+v", changes)
		}
		if s, _ := r.Snapshot().Server("one"); s.Description != "described" || s.State != catalog.Ready || len(s.Tools) == 0 {
			t.Errorf("got %s %q with %d tools", s.State, s.Description, len(s.Tools))
		}
		calls.Wait()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("under the new limits the calls took %v", took)
		}
		r.Close(0)
	})
}

// TestApply_OpenCalls: when a server is replaced, its open calls may continue for the grace period and then fail. Calls that
// were not sent yet, and new calls, are sent to the new server. Sessions of single clients end with the old server.
func TestApply_OpenCalls(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		var before, after atomic.Int32
		old := counted(piped(t, "one", mcptest.Spec{}), &before)
		old.PerClient = true
		fresh := counted(piped(t, "one", mcptest.Spec{}), &after)
		fresh.PerClient, fresh.Definition = true, "another"
		r := start(t, Options{}, old)
		tried(t, r)
		var calls sync.WaitGroup
		began := time.Now()
		outcome := func(client, ms string, check func(err error, took time.Duration)) {
			calls.Go(func() {
				_, err := call(r, "one", &caller.Client{ID: client}, "slow", `{"ms":`+ms+`}`)
				check(err, time.Since(began))
			})
		}
		for _, client := range []string{"a", "b"} {
			outcome(client, "2000", func(err error, took time.Duration) {
				if err != nil || took != 2*time.Second {
					t.Errorf("a short call of %q: %v after %v", client, err, took)
				}
			})
			outcome(client, "60000", func(err error, took time.Duration) {
				var lost *request.LostError
				if !errors.As(err, &lost) || !lost.MayHaveRun || took < 4*time.Second || took > 5*time.Second {
					t.Errorf("a long call of %q: %v after %v", client, err, took)
				}
			})
		}
		synctest.Wait()
		changes := r.Apply([]Server{fresh}, Options{Grace: 4 * time.Second}, nil)
		if !slices.Equal(changes.Started, []string{"one"}) || !slices.Equal(changes.Stopped, []string{"one"}) {
			t.Errorf("changes %+v", changes)
		}
		for _, client := range []string{"a", "b"} {
			if _, err := call(r, "one", &caller.Client{ID: client}, "echo", `{"text":"x"}`); err != nil || time.Since(began) > time.Second {
				t.Errorf("a new call of %q: %v after %v", client, err, time.Since(began))
			}
		}
		synctest.Wait() // the new shared session, which belongs to no client, starts during these calls
		// The old sessions without open calls have ended. The new shared session reads the catalogue.
		if before.Load() != 2 || after.Load() != 3 {
			t.Errorf("%d old sessions and %d new ones, want 2 and 3", before.Load(), after.Load())
		}
		calls.Wait()
		<-time.After(2 * retireWithin)
		r.mu.Lock()
		left := len(r.retired)
		r.mu.Unlock()
		if before.Load() != 0 || left != 0 {
			t.Errorf("%d old sessions are left", before.Load())
		}
		r.Close(0)
	})
}

// TestApply_Waiting: a call that waits for a server that never started is sent to the server that replaces it.
func TestApply_Waiting(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{}, never("one"), never("two"))
		var calls sync.WaitGroup
		began := time.Now()
		calls.Go(func() {
			if _, err := follow(context.Background(), r, "one", request.Request{Method: "tools/call", Params: request.ToolParams("echo", json.RawMessage(`{"text":"x"}`)), Times: request.Times{Wait: time.Minute, Timeout: time.Minute}}); err != nil {
				t.Error(err)
			}
		})
		calls.Go(func() {
			_, err := follow(context.Background(), r, "two", request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil), Times: request.Times{Wait: time.Minute}})
			if !errors.Is(err, errNoServer) {
				t.Errorf("the call of a server that is gone: %v", err)
			}
		})
		synctest.Wait()
		fresh := piped(t, "one", mcptest.Spec{})
		fresh.Definition = "another"
		r.Apply([]Server{fresh}, Options{}, nil)
		calls.Wait()
		if took := time.Since(began); took > time.Second {
			t.Errorf("they waited %v", took)
		}
		r.Close(0)
	})
}

// TestApply_Swap: the value stored by swap takes effect together with the servers and rules: a call that sees one of them sees
// all. After Close, swap is not called.
func TestApply_Swap(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		first, second, swapped := &rules{"first"}, &rules{"second"}, 0
		r := start(t, Options{Rules: first}, piped(t, "one", mcptest.Spec{}))
		tried(t, r)
		r.Apply([]Server{piped(t, "two", mcptest.Spec{})}, Options{Rules: second}, func() {
			swapped++
			snap := r.Snapshot()
			if _, there := snap.Server("two"); !there || len(snap.Servers) != 1 || snap.Rules != second {
				t.Errorf("the snapshot has %v", snap.ServerNames())
			}
		})
		r.Close(0)
		r.Apply(nil, Options{}, func() { swapped++ })
		if _, there := r.Snapshot().Server("two"); swapped != 1 || !there {
			t.Errorf("swapped %d times, the server is there: %t", swapped, there)
		}
	})
}

// TestApply_BeforeStart: before Start, Apply starts no server. Start then starts each server once.
func TestApply_BeforeStart(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		r := New([]Server{piped(t, "gone", mcptest.Spec{})}, Options{})
		r.Apply([]Server{counted(piped(t, "one", mcptest.Spec{}), &open)}, Options{}, nil)
		synctest.Wait()
		if open.Load() != 0 {
			t.Error("started before Start")
		}
		r.Start()
		tried(t, r)
		if n := open.Load(); n != 1 {
			t.Errorf("%d sessions", n)
		}
		r.Close(0)
	})
}

// TestApply_Close: Close does not wait for the grace period of servers that were stopped before.
func TestApply_Close(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{}, piped(t, "one", mcptest.Spec{}))
		tried(t, r)
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := call(r, "one", nil, "slow", `{"ms":60000}`); err == nil {
				t.Error("the call has a result")
			}
		})
		synctest.Wait()
		r.Apply(nil, Options{Grace: time.Hour}, nil)
		began := time.Now()
		r.Close(time.Second)
		calls.Wait()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the end took %v", took)
		}
	})
}

// TestPerClient_Limit: max_concurrency of a server limits the calls of all its clients' sessions together.
func TestPerClient_Limit(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		one := piped(t, "one", mcptest.Spec{})
		one.PerClient, one.Spec.Concurrency.Max = true, 2
		r := start(t, Options{}, one)
		tried(t, r)
		var calls sync.WaitGroup
		began := time.Now()
		for _, client := range []string{"a", "b", "c", "d"} {
			calls.Go(func() {
				if _, err := call(r, "one", &caller.Client{ID: client}, "slow", `{"ms":1000}`); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("four calls of one second, two at once, took %v", took)
		}
		r.Close(0)
	})
}
