package mcptest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// fakeTB collects the errors that NoLeaks and WaitFor report.
type fakeTB struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (f *fakeTB) Helper()          {}
func (f *fakeTB) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *fakeTB) Errorf(format string, a ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, a...))
}
func (f *fakeTB) Fatalf(format string, a ...any) {
	f.Errorf(format, a...)
	panic(f)
}

// settle ends the only test of a group, and returns what exists now but is not in the census before.
func settle(before census, limit time.Duration) []string {
	return (&group{tests: 1, before: before}).leave(limit)
}

func TestSettle_Goroutine(t *testing.T) {
	before := takeCensus()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() { defer close(done); <-quit }()
	got := strings.Join(settle(before, 30*time.Millisecond), "\n")
	if !strings.Contains(got, "goroutine") || !strings.Contains(got, "TestSettle_Goroutine") {
		t.Errorf("got %q", got)
	}
	close(quit)
	<-done
	if got := settle(before, patience); len(got) > 0 {
		t.Errorf("still %q", got)
	}
}

func TestSettle_Processes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked at on Linux only")
	}
	before := takeCensus()
	s := Spec{ForkGrandchild: true}.WithFiles(t)
	c, cmd, _ := child(t, s)
	c.handshake()
	now := processes()
	if got := len(surplus("", before.processes, now)); got != 2 {
		t.Errorf("%d new processes, want the fake and its grandchild", got)
	}
	// After the fake has ended, only the mark shows that the grandchild belongs to it.
	c.in.Close()
	<-c.done
	WaitFor(t, "the fake to be a zombie", patience, func() bool { return !Alive(cmd.Process.Pid) })
	got := strings.Join(surplus("process", before.processes, processes()), "\n")
	if !strings.Contains(got, "state Z") || !strings.Contains(got, "mcptest-grandchild") {
		t.Errorf("got %q", got)
	}
	cmd.Wait()
	// Processes that still exist after limit are reported and killed.
	faults := settle(before, 2*time.Second)
	if len(faults) != 1 || !strings.Contains(faults[0], "mcptest-grandchild") {
		t.Errorf("got %q", faults)
	}
	if left := settle(before, patience); len(left) > 0 {
		t.Errorf("still %q", left)
	}
}

func TestSettle_Zombie(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes are looked at on Linux only")
	}
	before := takeCensus()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	WaitFor(t, "the child to end", patience, func() bool { return !Alive(cmd.Process.Pid) })
	if got := strings.Join(settle(before, 30*time.Millisecond), "\n"); !strings.Contains(got, "process") || !strings.Contains(got, "state Z") {
		t.Errorf("got %q", got)
	}
	cmd.Wait()
	if got := settle(before, patience); len(got) > 0 {
		t.Errorf("still %q", got)
	}
}

func TestSettle_Files(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("descriptors are looked at on Linux only")
	}
	before := takeCensus()
	f, err := os.Open(os.Args[0]) // os.Args[0] is an absolute path under go test
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(settle(before, 30*time.Millisecond), "\n"); !strings.Contains(got, "file descriptor") || !strings.Contains(got, os.Args[0]) {
		t.Errorf("got %q", got)
	}
	f.Close()
	if got := settle(before, patience); len(got) > 0 {
		t.Errorf("still %q", got)
	}
}

func TestNoLeaks_FailsTheTest(t *testing.T) {
	for _, leak := range []bool{false, true} {
		tb := &fakeTB{}
		noLeaks(tb, map[bool]time.Duration{true: 30 * time.Millisecond, false: patience}[leak])
		quit, done := make(chan struct{}), make(chan struct{})
		go func() { defer close(done); <-quit }()
		if !leak {
			close(quit)
		}
		for _, c := range tb.cleanups {
			c()
		}
		if got := len(tb.errors) > 0; got != leak {
			t.Errorf("leak %v: %q", leak, tb.errors)
		}
		if leak {
			close(quit)
		}
		<-done
	}
}

// TestGroup: if tests overlap, the last test to end reports what any of them left behind. This also holds if it began
// while an earlier test was waiting for its leftovers to go away.
func TestGroup(t *testing.T) {
	const limit = 30 * time.Millisecond
	quit, done := make(chan struct{}), make(chan struct{})
	leak := func() { defer close(done); <-quit }
	var g group
	g.enter()
	g.enter()
	go leak()
	if got := g.leave(limit); len(got) > 0 {
		t.Errorf("told before the last has ended: %q", got)
	}
	settled := make(chan []string)
	go func() { settled <- g.leave(patience) }()
	WaitFor(t, "the check", patience, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.tests == 0
	})
	g.enter()
	if got := <-settled; len(got) > 0 {
		t.Errorf("told while another runs: %q", got)
	}
	if got := g.leave(limit); !strings.Contains(strings.Join(got, "\n"), "TestGroup") {
		t.Errorf("got %q", got)
	}
	close(quit)
	<-done
	g.enter()
	if got := g.leave(patience); len(got) > 0 {
		t.Errorf("the next tests: %q", got)
	}
}

func TestWaitFor(t *testing.T) {
	n := 0
	WaitFor(t, "three", patience, func() bool { n++; return n == 3 })
	tb := &fakeTB{}
	defer func() {
		if recover() == nil || len(tb.errors) != 1 || !strings.Contains(tb.errors[0], "waiting for godot") {
			t.Errorf("got %q", tb.errors)
		}
	}()
	WaitFor(tb, "godot", 10*time.Millisecond, func() bool { return false })
}
