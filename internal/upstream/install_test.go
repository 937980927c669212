package upstream

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/mcptest"
	"mcpx/internal/request"
)

// installer returns the spec of a fake server that is started by a command that installs.
func installer(t testing.TB, fake mcptest.Spec) (Spec, *logs) {
	t.Helper()
	spec, all := inProcess(t, fake)
	spec.Launch.Command, spec.Launch.Args = "npx", []string{"-y", "fake"}
	return spec, all
}

func TestInstalls(t *testing.T) {
	for _, test := range []struct {
		command string // the command, and its arguments, each after a "|"
		want    bool
	}{
		{"npx|-y|pkg", true}, {"/usr/bin/npx|pkg", true}, {`C:\Program Files\nodejs\npx.cmd|pkg`, true}, {"uvx|pkg", true}, {"bunx|pkg", true},
		{"pnpm|dlx|pkg", true}, {"pnpm|start", false}, {"pipx|run|pkg", true}, {"pipx|list", false}, {"docker|run|-i|img", true},
		{"docker|--context|far|run|img", true}, {"docker|exec|-i|c|srv", false}, {"go|run|./x", true}, {"go|version", false}, {"deno|run|-A|x.ts", true},
		{"uv|run|srv", true}, {"npm|exec|pkg", true}, {"npm|start", false},
		{"sh|-c|npx -y pkg", true}, {"bash|-lc|cd /x && exec uvx 'pkg'", true}, {"cmd|/c|npx|-y|pkg", true}, {"cmd.exe|/c|npx -y pkg", true},
		{"env|A=b|npx|pkg", true}, {"sh|-c|echo x; docker run img", true}, {"sh|-c|./srv", false}, {"powershell|-Command|npx pkg", true},
		{"node|npx", false}, {"python|-m|srv|run", false}, {"", false}, {"./my-npx-thing", false},
	} {
		words := strings.Split(test.command, "|")
		if got := installs(words[0], words[1:]); got != test.want {
			t.Errorf("%q: %t", test.command, got)
		}
	}
}

// TestInstall_Patience: a command that installs keeps running as long as it makes progress. mcpx ends it if it
// makes none, or when its time has passed.
func TestInstall_Patience(t *testing.T) {
	const second, minute = time.Second, time.Minute
	for name, test := range map[string]struct {
		fake   mcptest.Spec
		seen   bool
		set    time.Duration
		until  time.Duration // the command makes progress until then, with at most 4 s in between
		reason string        // the expected reason; empty if the server is ready after until
	}{
		"slow":                   {mcptest.Spec{InstallFor: 9 * minute, InstallEvery: second}, false, 0, 9 * minute, ""},
		"slow and silent for 2m": {mcptest.Spec{InstallFor: 110 * second}, false, 0, 110 * second, ""},
		"never moves":            {mcptest.Spec{InstallFor: -1}, false, 0, 2 * minute, "nothing has moved for 2m0s"},
		"stalls":                 {mcptest.Spec{InstallFor: -1, InstallEvery: second, InstallStalls: minute}, false, 0, 3 * minute, "nothing has moved for 2m0s"},
		"for ever":               {mcptest.Spec{InstallFor: -1, InstallEvery: second}, false, 0, 10 * minute, "within 10m0s"},
		"with a limit":           {mcptest.Spec{InstallFor: -1, InstallEvery: second}, false, 40 * second, 40 * second, "within 40s, as connect_timeout says"},
		"with a long limit":      {mcptest.Spec{InstallFor: 19 * minute, InstallEvery: second}, false, 20 * minute, 19 * minute, ""},
		"later, at work":         {mcptest.Spec{InstallFor: 5 * minute, InstallEvery: second}, true, 0, 5 * minute, ""},
		"later, never moves":     {mcptest.Spec{InstallFor: -1}, true, 0, 30 * second, "nothing has moved for 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				spec, all := installer(t, test.fake)
				spec.StartedBefore, spec.Timeouts.Connect = test.seen, test.set
				u := connect(t, spec)
				pause(test.until - second)
				status := u.Status()
				if status.State != catalog.Connecting || status.Installing == test.seen || all.starts() != 1 {
					t.Errorf("before: %s, installing %t, %d starts", status.State, status.Installing, all.starts())
				}
				if !test.seen && !strings.Contains(status.Reason, "install") {
					t.Errorf("before: %q", status.Reason)
				}
				pause(5 * second)
				status = u.Status()
				want := catalog.Ready
				if test.reason != "" {
					want = catalog.Unavailable
				}
				if status.State != want || status.Installing || !strings.Contains(status.Reason, test.reason) {
					t.Errorf("after: %s, installing %t, %q", status.State, status.Installing, status.Reason)
				}
				if test.reason == "" && (status.Reason != "" || status.Took < test.until) {
					t.Errorf("after: %q, took %s", status.Reason, status.Took)
				}
			})
		})
	}
}

