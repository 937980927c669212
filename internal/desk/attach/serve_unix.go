//go:build unix

package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mcpx/internal/base/handover"
	"mcpx/internal/base/proc"
)

// Session is one session of a command. The daemon passes it to the function host, which the caller of [New] provides.
type Session struct {
	Start
	In       *handover.Stream
	Out, Err *handover.Stream
	// Reload gets a value each time the command wants the config to be read again.
	Reload <-chan os.Signal
}

// Daemon serves the sessions of commands. A process has at most one Daemon.
type Daemon struct {
	log   *slog.Logger
	host  func(ctx context.Context, s *Session) (exit int)
	space string

	mu       sync.Mutex
	open     int // the number of sessions, and of connections that may become sessions
	idle     time.Duration
	timer    *time.Timer // ends the daemon; runs while open is 0
	ended    bool
	listener net.Listener
	sessions sync.WaitGroup
}

// lockFile is the descriptor of the lock file that this process inherits from the command that has started it.
const lockFile = 3

// Serve is the main function of a daemon process. It serves sessions until ctx ends, or until the daemon has been idle for the time
// given to New or SetIdle. The daemon is idle if no session is open and no caller of Hold keeps it alive. Before Serve returns, it
// waits for the open sessions.
func (d *Daemon) Serve(ctx context.Context) error {
	_, path, _ := strings.Cut(os.Getenv(proc.RoleVar), " ")
	_ = os.Unsetenv(proc.RoleVar) // otherwise the processes that the daemon starts would become daemons, too
	syscall.CloseOnExec(lockFile)
	syscall.Umask(0o077)
	place := Place(path)
	if err := os.Remove(place.socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", place.socket())
	if err != nil {
		return err
	}
	d.space, d.listener = spaces(), listener
	defer context.AfterFunc(ctx, func() { d.end(true) })()
	d.mu.Lock()
	d.timer = time.AfterFunc(d.idle, func() { d.end(false) })
	d.mu.Unlock()
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			break
		}
		if err != nil { // for example, because too many files are open
			d.log.Error("accepting a command", "err", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		if !d.enter() {
			conn.Close()
			break
		}
		d.sessions.Go(func() { // ends with the session, which ends with ctx
			defer d.leave()
			d.serve(ctx, conn.(*net.UnixConn))
		})
	}
	d.sessions.Wait()
	return nil
}

// New returns a daemon. host serves one session, until the session's context ends, and returns the exit code of the command. idle
// is how long the daemon lives without a session; SetIdle changes it.
func New(host func(context.Context, *Session) int, idle time.Duration, log *slog.Logger) *Daemon {
	return &Daemon{host: host, idle: idle, log: log}
}

// SetIdle sets how long the daemon lives without a session. A wait that has already begun keeps the old time; the next one has the
// new time.
func (d *Daemon) SetIdle(idle time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = idle
}

// enter counts a connection as open. It returns false if the daemon is ending.
func (d *Daemon) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return false
	}
	d.open++
	d.timer.Stop()
	return true
}

func (d *Daemon) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open--; d.open == 0 && !d.ended {
		d.timer.Reset(d.idle)
	}
}

// Hold keeps the daemon alive like an open session, until release is called. release is nil if the daemon is ending.
func (d *Daemon) Hold() (release func()) {
	if !d.enter() {
		return nil
	}
	return d.leave
}

// end ends the daemon. If force is false, it does so only if no session is open and no caller of Hold keeps the daemon alive.
func (d *Daemon) end(force bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if force || d.open == 0 {
		d.ended = true
		d.listener.Close() // also removes the socket
	}
}

