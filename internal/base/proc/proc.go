// Package proc starts child processes, each in its own group, and ends them with all their descendants: on Close, when the
// child ends on its own, and when this process is killed.
//
// # Which processes are signalled
//
// A child leads its own session and process group. So it does not get signals from the terminal of mcpx, and a program that opens
// /dev/tty gets an error instead of being stopped. All descendants that do not call setsid share the session id of the child, also
// if they change their group (shells with job control, timeout).
//
// Signals go to the group. On Linux they also go to the rest of the session, and to every process whose environment contains the
// child's mark (the variable MCPX_CHILD); this includes daemons that called setsid. On darwin only the group gets signals. Three
// kinds of processes get none: daemons that left the session and removed or replaced their environment (a user can start a daemon
// with env -u MCPX_CHILD so that it stays), processes of another user (sudo), and what other programs start for the child
// (containers).
//
// # Why a reused id is never signalled
//
// The end of the child is detected without reaping it. While the child is a zombie, the kernel does not reuse its id for another
// process, group or session. A single goroutine sends all signals. After the last one it removes the group from the reaper's list,
// and then it reaps the child. Single processes found in /proc are signalled through a pidfd, and checked again once the pidfd is
// open. One gap remains: mcpx may be killed after the end of a child, but before its group is removed from the list. Then init
// reaps the child, and the reaper signals its id a moment later. That does harm only if a new group leader gets the id within this
// moment.
//
// # When mcpx is killed
//
// A reaper process (see Reaper) outlives mcpx for a moment and kills the children and their descendants. Pdeathsig is no
// alternative. It is bound to the thread that forked, so a child would die when the Go runtime ends that thread, and it does not
// reach grandchildren. Pdeathsig would only close the gap between the fork of a child and its registration with the reaper. On
// Linux the mark closes this gap. Until its exec, the child holds a copy of the write end of the reaper's pipe. So when the reaper
// sees the pipe close, the child has its environment, which contains the mark. On darwin a gap of some microseconds remains.
//
// On Windows each child is in a job object. When mcpx ends, its handle of the job is closed, and Windows ends all
// processes of the job.
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

// markVar is the environment variable that marks a child and all processes that inherit the child's environment. Its
// value, the mark, is different for each child and begins with the reaper's token.
const markVar = "MCPX_CHILD"

// ErrNotFound means that the command is a name without a slash, and that no folder of PATH contains it.
var ErrNotFound = errors.New("executable file not found in PATH")

// Spec says what to start.
type Spec struct {
	// Command is a path, or a name to look up in the PATH of Env. A relative path with a slash is relative to Dir.
	Command string
	// Name is the name of the child in ps and errors. If it is empty, Command is used.
	Name string
	Args []string
	// Env is the whole environment, KEY=VALUE; see Environment. MCPX_CHILD is added.
	Env []string
	// Dir is the working folder. If it is empty, the child gets the working folder of this process.
	Dir string
	// Umask is the umask of the child; nil means the umask of this process. Umask has an effect on Unix only, and only with a
	// Reaper.
	Umask *int
	// StderrBytes is how many bytes of the end of stderr are kept; 0 means 64 KiB.
	StderrBytes int
	// OnStderr, if not nil, is called with each line of stderr, as valid UTF-8 without its line end. A line over 8 KiB is
	// split into several calls. All calls come from one goroutine. OnStderr must not block, as the child would block too.
	OnStderr func(line string)
}

// Process is a child that was started. The caller of Start must call Close, also after the child has ended. All
// methods are safe for concurrent use.
type Process struct {
	name   string // for errors
	proc   *os.Process
	group  *group
	reaper *Reaper

	stdin  *input
	stdout *output
	stderr *tail

	closing   chan Grace // the first Close sends its grace to supervise
	closeOnce sync.Once
	killing   chan struct{} // closed by the first Kill; supervise waits for it
	killOnce  sync.Once
	seen      movements

	exited   chan struct{} // closed when the child has ended; it is still a zombie
	done     chan struct{} // closed when the child is reaped and its stderr read
	stuck    chan struct{} // closed when a process survived SIGKILL; err is set
	finished chan struct{} // closed after done is closed, once mcpx has closed its own ends of the pipes

	err    error            // written before stuck is closed
	state  *os.ProcessState // written before done is closed; nil if waiting for the child failed
	reason string           // written before done is closed
}