// TestInstall_Turns: three commands install at the same time. The next one begins when one of these is ready or
// has made no progress for a while. A command that a caller waits for begins before the others in the queue.
func TestInstall_Turns(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := semaphore.New(MaxInstalls, semaphore.Queue{})
		fakes := []mcptest.Spec{
			{InstallFor: 20 * time.Second, InstallEvery: time.Second},
			{InstallFor: 40 * time.Second, InstallEvery: time.Second},
			{InstallFor: -1, InstallEvery: time.Second, InstallStalls: 5 * time.Second},
			{InstallFor: time.Hour, InstallEvery: time.Second},
			{InstallFor: time.Hour, InstallEvery: time.Second},
			{InstallFor: time.Hour, InstallEvery: time.Second},
		}
		var all []*logs
		var ups []*Upstream
		for _, fake := range fakes {
			spec, logs := installer(t, fake)
			spec.Concurrency.Installs = gate
			ups, all = append(ups, connect(t, spec)), append(all, logs)
		}
		check := func(when string, want ...int) {
			t.Helper()
			synctest.Wait()
			var got []int
			for i := range all {
				if all[i].starts() > 0 {
					got = append(got, i)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v have started, want %v", when, got, want)
			}
		}
		pause(12 * time.Second)
		check("three at work", 0, 1, 2)
		if reason := ups[5].Status().Reason; reason != "waits for other installs" {
			t.Errorf("in line: %q", reason)
		}
		bounded, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := ups[5].Call(bounded, request.Request{Method: "tools/call"}); err == nil {
			t.Error("a call of a server in line succeeded")
		}
		check("somebody asks", 0, 1, 2)
		pause(6 * time.Second) // the third command has made no progress for more than 10 s
		check("one has not moved", 0, 1, 2, 5)
		pause(6 * time.Second) // after 25 s the first command is ready
		check("one is ready", 0, 1, 2, 3, 5)
		if state := ups[2].Status().State; state != catalog.Connecting {
			t.Errorf("the one that has not moved is %s", state)
		}
	})
}

// TestInstall_CountsAgain: a command that makes progress again after a pause counts again as one of the installs that may run at
// the same time.
func TestInstall_CountsAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := semaphore.New(1, semaphore.Queue{})
		moves := make(chan string, 1)
		w := &installWatch{gate: gate, quiet: time.Minute, placed: true, say: func(string) {}}
		if gate.Join("") != nil {
			t.Fatal("no room")
		}
		ctx, cancel := context.WithCancel(context.Background())
		last := any("")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.watch(ctx, func() any {
				select {
				case m := <-moves:
					last = m
				default:
				}
				return last
			}, func() { t.Error("ended") })
		}()
		free := func() bool {
			open, _ := gate.Use()
			return open == 0
		}
		pause(11 * time.Second)
		if free() {
			t.Error("it gave its place away too early")
		}
		pause(3 * time.Second)
		if !free() {
			t.Error("it keeps its place though nothing moves")
		}
		moves <- "again"
		pause(3 * time.Second)
		if free() {
			t.Error("it moves and has no place")
		}
		cancel()
		<-ended
	})
}

// TestInstall_ClosedInLine: an upstream that is closed while it waits in the queue does not keep its place.
func TestInstall_ClosedInLine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := semaphore.New(1, semaphore.Queue{})
		var ups []*Upstream
		for range 3 {
			spec, _ := installer(t, mcptest.Spec{InstallFor: -1, InstallEvery: time.Second})
			spec.Concurrency.Installs = gate
			u := New(spec)
			u.Start()
			ups = append(ups, u)
		}
		pause(time.Minute)
		for _, u := range slices.Backward(ups) {
			u.Close(0)
		}
		if open, waiting := gate.Use(); open != 0 || waiting != 0 {
			t.Errorf("%d inside, %d in line", open, waiting)
		}
	})
}

// TestInstall_ClosedAtOnce: an upstream that is closed before its first attempt does not keep its place in the queue of installs.
func TestInstall_ClosedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		gate := semaphore.New(1, semaphore.Queue{})
		for range 100 {
			var ups []*Upstream
			for range 3 {
				spec, _ := installer(t, mcptest.Spec{})
				spec.Concurrency.Installs = gate
				u := New(spec)
				u.Start()
				u.cancel()
				ups = append(ups, u)
			}
			for _, u := range ups {
				u.Close(0)
			}
		}
		if open, waiting := gate.Use(); open != 0 || waiting != 0 {
			t.Errorf("%d inside, %d in line", open, waiting)
		}
	})
}

// TestInstall_NextStart: after a successful start, the shorter time of later starts applies.
func TestInstall_NextStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		spec, all := installer(t, mcptest.Spec{})
		stuck, _ := installer(t, mcptest.Spec{InstallFor: -1})
		works := spec.Serve
		spec.Serve = func(ctx context.Context, in io.Reader, out io.Writer) error {
			if all.starts() == 0 {
				return works(ctx, in, out)
			}
			return stuck.Serve(ctx, in, out)
		}
		u := connect(t, spec)
		pause(time.Minute)
		_, _ = text(u, "crash", `{}`)
		pause(29 * time.Second)
		if status := u.Status(); status.State != catalog.Connecting || status.Installing {
			t.Errorf("at first: %s, installing %t", status.State, status.Installing)
		}
		pause(5 * time.Second)
		if status := u.Status(); status.State != catalog.Unavailable || !strings.Contains(status.Reason, "nothing has moved for 30s") {
			t.Errorf("then: %s, %q", status.State, status.Reason)
		}
	})
}
