//go:build unix

package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mcpx/internal/base/handover"
	"mcpx/internal/base/proc"
)

// Patience is how long a command of mcpx tries to reach the daemon, a process that commands share, before it does the work in its
// own process.
const Patience = 300 * time.Millisecond

// retryEvery is the time between two attempts to connect to a daemon that is starting.
const retryEvery = 4 * time.Millisecond

// Conn is a connection to a daemon that has accepted this command. The caller of Dial must call Close, or Run, which also closes
// it.
type Conn struct{ conn *net.UnixConn }

// Dial connects to the daemon of a place, and gives up after the timeout. If no daemon runs, the parameter start decides: if it is
// true, Dial starts a daemon, and otherwise Dial returns ErrNone. After any error the daemon has received nothing of the session,
// so the command can still do its work without the daemon.
func Dial(p Place, timeout time.Duration, start bool) (*Conn, error) {
	deadline := time.Now().Add(timeout)
	for began := false; ; {
		c, err := p.dial(deadline)
		none := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
		_, refused := errors.AsType[*refusedError](err)
		switch {
		case err == nil || refused:
			return c, err
		case none && !start:
			return nil, ErrNone
		case time.Now().After(deadline) || errors.Is(err, os.ErrDeadlineExceeded):
			return nil, fmt.Errorf("no daemon answered within %v: %w", timeout, err)
		case none && !began: // start only one daemon: if it has ended at once, the next one would, too
			if began, err = p.start(); err != nil {
				return nil, fmt.Errorf("starting the daemon: %w", err)
			}
		}
		time.Sleep(retryEvery)
	}
}

// refusedError is the reason why the daemon refuses the command, or the command refuses the daemon.
type refusedError struct{ reason string }

func (e *refusedError) Error() string { return e.reason }

func (p Place) dial(deadline time.Time) (*Conn, error) {
	dialer := net.Dialer{Deadline: deadline}
	conn, err := dialer.Dial("unix", p.socket())
	if err != nil {
		return nil, err
	}
	c := &Conn{conn: conn.(*net.UnixConn)}
	if err := c.greet(deadline); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// spaces returns one text that describes what the servers that this process starts inherit from it: its groups, its limits and, on
// Linux, its namespaces, root folder and rights (some clients start programs with fewer rights). The daemon must not serve a
// command whose text differs from the daemon's own text. The text leaves out the user, because the daemon checks the user
// separately. It also leaves out the folder, the variables and the umask, because the command sends them.
func spaces() string {
	groups, _ := os.Getgroups()
	slices.Sort(groups)
	all := []string{fmt.Sprint(os.Getegid(), groups, limits())}
	for _, link := range []string{"ns/mnt", "ns/pid", "ns/net", "ns/user", "root"} {
		name, err := os.Readlink("/proc/self/" + link)
		if err == nil {
			all = append(all, name)
		}
	}
	status, _ := os.ReadFile("/proc/self/status") // only Linux has this file
	for line := range strings.Lines(string(status)) {
		if name, _, _ := strings.Cut(line, ":"); slices.Contains([]string{"CapEff", "CapBnd", "NoNewPrivs", "Seccomp"}, name) {
			all = append(all, strings.Join(strings.Fields(line), ""))
		}
	}
	return strings.Join(all, " ")
}

// limits returns the soft limits on memory, CPU time, file sizes and processes that this process has and its servers inherit.
// It leaves out the number of open files, because some clients and each Go process raise that limit.
func limits() (soft []uint64) {
	for _, which := range []int{unix.RLIMIT_AS, unix.RLIMIT_DATA, unix.RLIMIT_CPU, unix.RLIMIT_FSIZE, unix.RLIMIT_NPROC} {
		var l unix.Rlimit
		_ = unix.Getrlimit(which, &l) // cannot fail for these limits
		soft = append(soft, uint64(l.Cur))
	}
	return soft
}

func (c *Conn) greet(deadline time.Time) error {
	uid, err := handover.PeerUID(c.conn)
	if err != nil {
		return err
	}
	if uid != os.Getuid() {
		return &refusedError{fmt.Sprintf("the daemon belongs to the user with the id %d", uid)}
	}
	var answer welcome
	if err := say(c.conn, deadline, hello{Spaces: spaces()}); err != nil {
		return err
	}
	if err := hear(c.conn, deadline, &answer); err != nil {
		return err
	}
	if answer.Refused != "" {
		return &refusedError{answer.Refused}
	}
	return nil
}

// Free reports whether no daemon runs or starts at this place.
func (p Place) Free() bool {
	lock, err := p.take()
	if lock != nil {
		lock.Close()
	}
	return lock != nil || errors.Is(err, fs.ErrNotExist)
}

// Others returns the places of the other daemons that run or start for the same config file. They differ from the daemon of p in
// their environment variables or in their build of mcpx.
func (p Place) Others() (others []Place) {
	files, _ := os.ReadDir(filepath.Dir(string(p))) // without the folder there are no daemons
	for _, file := range files {
		name, lock := strings.CutSuffix(file.Name(), ".lock")
		other := Place(filepath.Join(filepath.Dir(string(p)), name))
		toBuild := len(p) - ownDigits - buildDigits
		if lock && len(other) == len(p) && other != p && other[:toBuild] == p[:toBuild] && !other.Free() {
			others = append(others, other)
		}
	}
	return others
}

// minFiles is the lowest hard limit of open files (ulimit -Hn) with which a command may start a daemon. The daemon inherits the
// limit from that command. A low limit would also hold for the sessions of other commands, whose servers may need more files.
const minFiles = 1024

// start starts a daemon, and does not wait until it is ready. If a daemon runs already, or another process is starting one, began
// is false.
func (p Place) start() (began bool, err error) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil && files.Max < minFiles {
		return false, fmt.Errorf("the limit of open files (ulimit -Hn) is %d here, which is too few for the sessions of others", files.Max)
	}
	lock, err := p.take()
	if lock == nil {
		return false, err
	}
	defer lock.Close() // the daemon keeps the lock through its own descriptor
	return true, p.launch(lock)
}