// Start starts a child. If r is not nil, r kills the child when this process is killed. The error names the command and the
// cause; errors.Is may find ErrNotFound, fs.ErrNotExist or fs.ErrPermission in it.
func Start(s Spec, r *Reaper) (*Process, error) {
	s.Name = cmp.Or(s.Name, s.Command)
	path, err := Lookup(s)
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
		defer r.withUmask(s.Umask)()
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

// run starts the three goroutines of a process. supervise waits for the other two, and Close waits for supervise, unless a
// process survives SIGKILL. Without a call of Close the goroutines end after the child.
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

// Stdin writes to the child's standard input. If a Write blocks because the child does not read, Close unblocks it.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout reads the child's standard output. It returns io.EOF at the end of the output. If a process that outlives the child still
// has the pipe, it returns io.EOF half a second after the child was reaped. Output that was not read by then is lost.
func (p *Process) Stdout() io.Reader { return p.stdout }

// Done is closed when the child has ended and was reaped; from then on ExitReason is known and StderrTail complete. If
// the child ends without Close and its group still has processes, they get TERM, and KILL 200 ms later, before Done is
// closed.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitReason says how the child ended, such as "exit status 1" or "signal: killed". It is empty until Done is closed.
func (p *Process) ExitReason() string {
	select {
	case <-p.done:
		return p.reason
	default:
		return ""
	}
}

// State returns how the child ended. It is nil until Done is closed, and if waiting for the child failed.
func (p *Process) State() *os.ProcessState {
	select {
	case <-p.done:
		return p.state
	default:
		return nil
	}
}

// StderrTail returns the last Spec.StderrBytes bytes of the child's stderr, as valid UTF-8. If the beginning was cut off, the
// result begins with a whole line. But if the last line alone is longer, the result is the end of that line.
func (p *Process) StderrTail() string { return p.stderr.text() }

// PID returns the child's process id, which is also the id of its group and session. After Done the id may belong to
// another process.
func (p *Process) PID() int { return p.proc.Pid }

// Lookup returns the absolute path of the program that s.Command means. It looks up a name in the PATH of s.Env, but skips empty
// and relative folders there: with them, the program would depend on the working folder of this process. It makes a relative path
// absolute, from s.Dir on. Only on Windows does it check that the file of a path exists.
func Lookup(s Spec) (string, error) {
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
	for _, dir := range filepath.SplitList(Value(s.Env, "PATH")) {
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

// startError explains why fork and exec failed: the working folder, the program or its interpreter is missing.
func startError(s Spec, path string, err error) error {
	if s.Dir != "" {
		dir, absErr := filepath.Abs(s.Dir)
		if absErr != nil {
			dir = s.Dir
		}
		if info, statErr := os.Stat(dir); statErr != nil {
			return fmt.Errorf("working folder %s: %w", dir, withoutPath(statErr))
		} else if !info.IsDir() {
			return fmt.Errorf("working folder %s: %w", dir, syscall.ENOTDIR)
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

// RoleVar is an environment variable that makes this executable run in a role. Its value is the name of the role, a
// space, and the arguments of the role. Without the variable, the process is a normal mcpx.
const RoleVar = "MCPX_ROLE"

// Executable returns the path of this program, for starting it again in a role. On Linux the path works even if the
// file was replaced by another version. Executable fails in a process that was itself started in a role: the process
// would otherwise start itself endlessly.
func Executable() (string, error) {
	if role, _, _ := strings.Cut(os.Getenv(RoleVar), " "); role != "" {
		return "", fmt.Errorf("this process was started in the role %q, but its main does not know that role", role)
	}
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}
