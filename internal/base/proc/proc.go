// Package proc starts child processes, each in a group of its own, and makes sure of
// their end: when they are closed, when they crash, and when this process is killed. It
// imports nothing of mcpx.
//
// # Who is reached
//
// A child leads a session, and with it a process group, of its own. So a terminal
// signal meant for us does not reach it, a program that asks on /dev/tty gets an error
// instead of being stopped for ever, and its session id holds together every descendant
// that did not call setsid, also those that moved to another group (shells with job
// control, timeout). Signals go to the group; on Linux also to the rest of the session
// and to every process whose environment carries the child's mark (an added variable,
// MCPX_CHILD), which reaches daemons that did call setsid. Out of reach are: a daemon
// that left the session and dropped (env -u MCPX_CHILD, for one that is meant to stay)
// or overwrote its environment, what runs under another user (sudo), and what another
// program starts on the child's behalf (containers). On darwin it is the group alone.
//
// # Why no number is ever signalled that was used again
//
// The end of the child is observed without reaping it. As long as it is a zombie the
// kernel gives its number to no other process, group or session. One goroutine does, in
// this order: send all signals, take the group off the reaper's list, reap the child.
// Single processes found in /proc are signalled through a pidfd and looked at again
// after it is open. What remains: we are killed after a child ended and before it was
// taken off the list; init reaps it, and the reaper signals the number a moment later.
// For harm the number must be given out again, to a new group leader, within that
// moment.
//
// # When we are killed
//
// A reaper (see Reaper) outlives us for a moment and kills what is left. There is no
// Pdeathsig: it is bound to the thread that forked, so a child would die when the Go
// runtime ends that thread, and it reaches no grandchild. It would only close the gap
// between the fork of a child and its registration. On Linux the mark closes it: until
// its exec the new child holds a copy of our end of the reaper's pipe, so the reaper
// sees our end only when the child has its environment. On darwin that gap, some
// microseconds, remains.
//
// On Windows a job object which ends with our last handle does all of this.
package proc

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// markVar is the variable that marks a child and all that inherit from it. Its value is
// unique for the child and begins with the reaper's token.
const markVar = "MCPX_CHILD"

// ErrNotFound is the cause when a command without a slash is in no folder of PATH.
var ErrNotFound = errors.New("executable file not found in PATH")

// Spec is what to start.
type Spec struct {
	// Command is a path, or a name that is looked for in the PATH of Env. A relative
	// path with a slash is relative to Dir.
	Command string
	// Name is what ps and errors call the child; empty means Command.
	Name string
	Args []string
	// Env is the whole environment, KEY=VALUE; see Environment. MCPX_CHILD is added.
	Env []string
	// Dir is the working folder; empty means ours.
	Dir string
	// StderrBytes is how much of the end of stderr is kept; 0 means 64 KiB.
	StderrBytes int
	// OnStderr, when not nil, gets each line of stderr, valid UTF-8 and without its
	// end, at most 8 KiB long (longer ones come in pieces). It is called from one
	// goroutine and must not block: the child waits for it.
	OnStderr func(line string)
}

// Process is a running or ended child. Whoever started it must Close it, also after it
// ended by itself. All methods are safe for concurrent use.
type Process struct {
	name   string // for errors
	proc   *os.Process
	group  *group
	reaper *Reaper

	stdin  *input
	stdout *output
	stderr *tail

	ending *ending
	seen   movements

	exited   chan struct{} // the child ended; it is still a zombie
	done     chan struct{} // the child is reaped, its stderr read
	stuck    chan struct{} // something outlived SIGKILL; err is set
	finished chan struct{} // done, and all descriptors are closed

	err    error            // written before stuck is closed
	state  *os.ProcessState // written before done is closed, nil where that failed
	reason string           // as state
}

// Start starts a child and, when r is not nil, has it registered there before it
// returns. The error names the command and what to do about it; its cause is
// ErrNotFound, fs.ErrNotExist or fs.ErrPermission where that is the matter.
func Start(s Spec, r *Reaper) (*Process, error) {
	s.Name = cmp.Or(s.Name, s.Command)
	path, err := lookup(s)
	if err != nil {
		return nil, fmt.Errorf("starting %q: %w", s.Name, err)
	}
	pipes, err := newPipes()
	if err != nil {
		return nil, fmt.Errorf("starting %q: %w", s.Name, err)
	}
	mark := r.mark()
	attr := &os.ProcAttr{
		Dir:   s.Dir,
		Env:   append(without(s.Env, markVar), markVar+"="+mark),
		Files: pipes.child(),
		Sys:   sysProcAttr(),
	}
	argv := append([]string{s.Name}, s.Args...)
	var g *group
	proc, err := r.launch(func() (*os.Process, error) {
		proc, err := os.StartProcess(path, argv, attr)
		if err != nil {
			return nil, startError(s, path, err)
		}
		g, err = newGroup(proc, mark)
		return proc, err
	})
	pipes.closeChild()
	if err != nil {
		pipes.closeParent()
		return nil, fmt.Errorf("starting %q: %w", s.Name, err)
	}
	p := &Process{
		name:     s.Name,
		proc:     proc,
		group:    g,
		reaper:   r,
		stdin:    &input{f: pipes.stdin[1]},
		stdout:   newOutput(pipes.stdout[0]),
		stderr:   newTail(s.StderrBytes),
		ending:   newEnding(),
		exited:   make(chan struct{}),
		done:     make(chan struct{}),
		stuck:    make(chan struct{}),
		finished: make(chan struct{}),
	}
	p.run(newOutput(pipes.stderr[0]), s.OnStderr)
	return p, nil
}

