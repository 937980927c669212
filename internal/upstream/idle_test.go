package upstream

import (
	"encoding/json"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// TestLazy: a lazy server whose catalogue is known starts with its first call, stops when it is not used, and
// starts again with the next call. Health checks do not start it, and mcpx does not stop it while calls are open.
func TestLazy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, all := inProcess(t, mcptest.Spec{})
		spec.Lazy, spec.StartedBefore, spec.StopIdle = true, true, time.Minute
		spec.Health = conf.Health{Interval: 10 * time.Second}
		u := connect(t, spec)
		idle := func(when string, starts int) {
			t.Helper()
			if status := u.Status(); status.State != catalog.Idle || status.Reason != "" || all.starts() != starts || u.session != nil || status.Restarts != 0 {
				t.Errorf("%s: %+v, %d starts", when, status, all.starts())
			}
			if n := len(all.all().Event(mcptest.EventEOF)); n != starts {
				t.Errorf("%s: %d of %d have ended", when, n, starts)
			}
		}
		pause(time.Hour)
		idle("at first", 0)
		mustEcho(t, u)
		pause(59 * time.Second)
		mustEcho(t, u)
		pause(59 * time.Second)
		if status := u.Status(); status.State != catalog.Ready || all.starts() != 1 {
			t.Errorf("in use: %s, %d starts", status.State, all.starts())
		}
		pause(2 * time.Second)
		idle("unused", 1)
		pause(time.Hour)
		idle("unused for long", 1)
		if _, err := text(u, "slow", `{"ms":240000}`); err != nil { // longer than stop_idle
			t.Error(err)
		}
		if all.starts() != 2 {
			t.Errorf("%d starts", all.starts())
		}
		pause(61 * time.Second)
		idle("after a long call", 2)
	})
}

// TestLazy_Unseen: mcpx starts a lazy server that it has never seen once, to read its catalogue.
func TestLazy_Unseen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, all := inProcess(t, mcptest.Spec{})
		spec.Lazy = true
		u := connect(t, spec)
		pause(time.Minute)
		if status := u.Status(); status.State != catalog.Idle || !status.Known || len(status.Tools) == 0 || all.starts() != 1 {
			t.Errorf("%s, %d tools, %d starts", status.State, len(status.Tools), all.starts())
		}
		if _, err := text(u, "slow", `{"ms":5000}`); err != nil {
			t.Error(err)
		}
		pause(time.Hour) // without stop_idle the server keeps running
		if status := u.Status(); status.State != catalog.Ready || all.starts() != 2 {
			t.Errorf("%s, %d starts", status.State, all.starts())
		}
	})
}

// TestLazy_UnseenCalled: if a call comes while a lazy server runs only to read its catalogue, the server keeps
// running.
func TestLazy_UnseenCalled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, all := inProcess(t, mcptest.Spec{InitDelay: time.Second, ListDelay: time.Second})
		spec.Lazy, spec.Era = true, EraLegacy
		u := connect(t, spec)
		if _, err := text(u, "slow", `{"ms":5000}`); err != nil {
			t.Error(err)
		}
		if status := u.Status(); status.State != catalog.Ready || all.starts() != 1 {
			t.Errorf("%s, %d starts", status.State, all.starts())
		}
	})
}

// TestStopIdle: a server with stop_idle that is not lazy starts at once, and stops when it is not used.
func TestStopIdle(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, all := inProcess(t, mcptest.Spec{})
		spec.StopIdle = time.Minute
		u := connect(t, spec)
		pause(59 * time.Second)
		if state := u.Status().State; state != catalog.Ready {
			t.Errorf("at first: %s", state)
		}
		pause(2 * time.Second)
		if state := u.Status().State; state != catalog.Idle || all.starts() != 1 {
			t.Errorf("unused: %s, %d starts", state, all.starts())
		}
		mustEcho(t, u)
	})
}

// TestStopIdle_Race: calls that come while an idle session is being closed are answered in the next session.
func TestStopIdle_Race(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{})
		spec.StopIdle = time.Second
		u := connect(t, spec)
		for range 50 {
			pause(time.Second - time.Nanosecond)
			answers := make(chan error, 8)
			for i := range 8 {
				go func() { // the goroutine ends with the call
					<-time.After(time.Duration(i))
					_, err := textOf(u.Call(t.Context(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", json.RawMessage(`{"text":"x"}`))}))
					answers <- err
				}()
			}
			for range 8 {
				if err := <-answers; err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// An upstream can be closed while it is idle.
func TestLazy_Closed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, all := inProcess(t, mcptest.Spec{})
		spec.Lazy, spec.StartedBefore = true, true
		u := New(spec)
		u.Start()
		pause(time.Second)
		u.Close(0)
		if _, err := text(u, "echo", `{"text":"x"}`); err == nil || all.starts() != 0 {
			t.Errorf("%v, %d starts", err, all.starts())
		}
	})
}
