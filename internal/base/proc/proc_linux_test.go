package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// exists reports whether a process runs. A zombie does not run.
func exists(pid int) bool {
	m, ok := readMember(pid, make([]byte, 1024))
	return ok && m.state != zombie
}

// zombies counts the children of this process that are zombies.
func zombies(*testing.T) int {
	return len(find(func(m member) bool { return m.state == zombie && m.parent == os.Getpid() }))
}

// marked returns the running processes whose environment contains the mark.
func marked(mark string) []member {
	return find(func(m member) bool { return m.state != zombie && carries(m.pid, mark) })
}

// TestReaper_AfterSIGKILLWhileStarting: a process is killed while it starts children, in each round at another moment.
// No child may survive, not even one that was forked but not yet registered with the reaper.
func TestReaper_AfterSIGKILLWhileStarting(t *testing.T) {
	for round := range 12 {
		cmd, out := spawn(t, "storm")
		out.Scan()
		var token string
		if _, err := fmt.Sscanf(out.Text(), "token %s", &token); err != nil {
			t.Fatal(err)
		}
		for range 2 + round {
			out.Scan()
		}
		cmd.Process.Kill()
		begin := time.Now()
		eventually(t, slack, "everything that carries the token is gone", func() bool {
			return len(marked(token)) == 0
		})
		t.Logf("round %d: gone after %v", round, time.Since(begin))
		cmd.Wait()
	}
}

// TestReaper_IgnoresSignals: signals that end mcpx, and signals from the terminal, do not end the reaper.
func TestReaper_IgnoresSignals(t *testing.T) {
	r := NewReaper()
	p := start(t, "ignore-term", r)
	readLine(p.Stdout())
	reaper := r.link.proc.Pid
	eventually(t, slack, "the reaper ignores signals", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", reaper))
		if err != nil {
			return false
		}
		var mask uint64
		_, list, _ := strings.Cut(string(b), "SigIgn:")
		fmt.Sscanf(list, "%x", &mask)
		return mask&(1<<(syscall.SIGPIPE-1)) != 0 // the last signal that the reaper starts to ignore
	})
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if err := syscall.Kill(reaper, sig); err != nil {
			t.Fatal(err)
		}
	}
	closeWithin(t, p, short, slack)
	if got := r.link.proc.Pid; got != reaper || !exists(reaper) {
		t.Error("a signal ended the reaper")
	}
	begin := time.Now()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("the reaper ended %v after its pipe was closed", time.Since(begin))
	if err := r.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := Start(Spec{Command: "/bin/sh"}, r); err == nil {
		t.Error("starting a child with a closed reaper: no error")
	}
}

func TestReaper_Memory(t *testing.T) {
	r := NewReaper()
	defer r.Close()
	p := start(t, "echo", r)
	fmt.Fprintln(p.Stdin(), "x")
	readLine(p.Stdout())
	var rss, threads int
	eventually(t, slack, "the reaper has its name", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.link.proc.Pid))
		if err != nil || !strings.Contains(string(b), "mcpx-reaper") {
			return false
		}
		for line := range strings.Lines(string(b)) {
			fmt.Sscanf(line, "VmRSS: %d kB", &rss)
			fmt.Sscanf(line, "Threads: %d", &threads)
		}
		return rss > 0
	})
	t.Logf("the reaper: %d kB resident, %d threads", rss, threads)
	if rss > 6<<10 && !raceEnabled {
		t.Errorf("the reaper has %d kB resident, want less than 6 MB", rss)
	}
}

func TestReadMember(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", `printf ') R 1 (' >/proc/self/comm; read x`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	eventually(t, slack, "the child has its name", func() bool {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
		return string(b) == ") R 1 (\n"
	})
	m, ok := readMember(cmd.Process.Pid, make([]byte, 8))
	sid, _ := unix.Getsid(0)
	if !ok || m.parent != os.Getpid() || m.session != sid || m.group != unix.Getpgrp() || m.born == 0 {
		t.Errorf("got %+v, %v", m, ok)
	}
	if _, ok := readMember(1<<30, nil); ok {
		t.Error("a process that cannot be was found")
	}
}

// TestCarries: the mark of one child must not be found in the environment of another.
func TestCarries(t *testing.T) {
	r := NewReaper()
	var marks []string
	for range 12 {
		marks = append(marks, r.mark())
	}
	cmd := exec.Command("/bin/cat")
	cmd.Env = []string{"OTHER=" + markVar + "=" + marks[0], markVar + "=" + marks[10]}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	// For a moment after its exec, a process has no environment yet.
	eventually(t, slack, "its mark is found", func() bool { return carries(cmd.Process.Pid, marks[10]) })
	for i, mark := range marks {
		if got, want := carries(cmd.Process.Pid, mark), i == 10; got != want {
			t.Errorf("mark %d: carried %v, want %v", i+1, got, want)
		}
	}
	if !carries(cmd.Process.Pid, r.token+".") {
		t.Error("the token is not found")
	}
}

// TestReaper_AdoptedZombies: if this process adopts orphans, their zombies are reaped while the child runs and when the child is
// closed. Children that other code waits for are not reaped.
func TestReaper_AdoptedZombies(t *testing.T) {
	_, out := spawn(t, "subreaper")
	for out.Scan() {
		if line := out.Text(); line != "ok" {
			t.Error(line)
		} else {
			return
		}
	}
	t.Error("no result")
}

var platformModes = map[string]func(){"subreaper": subreaper}

// subreaper adopts orphans as an init process does. It prints what goes wrong and, if it gets to its end, "ok".
func subreaper() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Println(err)
		return
	}
	r := NewReaper()
	// The shell leaves five orphans that end at once, and one in the child's group that lives until Close.
	sh := "for i in 1 2 3 4 5; do (setsid sh -c 'exit 0' & ) ; done; (sleep 60 &) ; echo ready; read x"
	p, err := Start(Spec{Command: "/bin/sh", Args: []string{"-c", sh}, Env: Environment(os.Environ(), nil)}, r)
	if err != nil {
		fmt.Println(err)
		return
	}
	readLine(p.Stdout())
	// Children that another package starts must keep their exit status.
	for range 20 {
		if err := exec.Command("/bin/sh", "-c", "exit 4").Run(); err == nil || err.Error() != "exit status 4" {
			fmt.Println("a child of os/exec:", err)
		}
	}
	for range 20 {
		p, err := Start(Spec{Command: "/bin/sh", Args: []string{"-c", "exit 5"}}, r)
		if err != nil {
			fmt.Println(err)
			return
		}
		if <-p.Done(); p.ExitReason() != "exit status 5" {
			fmt.Println("a child of ours:", p.ExitReason())
		}
	}
	own := func(m member) bool { return m.parent == os.Getpid() && m.state == zombie }
	for limit := time.Now().Add(slack); len(find(own)) > 0; <-time.After(pollMin) {
		if time.Now().After(limit) {
			fmt.Println("zombies while the child runs:", find(own))
			return
		}
	}
	if err := p.Close(context.Background(), short); err != nil {
		fmt.Println(err)
	}
	if left := find(own); len(left) > 0 {
		fmt.Println("zombies after Close:", left)
	}
	if err := r.Close(); err != nil {
		fmt.Println(err)
	}
	fmt.Println("ok")
}
