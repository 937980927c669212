package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// bubble runs a test in fake time.
func bubble(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	mcptest.NoLeaks(t)
	synctest.Test(t, run)
}

// pause waits while fake time passes.
func pause(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// TestBackoff: mcpx tries without end to start a server that cannot be started. The pauses in between grow from
// 0.2 s to a minute.
func TestBackoff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var starts []time.Time
		u := connect(t, serving(func(context.Context, io.Reader, io.Writer) error {
			mu.Lock()
			defer mu.Unlock()
			starts = append(starts, time.Now())
			return errors.New("out of order")
		}))
		pause(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		want := firstPause
		for i := 1; i < len(starts); i++ {
			// The pause varies by a tenth in each direction, and the attempt itself takes no fake time.
			gap := starts[i].Sub(starts[i-1])
			if ratio := float64(gap) / float64(want); math.Abs(ratio-1) > 0.11 {
				t.Errorf("pause %d: %v, want about %v", i, gap, want)
			}
			want = min(2*want, longPause)
		}
		if n := len(starts); n < 60 || n > 80 {
			t.Errorf("%d attempts in an hour", n)
		}
		status := u.Status()
		if status.State != catalog.Unavailable || status.Reason != "the server ended: out of order" || status.RetryAfter.IsZero() {
			t.Errorf("status: %+v", status)
		}
	})
}

// TestLastingFailure_Log: a lasting failure is logged as a warning once, even if numbers in its text change. Another
// failure is logged as a warning again.
func TestLastingFailure_Log(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{})
		serve, attempts := spec.Serve, 0
		var why func(attempt int) string
		spec.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
			attempts++
			if text := why(attempts); text != "" {
				return errors.New(text)
			}
			return serve(ctx, in, out)
		}
		why = func(attempt int) string {
			if attempt < 8 {
				return fmt.Sprintf("not yet, attempt %d", attempt)
			}
			return fmt.Sprintf("out of order %d", attempt)
		}
		log := logged(&spec)
		connect(t, spec)
		pause(time.Hour)
		if n := strings.Count(log.String(), "level=WARN"); n != 2 || attempts < 20 {
			t.Errorf("%d warnings of %d attempts:\n%s", n, attempts, log.String())
		}
	})
}

// Retry ends the pause before the next attempt to connect.
func TestRetry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		works := make(chan struct{})
		spec, _ := inProcess(t, mcptest.Spec{})
		serve := spec.Serve
		spec.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
			select {
			case <-works:
				return serve(ctx, in, out)
			default:
				return errors.New("not yet")
			}
		}
		u := connect(t, spec)
		pause(30 * time.Minute)
		close(works)
		began := time.Now()
		u.Retry()
		awaitState(t, u, catalog.Ready)
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// mortal returns a fake server whose sessions end after the given times; further sessions do not end.
func mortal(t testing.TB, lives ...time.Duration) (Spec, *logs) {
	return mortalFake(t, mcptest.Spec{}, lives...)
}

func mortalFake(t testing.TB, fake mcptest.Spec, lives ...time.Duration) (Spec, *logs) {
	spec, all := inProcess(t, fake)
	serve := spec.Serve
	var mu sync.Mutex
	n := 0
	spec.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
		mu.Lock()
		life := time.Duration(0)
		if n < len(lives) {
			life = lives[n]
		}
		n++
		mu.Unlock()
		if life == 0 {
			return serve(ctx, in, out)
		}
		ended := make(chan error, 1)
		pr, pw := io.Pipe()
		go func() { ended <- serve(ctx, in, pw) }()
		go func() { _, _ = io.Copy(out, pr) }()
		<-time.After(life)
		_ = pw.CloseWithError(io.ErrClosedPipe)
		return errors.New("fell over")
	}
	return spec, all
}

