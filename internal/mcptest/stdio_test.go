package mcptest

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStdio_EndsAtEOF(t *testing.T) {
	NoLeaks(t)
	s := Spec{Name: "good", Instructions: "Say echo."}.WithFiles(t)
	c, cmd, _ := child(t, s)
	if r := c.handshake(); !strings.Contains(r.raw, `"name":"good"`) || !strings.Contains(r.raw, "Say echo.") {
		t.Errorf("initialize answered %s", r.raw)
	}
	c.call(1, "echo", `{"text":"hi"}`)
	if got := textOf(t, c.answer("1")); got != "hi" {
		t.Errorf("echo answered %q", got)
	}
	c.in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	log := s.Log(t)
	if len(log.Calls("echo")) != 1 || len(log.Event(EventEOF)) != 1 || len(log.Event(EventExit)) != 1 || len(log.Event(EventAnswer)) != 2 {
		t.Errorf("log: %+v", log)
	}
	if log.Method("tools/call")[0].Tool != "echo" || log[0].PID != cmd.Process.Pid {
		t.Errorf("log: %+v", log)
	}
}

func TestStdio_ExitAtOnce(t *testing.T) {
	NoLeaks(t)
	s := Spec{ExitAtOnce: true, ExitCode: 7, StderrLines: []string{"no such key", "giving up"}}
	c, cmd, stderr := child(t, s)
	<-c.done
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 7 {
		t.Errorf("exit code %d, want 7", got)
	}
	if got := stderr.String(); got != "no such key\ngiving up\n" {
		t.Errorf("stderr %q", got)
	}
}

func TestStdio_FailStarts(t *testing.T) {
	NoLeaks(t)
	s := Spec{FailStarts: 2, ExitCode: 3}.WithFiles(t)
	for start := range 3 {
		c, cmd, _ := child(t, s)
		if start < 2 {
			<-c.done
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != 3 {
				t.Errorf("start %d: exit code %d, want 3", start, got)
			}
			continue
		}
		c.handshake()
	}
	if got := len(s.Pids(t)); got != 3 {
		t.Errorf("%d processes in PidFile, want 3", got)
	}
}

func TestStdio_Crash(t *testing.T) {
	NoLeaks(t)
	for _, args := range []string{`{}`, `{"partial":true}`} {
		s := Spec{ExitCode: 9}.WithFiles(t)
		c, cmd, _ := child(t, s)
		c.handshake()
		c.call(1, "crash", args)
		rest := c.line()
		if partial := strings.HasPrefix(rest, `{"jsonrpc"`); partial != strings.Contains(args, "partial") || strings.HasSuffix(rest, "}") {
			t.Errorf("crash %s wrote %q", args, rest)
		}
		<-c.done
		cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != 9 {
			t.Errorf("exit code %d, want 9", got)
		}
		if log := s.Log(t); len(log.Calls("crash")) != 1 || len(log.Event(EventAnswer)) != 1 {
			t.Errorf("log: %+v", log)
		}
	}
}

func TestStdio_CrashFile(t *testing.T) {
	NoLeaks(t)
	file := filepath.Join(t.TempDir(), "crash")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := Spec{CrashFile: file}
	for attempt := range 2 {
		c, cmd, _ := child(t, s)
		c.handshake()
		c.call(1, "read_echo", `{"text":"again"}`)
		if attempt == 0 {
			<-c.done
			cmd.Wait()
			continue
		}
		if got := textOf(t, c.answer("1")); got != "again" {
			t.Errorf("the second attempt answered %q", got)
		}
	}
}

func TestStdio_IgnoresTERMAndEOF(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals on Windows")
	}
	NoLeaks(t)
	s := Spec{IgnoreTERM: true, IgnoreEOF: true}.WithFiles(t)
	c, cmd, _ := child(t, s)
	c.handshake()
	c.in.Close()
	WaitFor(t, "EOF", patience, func() bool { return len(s.Log(t).Event(EventEOF)) == 1 })
	cmd.Process.Signal(syscall.SIGTERM)
	WaitFor(t, "TERM", patience, func() bool { return len(s.Log(t).Event(EventTERM)) == 1 })
	if !Alive(cmd.Process.Pid) {
		t.Error("the fake ended")
	}
	cmd.Process.Kill()
	cmd.Wait()
	if len(s.Log(t).Event(EventExit)) != 0 {
		t.Error("the fake ended by itself")
	}
}

