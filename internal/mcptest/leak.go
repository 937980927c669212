package mcptest

import (
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// leakWait is how long leftovers may take to go away. It can be long, since only a failing test waits that long.
const leakWait = time.Minute

// NoLeaks fails the test if it leaves anything behind: goroutines, processes (Linux only: descendants in any state, and living
// descendants of fakes, whatever their parent is) or file descriptors (Linux only). What existed when NoLeaks was called does
// not matter. Leftovers have some time to go away. Processes that are still there after that are killed, so that they do not
// disturb the next test.
//
// Call NoLeaks at the beginning of the test, because cleanup functions run in reverse order. It checks the whole process. So
// tests that run at the same time are checked together, when the last of them ends. A parallel test calls Parallel instead.
// Idle connections of http.DefaultClient are closed before the check.
func NoLeaks(t testing.TB) {
	t.Helper()
	noLeaks(t, leakWait)
}

// Parallel calls t.Parallel and NoLeaks. In a package with leak checks, each parallel test must call it; otherwise
// its goroutines could be reported as leaks of other tests.
func Parallel(t *testing.T) {
	t.Helper()
	t.Parallel()
	noLeaks(t, leakWait)
}

// AtOnce sets how many parallel tests run at the same time, but not to less than the number of processors, which is the
// default. It is for packages whose tests mostly wait for processes and timers. The flag -parallel overrides AtOnce. Call it in
// TestMain.
func AtOnce(tests int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		// This fails only if the flag does not exist or the value is not a number.
		_ = flag.Set("test.parallel", strconv.Itoa(max(tests, runtime.GOMAXPROCS(0))))
	}
}

func noLeaks(t testing.TB, limit time.Duration) {
	t.Helper()
	running.enter()
	t.Cleanup(func() {
		if faults := running.leave(limit); len(faults) > 0 {
			t.Errorf("left behind, by this test or one that ran at the same time:\n%s", strings.Join(faults, "\n"))
		}
	})
}

// running is the only group, since goroutines, processes and files belong to the whole process.
var running group

// group has the tests that run at the same time. It is not possible to tell which of them started a leaked goroutine.
type group struct {
	mu       sync.Mutex
	tests    int    // tests that have not ended
	settling int    // tests that have ended, and wait until leftovers go away
	before   census // taken when tests and settling were both 0
}

func (g *group) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tests+g.settling == 0 {
		g.before = takeCensus()
	}
	g.tests++
}

// leave ends one test. If no other test is running, leave waits until everything new since the start is gone, and
// returns what still exists after limit. If another test begins meanwhile, that test does the check.
func (g *group) leave(limit time.Duration) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.tests--
	g.settling++
	defer func() { g.settling-- }()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for late := false; g.tests == 0; {
		http.DefaultClient.CloseIdleConnections()
		now := takeCensus()
		faults := slices.Concat(
			surplus("process", g.before.processes, now.processes),
			surplus("goroutine", g.before.goroutines, now.goroutines),
			surplus("file descriptor", g.before.files, now.files))
		if len(faults) == 0 {
			return nil
		}
		if late {
			killAll(g.before.processes, now.processes)
			return faults
		}
		g.mu.Unlock()
		select {
		case <-ticker.C:
		case <-deadline.C:
			late = true
		}
		g.mu.Lock()
	}
	return nil
}

// census is what exists at one moment. In each map, the keys are identities, and the values are descriptions for the
// report.
type census struct {
	goroutines, processes, files map[string]string
}

func takeCensus() census {
	return census{goroutines: goroutines(), processes: processes(), files: openFiles()}
}

// surplus describes what exists in current, but not in earlier.
func surplus(kind string, earlier, current map[string]string) []string {
	var out []string
	for id, what := range current {
		if _, ok := earlier[id]; !ok {
			out = append(out, fmt.Sprintf("%s %s: %s", kind, id, what))
		}
	}
	slices.Sort(out)
	return out
}

// goroutines returns the stacks of all goroutines that could be leaks, by goroutine ID.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	out := map[string]string{}
	for i, stack := range strings.Split(string(buf), "\n\n") {
		if i == 0 || harmless(stack) { // the first stack is the caller's
			continue
		}
		head, _, _ := strings.Cut(stack, " [")
		out[strings.TrimPrefix(head, "goroutine ")] = stack
	}
	return out
}

// harmless reports whether a goroutine is no leak: it belongs to the runtime, package testing or testing/synctest, or the standard
// library has it for signals or profiles.
func harmless(stack string) bool {
	for _, s := range []string{
		"testing.(*T).Run(", "testing.(*M).", "testing.RunTests", "testing.runFuzzing", "testing.(*F).Fuzz",
		"testing.runTests", "testing.tRunner.func", "created by testing.(*T).Run", "created by testing.(*M)",
		"runtime.goexit0", "created by runtime.", "os/signal.signal_recv", "os/signal.loop",
		"runtime.ensureSigM", "runtime.ReadTrace", "runtime/pprof", "created by testing/synctest.",
	} {
		if strings.Contains(stack, s) {
			return true
		}
	}
	return false
}