// TestCrashLoop: after the first crash mcpx restarts the server at once, then after growing pauses. It notices a
// crash loop, slows the restarts down, reports it in the status, and ends that state when a session lasts.
func TestCrashLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const life = time.Second
		spec, all := mortal(t, life, life, life, life, life, life, life)
		var mu sync.Mutex
		var lost []time.Time
		var states []catalog.State
		var u *Upstream
		restarts := 0
		spec.OnChange = func() {
			status := u.Status()
			mu.Lock()
			defer mu.Unlock()
			if status.Restarts > restarts {
				restarts = status.Restarts
				lost = append(lost, time.Now())
				states = append(states, status.State)
			}
		}
		u = New(spec)
		u.Start()
		t.Cleanup(func() { u.Close(0) })
		pause(time.Second + 100*time.Millisecond)
		if status := u.Status(); status.State != catalog.Ready || all.starts() != 2 {
			t.Errorf("after the first crash: %s, %d starts", status.State, all.starts())
		}
		pause(50 * time.Second)
		status := u.Status()
		if status.State != catalog.Degraded || !strings.HasPrefix(status.Reason, "crash loop, 7 losses within a minute: the server ended: fell over") {
			t.Errorf("in the loop: %s, %q", status.State, status.Reason)
		}
		mu.Lock()
		want := []catalog.State{catalog.Connecting, catalog.Connecting, catalog.Connecting, catalog.Connecting, catalog.Degraded, catalog.Degraded, catalog.Degraded}
		if !slices.Equal(states, want) {
			t.Errorf("states at the losses: %v", states)
		}
		for i, least := range []time.Duration{0, 150 * time.Millisecond, 300 * time.Millisecond, 600 * time.Millisecond, 4 * time.Second, 4 * time.Second} {
			if gap := lost[i+1].Sub(lost[i]) - life; gap < least {
				t.Errorf("pause %d: %v, want at least %v", i+1, gap, least)
			}
		}
		mu.Unlock()
		mustEcho(t, u)
		pause(2 * time.Minute)
		if status := u.Status(); status.State != catalog.Ready || status.Reason != "" {
			t.Errorf("after it held out: %s, %q", status.State, status.Reason)
		}
	})
}

// TestRareCrashes: losses that are far apart are no crash loop, and mcpx restarts the server at once after each.
func TestRareCrashes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const life = 90 * time.Second
		spec, all := mortal(t, life, life, life, life, life, life)
		u := connect(t, spec)
		pause(6*life + time.Second)
		if status := u.Status(); status.State != catalog.Ready || status.Restarts != 6 || all.starts() != 7 {
			t.Errorf("%s, %d restarts, %d starts", status.State, status.Restarts, all.starts())
		}
	})
}

var health = conf.Health{Interval: 30 * time.Second, Timeout: 5 * time.Second, Threshold: 2}

// TestHealth: a server that stops answering is degraded after the first failed check, ready again after one that succeeds, and
// restarted if it stays silent.
func TestHealth(t *testing.T) {
	for _, era := range []string{mcptest.EraLegacy, mcptest.EraModern} {
		t.Run(era, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				wedge := filepath.Join(t.TempDir(), "wedge")
				spec, all := inProcess(t, mcptest.Spec{Era: era, WedgeFile: wedge})
				spec.Health = health
				u := connect(t, spec)
				pause(5 * time.Minute)
				if status := u.Status(); status.State != catalog.Ready || all.starts() != 1 {
					t.Fatalf("%s, %d starts", status.State, all.starts())
				}
				method := map[string]string{mcptest.EraLegacy: "ping", mcptest.EraModern: "server/discover"}[era]
				if n := len(all.all().Method(method)); n < 9 || n > 11 {
					t.Errorf("%d checks in five minutes", n)
				}
				if err := os.WriteFile(wedge, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				open := make(chan error, 1)
				go func() {
					_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil)})
					open <- err
				}()
				pause(36 * time.Second)
				if status := u.Status(); status.State != catalog.Degraded || status.Reason != "health check failed: no answer within 5s" {
					t.Errorf("after one failed check: %s, %q", status.State, status.Reason)
				}
				if err := os.Remove(wedge); err != nil {
					t.Fatal(err)
				}
				pause(30 * time.Second)
				if status := u.Status(); status.State != catalog.Ready || all.starts() != 1 {
					t.Errorf("after a check that succeeded: %s, %d starts", status.State, all.starts())
				}
				if err := os.WriteFile(wedge, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				// The first call may take as long as its timeout; the second no longer than the first.
				ends := make(chan error, 2)
				for range 2 {
					go func() {
						_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", nil)})
						ends <- err
					}()
					pause(4 * time.Minute)
				}
				var timeout *request.TimeoutError
				if err := <-ends; !errors.As(err, &timeout) {
					t.Errorf("the first call: %v", err)
				}
				var lost *request.LostError
				select {
				case err := <-ends:
					if !errors.As(err, &lost) || !strings.Contains(lost.Reason, "health check failed") {
						t.Errorf("the second call: %v", err)
					}
				default:
					t.Error("the second call is still open")
				}
				if err := os.Remove(wedge); err != nil {
					t.Fatal(err)
				}
				pause(2 * time.Minute)
				if status := u.Status(); status.State != catalog.Ready || status.Restarts < 1 {
					t.Errorf("after all: %s, %d restarts", status.State, status.Restarts)
				}
			})
		})
	}
}