// run starts the three goroutines of a process. supervise waits for the other two;
// Close waits for supervise. Without a Close it ends after the child did.
func (p *Process) run(stderr *output, onLine func(string)) {
	go func() {
		p.group.watch()
		close(p.exited)
	}()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		drain(stderr, p.stderr, &p.seen.stderr, onLine, p.exited)
	}()
	go p.supervise(stderr, drained)
}

// Stdin is our end of the child's standard input. Close of it frees a writer whose child
// never reads.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout is our end of the child's standard output. It reads io.EOF when the child
// ended and everything it wrote was read. A process that inherited the pipe and
// outlives the child can hold it open for at most half a second after Done.
func (p *Process) Stdout() io.Reader { return p.stdout }

// Done is closed when the child has ended, by itself or through Close, and has been
// reaped; by then the ExitReason is known and StderrTail has its last words. When a
// child ends by itself and leaves others of its group behind, these get TERM, and KILL
// 200 ms later, and Done waits for that.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitReason says how the child ended, such as "exit status 1" or "signal: killed". It
// is empty until Done is closed.
func (p *Process) ExitReason() string {
	select {
	case <-p.done:
		return p.reason
	default:
		return ""
	}
}

// State is how the child ended. It is nil until Done is closed.
func (p *Process) State() *os.ProcessState {
	select {
	case <-p.done:
		return p.state
	default:
		return nil
	}
}

// StderrTail is the end of what the child wrote to stderr, at most Spec.StderrBytes, as
// valid UTF-8. Where something was left off it begins with a whole line.
func (p *Process) StderrTail() string { return p.stderr.text() }

// PID is the child's process id. It also names the child's group and session. Once Done
// is closed it may belong to another process.
func (p *Process) PID() int { return p.proc.Pid }

// lookup finds the program of s in the PATH the child will have. Empty and relative
// folders of PATH are passed over: they would make what runs depend on the folder mcpx
// was started in.
func lookup(s Spec) (string, error) {
	if s.Command == "" {
		return "", errors.New("the command is empty")
	}
	if strings.ContainsRune(s.Command, '/') || filepath.Base(s.Command) != s.Command {
		path := s.Command
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.Dir, path)
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		if runtime.GOOS == "windows" {
			return exec.LookPath(abs)
		}
		return abs, nil
	}
	var denied error
	for _, dir := range filepath.SplitList(value(s.Env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path, err := exec.LookPath(filepath.Join(dir, s.Command))
		if err == nil {
			return path, nil
		}
		if errors.Is(err, os.ErrPermission) && denied == nil {
			denied = fmt.Errorf("%s: %w", filepath.Join(dir, s.Command), os.ErrPermission)
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", ErrNotFound
}

// startError turns the bare error of fork and exec into one that says which of the
// three paths that take part is the wrong one.
func startError(s Spec, path string, err error) error {
	if s.Dir != "" {
		if info, statErr := os.Stat(s.Dir); statErr != nil {
			return fmt.Errorf("working folder %s: %w", s.Dir, withoutPath(statErr))
		} else if !info.IsDir() {
			return fmt.Errorf("working folder %s: %w", s.Dir, syscall.ENOTDIR)
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		if _, statErr := os.Stat(path); statErr == nil {
			return fmt.Errorf("the interpreter or loader that %s names: %w", path, withoutPath(err))
		}
	}
	if path != s.Command {
		return fmt.Errorf("%s: %w", path, withoutPath(err))
	}
	return withoutPath(err)
}

// withoutPath is the system's error without the operation and path that os puts before it.
func withoutPath(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// RoleVar is the variable that starts this executable in a role: its value is the name of
// the role, a space, and what the role needs to know. main has to look at it first. A
// process without it is the program itself.
const RoleVar = "MCPX_ROLE"

// ReaperRole is the name of the reaper's role; ReaperMain is its main function.
const ReaperRole = "reaper"

// Executable is the path of this program, to start it once more in a role; on Linux also
// when its file was replaced by another version. It fails in a process that has a role and
// did not take it up, which would otherwise start itself without end.
func Executable() (string, error) {
	if role, _, _ := strings.Cut(os.Getenv(RoleVar), " "); role != "" {
		return "", fmt.Errorf("this process was started in the role %q, but its main does not know that role", role)
	}
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}
