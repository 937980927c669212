//go:build linux || darwin

package proc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// spawn starts the test binary in a mode with os/exec, not with this package.
func spawn(t *testing.T, mode string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = self(mode)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
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
	return cmd, bufio.NewScanner(out)
}

func TestReaper_AfterSIGKILL(t *testing.T) {
	cmd, out := spawn(t, "middle")
	pids := make(map[int]string)
	for out.Scan() && out.Text() != "ready" {
		var kind string
		var pid int
		if _, err := fmt.Sscan(out.Text(), &kind, &pid); err != nil {
			t.Fatalf("%q: %v", out.Text(), err)
		}
		pids[pid] = kind
	}
	if len(pids) < 7 { // five children, a grandchild, the reaper
		t.Fatalf("only %v were started", pids)
	}
	for pid, kind := range pids {
		if !exists(pid) {
			t.Fatalf("%s %d is not there", kind, pid)
		}
	}
	// The signal goes to the whole process group, as some MCP clients do it.
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	begin := time.Now()
	for pid, kind := range pids {
		eventually(t, slack, fmt.Sprintf("the end of %s %d", kind, pid), func() bool { return !exists(pid) })
	}
	t.Logf("%d processes were gone after %v", len(pids), time.Since(begin))
}

// TestReaper_Replaced: if the reaper is killed or stopped, it is replaced. The new reaper has the same groups on its
// list.
func TestReaper_Replaced(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		t.Run(sig.String(), func(t *testing.T) {
			r := NewReaper()
			// The first child removes its mark, so only the list of groups can lead to it.
			sh := "exec env -u " + markVar + " sh -c 'echo ready; exec sleep 60'"
			first, err := Start(Spec{Command: "/bin/sh", Args: []string{"-c", sh}, Env: Environment(os.Environ(), nil)}, r)
			if err != nil {
				t.Fatal(err)
			}
			defer first.Close(t.Context(), short)
			readLine(first.Stdout())
			old := r.link
			old.proc.Signal(sig)
			if sig == syscall.SIGKILL {
				<-old.done
			} else {
				// The reaper does not read any more. We fill its pipe, so that the next write fails.
				old.pipe.SetWriteDeadline(time.Now().Add(time.Second))
				old.pipe.Write(make([]byte, 1<<20))
			}
			second := start(t, "ignore-term", r)
			readLine(second.Stdout())
			r.mu.Lock()
			current := r.link
			r.mu.Unlock()
			if current == nil || current == old {
				t.Fatal("the reaper was not replaced")
			}
			<-old.done
			if !exists(first.PID()) {
				t.Fatal("the old reaper's end cost a child")
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			for _, p := range []*Process{first, second} {
				select {
				case <-p.Done():
				case <-time.After(slack):
					t.Errorf("child %d outlived the reaper's pipe", p.PID())
				}
			}
		})
	}
}

func TestReaper_ForgetsWhatEnded(t *testing.T) {
	r := NewReaper()
	p := start(t, "fail", r)
	<-p.Done()
	if len(r.groups) != 0 {
		t.Errorf("on the list: %v, want nothing", r.groups)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestListen(t *testing.T) {
	tests := []struct {
		name, in string
		want     map[int]bool
	}{
		{"empty", "", map[int]bool{}},
		{"added and removed", "+12\n+13\n-12\n", map[int]bool{13: true}},
		{"nonsense", "+1\n+0\n+-5\n+x\n\n12\n-\n+14\n", map[int]bool{14: true}},
		{"cut off", "+12\n+13", map[int]bool{12: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			go func() { // byte by byte, so that lines arrive in pieces
				for _, b := range []byte(tt.in) {
					w.Write([]byte{b})
				}
				w.Close()
			}()
			got := listen(int(r.Fd()))
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	t.Run("many", func(t *testing.T) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		go func() {
			for id := 1000; id < 21000; id++ {
				fmt.Fprintf(w, "+%d\n", id)
				if id%2 == 0 {
					io.WriteString(w, fmt.Sprintf("-%d\n", id))
				}
			}
			w.Close()
		}()
		if got := len(listen(int(r.Fd()))); got != 10000 {
			t.Errorf("%d groups, want 10000", got)
		}
	})
}