// TestNoChecksWhileCallsSucceed: while calls succeed, mcpx does no health checks.
func TestNoChecksWhileCallsSucceed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, all := inProcess(t, mcptest.Spec{})
		spec.Health = health
		u := connect(t, spec)
		for range 60 {
			pause(10 * time.Second)
			mustEcho(t, u)
		}
		if n := len(all.all().Method("ping")); n != 0 {
			t.Errorf("%d checks", n)
		}
	})
}

// TestIdleTimeout: progress restarts the idle timeout, but does not extend the timeout of the whole call.
func TestIdleTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, all := inProcess(t, mcptest.Spec{})
		u := connect(t, spec)
		call := func(tool, arguments string, limit time.Duration) (time.Duration, error) {
			began := time.Now()
			_, err := u.Call(context.Background(), request.Request{From: request.From{Sink: request.Sink{Progress: func(json.RawMessage) {}}}, Method: "tools/call", Params: request.ToolParams(tool, json.RawMessage(arguments)), Times: request.Times{Timeout: limit, Idle: 5 * time.Second}})
			return time.Since(began), err
		}
		if took, err := call("progress", `{"steps":20,"ms":4000}`, 5*time.Minute); err != nil || took < 80*time.Second {
			t.Errorf("a call with progress: %v after %v", err, took)
		}
		var timeout *request.TimeoutError
		if took, err := call("slow", `{"ms":60000}`, 5*time.Minute); !errors.As(err, &timeout) || !timeout.Idle || timeout.After != 5*time.Second || took != 5*time.Second {
			t.Errorf("a call without: %#v after %v", err, took)
		}
		if took, err := call("progress", `{"steps":1000,"ms":4000}`, time.Minute); !errors.As(err, &timeout) || timeout.Idle || took != time.Minute {
			t.Errorf("a call without end: %#v after %v", err, took)
		}
		synctest.Wait()
		if n := len(all.all().Event(mcptest.EventCancel)); n != 2 {
			t.Errorf("%d cancelled, want 2", n)
		}
	})
}

// TestListChangedStorm: many list_changed notifications cause at most one refresh a second, and calls go on.
func TestListChangedStorm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, all := inProcess(t, mcptest.Spec{ListChangedStorm: 2000})
		u := connect(t, spec)
		synctest.Wait()
		before := u.Status()
		pause(5 * time.Second)
		for range 10 {
			began := time.Now()
			mustEcho(t, u)
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("a call took %v", took)
			}
		}
		if n := len(all.all().Method("tools/list")); n < 3 || n > 7 {
			t.Errorf("%d refreshes in five seconds", n)
		}
		// The tools are the same, so the slice must be the same too.
		if after := u.Status(); &after.Tools[0] != &before.Tools[0] {
			t.Error("an equal catalogue replaced the old one")
		}
	})
}

