package jq

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mcpx/internal/base/proc"
)

// peak is the largest resident size that a worker had, in bytes. A worker that was
// over a limit is gone, and its parent knows.
func peak(t *testing.T, w *worker, outcome string) int64 {
	t.Helper()
	if outcome == "time" || outcome == "memory" {
		<-w.process.Done()
		return w.process.State().SysUsage().(*syscall.Rusage).Maxrss << 10
	}
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(w.process.PID()), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kb int64
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// middleVar makes this test binary a parent of a worker that is to be killed.
const middleVar = "JQ_TEST_MIDDLE"

// middleMain starts a worker that spins in a filter, and prints its pid when it does.
func middleMain() {
	if os.Getenv(middleVar) == "" {
		return
	}
	r := New(Limits{Time: time.Hour}, proc.NewReaper())
	if _, err := r.Run(context.Background(), `.`, []byte(`0`)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	w := r.idle[0]
	fmt.Println(w.process.PID())
	r.Run(context.Background(), os.Getenv(middleVar), []byte(`0`))
	os.Exit(1)
}

// TestWorker_ParentKilled kills a parent while its worker spins, or is stopped so that
// only the kernel can end it.
func TestWorker_ParentKilled(t *testing.T) {
	tests := []struct {
		name, filter string
		stop         bool
	}{
		{"spinning", `def f: f; f`, false},
		{"generating", `range(1e12) | empty`, false},
		{"collecting garbage", `[limit(100; repeat("a"*1e5))] | until(false; map(ascii_upcase))`, false},
		{"in one long call", `("a"*1e7) | until(false; test("(a?){900}b"))`, false},
		{"stopped", `def f: f; f`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			middle, pid := startMiddle(t, tt.filter)
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			defer unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			spinning(t, pid)
			if tt.stop {
				unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0)
			}
			middle.Process.Kill()
			awaitEnd(t, fd)
		})
	}
}

// awaitEnd returns when the process behind a pidfd has ended.
func awaitEnd(t *testing.T, fd int) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 120_000)
		if n == 1 {
			return
		}
		if err != unix.EINTR {
			t.Fatalf("the worker lives after its parent: %v", err)
		}
	}
}

// startMiddle starts a parent of a worker and returns the pid of the worker. The parent is reaped at the end.
func startMiddle(t *testing.T, filter string) (*exec.Cmd, int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), middleVar+"="+filter)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, convErr := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || convErr != nil {
		t.Fatalf("reading the pid: %q, %v", line, err)
	}
	return cmd, pid
}

// spinning returns when a process has used the processor for a tenth of a second.
func spinning(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		utime, err := strconv.Atoi(strings.Fields(rest)[11])
		if err != nil {
			t.Fatal(err)
		}
		if utime >= 10 { // ticks of 10 ms
			return
		}
	}
	t.Fatal("the worker does not spin")
}

// TestWorker_Process checks what a worker has of its surroundings.
func TestWorker_Process(t *testing.T) {
	t.Setenv("JQ_TEST_SECRET", "sesame")
	r := newRunner(t, patient)
	warm(t, r)
	pid := r.idle[0].process.PID()
	proc := fmt.Sprintf("/proc/%d/", pid)
	environ, err := os.ReadFile(proc + "environ")
	if err != nil {
		t.Fatal(err)
	}
	if want := workerVar + "=" + r.limits.encode() + "\x00MCPX_CHILD="; !strings.HasPrefix(string(environ), want) || bytes.Count(environ, []byte("\x00")) != 2 {
		t.Errorf("the environment is %q, want %q and what marks a child", environ, want)
	}
	if dir, err := os.Readlink(proc + "cwd"); err != nil || dir != "/" {
		t.Errorf("the directory is %q, %v, want /", dir, err)
	}
	for file, want := range map[string]string{"comm": "mcpx-jq\n", "cmdline": "mcpx-jq\x00"} {
		if name, _ := os.ReadFile(proc + file); string(name) != want {
			t.Errorf("%s is %q, want %q", file, name, want)
		}
	}
	if group, err := unix.Getpgid(pid); err != nil || group != pid {
		t.Errorf("the process group is %d, %v, want %d", group, err, pid)
	}
	for _, name := range []string{"0", "1"} {
		if target, _ := os.Readlink(proc + "fd/" + name); !strings.HasPrefix(target, "pipe:") {
			t.Errorf("descriptor %s is %q, want a pipe", name, target)
		}
	}
}

// TestRunner_Leaks checks that a closed runner leaves no descriptor and no child.
func TestRunner_Leaks(t *testing.T) {
	before := descriptors(t)
	for range 3 {
		r := New(Limits{Time: 100 * time.Millisecond}, nil)
		warm(t, r)
		pid := r.idle[0].process.PID()
		for _, filter := range []string{`"a"*2e9`, `def f: f; f`, `.`, `(`} {
			r.Run(t.Context(), filter, []byte(`0`))
		}
		warm(t, r)
		r.Close()
		if err := unix.Kill(pid, 0); err != unix.ESRCH {
			t.Errorf("a killed worker is still there: %v", err)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("descriptors before:\n%s\nafter:\n%s", before, after)
	}
}

// descriptors lists what the process has open. Epoll and event descriptors are the runtime's,
// which opens them once and for all.
func descriptors(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.Contains(target, "[event") {
			open = append(open, e.Name()+" "+target)
		}
	}
	return strings.Join(open, "\n")
}
