// Package proc starts child processes, each in its own group, and ends them with all their descendants: on Close,
// when the child crashes, and when this process is killed.
//
// # Who is reached
//
// A child leads its own session and process group. So it does not get signals from our terminal, a program that opens
// /dev/tty gets an error instead of being stopped, and all descendants that do not call setsid share its session id,
// also if they change their group (shells with job control, timeout). Signals go to the group; on Linux also to the
// rest of the session, and to every process whose environment contains the child's mark (the variable MCPX_CHILD),
// which includes daemons that called setsid. Not reached: daemons that left the session and removed or replaced their
// environment (env -u MCPX_CHILD, for a daemon that should stay), processes of another user (sudo), and what other
// programs start for the child (containers). On darwin only the group is reached.
//
// # Why no reused number is ever signalled
//
// The end of the child is detected without reaping it. While it is a zombie, the kernel does not reuse its number for
// another process, group or session. One goroutine, in this order, sends all signals, removes the group from the
// reaper's list, and reaps the child. Single processes found in /proc are signalled through a pidfd and checked again
// once it is open. One gap remains: if we are killed between the end of a child and its removal from the list, init
// reaps it, and the reaper signals the number a moment later. That does harm only if within this moment a new group
// leader gets the number.
//
// # When we are killed
//
// A reaper process (see Reaper) outlives us for a moment and kills what is left. Pdeathsig is no alternative: it is
// bound to the thread that forked, so a child would die when the Go runtime ends that thread, and it does not reach
// grandchildren. It would only close the gap between the fork of a child and its registration. On Linux the mark
// closes this gap: until its exec the child holds a copy of our end of the reaper's pipe, so the reaper sees the pipe
// close only when the child has its environment. On darwin a gap of some microseconds remains.
//
// On Windows, a job object that ends with our last handle does all of this.
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
	"sync"
	"syscall"
)

// markVar is the variable that marks a child and all that inherit its environment. The value is unique per child and
// begins with the reaper's token.
const markVar = "MCPX_CHILD"

// ErrNotFound means that a command without a slash is in no folder of PATH.
var ErrNotFound = errors.New("executable file not found in PATH")

// Spec says what to start.
type Spec struct {
	// Command is a path, or a name to look up in the PATH of Env. A relative path with a slash is relative to Dir.
	Command string
	// Name is the name of the child in ps and errors; empty = Command.
	Name string
	Args []string
	// Env is the whole environment, KEY=VALUE; see Environment. MCPX_CHILD is added.
	Env []string
	// Dir is the working folder; empty = ours.
	Dir string
	// StderrBytes is how much of the end of stderr is kept; 0 = 64 KiB.
	StderrBytes int
	// OnStderr, if not nil, gets each line of stderr as valid UTF-8 without its end. Lines over 8 KiB come in pieces.
	// It is called from one goroutine and must not block, as the child waits for it.
	OnStderr func(line string)
}

// Process is a child that was started. The caller of Start must Close it, even if it has ended by itself. All methods
// are safe for concurrent use.
type Process struct {
	name   string // for errors
	proc   *os.Process
	group  *group
	reaper *Reaper

	stdin  *input
	stdout *output
	stderr *tail

	closing   chan Grace // the grace of the first Close, for supervise
	closeOnce sync.Once
	killing   chan struct{} // closed by the first Kill, for supervise
	killOnce  sync.Once
	seen      movements

	exited   chan struct{} // the child ended; it is still a zombie
	done     chan struct{} // the child is reaped, its stderr read
	stuck    chan struct{} // a process survived SIGKILL; err is set
	finished chan struct{} // done, and all descriptors are closed

	err    error            // written before stuck is closed
	state  *os.ProcessState // written before done is closed; nil on failure
	reason string           // written before done is closed
}

// Start starts a child and, if r is not nil, registers it there. The error names the command and the remedy; its
// cause may be ErrNotFound, fs.ErrNotExist or fs.ErrPermission.
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
		closing:  make(chan Grace, 1),
		killing:  make(chan struct{}),
		exited:   make(chan struct{}),
		done:     make(chan struct{}),
		stuck:    make(chan struct{}),
		finished: make(chan struct{}),
	}
	p.run(newOutput(pipes.stderr[0]), s.OnStderr)
	return p, nil
}

// run starts the three goroutines of a process. supervise waits for the other two, and Close for supervise. Without
// Close they end after the child.
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

// Stdin writes to the child's standard input. Its Close unblocks a writer whose child never reads.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout reads the child's standard output, up to io.EOF when the child has ended and its output was read. A process
// that inherited the pipe and outlives the child can delay io.EOF for at most half a second after Done.
func (p *Process) Stdout() io.Reader { return p.stdout }

// Done is closed when the child has ended and was reaped; then ExitReason is known and StderrTail complete. If a
// child ends by itself and leaves other processes of its group behind, these get TERM, and KILL 200 ms later, before
// Done is closed.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitReason says how the child ended, such as "exit status 1" or "signal: killed"; empty until Done is closed.
func (p *Process) ExitReason() string {
	select {
	case <-p.done:
		return p.reason
	default:
		return ""
	}
}

// State says how the child ended; nil until Done is closed.
func (p *Process) State() *os.ProcessState {
	select {
	case <-p.done:
		return p.state
	default:
		return nil
	}
}

// StderrTail is the end of the child's stderr, at most Spec.StderrBytes, as valid UTF-8. If it is cut, it begins with
// a whole line.
func (p *Process) StderrTail() string { return p.stderr.text() }

// PID is the child's process id, also the number of its group and session. After Done it may belong to another
// process.
func (p *Process) PID() int { return p.proc.Pid }

// lookup finds the program of s in the PATH of the child. It skips empty and relative folders, with which the program
// would depend on our working folder.
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

// startError explains an error of fork and exec: the working folder, the program or its interpreter is missing.
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

// withoutPath unwraps an *os.PathError.
func withoutPath(err error) error {
	if pathErr, ok := errors.AsType[*os.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// RoleVar is the variable that starts this executable in a role: the name of the role, a space, and arguments of the
// role. main must check it first. Without it, the process is the program itself.
const RoleVar = "MCPX_ROLE"

// ReaperRole is the role of the reaper, whose main function is ReaperMain.
const ReaperRole = "reaper"

// Executable is the path of this program, for starting it again in a role. On Linux it works even if the file was
// replaced by another version. It fails in a process that was itself started in a role, which would otherwise start
// itself endlessly.
func Executable() (string, error) {
	if role, _, _ := strings.Cut(os.Getenv(RoleVar), " "); role != "" {
		return "", fmt.Errorf("this process was started in the role %q, but its main does not know that role", role)
	}
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}
