package mcptest

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// leakWait is how long leftovers may take to go away by themselves. It is long
// because it passes only where a test fails anyway.
const leakWait = 5 * time.Second

// NoLeaks fails the test when it leaves anything behind: goroutines, processes
// (Linux: children in any state, and living descendants of fakes, wherever they
// were reparented to) or file descriptors (Linux). What was there at the time
// of this call is left out. Leftovers have a bounded time to go away; processes
// that do not are killed, so that the next test starts clean.
//
// Call it first in the test: cleanups run last in, first out. It looks at the
// whole process, so it is not for parallel tests. Idle connections of
// http.DefaultClient are closed before it looks.
func NoLeaks(t testing.TB) {
	t.Helper()
	noLeaks(t, leakWait)
}

func noLeaks(t testing.TB, limit time.Duration) {
	t.Helper()
	before := takeCensus()
	t.Cleanup(func() {
		if faults := settle(before, limit); len(faults) > 0 {
			t.Errorf("left behind:\n%s", strings.Join(faults, "\n"))
		}
	})
}

// census is what exists at one moment. Each map goes from an identity to a
// description for the failing test.
type census struct {
	goroutines, processes, files map[string]string
}

func takeCensus() census {
	return census{goroutines: goroutines(), processes: processes(), files: openFiles()}
}

// settle waits until nothing exists that did not before, and returns what still
// does at the deadline.
func settle(before census, limit time.Duration) []string {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		http.DefaultClient.CloseIdleConnections()
		now := takeCensus()
		faults := slices.Concat(
			surplus("process", before.processes, now.processes),
			surplus("goroutine", before.goroutines, now.goroutines),
			surplus("file descriptor", before.files, now.files))
		if len(faults) == 0 {
			return nil
		}
		select {
		case <-ticker.C:
		case <-deadline.C:
			killAll(before.processes, now.processes)
			return faults
		}
	}
}

// surplus describes what is in now and not in before.
func surplus(kind string, before, now map[string]string) []string {
	var out []string
	for id, what := range now {
		if _, ok := before[id]; !ok {
			out = append(out, fmt.Sprintf("%s %s: %s", kind, id, what))
		}
	}
	slices.Sort(out)
	return out
}

// goroutines returns the stacks of all goroutines that could be leaks, by id.
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
		if i == 0 || harmless(stack) { // the first is the caller
			continue
		}
		head, _, _ := strings.Cut(stack, " [")
		out[strings.TrimPrefix(head, "goroutine ")] = stack
	}
	return out
}

// harmless reports whether a goroutine belongs to the runtime or to testing.
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
