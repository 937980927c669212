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

// Session is one session of a command, as the host serves it.
type Session struct {
	Start
	In       *handover.Stream
	Out, Err *handover.Stream
	// Reload gets a value each time the command wants the config to be read again.
	Reload <-chan os.Signal
}

// Daemon is this process in the role of a daemon.
type Daemon struct {
	log   *slog.Logger
	host  func(ctx context.Context, s *Session) (exit int)
	space string

	mu       sync.Mutex
	open     int // sessions, and connections that may become one
	idle     time.Duration
	timer    *time.Timer // runs while open is 0
	ended    bool
	listener net.Listener
	sessions sync.WaitGroup
}

// lockFile is the descriptor of the lock that this process inherits from the command that has started it.
const lockFile = 3

// Serve is the main function of a daemon. host serves a session until its context ends and returns the exit code of the
// command. Serve returns when ctx ends or when there was no session for the time of idle, and waits for the sessions.
func (d *Daemon) Serve(ctx context.Context) error {
	_, path, _ := strings.Cut(os.Getenv(proc.RoleVar), " ")
	_ = os.Unsetenv(proc.RoleVar) // this process starts others in roles
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
		if err != nil { // for example, too many open files
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

// New returns a daemon. idle is how long it waits for a session before it ends, until SetIdle.
func New(host func(context.Context, *Session) int, idle time.Duration, log *slog.Logger) *Daemon {
	return &Daemon{host: host, idle: idle, log: log}
}

// SetIdle sets how long the daemon lives without a session.
func (d *Daemon) SetIdle(idle time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = idle
}

// enter counts a connection; it returns false if the daemon ends.
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

// Hold keeps the daemon alive as a session does, until release is called. It returns nil if the daemon ends.
func (d *Daemon) Hold() (release func()) {
	if !d.enter() {
		return nil
	}
	return d.leave
}

// end ends the daemon: without must, only if nothing is open.
func (d *Daemon) end(must bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if must || d.open == 0 {
		d.ended = true
		d.listener.Close() // which removes the socket
	}
}

// serve serves one command.
func (d *Daemon) serve(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	s, err := d.receive(conn)
	if err != nil {
		d.log.Warn("a command gets no session", "err", err) // for example, it has not waited for the welcome
		_ = say(conn, time.Now().Add(time.Second), sign{Failed: err.Error()})
		return
	}
	reload := make(chan os.Signal, 1)
	s.Reload = reload
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var helpers sync.WaitGroup
	helpers.Go(func() { // ends when serve closes the connection
		d.obey(conn, reload, cancel)
		s.In.Close() // a command that is gone needs no more answers
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

// Close closes the streams.
func (s *Session) Close() {
	for _, stream := range []*handover.Stream{s.In, s.Out, s.Err} {
		if stream != nil {
			stream.Close()
		}
	}
}

// receive shakes hands with a command and takes its streams.
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
	answer := welcome{PID: os.Getpid()}
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

// spareFiles is how many descriptors must be free for a session: its streams, what watches the config, and some servers.
const spareFiles = 32

// reserved are descriptors that are kept free until a session uses them.
type reserved []int

// reserve takes the descriptors of a session, so that sessions that begin at the same time do not count on the same ones. The
// caller must free them, also after an error.
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

// obey does what the command says until its connection ends; then the session ends too.
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

// beat tells the command that this process lives.
func beat(ctx context.Context, conn *net.UnixConn) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = say(conn, time.Now().Add(time.Second), sign{}) // a command that was stopped does not read
		}
	}
}
