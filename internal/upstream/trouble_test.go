package upstream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// history records each status of an upstream, beginning with the first change.
type history struct {
	mu   sync.Mutex
	list []noted
}

type noted struct {
	Status
	at time.Time
}

// start starts an upstream whose statuses are recorded. It calls meanwhile, if not nil, after each change.
func (h *history) start(t testing.TB, spec Spec, meanwhile func(Status)) *Upstream {
	t.Helper()
	var u *Upstream
	spec.OnChange = func() {
		status := u.Status()
		h.mu.Lock()
		h.list = append(h.list, noted{status, time.Now()})
		h.mu.Unlock()
		if meanwhile != nil {
			meanwhile(status)
		}
	}
	u = New(spec)
	u.Start()
	t.Cleanup(func() { u.Close(0) })
	return u
}

func (h *history) all() []noted {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

// TestCrashLoopAndHealth: the status shows a crash loop and failing health checks as long as each of them lasts,
// independently of each other.
func TestCrashLoopAndHealth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const life = time.Second
		wedge := filepath.Join(t.TempDir(), "wedge")
		spec, all := mortalFake(t, mcptest.Spec{WedgeFile: wedge}, life, life, life, life, life)
		spec.Health = conf.Health{Interval: 10 * time.Second, Timeout: 5 * time.Second, Threshold: 10}
		u := connect(t, spec)
		for all.starts() < 6 {
			pause(100 * time.Millisecond)
		}
		began := time.Now() // at most 100 ms after the beginning of the session that does not end
		set := func(wedged bool) {
			t.Helper()
			err := os.Remove(wedge)
			if wedged {
				err = os.WriteFile(wedge, nil, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		at := func(second int, state catalog.State, want string) {
			t.Helper()
			pause(time.Until(began.Add(time.Duration(second) * time.Second)))
			if status := u.Status(); status.State != state || status.Reason != want {
				t.Errorf("after %d s: %s, %q, want %s, %q", second, status.State, status.Reason, state, want)
			}
		}
		const loop = "crash loop, 5 losses within a minute: the server ended: fell over"
		const sick = "health check failed: no answer within 5s"
		at(1, catalog.Degraded, loop)
		set(true)
		at(16, catalog.Degraded, loop+"; "+sick)
		set(false)
		at(21, catalog.Degraded, loop)
		at(45, catalog.Degraded, loop)
		set(true)
		at(56, catalog.Degraded, loop+"; "+sick)
		at(66, catalog.Degraded, sick) // the session has lasted long enough to end the crash loop
		set(false)
		at(71, catalog.Ready, "")
		if n := all.starts(); n != 6 {
			t.Errorf("%d starts", n)
		}
	})
}

// TestSlowCrashLoop: a crash loop goes on while each session lasts 25 s, although so few losses are then within loopWindow that
// they would not begin one. It ends when a session lasts for loopWindow.
func TestSlowCrashLoop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		lives := []time.Duration{1, 1, 1, 1, 1} // these start the crash loop
		for range 10 {
			lives = append(lives, 25)
		}
		for i := range lives {
			lives[i] *= time.Second
		}
		var h history
		spec, _ := mortal(t, lives...)
		u := h.start(t, spec, nil)
		pause(10 * time.Minute)
		looped := false
		for _, status := range h.all() {
			switch {
			case status.State == catalog.Degraded && strings.HasPrefix(status.Reason, "crash loop, ") && strings.HasSuffix(status.Reason, ": the server ended: fell over"):
				looped = true
				if wait := status.RetryAfter.Sub(status.at); !status.RetryAfter.IsZero() && wait < loopPause*9/10 {
					t.Errorf("after %d losses it is started again within %v", status.Restarts, wait)
				}
			case looped && status.Restarts < len(lives):
				t.Errorf("after %d losses: %s, %q", status.Restarts, status.State, status.Reason)
			}
		}
		if status := u.Status(); !looped || status.State != catalog.Ready || status.Reason != "" || status.Restarts != len(lives) {
			t.Errorf("at the end: %s, %q, %d losses", status.State, status.Reason, status.Restarts)
		}
	})
}

// firstList returns what comes from in, but drops every tools/list except the first.
func firstList(in io.Reader) io.Reader {
	out, w := io.Pipe()
	go func() { // the goroutine ends with in
		lists, lines := 0, bufio.NewReader(in)
		for {
			line, err := lines.ReadString('\n')
			if strings.Contains(line, `"tools/list"`) {
				lists++
			}
			if lists < 2 || !strings.Contains(line, `"tools/list"`) {
				_, _ = io.WriteString(w, line)
			}
			if err != nil {
				_ = w.CloseWithError(err)
				return
			}
		}
	}()
	return out
}

