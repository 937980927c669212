package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/proc"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
	"mcpx/internal/transport"
)

// TestCrash: if the server crashes, the open calls fail at once, and the next call waits for the fresh session.
func TestCrash(t *testing.T) {
	eachVariant(t, mcptest.Spec{ExitCode: 7, StderrLines: []string{"about to fail"}}, func(t *testing.T, v variant, spec Spec, log func() mcptest.Log) {
		u := ready(t, spec)
		ends := make(chan error, 10)
		for range cap(ends) {
			go func() {
				_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(`{"ms":600000}`)), Times: request.Times{Timeout: patience}})
				ends <- err
			}()
		}
		mcptest.WaitFor(t, "the calls", patience, func() bool { return len(log().Calls("slow")) == cap(ends) })
		_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("crash", nil), Times: request.Times{Timeout: patience}})
		var lost *request.LostError
		if !errors.As(err, &lost) || !lost.MayHaveRun {
			t.Errorf("crash: got %v", err)
		}
		for range cap(ends) {
			if err := <-ends; !errors.As(err, &lost) || !lost.MayHaveRun || lost.Reason == "" {
				t.Errorf("an open call: got %v", err)
			}
		}
		if got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("echo", json.RawMessage(`{"text":"again"}`)), Times: request.Times{Wait: patience}})); err != nil || got != "again" {
			t.Errorf("the next call: got %q, %v", got, err)
		}
		if v.name == "stdio legacy" && u.Status().Restarts != 1 {
			t.Errorf("%d restarts", u.Status().Restarts)
		}
	})
}

// TestReasonOfLoss: the reason for a lost session includes the exit status and the last output, without secrets.
func TestReasonOfLoss(t *testing.T) {
	mcptest.NoLeaks(t)
	spec := stdio(t, mcptest.Spec{ExitCode: 7, StderrLines: []string{"token is s3cret-s3cret"}, InitDelay: 100 * time.Millisecond})
	spec.Secrets = sanitize.NewSecrets([]string{"s3cret-s3cret"}, nil)
	var mu sync.Mutex
	var reasons []string
	var u *Upstream
	spec.OnChange = func() {
		status := u.Status()
		mu.Lock()
		defer mu.Unlock()
		if status.Restarts > 0 && status.Reason != "" {
			reasons = append(reasons, status.Reason)
		}
	}
	u = New(spec)
	u.Start()
	defer u.Close(0)
	awaitState(t, u, catalog.Ready)
	_, _ = text(u, "crash", `{"partial":true}`)
	mcptest.WaitFor(t, "the reason", patience, func() bool { mu.Lock(); defer mu.Unlock(); return len(reasons) > 0 })
	mu.Lock()
	defer mu.Unlock()
	if want := "the process ended: exit status 7; stderr: token is [secret]"; reasons[0] != want {
		t.Errorf("got %q, want %q", reasons[0], want)
	}
}

// TestResend: after a loss, mcpx repeats a call only if that can do no harm.
func TestResend(t *testing.T) {
	tests := []struct {
		tool       string
		repeatable bool
	}{{"read_echo", true}, {"idempotent_echo", true}, {"destroy_echo", false}}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			mcptest.Parallel(t)
			file := filepath.Join(t.TempDir(), "crash")
			spec, log := v.start(t, mcptest.Spec{CrashFile: file})
			u := ready(t, spec)
			for _, tt := range tests {
				// As long as this file exists, the next call ends the server.
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams(tt.tool, json.RawMessage(`{"text":"x"}`)), Repeatable: tt.repeatable, Times: request.Times{Timeout: patience}}))
				executed := len(log().Calls(tt.tool))
				var lost *request.LostError
				switch {
				case tt.repeatable && (err != nil || got != "x" || executed != 2):
					t.Errorf("%s: got %q, %v, executed %d times", tt.tool, got, err, executed)
				case !tt.repeatable && (!errors.As(err, &lost) || !lost.MayHaveRun || executed != 1):
					t.Errorf("%s: got %v, executed %d times", tt.tool, err, executed)
				}
			}
		})
	}
}