func TestStdio_TERM(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals on Windows")
	}
	NoLeaks(t)
	c, cmd, _ := child(t, Spec{})
	c.handshake()
	cmd.Process.Signal(syscall.SIGTERM)
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 143 {
		t.Errorf("exit code %d, want 143", got)
	}
}

func TestStdio_Grandchild(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals on Windows")
	}
	NoLeaks(t)
	for _, holds := range []bool{false, true} {
		s := Spec{ForkGrandchild: true, GrandchildHoldsPipes: holds}.WithFiles(t)
		c, cmd, _ := child(t, s)
		c.handshake()
		pids := s.Pids(t)
		if len(pids) != 2 || pids[0].Role != "grandchild" || pids[1].PID != cmd.Process.Pid {
			t.Fatalf("PidFile: %+v", pids)
		}
		c.in.Close()
		if !holds {
			<-c.done
			cmd.Wait()
		} else {
			cmd.Process.Wait()
			select {
			case <-c.done:
				t.Error("the output ended although the grandchild holds it")
			default:
			}
		}
		if !Alive(pids[0].PID) {
			t.Error("the grandchild did not live on")
		}
		if p, err := os.FindProcess(pids[0].PID); err == nil {
			p.Kill()
		}
		<-c.done
		cmd.Wait()
		WaitFor(t, "the grandchild to end", patience, func() bool { return !Alive(pids[0].PID) })
	}
}

func TestStdio_StderrFlood(t *testing.T) {
	NoLeaks(t)
	const flood = 1 << 20
	c, _, stderr := child(t, Spec{StderrFlood: flood})
	c.handshake()
	WaitFor(t, "the whole flood", patience, func() bool { return len(stderr.String()) == flood })
	c, _, stderr = child(t, Spec{StderrFlood: -1})
	c.handshake()
	WaitFor(t, "an endless flood", patience, func() bool { return len(stderr.String()) > 1<<20 })
}

func TestStdio_NeverReadStdin(t *testing.T) {
	NoLeaks(t)
	s := Spec{NeverReadStdin: true}.WithFiles(t)
	c, cmd, _ := child(t, s)
	c.handshake()
	c.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	c.answer("1")
	written := make(chan struct{})
	go func() {
		defer close(written)
		line := strings.Repeat("x", 1<<20) + "\n"
		c.in.Write([]byte(line)) // more than fits into the pipe and the fake's buffer
	}()
	select {
	case <-written:
		t.Error("1 MiB fit into a pipe that nobody reads")
	case <-time.After(200 * time.Millisecond):
	}
	if got := len(s.Log(t).Event(EventMessage)); got != 3 {
		t.Errorf("%d messages were read, want 3", got)
	}
	cmd.Process.Kill()
	cmd.Wait()
	<-written
}

func TestStdio_ExitOnDiscover(t *testing.T) {
	NoLeaks(t)
	c, cmd, _ := child(t, Spec{ExitOnDiscover: true, ExitCode: 5})
	c.modern(1, "server/discover", "")
	<-c.done
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 5 {
		t.Errorf("exit code %d, want 5", got)
	}
	c, _, _ = child(t, Spec{ExitOnDiscover: true, Version: "2024-10-07"})
	if r := c.handshake(); !strings.Contains(r.raw, `"protocolVersion":"2024-10-07"`) {
		t.Errorf("initialize answered %s", r.raw)
	}
}

// TestStdio_BoundedLife: a fake ends even if the test run that has started it was interrupted.
func TestStdio_BoundedLife(t *testing.T) {
	NoLeaks(t)
	c, cmd, _ := child(t, Spec{MaxLife: 10 * time.Millisecond})
	<-c.done
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 4 {
		t.Errorf("MaxLife: exit code %d, want 4", got)
	}
	if runtime.GOOS == "windows" {
		return
	}
	orphan := Spec{}.Command(t)
	gone := cmd.Process.Pid
	for i, v := range orphan.Env {
		if name, _ := Mark(); strings.HasPrefix(v, name+"=") {
			orphan.Env[i] = name + "=" + strconv.Itoa(gone)
		}
	}
	stdin, err := orphan.StdinPipe() // stays open, so the fake ends only because its owner is missing
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	killed := time.AfterFunc(patience, func() { orphan.Process.Kill() })
	defer killed.Stop()
	orphan.Wait()
	if got := orphan.ProcessState.ExitCode(); got != 4 {
		t.Errorf("without an owner: exit code %d, want 4", got)
	}
}