// take locks the lock file of the place. If another process holds the lock, both results are nil.
func (p Place) take() (lock *os.File, err error) {
	if lock, err = os.OpenFile(p.lock(), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600); err != nil {
		return nil, err
	}
	raw, err := lock.SyscallConn()
	if err == nil {
		var failed error
		if err = raw.Control(func(fd uintptr) { failed = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB) }); err == nil {
			err = failed
		}
	}
	if err == nil {
		return lock, nil
	}
	lock.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = nil
	}
	return nil, err
}

// launch starts the daemon in a process session of its own (setsid). So neither signals for the command's job, such as Ctrl-C, nor
// the end of the command's terminal reach the daemon.
func (p Place) launch(lock *os.File) error {
	self, err := proc.Executable()
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	stderr := null
	if file, err := os.OpenFile(p.Log(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND|syscall.O_NOFOLLOW, 0o600); err == nil {
		defer file.Close()
		stderr = file
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		home = "/"
	}
	closeOnExec()
	environ := append(ownEnviron(os.Environ()), "PATH="+os.Getenv("PATH"), proc.RoleVar+"="+Role+" "+string(p))
	for _, name := range starterVariables {
		if value, set := os.LookupEnv(name); set {
			environ = append(environ, name+"="+value)
		}
	}
	process, err := os.StartProcess(self, []string{"mcpx-daemon"}, &os.ProcAttr{
		Dir: home, Env: environ, Files: []*os.File{null, null, stderr, lock}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return err
	}
	go process.Wait() // collects the exit status of a daemon that ends before this process
	return nil
}

// closeOnExec keeps the daemon from inheriting the open files of this process. The daemon would keep them open for a long time: a
// script's lock file would stay locked, and the reader of a pipe would wait for the end of the pipe.
func closeOnExec() {
	open, _ := os.ReadDir("/dev/fd")
	for _, one := range open {
		if fd, err := strconv.Atoi(one.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// LostError says that a command has lost its session, after the daemon had accepted the command. The daemon could not begin the
// session, has ended, or does not answer any more.
type LostError struct{ what string }

func (e *LostError) Error() string {
	return "the daemon " + e.what + "; this session has ended with it"
}

// Run hands a session over to the daemon, waits until the session ends, and returns the exit code of the command. streams are
// stdin, stdout and stderr; until Run returns, the caller must not use them. When ctx ends, Run asks the daemon to end the session.
// For each value from reloads, Run asks the daemon to read the session's config again. The error is a [LostError].
func (c *Conn) Run(ctx context.Context, start Start, streams [3]*os.File, reloads <-chan os.Signal) (exit int, err error) {
	defer c.Close()
	deadline := time.Now().Add(silence)
	if err := say(c.conn, deadline, start); err != nil {
		return 0, &LostError{fmt.Sprintf("took no session (%v)", err)}
	}
	if err := handover.Send(c.conn, streams[:]...); err != nil {
		return 0, &LostError{fmt.Sprintf("took no streams (%v)", err)}
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() { // ends when Run returns
		stop := ctx.Done()
		for {
			select {
			case <-ended:
				return
			case <-stop:
				stop = nil
				_ = say(c.conn, time.Now().Add(silence), asked{Stop: true})
			case <-reloads:
				_ = say(c.conn, time.Now().Add(silence), asked{Reload: true})
			}
		}
	}()
	return c.await()
}

// await waits for the end of the session, and returns its exit code. If the daemon reports a failure, ends, or gives no sign for
// the time silence, await returns a LostError.
func (c *Conn) await() (exit int, err error) {
	for signs := 0; ; signs++ {
		if signs == 1 { // the session lasts longer than a moment: this process will only wait, so it gives memory back
			debug.FreeOSMemory()
			proc.DropFilePages()
		}
		var s sign
		err := hear(c.conn, time.Now().Add(silence), &s)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			// If this process was stopped (SIGSTOP), the time has passed, but signs of the daemon may be waiting to be read.
			err = hear(c.conn, time.Now().Add(silence/10), &s)
		}
		switch {
		case s.Failed != "":
			return 0, &LostError{fmt.Sprintf("could not begin the session (%s)", s.Failed)}
		case errors.Is(err, os.ErrDeadlineExceeded):
			return 0, &LostError{fmt.Sprintf("has given no sign for %v", silence)}
		case err != nil:
			return 0, &LostError{"was killed or has crashed"}
		case s.Exit != nil:
			return *s.Exit, nil
		}
	}
}

// Close ends the connection, and with it the session.
func (c *Conn) Close() { c.conn.Close() }
