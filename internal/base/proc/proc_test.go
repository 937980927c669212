//go:build linux || darwin

package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// short is a Grace for tests with children that do not end when their stdin is closed or when they get TERM.
var short = Grace{EOF: 50 * time.Millisecond, TERM: 100 * time.Millisecond}

// slack is the time limit of steps that should be quick; it is so long because machines may be slow. long is a grace so
// long that the test fails if Close waits until its end.
const (
	slack = 2 * time.Minute
	long  = time.Hour
)

// start starts this test program as a child in the given mode, and closes the child at the end of the test.
func start(t *testing.T, mode string, r *Reaper) *Process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(Spec{Command: exe, Env: self(mode)}, r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background(), Grace{EOF: 1, TERM: 1}) })
	return p
}

// eventually calls ok until it returns true. The test fails if that takes longer than d.
func eventually(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	limit := time.After(d)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

// closeWithin closes p. The test fails if that takes longer than the parameter most, or if the child is not reaped.
func closeWithin(t *testing.T, p *Process, g Grace, most time.Duration) {
	t.Helper()
	begin := time.Now()
	if err := p.Close(context.Background(), g); err != nil {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(begin); took > most {
		t.Errorf("Close took %v, want at most %v", took, most)
	}
	select {
	case <-p.Done():
	default:
		t.Error("Done is open after Close")
	}
	if err := syscall.Kill(p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("child %d after Close: %v, want that it is reaped", p.PID(), err)
	}
}

// grandchild reads what a child in one of the parent modes prints, and returns the grandchild's pid.
func grandchild(t *testing.T, r io.Reader) int {
	t.Helper()
	var pid int
	if line := readLine(r); line != "ready" {
		t.Fatalf("the grandchild said %q, want ready", line)
	}
	line := readLine(r)
	if _, err := fmt.Sscanf(line, "grandchild %d", &pid); err != nil {
		t.Fatalf("reading the grandchild's pid from %q: %v", line, err)
	}
	return pid
}

func TestProcess_Echo(t *testing.T) {
	p := start(t, "echo", nil)
	fmt.Fprintln(p.Stdin(), "hello")
	if got := readLine(p.Stdout()); got != "hello" {
		t.Errorf("got %q, want hello", got)
	}
	if got := p.ExitReason(); got != "" {
		t.Errorf("ExitReason of a running child: %q", got)
	}
	// The child's last output after EOF is not lost, even if it is read only after the child has ended.
	fmt.Fprintln(p.Stdin(), "last words")
	rest := make(chan string)
	go func() {
		<-p.Done()
		b, _ := io.ReadAll(p.Stdout())
		rest <- string(b)
	}()
	closeWithin(t, p, Grace{EOF: long}, slack)
	if got := <-rest; got != "last words\n" {
		t.Errorf("after Close: read %q, want the last words", got)
	}
	if got := p.ExitReason(); got != "exit status 0" {
		t.Errorf("ExitReason: %q, want exit status 0", got)
	}
}

func TestProcess_ExitAtOnce(t *testing.T) {
	p := start(t, "fail", nil)
	<-p.Done()
	if got := p.ExitReason(); got != "exit status 3" {
		t.Errorf("ExitReason: %q, want exit status 3", got)
	}
	if got, want := p.StderrTail(), "loading\nerror: no token\n"; got != want {
		t.Errorf("StderrTail: %q, want %q", got, want)
	}
	if b, err := io.ReadAll(p.Stdout()); err != nil || len(b) > 0 {
		t.Errorf("Stdout: %q, %v, want EOF", b, err)
	}
	if _, err := p.Stdin().Write([]byte("x")); err == nil {
		t.Error("writing to an ended child: no error")
	}
	closeWithin(t, p, Grace{}, slack)
}

// TestProcess_LastWords: when Done is closed, StderrTail has everything that the child wrote to stderr before it
// ended.
func TestProcess_LastWords(t *testing.T) {
	sh := "head -c 60000 /dev/zero | tr '\\0' x >&2; echo >&2; echo last words >&2"
	for range 20 {
		p, err := Start(Spec{Command: "/bin/sh", Args: []string{"-c", sh}, Env: Environment(os.Environ(), nil)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		<-p.Done()
		if got := p.StderrTail(); len(got) != 60000+len("\nlast words\n") || !strings.HasSuffix(got, "\nlast words\n") {
			t.Errorf("%d bytes, ending %q", len(got), got[max(0, len(got)-20):])
		}
		closeWithin(t, p, Grace{}, slack)
	}
}

func TestClose_BadChildren(t *testing.T) {
	tests := []struct {
		mode   string
		grace  Grace
		reason string
		most   time.Duration
	}{
		{"echo", Grace{EOF: long, TERM: long}, "exit status 0", slack},
		{"ignore-eof", Grace{EOF: short.EOF, TERM: long}, "signal: terminated", short.EOF + slack},
		{"ignore-term", short, "signal: killed", short.EOF + short.TERM + slack},
		{"stopped", Grace{EOF: short.EOF, TERM: long}, "signal: terminated", short.EOF + slack},
		{"deaf", Grace{EOF: short.EOF, TERM: long}, "signal: terminated", short.EOF + slack},
		{"flood", Grace{EOF: long, TERM: long}, "exit status 0", slack},
		{"quiet-on-term", Grace{EOF: short.EOF, TERM: long}, "exit status 0", short.EOF + slack},
	}
	for _, tt := range tests {
		t.Run(tt.mode, func(t *testing.T) {
			p := start(t, tt.mode, nil)
			if tt.mode != "echo" && tt.mode != "flood" {
				readLine(p.Stdout())
			}
			go io.Copy(io.Discard, p.Stdout())
			closeWithin(t, p, tt.grace, tt.most)
			if got := p.ExitReason(); got != tt.reason {
				t.Errorf("ExitReason: %q, want %q", got, tt.reason)
			}
		})
	}
}

func TestClose_Grandchildren(t *testing.T) {
	modes := []string{"parent"}
	if runtime.GOOS == "linux" {
		modes = append(modes, "parent-setpg", "parent-setpg-unmarked", "parent-setsid")
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			p := start(t, mode, nil)
			pid := grandchild(t, p.Stdout())
			if !exists(pid) {
				t.Fatal("the grandchild is not there")
			}
			closeWithin(t, p, short, short.EOF+short.TERM+slack)
			if exists(pid) {
				t.Error("the grandchild lives after Close")
			}
			if _, err := p.Stdout().Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("Stdout: %v, want EOF", err)
			}
		})
	}
}

// TestClose_GrandchildGetsItsGrace: a grandchild gets TERM and time to end, although the child
// has ended before.
func TestClose_GrandchildGetsItsGrace(t *testing.T) {
	sh := "/bin/sh -c 'trap \"sleep 0.4; echo clean; exit\" TERM; echo ready; while :; do sleep 0.01; done' & read x"
	p, err := Start(Spec{Command: "/bin/sh", Args: []string{"-c", sh}, Env: Environment(os.Environ(), nil)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	readLine(p.Stdout())
	rest := make(chan string)
	go func() {
		b, _ := io.ReadAll(p.Stdout())
		rest <- string(b)
	}()
	closeWithin(t, p, Grace{EOF: short.EOF, TERM: long}, slack)
	if got := <-rest; got != "clean\n" {
		t.Errorf("the grandchild said %q, want clean", got)
	}
}

func TestProcess_LeavesGrandchild(t *testing.T) {
	modes := []string{"leave"}
	if runtime.GOOS == "linux" {
		modes = append(modes, "leave-setsid")
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			p := start(t, mode, nil)
			pid := grandchild(t, p.Stdout())
			select {
			case <-p.Done():
			case <-time.After(slack):
				t.Fatal("Done waits for a grandchild")
			}
			if got := p.ExitReason(); got != "exit status 0" {
				t.Errorf("ExitReason: %q, want exit status 0", got)
			}
			if exists(pid) {
				t.Error("the grandchild outlived the child")
			}
			if b, err := io.ReadAll(p.Stdout()); err != nil {
				t.Errorf("Stdout: %q, %v, want EOF", b, err)
			}
		})
	}
}

// TestProcess_PipeHeldOpen: a process that Close cannot reach (another session, no mark) holds stdout and stderr open.
// Reading Stdout ends nevertheless.
func TestProcess_PipeHeldOpen(t *testing.T) {
	p := start(t, "parent-setsid-unmarked", nil)
	pid := grandchild(t, p.Stdout())
	defer syscall.Kill(pid, syscall.SIGKILL)
	p.Stdin().Close()
	read := make(chan error)
	go func() {
		_, err := io.ReadAll(p.Stdout())
		read <- err
	}()
	select {
	case err := <-read:
		if err != nil {
			t.Errorf("Stdout: %v, want EOF", err)
		}
	case <-time.After(slack):
		t.Fatal("Stdout is held open by a process out of reach")
	}
	closeWithin(t, p, Grace{}, slack)
	if !exists(pid) {
		t.Error("the process is not out of reach: this test proves nothing")
	}
}

// TestClose_Concurrent: concurrent calls of Close all return in time, with and without a Kill.
func TestClose_Concurrent(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %t", killed), func(t *testing.T) {
			p := start(t, "ignore-term", nil)
			readLine(p.Stdout())
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() { closeWithin(t, p, short, slack) })
			}
			if killed {
				wg.Go(p.Kill)
			}
			wg.Wait()
			closeWithin(t, p, Grace{}, slack)
		})
	}
}

