//go:build linux || darwin

package proc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// modeVar is an environment variable that makes this test binary a child. Its value is one of the keys of modes.
const modeVar = "PROC_TEST_MODE"

// modes are the functions that this test binary runs as a child. A child that must be set up before the test goes on prints a
// line once it is.
var modes = map[string]func(){
	"echo": func() { io.Copy(os.Stdout, os.Stdin) },
	// move does what each line of stdin says, and prints "done" after each.
	"move": func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			switch in.Text() {
			case "say":
				fmt.Fprint(os.Stderr, "half a line")
			case "burn":
				burn()
			case "fork":
				parent(nil)
			case "fork-setsid":
				parent(&syscall.SysProcAttr{Setsid: true})
			}
			fmt.Println("done")
		}
	},
	"fail": func() {
		fmt.Fprint(os.Stderr, "loading\nerror: no token\n")
		os.Exit(3)
	},
	"ignore-eof": func() {
		fmt.Println("ready")
		linger()
	},
	"ignore-term": func() {
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		os.NewFile(3, "ready").Close() // tells the function parent that TERM is ignored
		linger()
	},
	"deaf": func() {
		fmt.Println("ready")
		linger()
	},
	"stopped": func() {
		fmt.Println("ready")
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		linger()
	},
	"flood": func() {
		line := strings.Repeat("noise ", 100) + "\n"
		go func() {
			for {
				os.Stderr.WriteString(line)
			}
		}()
		io.Copy(os.Stdout, os.Stdin)
	},
	"quiet-on-term": func() { // on TERM, prints "bye" and exits with status 0
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		fmt.Println("bye")
	},
	"flags": func() {
		for fd := range 3 {
			flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
			fmt.Printf("%d nonblocking=%v\n", fd, flags&unix.O_NONBLOCK != 0)
		}
	},
	"crash-on-line": func() {
		bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(7)
	},
	// In the modes that begin with "parent", the child starts a grandchild, which ignores TERM and prints "ready";
	// then the child prints the grandchild's pid, and ends when stdin is closed. In the modes that begin with "leave",
	// it ends at once.
	"parent":       func() { parent(nil); io.Copy(io.Discard, os.Stdin) },
	"parent-setpg": func() { parent(&syscall.SysProcAttr{Setpgid: true}); io.Copy(io.Discard, os.Stdin) },
	"parent-setsid": func() {
		parent(&syscall.SysProcAttr{Setsid: true})
		io.Copy(io.Discard, os.Stdin)
	},
	"parent-setpg-unmarked": func() {
		os.Unsetenv(markVar)
		parent(&syscall.SysProcAttr{Setpgid: true})
		io.Copy(io.Discard, os.Stdin)
	},
	"parent-setsid-unmarked": func() {
		os.Unsetenv(markVar)
		parent(&syscall.SysProcAttr{Setsid: true})
		io.Copy(io.Discard, os.Stdin)
	},
	"leave":        func() { parent(nil) },
	"leave-setsid": func() { parent(&syscall.SysProcAttr{Setsid: true}) },
	"middle":       middle,
	"storm":        storm,
}

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVar); mode != "" {
		if run := modes[mode]; run != nil {
			run()
		} else {
			platformModes[mode]()
		}
		return
	}
	os.Exit(m.Run())
}

// linger waits for ten minutes. The test kills the process earlier; the limit is for tests that fail to do so.
func linger() { <-time.After(10 * time.Minute) }

// self returns the environment that makes this test binary a child in the given mode.
func self(mode string) []string {
	return Environment(os.Environ(), map[string]string{
		modeVar:  mode,
		"GORACE": "atexit_sleep_ms=0", // otherwise the race detector delays the exit by a second
	})
}

// burn uses 50 ms of CPU time, which is five clock ticks.
func burn() {
	used := func() time.Duration {
		var u unix.Rusage
		unix.Getrusage(unix.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for end := used() + 50*time.Millisecond; used() < end; {
	}
}

// parent starts a grandchild that ignores TERM. It returns once the grandchild ignores TERM.
func parent(attr *syscall.SysProcAttr) {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(without(os.Environ(), modeVar), modeVar+"=ignore-term")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // the grandchild holds our stdout and stderr open
	cmd.SysProcAttr = attr
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	w.Close()
	r.Read(make([]byte, 1)) // returns once the grandchild ignores TERM
	fmt.Println("grandchild", cmd.Process.Pid)
}

// middle starts children of several kinds, prints the pids of all processes that must die when middle is killed, and
// waits.
func middle() {
	r := NewReaper()
	kinds := []string{"echo", "ignore-term", "parent", "deaf", "flood"}
	if runtime.GOOS == "linux" {
		kinds = append(kinds, "parent-setpg", "parent-setpg-unmarked", "parent-setsid")
	}
	for _, mode := range kinds {
		p := mustStart(mode, r)
		fmt.Println("child", p.PID())
		if strings.HasPrefix(mode, "parent") {
			readLine(p.Stdout())
			fmt.Println(readLine(p.Stdout()))
		}
	}
	fmt.Println("reaper", r.link.proc.Pid)
	fmt.Println("ready")
	linger()
}

// storm starts children as fast as it can, until it is killed.
func storm() {
	r := NewReaper()
	fmt.Println("token", r.token)
	for range 2 {
		go func() {
			for {
				p := mustStart("parent", r)
				fmt.Println("child", p.PID())
			}
		}()
	}
	linger()
}

func mustStart(mode string, r *Reaper) *Process {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	p, err := Start(Spec{Command: exe, Env: self(mode)}, r)
	if err != nil {
		panic(err)
	}
	return p
}

// readLine reads one line, byte by byte, so that it reads nothing after the line.
func readLine(r io.Reader) string {
	var line []byte
	b := make([]byte, 1)
	for {
		if _, err := io.ReadFull(r, b); err != nil || b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}