// TestSessionForgotten: if the server forgets the session, mcpx opens a fresh one and repeats each call that got a
// 404, once.
func TestSessionForgotten(t *testing.T) {
	mcptest.Parallel(t)
	server := mcptest.Spec{}.HTTP(t)
	u := ready(t, at(transport.HTTP, server.URL))
	for round := range 3 {
		server.KillSessions()
		var calls sync.WaitGroup
		for i := range 20 {
			calls.Go(func() {
				want := fmt.Sprintf("%d/%d", round, i)
				got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("destroy_echo", json.RawMessage(`{"text":"`+want+`"}`)), Times: request.Times{Timeout: patience}}))
				if err != nil || got != want {
					t.Errorf("got %q, %v, want %q", got, err, want)
				}
			})
		}
		calls.Wait()
	}
	if n := len(server.Log().Calls("destroy_echo")); n != 60 {
		t.Errorf("executed %d times, want 60", n)
	}
	mcptest.WaitFor(t, "one session", patience, func() bool { return server.Sessions() == 1 })
}

func TestSSESessionForgotten(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.SSE(t)
	u := ready(t, at(transport.SSE, server.URL))
	server.KillSessions()
	if got, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("destroy_echo", json.RawMessage(`{"text":"x"}`)), Times: request.Times{Timeout: patience}})); err != nil || got != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	if n := len(server.Log().Calls("destroy_echo")); n != 1 {
		t.Errorf("executed %d times", n)
	}
}

// TestHTTPFaults: for each HTTP fault during a call, the test checks the error and how often the tool runs, and that neither
// the session nor its other calls are lost, unless the server has forgotten the session.
func TestHTTPFaults(t *testing.T) {
	mcptest.Parallel(t)
	lost := func(mayHaveRun bool) func(error) bool {
		return func(err error) bool {
			var e *request.LostError
			return errors.As(err, &e) && e.MayHaveRun == mayHaveRun
		}
	}
	unavailable := func(part string) func(error) bool {
		return func(err error) bool {
			var e *request.UnavailableError
			return errors.As(err, &e) && strings.Contains(e.Reason, part)
		}
	}
	odd := func(part string) func(error) bool {
		return func(err error) bool {
			var e *request.AnswerError
			return errors.As(err, &e) && strings.Contains(e.Reason, part)
		}
	}
	status := func(code int) func(error) bool {
		return func(err error) bool {
			var e *request.HTTPError
			return errors.As(err, &e) && e.Status == code
		}
	}
	timeout := func(err error) bool { var e *request.TimeoutError; return errors.As(err, &e) }
	tests := []struct {
		name  string
		fault mcptest.Fault
		// want checks the error of a call that must not be repeated; runs is how often the tool was executed;
		// repeated means that mcpx sends a repeatable call again.
		want     func(error) bool
		runs     int
		repeated bool
	}{
		{"drop before", mcptest.Drop(), lost(true), 0, true},
		{"drop after", mcptest.DropAfter(), lost(true), 1, true},
		{"reset in the event stream", mcptest.Reset(), lost(true), 1, true},
		{"end of the event stream", mcptest.End(), lost(true), 1, true},
		{"stall", mcptest.Stall(), timeout, 0, false},
		{"stall after the header", mcptest.StallAfter(), timeout, 1, false},
		{"half of the JSON", mcptest.Fault{Kind: mcptest.FaultHalfJSON}, odd("not a JSON-RPC response"), 1, false},
		{"answer to another", mcptest.Fault{Kind: mcptest.FaultWrongID}, odd("not a JSON-RPC response"), 1, false},
		{"unauthorized", mcptest.Unauthorized(), unavailable("401 Unauthorized: {\"error\":\"invalid_token\"}; check the headers"), 0, false},
		{"too many", mcptest.TooMany(3 * time.Second), func(err error) bool {
			e, ok := errors.AsType[*request.UnavailableError](err)
			return ok && e.RetryAfter == 3*time.Second && unavailable("429 Too Many Requests, retry after 3")(err)
		}, 0, false},
		{"bad gateway", mcptest.BadGateway(), status(502), 0, false},
		{"html", mcptest.HTML(), odd("text/html"), 0, false},
		{"redirect", mcptest.Redirect("https://elsewhere.example/"), unavailable("a redirect to https://elsewhere.example/"), 0, false},
		{"lost session", mcptest.LostSession(), nil, 1, true},
	}
	for _, modern := range []bool{false, true} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("modern %t/%s", modern, tt.name), func(t *testing.T) {
				if modern && tt.fault.Kind == mcptest.FaultLostSession {
					t.Skip("the modern era has no sessions")
				}
				mcptest.Parallel(t)
				fake := mcptest.Spec{}
				if modern {
					fake.Era = mcptest.EraModern
				}
				server := fake.HTTP(t)
				u := ready(t, at(transport.HTTP, server.URL))
				limit := patience
				if strings.HasPrefix(tt.name, "stall") {
					limit = silence
				}
				call := func(tool string, repeatable bool) error {
					server.Script(tt.fault.On("tools/call"))
					_, err := textOf(u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams(tool, json.RawMessage(`{"text":"x"}`)), Repeatable: repeatable, Times: request.Times{Timeout: limit}}))
					server.Heal()
					return err
				}
				other, stop := neighbour(t, u, server)
				err := call("destroy_echo", false)
				if tt.want == nil && err != nil || tt.want != nil && !tt.want(err) {
					t.Errorf("got %#v", err)
				}
				if n := len(server.Log().Calls("destroy_echo")); n != tt.runs {
					t.Errorf("executed %d times, want %d", n, tt.runs)
				}
				if err := call("read_echo", true); tt.repeated != (err == nil) {
					t.Errorf("a call that can be repeated: got %v", err)
				}
				mustEcho(t, u)
				sessions := 1
				if tt.fault.Kind == mcptest.FaultLostSession {
					sessions = 3
				}
				if n := 1 + u.Status().Restarts; n != sessions {
					t.Errorf("%d sessions, want %d", n, sessions)
				}
				select {
				case err := <-other:
					if sessions == 1 {
						t.Errorf("the other call was lost as well: %v", err)
					}
				default:
				}
				stop()
			})
		}
	}
}

