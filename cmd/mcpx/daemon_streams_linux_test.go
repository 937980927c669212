package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mcpx/internal/mcptest"
)

// pseudoTerminal returns a terminal and the other end of it.
func pseudoTerminal(t testing.TB) (typist, screen *os.File) {
	t.Helper()
	typist, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { typist.Close() })
	fd := int(typist.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		screen, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	t.Cleanup(func() { screen.Close() })
	return typist, screen
}

// TestDaemon_ClosedPipe: a command whose output nobody reads, as before "| head", ends without a word.
func TestDaemon_ClosedPipe(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	for _, args := range [][]string{{"exec", "fake", "echo", "text=hi"}, {"status"}} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		read.Close()
		cmd := h.command(t, append(args, "--config", config)...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = write, &stderr
		_ = cmd.Run()
		write.Close()
		if code := cmd.ProcessState.ExitCode(); code != exitPipe || stderr.Len() > 0 {
			t.Errorf("%s: exit %d, %s", args, code, stderr.String())
		}
	}
}

// TestDaemon_ExecHangUp: a hangup, as at the end of a terminal, ends a call.
func TestDaemon_ExecHangUp(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	spec := mcptest.Spec{}.WithFiles(t)
	config := h.config(t, map[string]server{"fake": fake(t, spec)}, nil)
	cmd := h.command(t, "--config", config, "exec", "fake", "slow", "ms=3600000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	mcptest.WaitFor(t, "the call", patience, func() bool { return len(spec.Log(t).Calls("slow")) == 1 })
	_ = cmd.Process.Signal(syscall.SIGHUP)
	mcptest.WaitFor(t, "the cancellation", patience, func() bool { return len(spec.Log(t).Event(mcptest.EventCancel)) == 1 })
	_ = cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGHUP {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}

// TestDaemon_Typed: what was typed at a terminal is there for a command that gets no daemon and works by itself.
func TestDaemon_Typed(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	h.run(t, "", "--config", config, "exec", "fake", "pid")
	defer h.stopDaemon(t)()
	typist, screen := pseudoTerminal(t)
	if _, err := typist.WriteString("{\"text\":\n\"typed\"}\n\x04"); err != nil {
		t.Fatal(err)
	}
	cmd := h.command(t, "--config", config, "exec", "fake", "echo", "-")
	cmd.Stdin = screen
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "typed" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestHandable_Lost: a command at a terminal ends after it has lost its daemon, also if the daemon was only stopped and still
// has its end of the pipe. What it had written before is shown.
func TestHandable_Lost(t *testing.T) {
	typist, screen := pseudoTerminal(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	files, done, err := handable(streams{in: null, out: screen, err: screen})
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(files[1].Fd()))
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fd)
	daemons := os.NewFile(uintptr(fd), "the daemon's")
	defer daemons.Close()
	if _, err := daemons.WriteString("written\n"); err != nil {
		t.Fatal(err)
	}
	done(true)
	line := make([]byte, len("written"))
	if _, err := io.ReadFull(typist, line); err != nil || string(line) != "written" {
		t.Errorf("%v: %q", err, line)
	}
}

// TestDaemon_Rights: a session whose servers would have fewer rights than the daemon has, as in some sandboxes, serves by itself.
func TestDaemon_Rights(t *testing.T) {
	mcptest.Parallel(t)
	if out, err := exec.Command("setpriv", "--no-new-privs", "true").CombinedOutput(); err != nil {
		t.Skipf("there is no setpriv: %v %s", err, out)
	}
	h := newDesk(t)
	config := h.config(t, map[string]server{}, nil)
	h.run(t, "", "--config", config)
	cmd := exec.Command("setpriv", "--no-new-privs", binary(t), "--config", config)
	cmd.Env, cmd.Stdin = h.env(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `"id":1,"result"`) || !strings.Contains(string(out), "other rights") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestDaemon_ConfigDeleted: the daemon of a config file that is gone can be looked at and stopped.
func TestDaemon_ConfigDeleted(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	config := h.config(t, map[string]server{}, nil)
	h.run(t, "", "--config", config)
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	if out, stderr, code := h.run(t, "", "--config", config, "status"); code != 0 || !strings.Contains(out, "0 sessions, 0 processes of servers") {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
	if _, stderr, code := h.run(t, "", "--config", config, "stop"); code != 0 || len(h.daemons(t)) != 0 {
		t.Errorf("exit %d, %s", code, stderr)
	}
	if _, stderr, code := h.run(t, "", "--config", config, "status"); code != exitConfig || !strings.Contains(stderr, "not found") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestDaemon_Inherited: what else was open in the command that starts the daemon, such as a script's lock, does not stay open.
func TestDaemon_Inherited(t *testing.T) {
	mcptest.Parallel(t)
	h := newDesk(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := h.command(t, "--config", h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil), "exec", "fake", "pid")
	cmd.ExtraFiles = []*os.File{write, write, write}
	err = cmd.Run()
	write.Close()
	if pids := h.daemons(t); err != nil || len(pids) != 1 {
		t.Fatalf("%v, daemons: %v", err, pids)
	}
	_ = read.SetReadDeadline(time.Now().Add(patience))
	if n, err := read.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the pipe is still open: %v", err)
	}
}
