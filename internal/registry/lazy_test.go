package registry

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
)

// countStarts returns a counter of how often the server is started.
func countStarts(server *Server) *atomic.Int32 {
	starts, serve := new(atomic.Int32), server.Spec.Serve
	server.Spec.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
		starts.Add(1)
		return serve(ctx, in, out)
	}
	return starts
}

// TestLazy: a lazy server is started once to read its catalogue. At the next start of mcpx, the catalogue comes from disk, and
// the server is not started before the first call.
func TestLazy(t *testing.T) {
	for _, perClient := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			options := Options{CacheDir: t.TempDir()}
			server := piped(t, "one", mcptest.Spec{})
			starts := countStarts(&server)
			server.Spec.Lazy, server.Spec.StopIdle, server.PerClient = true, time.Minute, perClient
			first := New([]Server{server}, options)
			first.Start()
			first.WaitTried(t.Context())
			<-time.After(time.Second)
			one, _ := first.Snapshot().Server("one")
			if one.State != catalog.Idle || !one.Known || starts.Load() != 1 {
				t.Errorf("at first: %s, %d starts", one.State, starts.Load())
			}
			first.Close(0)

			r := start(t, options, server)
			<-time.After(time.Hour)
			r.WaitTried(t.Context())
			one, _ = r.Snapshot().Server("one")
			if one.State != catalog.Idle || !one.Known || len(one.Tools) == 0 || one.Reason != "" || starts.Load() != 1 {
				t.Errorf("before a call: %s %q, %d tools, %d starts", one.State, one.Reason, len(one.Tools), starts.Load())
			}
			client := &caller.Client{ID: "c"}
			if got, err := call(r, "one", client, "echo", `{"text":"x"}`); err != nil || got != "x" || starts.Load() != 2 {
				t.Errorf("called: %q, %v, %d starts", got, err, starts.Load())
			}
			<-time.After(time.Hour)
			if one, _ = r.Snapshot().Server("one"); one.State != catalog.Idle || starts.Load() != 2 {
				t.Errorf("unused: %s, %d starts", one.State, starts.Load())
			}
			if !perClient {
				r.Ask("one")
				r.WaitTried(t.Context())
				if one, _ = r.Snapshot().Server("one"); one.State != catalog.Ready || starts.Load() != 3 {
					t.Errorf("asked for: %s, %d starts", one.State, starts.Load())
				}
			}
		})
	}
}

// TestStopIdle_PerClient: the session of a client ends after session_idle, whatever stop_idle is.
func TestStopIdle_PerClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := piped(t, "one", mcptest.Spec{})
		server.Spec.StopIdle, server.SessionIdle, server.PerClient = time.Minute, 10*time.Minute, true
		starts := countStarts(&server)
		r := start(t, Options{}, server)
		for range 3 {
			if _, err := call(r, "one", &caller.Client{ID: "c"}, "echo", `{"text":"x"}`); err != nil {
				t.Error(err)
			}
			<-time.After(5 * time.Minute)
		}
		if one, _ := r.Snapshot().Server("one"); one.State != catalog.Idle || starts.Load() != 2 {
			t.Errorf("%s, %d starts", one.State, starts.Load())
		}
	})
}

// TestPrefer: if several servers must install, the one that a caller waits for is installed first, also if the caller came
// before Start.
func TestPrefer(t *testing.T) {
	for name, before := range map[string]bool{"before the start": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var servers []Server
				all := make(map[string]*atomic.Int32)
				for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
					server := piped(t, name, mcptest.Spec{InstallFor: 10 * time.Second, InstallEvery: time.Second})
					server.Spec.Launch.Command, all[name] = "npx", countStarts(&server)
					servers = append(servers, server)
				}
				r := New(servers, Options{})
				defer r.Close(0)
				if before {
					r.Prefer("h")
				}
				r.Start()
				synctest.Wait()
				began := func() (n int32) {
					for _, starts := range all {
						n += starts.Load()
					}
					return n
				}
				if began() != 3 {
					t.Errorf("%d began at once", began())
				}
				if before && all["h"].Load() != 1 {
					t.Error("the preferred one is not among the first")
				}
				last := ""
				for name, starts := range all {
					if starts.Load() == 0 {
						last = name
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
				defer cancel()
				asked := time.Now()
				r.WaitServer(ctx, last)
				if took := time.Since(asked); took > 23*time.Second || all[last].Load() != 1 {
					t.Errorf("%s was ready after %s", last, took)
				}
				r.WaitInstalled(t.Context())
				if took := time.Since(asked); took < 30*time.Second || began() != 8 {
					t.Errorf("all were installed after %s, %d starts", took, began())
				}
			})
		})
	}
}

// TestStartedBefore: after one successful start of a server, later starts are not first starts, even after a restart of mcpx. If
// the start has failed, the next one is still a first start.
func TestStartedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := Options{CacheDir: t.TempDir()}
		installs := func(fake mcptest.Spec, prepare func(*Server)) bool {
			server := piped(t, "one", fake)
			server.Spec.Launch.Command = "npx"
			prepare(&server)
			r := start(t, options, server)
			synctest.Wait()
			status, _ := r.Status("one")
			<-time.After(5 * time.Second)
			r.Close(0)
			return status.Installing
		}
		same, slow := func(*Server) {}, mcptest.Spec{InstallFor: time.Second}
		installs(mcptest.Spec{ExitAtOnce: true}, same) // the state depends on how far the start has come
		if !installs(slow, same) {
			t.Error("a start after one that failed is no first start")
		}
		if installs(slow, same) {
			t.Error("a start after one that succeeded is a first start")
		}
		if !installs(slow, func(s *Server) { s.Key = Key("another") }) {
			t.Error("the start of another server is no first start")
		}
	})
}