// neighbour begins a call that stays open until stop is called. stop waits for the end of the call.
func neighbour(t *testing.T, u *Upstream, server *mcptest.HTTPServer) (ended chan error, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended, over := make(chan error, 1), make(chan struct{})
	go func() { // the goroutine ends when stop is called
		defer close(over)
		_, err := u.Call(ctx, request.Request{Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(`{"ms":600000}`)), Times: request.Times{Timeout: patience}})
		ended <- err
	}()
	mcptest.WaitFor(t, "the other call", patience, func() bool { return len(server.Log().Calls("slow")) == 1 })
	return ended, func() { cancel(); <-over }
}

// TestLostMoreThanOnce: the error of a lost call says that it may have been executed, even if later attempts certainly were not. A
// call that was lost twice is not sent a third time.
func TestLostMoreThanOnce(t *testing.T) {
	lost, gone, twice := mcptest.DropAfter().On("tools/call"), mcptest.LostSession().On("tools/call"), mcptest.DropAfter().On("tools/call")
	gone.Times, twice.Times = maxAttempts, 2
	for name, tt := range map[string]struct {
		faults []mcptest.Fault
		runs   int
	}{
		"twice":              {[]mcptest.Fault{twice}, 2},
		"then forgotten":     {[]mcptest.Fault{lost, gone}, 1},
		"refused the second": {[]mcptest.Fault{lost, mcptest.TooMany(time.Second).On("tools/call")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			server := mcptest.Spec{}.HTTP(t)
			u := ready(t, at(transport.HTTP, server.URL))
			server.Script(tt.faults...)
			_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("read_echo", json.RawMessage(`{"text":"x"}`)), Repeatable: true, Times: request.Times{Timeout: patience}})
			if lost, ok := errors.AsType[*request.LostError](err); !ok || !lost.MayHaveRun {
				t.Errorf("got %#v", err)
			}
			if n := len(server.Log().Calls("read_echo")); n != tt.runs {
				t.Errorf("executed %d times", n)
			}
		})
	}
}

// TestSSEFaults: the event stream of the old HTTP+SSE transport breaks in the middle of an answer. The error of the call says that
// the call may have been executed. mcpx does not repeat it, and later calls work.
func TestSSEFaults(t *testing.T) {
	for _, fault := range []mcptest.Fault{mcptest.Reset(), mcptest.DropAfter(), mcptest.End()} {
		t.Run(string(fault.Kind), func(t *testing.T) {
			mcptest.NoLeaks(t)
			server := mcptest.Spec{}.SSE(t)
			u := ready(t, at(transport.SSE, server.URL))
			server.Script(fault.On("tools/call"))
			_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("destroy_echo", json.RawMessage(`{"text":"x"}`)), Times: request.Times{Timeout: patience}})
			var lost *request.LostError
			if !errors.As(err, &lost) || !lost.MayHaveRun {
				t.Errorf("got %v", err)
			}
			if n := len(server.Log().Calls("destroy_echo")); n != 1 {
				t.Errorf("executed %d times", n)
			}
			mustEcho(t, u)
		})
	}
}

