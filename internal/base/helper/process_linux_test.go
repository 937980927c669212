package helper

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mcpx/internal/base/proc"
)

// peak returns the largest resident size, in bytes, that a process had before it ended.
func peak(p *proc.Process) int64 { return p.State().SysUsage().(*syscall.Rusage).Maxrss << 10 }

// middleVar is an environment variable that makes this test binary a parent with a helper. The test kills that parent.
const middleVar = "HELPER_TEST_MIDDLE"

// middleMain starts a helper, prints its pid, and gives it a job.
func middleMain() {
	job := os.Getenv(middleVar)
	if job == "" {
		return
	}
	reaper := proc.NewReaper()
	limits := patient
	limits.Memory = 4 << 30 // on a busy machine, garbage piles up until the collector runs
	p := New(testRole, limits, func(s proc.Spec) (*proc.Process, error) { return proc.Start(s, reaper) })
	if _, err := p.Do(context.Background(), "", nil, []byte("echo")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.idle[0].process.PID())
	p.Do(context.Background(), "", nil, []byte(job))
	os.Exit(1)
}

// TestHelper_ParentKilled: if a parent is killed, its helper ends too: while it is busy, and while it is stopped, when
// only a KILL can end it.
func TestHelper_ParentKilled(t *testing.T) {
	tests := []struct {
		name, job string
		stop      bool
	}{
		{"spinning", "spin", false},
		{"collecting garbage", "collect", false},
		{"in one long call", "match", false},
		{"stopped", "spin", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			middle, pid := startMiddle(t, tt.job)
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

// awaitEnd returns when the process of a pidfd has ended.
func awaitEnd(t *testing.T, fd int) {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 120_000)
		if n == 1 {
			return
		}
		if err != unix.EINTR {
			t.Fatalf("the helper lives after its parent: %v", err)
		}
	}
}

// startMiddle starts a process that is a parent with a helper, and returns the pid of the helper. The parent is reaped
// at the end of the test.
func startMiddle(t *testing.T, job string) (*exec.Cmd, int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), middleVar+"="+job)
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

// spinning returns when a process has used a tenth of a second of CPU time.
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
		if utime >= 10 { // clock ticks of 10 ms
			return
		}
	}
	t.Fatal("the helper does not spin")
}

// TestHelper_Process: a helper process has no environment of its parent, the root as its working folder, its own name
// and process group, and pipes as stdin and stdout.
func TestHelper_Process(t *testing.T) {
	t.Setenv("HELPER_TEST_SECRET", "sesame")
	p := newPool(t, patient)
	pid := warm(t, p).process.PID()
	if got := do(t, p, nil, "surroundings"); got != "[] /" {
		t.Errorf("a worker sees %s, want no environment and /", got)
	}
	proc := fmt.Sprintf("/proc/%d/", pid)
	environ, err := os.ReadFile(proc + "environ")
	if err != nil {
		t.Fatal(err)
	}
	want := roleEnv(testRole, patient) + "\x00GOTRACEBACK=none\x00MCPX_CHILD="
	if !strings.HasPrefix(string(environ), want) || bytes.Count(environ, []byte("\x00")) != 3 {
		t.Errorf("the environment is %q, want %q and what marks a child", environ, want)
	}
	if dir, err := os.Readlink(proc + "cwd"); err != nil || dir != "/" {
		t.Errorf("the directory is %q, %v, want /", dir, err)
	}
	for file, want := range map[string]string{"comm": "mcpx-test\n", "cmdline": "mcpx-test\x00"} {
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

// TestPool_Leaks: a closed pool leaves no file descriptor open and no child running.
func TestPool_Leaks(t *testing.T) {
	before := descriptors(t)
	for range 3 {
		p := newPool(t, patient)
		pid := warm(t, p).process.PID()
		for _, job := range []string{"grow", "panic", "exit 1", "write x", "echo"} {
			p.Do(t.Context(), "", nil, []byte(job))
		}
		warm(t, p)
		p.Close()
		if err := unix.Kill(pid, 0); err != unix.ESRCH {
			t.Errorf("a killed helper is still there: %v", err)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("descriptors before:\n%s\nafter:\n%s", before, after)
	}
}

// descriptors lists the open file descriptors of this process. It leaves out epoll and event descriptors, which the Go
// runtime opens once and keeps.
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
