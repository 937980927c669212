package registry

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// exclusive returns a process that cannot start while another one holds the lock. If that happens, it writes a file next to the
// lock. With a Pool, the process is shared.
func exclusive(t *testing.T, fake mcptest.Spec, name, definition, lock string) Server {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a script of a shell")
	}
	const script = `mkdir "$0" || { echo taken >>"$0.taken"; exit 1; }
trap 'rmdir "$0"' EXIT
trap 'exit 1' TERM
"$@"`
	server := child(t, name, fake)
	server.Spec.Launch.Args = append([]string{"-c", script, lock, server.Spec.Launch.Command}, server.Spec.Launch.Args...)
	server.Spec.Launch.Command, server.Spec.Launch.Env = "/bin/sh", append(server.Spec.Launch.Env, "PATH="+os.Getenv("PATH"))
	server.Definition, server.Shared = definition, Key(name, definition)
	return server
}

// TestApply_EndsFirst: a new process is started only after the process that it replaces has ended, which may take the grace
// period. Other servers do not wait for that. The same is true of the last user of a process of a Pool.
func TestApply_EndsFirst(t *testing.T) {
	for _, test := range []struct {
		name string
		next func(lock string) [][]Server // the configurations that are applied one after another
		last string
		pool bool
	}{
		{"changed", func(lock string) [][]Server {
			return [][]Server{{exclusive(t, mcptest.Spec{}, "one", "2", lock)}}
		}, "one", false},
		{"changed twice", func(lock string) [][]Server {
			return [][]Server{{exclusive(t, mcptest.Spec{}, "one", "2", lock)}, {exclusive(t, mcptest.Spec{}, "one", "3", lock)}}
		}, "one", false},
		{"gone and back", func(lock string) [][]Server {
			return [][]Server{{}, {exclusive(t, mcptest.Spec{}, "one", "1", lock)}}
		}, "one", false},
		{"renamed", func(lock string) [][]Server {
			return [][]Server{{exclusive(t, mcptest.Spec{}, "two", "1", lock)}}
		}, "two", false},
		{"changed, of a pool", func(lock string) [][]Server {
			return [][]Server{{exclusive(t, mcptest.Spec{}, "one", "2", lock)}}
		}, "one", true},
		{"gone and back, of a pool", func(lock string) [][]Server {
			return [][]Server{{}, {exclusive(t, mcptest.Spec{}, "one", "1", lock)}}
		}, "one", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			lock := filepath.Join(t.TempDir(), "lock")
			first := mcptest.Spec{}.WithFiles(t)
			var pool *Pool
			if test.pool {
				pool = newPool(t, time.Hour)
			}
			r := start(t, Options{Pool: pool}, exclusive(t, first, "one", "1", lock), child(t, "other", mcptest.Spec{}))
			tried(t, r)
			busy := filepath.Join(t.TempDir(), "busy")
			if err := os.WriteFile(busy, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			var open sync.WaitGroup
			open.Go(func() {
				if got, err := call(r, "one", nil, "slow", `{"while":"`+busy+`"}`); err != nil || got != "slept 0 ms" {
					t.Errorf("the open call: %q, %v", got, err)
				}
			})
			mcptest.WaitFor(t, "the call", patience, func() bool { return len(first.Log(t).Calls("slow")) > 0 })
			other := child(t, "other", mcptest.Spec{})
			other.Definition = "changed too"
			for _, servers := range test.next(lock) {
				r.Apply(append(servers, other), Options{Grace: patience}, nil)
			}
			if got, err := call(r, "other", nil, "echo", `{"text":"x"}`); err != nil || got != "x" {
				t.Errorf("the other server, beside the open call: %q, %v", got, err)
			}
			os.Remove(busy)
			if got, err := call(r, test.last, nil, "echo", `{"text":"x"}`); err != nil || got != "x" {
				t.Errorf("got %q, %v", got, err)
			}
			open.Wait()
			if _, err := os.Stat(lock + ".taken"); err == nil {
				t.Error("it was started while the lock was taken")
			}
		})
	}
}

// TestApply_EndsFirst_Close: after Close, a process that was still waiting for the end of another one is not started.
func TestApply_EndsFirst_Close(t *testing.T) {
	mcptest.NoLeaks(t)
	lock := filepath.Join(t.TempDir(), "lock")
	r := start(t, Options{}, exclusive(t, mcptest.Spec{}, "one", "1", lock))
	tried(t, r)
	var open sync.WaitGroup
	open.Go(func() {
		if _, err := call(r, "one", nil, "slow", `{"ms":600000}`); err == nil {
			t.Error("the call has a result")
		}
	})
	r.Apply([]Server{exclusive(t, mcptest.Spec{}, "one", "2", lock)}, Options{Grace: time.Hour}, nil)
	r.Close(time.Second)
	open.Wait()
	if _, err := os.Stat(lock); err == nil {
		t.Error("a process is left")
	}
}

// TestApply_WaitServer: if a server is replaced, a caller of WaitServer waits for the new server.
func TestApply_WaitServer(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		r := start(t, Options{}, never("one"))
		var waiting sync.WaitGroup
		waiting.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			r.WaitServer(ctx, "one")
			if one, _ := r.Snapshot().Server("one"); !one.Known {
				t.Errorf("the server is %s", one.State)
			}
		})
		synctest.Wait()
		fresh := piped(t, "one", mcptest.Spec{InitDelay: time.Second})
		fresh.Definition = "another"
		r.Apply([]Server{fresh}, Options{}, nil)
		waiting.Wait()
		r.Close(0)
	})
}