// TestNeverHealthy: a server that answers everything but health checks is degraded, also in each fresh session.
func TestNeverHealthy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var h history
		spec, _ := inProcess(t, mcptest.Spec{HangMethods: []string{"ping"}})
		spec.Health = health
		serve := spec.Serve
		spec.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
			return serve(ctx, firstList(in), out)
		}
		u := h.start(t, spec, nil)
		pause(10 * time.Minute)
		degraded := false
		for _, status := range h.all() {
			switch {
			case status.State == catalog.Degraded && status.Reason == "health check failed: no answer within 5s":
				degraded = true
			case degraded:
				t.Errorf("after %d losses: %s, %q", status.Restarts, status.State, status.Reason)
			}
		}
		if !degraded || u.Status().Restarts < 5 {
			t.Errorf("%+v", u.Status())
		}
		mustEcho(t, u) // the call shows that the server works
		pause(31 * time.Second)
		if status := u.Status(); status.State != catalog.Ready || status.Reason != "" {
			t.Errorf("after a call: %s, %q", status.State, status.Reason)
		}
	})
}

// TestHealthyAgain: if a healthy server stopped answering checks, and answers them again after its session was
// replaced, its status is ready at once.
func TestHealthyAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		wedge := filepath.Join(t.TempDir(), "wedge")
		var h history
		spec, _ := inProcess(t, mcptest.Spec{WedgeFile: wedge})
		spec.Health = health
		u := h.start(t, spec, func(status Status) {
			if status.Restarts == 1 {
				_ = os.Remove(wedge)
			}
		})
		pause(time.Minute)
		if err := os.WriteFile(wedge, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		pause(time.Minute + 6*time.Second)
		var states []catalog.State
		for _, status := range h.all() {
			states = append(states, status.State)
		}
		want := []catalog.State{catalog.Ready, catalog.Degraded, catalog.Connecting, catalog.Ready}
		if !slices.Equal(states, want) || u.Status().Restarts != 1 {
			t.Errorf("got %v, want %v", states, want)
		}
	})
}

// TestCheckFindsSessionGone: a health check that finds out that the session has ended does not make the server
// degraded.
func TestCheckFindsSessionGone(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	var h history
	u := h.start(t, Spec{Options: over(transport.HTTP, server.URL), Health: conf.Health{Interval: 20 * time.Millisecond, Timeout: patience, Threshold: 1}}, nil)
	awaitState(t, u, catalog.Ready)
	server.KillSessions()
	mcptest.WaitFor(t, "a fresh session", patience, func() bool {
		status := u.Status()
		return status.Restarts == 1 && status.State == catalog.Ready
	})
	for _, status := range h.all() {
		if status.State == catalog.Degraded || strings.Contains(status.Reason, "health") {
			t.Errorf("%s, %q", status.State, status.Reason)
		}
	}
}

// TestRetryWhileReady: a Retry while a session is open does not end a pause that comes later.
func TestRetryWhileReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const life = time.Second
		spec, all := mortal(t, life, life, life, life, life)
		u := connect(t, spec)
		for u.Status().Restarts < 4 {
			pause(100 * time.Millisecond)
		}
		for u.Status().State != catalog.Ready {
			pause(100 * time.Millisecond)
		}
		u.Retry()
		pause(4 * time.Second) // within this time come the fifth loss and a pause of 5 s
		if n := all.starts(); n != 5 {
			t.Errorf("%d starts", n)
		}
		pause(4 * time.Second)
		if n := all.starts(); n != 6 {
			t.Errorf("%d starts after the pause", n)
		}
	})
}

// TestEraAfterDeath: if a server process died during a probe, the next start does not probe, and later starts use
// the era in which the server last worked. So a server that dies of probes does not die again. A server that speaks
// both eras may get a legacy session instead of a modern one; there, single calls have no log level of their own.
func TestEraAfterDeath(t *testing.T) {
	mcptest.Parallel(t)
	tests := []struct {
		name   string
		fake   mcptest.Spec
		modern []bool // for each session, whether it is modern
		probes int    // how many probes the server got in all sessions
	}{
		{"both eras, died for another reason", mcptest.Spec{Era: mcptest.EraBoth, FailStarts: 1}, []bool{false, false, false, false}, 0},
		{"legacy, dies when it is probed", mcptest.Spec{ExitOnDiscover: true}, []bool{false, false, false, false}, 1},
		{"legacy, died for another reason", mcptest.Spec{FailStarts: 1}, []bool{false, false, false, false}, 0},
		{"legacy", mcptest.Spec{}, []bool{false, false, false}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.Parallel(t)
			fake := tt.fake.WithFiles(t)
			var h history
			spec := stdio(t, fake)
			spec.Timeouts.Connect, spec.Timeouts.Probe = 2*patience, patience
			u := h.start(t, spec, nil)
			for i, want := range tt.modern {
				awaitState(t, u, catalog.Ready)
				if status := u.Status(); status.Modern != want || status.Restarts != i {
					t.Errorf("session %d, after %d losses: modern is %t", i, status.Restarts, status.Modern)
				}
				mustEcho(t, u)
				if i+1 == len(tt.modern) {
					break
				}
				// A fifth loss within a minute would be a crash loop.
				_, _ = u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("crash", nil), Times: request.Times{Timeout: patience}})
				mcptest.WaitFor(t, "the loss", patience, func() bool { return u.Status().Restarts == i+1 })
			}
			probes := 0
			for _, entry := range fake.Log(t).Method("server/discover") {
				if entry.Event == mcptest.EventMessage {
					probes++
				}
			}
			if probes != tt.probes {
				t.Errorf("%d probes, want %d", probes, tt.probes)
			}
			// After a loss, the server always connects again at the first attempt.
			for _, status := range h.all() {
				if status.Restarts > 0 && status.State == catalog.Unavailable {
					t.Errorf("after %d losses: %s, %q", status.Restarts, status.State, status.Reason)
				}
			}
		})
	}
}

