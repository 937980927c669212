package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/semaphore"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// TestGateOfAll: the limit for all upstreams bounds the calls of all of them together, and the error names that
// limit.
func TestGateOfAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		all := semaphore.New(1, semaphore.Queue{})
		one, _ := inProcess(t, mcptest.Spec{})
		two, _ := inProcess(t, mcptest.Spec{})
		one.Concurrency.All, two.Concurrency.All = all, all
		two.Concurrency.Gate = semaphore.New(5, semaphore.Queue{})
		a, b := connect(t, one), connect(t, two)
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := text(a, "slow", `{"ms":10000}`); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		began := time.Now()
		_, err := b.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", json.RawMessage(`{"text":"x"}`)), Times: request.Times{Timeout: 3 * time.Second}})
		var busy *semaphore.BusyError
		if !errors.As(err, &busy) || !busy.All || busy.Open != 1 || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		mustEcho(t, b) // waits until the slow call has ended
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("the call in the queue took %v", took)
		}
		calls.Wait()
	})
}

// TestStop: a stopped upstream lets open calls end until it is closed, and accepts no new ones.
func TestStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{})
		u := connect(t, spec)
		mustEcho(t, u)
		var calls sync.WaitGroup
		calls.Go(func() {
			if got, err := text(u, "slow", `{"ms":2000}`); err != nil || got != "slept 2000 ms" {
				t.Errorf("the short call: %q, %v", got, err)
			}
		})
		calls.Go(func() {
			_, err := text(u, "slow", `{"ms":60000}`)
			var lost *request.LostError
			if !errors.As(err, &lost) || !lost.MayHaveRun || lost.Reason != errStopped.Error() {
				t.Errorf("the long call: %v", err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		calls.Go(func() {
			began := time.Now()
			u.Stop(ctx)
			if took := time.Since(began); took != 5*time.Second {
				t.Errorf("Stop returned after %v with a call open", took)
			}
			u.Close(0)
		})
		synctest.Wait()
		refused := func(when string) {
			t.Helper()
			began := time.Now()
			_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil), Times: request.Times{Wait: time.Minute}})
			var unavailable *request.UnavailableError
			if !errors.As(err, &unavailable) || !unavailable.Stopped || time.Since(began) != 0 {
				t.Errorf("a call %s: %v after %v", when, err, time.Since(began))
			}
		}
		refused("during the grace")
		calls.Wait()
		refused("after the end")
		u.Stop(context.Background()) // no call is open, so Stop returns at once
	})
}

// A call that waits for a session fails at once when its upstream is stopped.
func TestStopWhileConnecting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{NeverInit: true})
		u := connect(t, spec)
		var calls sync.WaitGroup
		began := time.Now()
		calls.Go(func() {
			_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil), Times: request.Times{Wait: time.Minute}})
			var unavailable *request.UnavailableError
			if !errors.As(err, &unavailable) || !unavailable.Stopped {
				t.Errorf("got %v", err)
			}
		})
		calls.Go(func() { u.Await(context.Background()) })
		synctest.Wait()
		u.Stop(context.Background())
		calls.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("they waited %v", took)
		}
	})
}

// TestIdleAsksForProgress: with an idle timeout, mcpx requests progress from the server even if the client did
// not. Without an idle timeout it does not.
func TestIdleAsksForProgress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, all := inProcess(t, mcptest.Spec{})
		u := connect(t, spec)
		for _, test := range []struct {
			idle  time.Duration
			fails bool
		}{{0, false}, {5 * time.Second, false}, {2 * time.Second, true}} {
			before := len(all.all().Calls("progress"))
			_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("progress", json.RawMessage(`{"steps":10,"ms":3000}`)), Times: request.Times{Idle: test.idle}})
			var timeout *request.TimeoutError
			if errors.As(err, &timeout) != test.fails || (err != nil) != test.fails {
				t.Errorf("idle %v: %v", test.idle, err)
			}
			if test.fails && (timeout == nil || !timeout.Idle || timeout.After != test.idle) {
				t.Errorf("idle %v: %#v", test.idle, timeout)
			}
			if n := len(all.all().Calls("progress")); n != before+1 {
				t.Errorf("idle %v: sent %d times", test.idle, n-before)
			}
		}
		tokens := 0
		for _, entry := range all.all().Method("tools/call") {
			var m struct {
				Params struct {
					Meta struct{ ProgressToken json.RawMessage } `json:"_meta"`
				}
			}
			if json.Unmarshal(entry.Message, &m) == nil && m.Params.Meta.ProgressToken != nil {
				tokens++
			}
		}
		if tokens != 2 {
			t.Errorf("%d calls had a token, want the 2 with an idle timeout", tokens)
		}
	})
}

// TestIdleCountsFromSending: the time in which a call waits for the concurrency limits or for a session does not
// count as time without progress.
func TestIdleCountsFromSending(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{InitDelay: 10 * time.Second})
		spec.Timeouts.Probe = time.Hour
		spec.Concurrency.Gate = semaphore.New(1, semaphore.Queue{})
		u := connect(t, spec)
		slow := request.Request{Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(`{"ms":1500}`)), Times: request.Times{Idle: 2 * time.Second}}
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() {
				if _, err := u.Call(context.Background(), slow); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	})
}