func (d *Daemon) serve(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	s, err := d.receive(conn)
	if err != nil {
		d.log.Warn("a command gets no session", "err", err) // for example, because the command gave up before the welcome
		_ = say(conn, time.Now().Add(time.Second), sign{Failed: err.Error()})
		return
	}
	reload := make(chan os.Signal, 1)
	s.Reload = reload
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var helpers sync.WaitGroup
	helpers.Go(func() { // ends when serve or the command closes the connection
		d.obey(conn, reload, cancel)
		s.In.Close() // the command is gone, so nothing more is read from it
	})
	beating, stop := context.WithCancel(context.Background())
	helpers.Go(func() { beat(beating, conn) }) // ends with stop
	exit := d.host(ctx, s)
	stop()
	s.Close()
	_ = say(conn, time.Now().Add(time.Second), sign{Exit: &exit})
	conn.Close()
	helpers.Wait()
}

// Close closes the session's streams.
func (s *Session) Close() {
	for _, stream := range []*handover.Stream{s.In, s.Out, s.Err} {
		if stream != nil {
			stream.Close()
		}
	}
}

// receive does the handshake with a command, and receives its streams. It returns an error if the command belongs to another user,
// if its spaces (see the function spaces) differ from the daemon's, or if too few file descriptors are free.
func (d *Daemon) receive(conn *net.UnixConn) (*Session, error) {
	deadline := time.Now().Add(handshake)
	uid, err := handover.PeerUID(conn)
	if err != nil {
		return nil, err
	}
	if uid != os.Getuid() {
		return nil, fmt.Errorf("it belongs to the user with the id %d", uid)
	}
	var h hello
	if err := hear(conn, deadline, &h); err != nil {
		return nil, err
	}
	var answer welcome
	spare, err := reserve(conn)
	defer func() { spare.free() }()
	switch {
	case h.Spaces != d.space:
		answer.Refused = "the daemon runs in other namespaces, or with other rights or limits, perhaps outside of this container or sandbox"
	case err != nil:
		answer.Refused = fmt.Sprintf("the daemon has no room for a session: %v", err)
	}
	if err := say(conn, deadline, answer); err != nil {
		return nil, err
	}
	if answer.Refused != "" {
		return nil, errors.New(answer.Refused)
	}
	s := &Session{}
	if err := hear(conn, deadline, &s.Start); err != nil {
		return nil, err
	}
	spare.free()
	files, err := handover.Receive(conn, 3)
	if err != nil {
		return nil, err
	}
	for i, into := range []**handover.Stream{&s.In, &s.Out, &s.Err} {
		if *into, err = handover.Open(files[i], i > 0); err != nil {
			for _, file := range files[i:] {
				file.Close()
			}
			s.Close()
			return nil, err
		}
	}
	return s, nil
}

// spareFiles is how many file descriptors must be free for a session: for its streams, for watching the config, and for some
// servers.
const spareFiles = 32

// reserved are file descriptors that the daemon holds open for a session that is about to begin. It closes them when the session
// needs as many of its own.
type reserved []int

// reserve opens as many file descriptors as a session will need, so that no other session that begins meanwhile can take them. The
// caller must call free on the result, also after an error.
func reserve(conn *net.UnixConn) (spare reserved, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	failed := raw.Control(func(fd uintptr) {
		for len(spare) < spareFiles && err == nil {
			var one int
			if one, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0); err == nil {
				spare = append(spare, one)
			}
		}
	})
	return spare, cmp.Or(failed, err)
}

func (r *reserved) free() {
	for _, fd := range *r {
		unix.Close(fd)
	}
	*r = nil
}

// obey does what the messages of the command ask for: it makes the session read its config again, or ends the session. It also ends
// the session when the connection ends.
func (d *Daemon) obey(conn *net.UnixConn, reload chan<- os.Signal, end context.CancelFunc) {
	defer end()
	for {
		var a asked
		if err := hear(conn, time.Time{}, &a); err != nil {
			return
		}
		if a.Stop {
			end()
		}
		if a.Reload {
			select {
			case reload <- syscall.SIGHUP:
			default:
			}
		}
	}
}

// beat regularly tells the command that this process is alive, until ctx ends.
func beat(ctx context.Context, conn *net.UnixConn) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = say(conn, time.Now().Add(time.Second), sign{}) // fails if the command was stopped and does not read
		}
	}
}