// TestPerClient_Gone: a client whose request has already ended gets no session.
func TestPerClient_Gone(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		one := counted(piped(t, "one", mcptest.Spec{}), &open)
		one.PerClient = true
		r := start(t, Options{}, one)
		tried(t, r)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := follow(ctx, r, "one", request.Request{From: request.From{Client: &caller.Client{ID: "a"}}, Method: "tools/call", Params: request.ToolParams("echo", nil)}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if n := open.Load(); n != 1 {
			t.Errorf("%d sessions", n)
		}
		r.Close(0)
	})
}

// TestPerClient_CloseWaits: Close also waits for sessions of clients that are already being closed.
func TestPerClient_CloseWaits(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		var open, sessions atomic.Int32
		one := piped(t, "one", mcptest.Spec{})
		serve := one.Spec.Serve
		one.Spec.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
			shared := sessions.Add(1) == 1
			err := serve(ctx, in, out)
			if !shared {
				<-time.After(300 * time.Millisecond) // closing takes some time
			}
			return err
		}
		one = counted(one, &open)
		one.PerClient, one.SessionIdle = true, 7*time.Second
		r := start(t, Options{}, one)
		tried(t, r)
		for _, client := range []string{"gone", "idle"} {
			if _, err := call(r, "one", &caller.Client{ID: client}, "echo", `{"text":"x"}`); err != nil {
				t.Error(err)
			}
		}
		<-time.After(10*time.Second + 100*time.Millisecond) // the sweep has ended both sessions
		synctest.Wait()
		if _, err := call(r, "one", &caller.Client{ID: "gone"}, "echo", `{"text":"x"}`); err != nil {
			t.Error(err)
		}
		r.ForgetClient("gone")
		r.Close(0)
		if n := open.Load(); n != 0 {
			t.Errorf("%d sessions are left after Close", n)
		}
	})
}

// TestPerClient_OtherIdle: a new value of session_idle in the config applies to open sessions too.
func TestPerClient_OtherIdle(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		one := counted(piped(t, "one", mcptest.Spec{}), &open)
		one.PerClient, one.SessionIdle = true, time.Hour
		r := start(t, Options{}, one)
		tried(t, r)
		if _, err := call(r, "one", &caller.Client{ID: "a"}, "echo", `{"text":"x"}`); err != nil {
			t.Error(err)
		}
		one.SessionIdle = 30 * time.Second
		r.Apply([]Server{one}, Options{}, nil)
		<-time.After(40 * time.Second)
		synctest.Wait()
		if n := open.Load(); n != 1 {
			t.Errorf("%d sessions, want only the shared one", n)
		}
		r.Close(0)
	})
}

// gated returns a server that starts to work when gate is closed. running is the number of its open sessions.
func gated(t *testing.T, name string, gate <-chan struct{}, running *atomic.Int32) Server {
	server := piped(t, name, mcptest.Spec{})
	serve := server.Spec.Serve
	server.Spec.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
		running.Add(1)
		defer running.Add(-1)
		select {
		case <-gate:
			return serve(ctx, in, out)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return server
}

// TestSlowDisk: with a slow disk, neither calls nor snapshots nor the end of the servers wait for it. Close writes what was not
// written before.
func TestSlowDisk(t *testing.T) {
	for _, within := range []time.Duration{0, 200 * time.Millisecond} {
		t.Run(within.String(), func(t *testing.T) {
			mcptest.NoLeaks(t)
			options := Options{CacheDir: t.TempDir()}
			var running atomic.Int32
			open, later := make(chan struct{}), make(chan struct{})
			close(open)
			servers := []Server{gated(t, "one", open, &running), gated(t, "two", later, &running)}
			r := New(servers, options)
			r.saving.Lock() // as if a file were being written
			written := sync.OnceFunc(r.saving.Unlock)
			defer written()
			r.Start()
			known := func(name string) bool {
				s, _ := r.Snapshot().Server(name)
				return s.Known
			}
			mcptest.WaitFor(t, "one server", patience, func() bool { return known("one") })
			if _, err := call(r, "one", nil, "echo", `{"text":"x"}`); err != nil {
				t.Error(err)
			}
			close(later)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			r.WaitKnown(ctx, nil)
			if !known("two") {
				t.Error("a snapshot waits for the disk")
			}
			ended := make(chan struct{})
			go func() { // ends when the lock is released, or earlier
				r.Close(within)
				close(ended)
			}()
			mcptest.WaitFor(t, "the end of the servers", patience, func() bool { return running.Load() == 0 })
			if within > 0 {
				select {
				case <-ended:
				case <-time.After(patience):
					t.Error("Close waits for the disk")
				}
			}
			written()
			<-ended
			if within > 0 {
				r.disk.Wait() // the saver still writes to the test's folder
				return
			}
			next := New(servers, options)
			defer next.Close(0)
			for i := range next.Snapshot().Servers {
				if s := &next.Snapshot().Servers[i]; !s.Known {
					t.Errorf("%s is not on disk", s.Name)
				}
			}
		})
	}
}

// TestWaitKnown_FewerServers: WaitKnown returns properly if a new config with fewer servers is applied meanwhile.
func TestWaitKnown_FewerServers(t *testing.T) {
	mcptest.NoLeaks(t)
	many := make([]Server, 300)
	for i := range many {
		many[i] = never("server-" + time.Duration(i).String())
		many[i].Disabled = true
	}
	r := start(t, Options{}, never("one"))
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			for ctx.Err() == nil {
				bounded, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
				r.WaitKnown(bounded, nil)
				cancel()
			}
		})
	}
	for range 200 {
		r.Apply(many, Options{}, nil)
		r.Apply(nil, Options{}, nil)
	}
	cancel()
	waiting.Wait()
}