// TestListChanged: a burst of notifications causes one or two refreshes, soon. A failed refresh leaves the known tools in
// use, and is repeated later.
func TestListChanged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "tools")
		write := func(tools string) {
			if err := os.WriteFile(file, []byte(tools), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		notify := `{"name":"notify"}`
		write(`[` + notify + `,{"name":"a"}]`)
		for _, era := range []string{mcptest.EraLegacy, mcptest.EraModern} {
			spec, all := inProcess(t, mcptest.Spec{Era: era, ToolsFile: file})
			u := connect(t, spec)
			synctest.Wait()
			names := func() string {
				var list []string
				for _, tool := range u.Status().Tools {
					list = append(list, tool.Name)
				}
				return strings.Join(list, " ")
			}
			write(`[` + notify + `,{"name":"b"},{"name":"a"}]`)
			if _, err := text(u, "notify", `{"times":50}`); err != nil {
				t.Fatal(err)
			}
			pause(3 * time.Second)
			if got := names(); got != "notify b a" {
				t.Errorf("%s: got %q", era, got)
			}
			if n := len(all.all().Method("tools/list")); n > 3 {
				t.Errorf("%s: %d refreshes for one burst", era, n)
			}
			if _, err := text(u, "notify", `{}`); err != nil {
				t.Fatal(err)
			}
			write(`no JSON`) // early enough to spoil the refresh
			pause(3 * time.Second)
			if got, state := names(), u.Status().State; got != "notify b a" || state != catalog.Ready {
				t.Errorf("%s: after a failed refresh: %q, %s", era, got, state)
			}
			write(`[` + notify + `,{"name":"a"}]`)
			pause(relistRetry)
			if got := names(); got != "notify a" {
				t.Errorf("%s: after the next: %q", era, got)
			}
		}
	})
}

// TestSlowRefresh: a refresh that takes long affects neither the catalogue in use nor calls.
func TestSlowRefresh(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, _ := inProcess(t, mcptest.Spec{ListDelay: 20 * time.Second})
		u := connect(t, spec)
		pause(21 * time.Second)
		if _, err := text(u, "notify", `{}`); err != nil {
			t.Fatal(err)
		}
		pause(time.Second)
		mustEcho(t, u)
		if status := u.Status(); status.State != catalog.Ready || len(status.Tools) != 18 {
			t.Errorf("%s, %d tools", status.State, len(status.Tools))
		}
	})
}

// TestConnectTimeout: an attempt to connect ends in time, whichever request the server does not answer.
func TestConnectTimeout(t *testing.T) {
	for name, fake := range map[string]mcptest.Spec{
		"handshake":  {NeverInit: true},
		"tools/list": {NeverList: true},
		"everything": {SilentUnknown: true, HangMethods: []string{"initialize"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				spec, all := inProcess(t, fake)
				u := connect(t, spec)
				pause(29 * time.Second)
				if state := u.Status().State; state != catalog.Connecting {
					t.Errorf("after 29 s: %s", state)
				}
				pause(1100 * time.Millisecond)
				if status := u.Status(); status.State != catalog.Unavailable || !strings.Contains(status.Reason, "within 30s") {
					t.Errorf("after 30 s: %s, %q", status.State, status.Reason)
				}
				pause(time.Second)
				if all.starts() != 2 {
					t.Errorf("%d starts", all.starts())
				}
			})
		})
	}
}

// TestConnectTimeout_Each: a server that is slow at the handshake and at its list is ready, if neither takes too long.
func TestConnectTimeout_Each(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, all := inProcess(t, mcptest.Spec{InitDelay: 25 * time.Second, ListDelay: 25 * time.Second})
		u := connect(t, spec)
		pause(56 * time.Second)
		if status := u.Status(); status.State != catalog.Ready || all.starts() != 1 {
			t.Errorf("%s, %q, %d starts", status.State, status.Reason, all.starts())
		}
	})
}