// TestHTTPDownAndUp: calls to a server that is down fail at once, and mcpx uses the server again when it is back.
func TestHTTPDownAndUp(t *testing.T) {
	mcptest.NoLeaks(t)
	server := mcptest.Spec{}.HTTP(t)
	u := ready(t, Spec{Options: over(transport.HTTP, server.URL), Health: conf.Health{Interval: 20 * time.Millisecond, Timeout: patience, Threshold: 2}})
	server.Down()
	awaitState(t, u, catalog.Unavailable)
	if _, err := text(u, "echo", `{"text":"x"}`); !isUnavailable(err) {
		t.Errorf("got %v", err)
	}
	server.Up()
	u.Retry()
	awaitState(t, u, catalog.Ready)
	mustEcho(t, u)
}

// TestHalfOpen: mcpx notices a connection that exists, but through which nothing comes.
func TestHalfOpen(t *testing.T) {
	mcptest.Parallel(t)
	server := mcptest.Spec{}.HTTP(t)
	proxy := mcptest.NewProxy(t, server.URL)
	u := ready(t, Spec{Options: transport.Options{Type: transport.HTTP, Remote: transport.Remote{URL: proxy.URL(server.URL)}}, Health: conf.Health{Interval: 50 * time.Millisecond, Timeout: silence, Threshold: 1}, Timeouts: Timeouts{Connect: silence}})
	ended := make(chan error, 1)
	go func() {
		_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("slow", json.RawMessage(`{"ms":600000}`)), Times: request.Times{Timeout: patience}})
		ended <- err
	}()
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(server.Log().Calls("slow")) == 1 })
	proxy.Set(mcptest.ProxyHalfOpen)
	var lost *request.LostError
	if err := <-ended; !errors.As(err, &lost) || !lost.MayHaveRun || !strings.Contains(lost.Reason, "health check failed") {
		t.Errorf("the open call: got %v", err)
	}
	awaitState(t, u, catalog.Unavailable)
	proxy.Set(mcptest.ProxyPass)
	proxy.Cut()
	u.Retry()
	awaitState(t, u, catalog.Ready)
	mustEcho(t, u)
}

// TestCloseStubbornChildren: after Close no process of a child is left, even if the child ignores signals.
func TestCloseStubbornChildren(t *testing.T) {
	tests := []struct {
		name string
		fake mcptest.Spec
	}{
		{"ignores EOF", mcptest.Spec{IgnoreEOF: true}},
		{"ignores EOF and TERM", mcptest.Spec{IgnoreEOF: true, IgnoreTERM: true}},
		{"grandchild", mcptest.Spec{ForkGrandchild: true}},
		{"grandchild that holds the pipes and ignores TERM", mcptest.Spec{ForkGrandchild: true, GrandchildHoldsPipes: true, IgnoreTERM: true}},
		{"never reads", mcptest.Spec{NeverReadStdin: true, IgnoreEOF: true}},
		{"floods stderr", mcptest.Spec{StderrFlood: -1}},
		{"floods stderr before it answers", mcptest.Spec{StderrFlood: 1 << 20}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.Parallel(t)
			reaper := proc.NewReaper()
			defer func() {
				if err := reaper.Close(); err != nil {
					t.Error(err)
				}
			}()
			fake := tt.fake.WithFiles(t)
			spec := stdio(t, fake)
			spec.Launch.Reaper = reaper
			u := New(spec)
			u.Start()
			awaitState(t, u, catalog.Ready)
			began := time.Now()
			u.Close(300 * time.Millisecond)
			if took := time.Since(began); took > patience {
				t.Errorf("Close took %v", took)
			}
			for _, p := range fake.Pids(t) {
				if mcptest.Alive(p.PID) {
					t.Errorf("%s %d lives", p.Role, p.PID)
				}
			}
		})
	}
}

// TestCrashUnderGrandchild: mcpx soon notices the crash of a child, even if a grandchild keeps the child's pipes
// open.
func TestCrashUnderGrandchild(t *testing.T) {
	mcptest.Parallel(t)
	fake := mcptest.Spec{ForkGrandchild: true, GrandchildHoldsPipes: true}.WithFiles(t)
	u := ready(t, stdio(t, fake))
	_, err := u.Call(context.Background(), request.Request{Method: "tools/call", Params: request.ToolParams("crash", nil), Times: request.Times{Timeout: patience}})
	var lost *request.LostError
	if !errors.As(err, &lost) {
		t.Errorf("got %v", err)
	}
	mustEcho(t, u)
	if before := fake.Pids(t)[0]; mcptest.Alive(before.PID) {
		t.Errorf("the old %s lives", before.Role)
	}
}