func TestClose_ContextEnds(t *testing.T) {
	p := start(t, "ignore-eof", nil)
	readLine(p.Stdout())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Close(ctx, Grace{EOF: long, TERM: long}); err != nil {
		t.Error(err)
	}
	if got := p.ExitReason(); got != "signal: killed" {
		t.Errorf("ExitReason: %q, want signal: killed", got)
	}
}

func TestKill(t *testing.T) {
	p := start(t, "parent", nil)
	pid := grandchild(t, p.Stdout())
	p.Kill()
	p.Kill()
	<-p.Done()
	if got := p.ExitReason(); got != "signal: killed" {
		t.Errorf("ExitReason: %q, want signal: killed", got)
	}
	if exists(pid) {
		t.Error("the grandchild lives after Kill and Done")
	}
}

func TestStdin_StuckWriter(t *testing.T) {
	big := make([]byte, 1<<20)
	for _, how := range []string{"stdin", "process"} {
		t.Run("close of "+how, func(t *testing.T) {
			p := start(t, "deaf", nil)
			written := make(chan error, 1)
			go func() {
				_, err := p.Stdin().Write(big)
				written <- err
			}()
			readLine(p.Stdout())
			begin := time.Now()
			if how == "stdin" {
				p.Stdin().Close()
			} else {
				closeWithin(t, p, short, slack)
			}
			if err := <-written; err == nil {
				t.Error("a write nobody reads succeeded")
			}
			if took := time.Since(begin); took > slack {
				t.Errorf("the writer was free after %v", took)
			}
		})
	}
}

// descriptors counts the open file descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestClose_LeavesNothing(t *testing.T) {
	r := NewReaper()
	once := func(mode string) {
		p := mustStart(mode, r)
		p.Close(context.Background(), Grace{EOF: long})
	}
	once("echo") // opens what stays open: the poller and the reaper's pipe
	before, goroutines := descriptors(t), runtime.NumGoroutine()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				once("echo")
			}
		})
	}
	wg.Wait()
	eventually(t, slack, "goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if n := zombies(t); n != 0 {
		t.Errorf("%d zombies", n)
	}
}