// TestHealthWhileWorking: a silent server that handles one request at a time may work as long as the timeout of
// its call. So may one that reports progress and answers no health checks.
func TestHealthWhileWorking(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, progress := range []time.Duration{0, 10 * time.Second} {
			starts := 0
			u := connect(t, Spec{Options: transport.Options{Type: transport.InProcess, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
				starts++
				return oneAtATime(50*time.Minute, progress)(ctx, in, out)
			}}, Era: EraLegacy, Health: health, Timeouts: Timeouts{Call: time.Hour}})
			synctest.Wait()
			if got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("work", nil)})); err != nil || got != "done" {
				t.Errorf("progress each %v: got %q, %v", progress, got, err)
			}
			pause(5 * time.Minute)
			if status := u.Status(); starts != 1 || status.State != catalog.Ready {
				t.Errorf("progress each %v: %d starts, %s (%s)", progress, starts, status.State, status.Reason)
			}
			u.Close(0)
		}
	})
}

// TestAnyMessageIsASignOfLife: any message of a server is a sign of life, also during a call that its caller has
// given up.
func TestAnyMessageIsASignOfLife(t *testing.T) {
	bubble(t, func(t *testing.T) {
		starts := 0
		u := connect(t, Spec{Options: transport.Options{Type: transport.InProcess, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
			starts++
			return oneAtATime(20*time.Minute, 10*time.Second)(ctx, in, out)
		}}, Era: EraLegacy, Health: health, Timeouts: Timeouts{Call: time.Minute}})
		synctest.Wait()
		_, err := text(u, "work", `{}`)
		var timeout *request.TimeoutError
		if !errors.As(err, &timeout) {
			t.Errorf("got %v", err)
		}
		pause(30 * time.Minute)
		if status := u.Status(); starts != 1 || status.State != catalog.Ready {
			t.Errorf("%d starts, %s (%s)", starts, status.State, status.Reason)
		}
	})
}

// oneAtATime is a server that reads nothing while it works on a call, which takes the time work. It sends a
// message each time progress has passed, if that is not 0.
func oneAtATime(work, progress time.Duration) func(context.Context, io.Reader, io.Writer) error {
	return answering(func(m sent, out io.Writer) (string, error) {
		if m.Method == "tools/call" {
			end := time.Now().Add(work)
			for step := progress; time.Now().Before(end); {
				if step == 0 {
					step = work
				} else if _, err := io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`+"\n"); err != nil {
					return "", err
				}
				<-time.After(step)
			}
		}
		return map[string]string{
			"initialize": `"result":{"protocolVersion":"2025-06-18"}`, "ping": `"result":{}`, "tools/list": `"result":{"tools":[{"name":"work"}]}`,
			"tools/call": `"result":{"content":[{"type":"text","text":"done"}]}`,
		}[m.Method], nil
	})
}

// doorway is an HTTP transport to a server. If shut is set, it makes no connection.
type doorway struct {
	http.Transport
	shut atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (d *doorway) RoundTrip(r *http.Request) (*http.Response, error) {
	if d.shut.Load() {
		return nil, errors.New("dial tcp: connection refused")
	}
	return d.Transport.RoundTrip(r)
}

// TestRefusedConnection: if a call cannot connect to its server, the status shows at once that the server is gone,
// before any health check.
func TestRefusedConnection(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	var door doorway
	u := ready(t, Spec{Options: transport.Options{Type: transport.HTTP, Remote: transport.Remote{URL: server.URL, Transport: &door}}, Health: conf.Health{Interval: time.Hour}})
	door.shut.Store(true)
	if _, err := text(u, "echo", `{"text":"x"}`); !isUnavailable(err) {
		t.Errorf("got %v", err)
	}
	status := awaitState(t, u, catalog.Unavailable)
	contains(t, "reason", status.Reason, "connection refused")
	door.shut.Store(false)
	u.Retry()
	awaitState(t, u, catalog.Ready)
	mustEcho(t, u)
	// A single failure does not degrade the server.
	server.Script(mcptest.Drop().On("tools/call"))
	_, _ = text(u, "echo", `{"text":"x"}`)
	mustEcho(t, u)
	if n := u.Status().Restarts; n != 1 {
		t.Errorf("%d sessions were lost, want 1", n)
	}
}
