//go:build unix

// Package handover passes open files from one process to another over a Unix socket. It also reads and writes files that other
// processes have open too. It never sets O_NONBLOCK on such a file, since that flag would change for those processes too.
package handover

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// mark is the byte that carries the files, because a message without bytes carries none.
const mark = 'F'

// Send sends files over a connection. The receiver gets descriptors of its own; the caller still has to close its files.
func Send(conn *net.UnixConn, files ...*os.File) error {
	fds := make([]int, len(files))
	for i, f := range files {
		fd, err := descriptor(f)
		if err != nil {
			return err
		}
		fds[i] = fd
	}
	_, _, err := conn.WriteMsgUnix([]byte{mark}, unix.UnixRights(fds...), nil)
	runtime.KeepAlive(files)
	if err != nil {
		return fmt.Errorf("handing over files: %w", err)
	}
	return nil
}

// descriptor returns the descriptor of an open file. It does not call the method Fd, which would change the file's flags.
func descriptor(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Control(func(open uintptr) { fd = int(open) })
	}
	return fd, err
}

// Receive receives the next n files that the other side sends. The caller closes them.
func Receive(conn *net.UnixConn, n int) ([]*os.File, error) {
	oob := make([]byte, unix.CmsgSpace(4*n))
	b := make([]byte, 1)
	got, oobn, _, _, err := conn.ReadMsgUnix(b, oob)
	if err != nil {
		return nil, fmt.Errorf("taking files over: %w", err)
	}
	var files []*os.File
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	for _, m := range messages {
		fds, failed := unix.ParseUnixRights(&m)
		err = errors.Join(err, failed)
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "handed over "+strconv.Itoa(fd)))
		}
	}
	if err == nil && (got != 1 || b[0] != mark || len(files) != n) {
		err = fmt.Errorf("taking files over: got %d of %d", len(files), n)
	}
	if err != nil {
		for _, f := range files {
			f.Close()
		}
		return nil, err
	}
	return files, nil
}

// Stream reads from or writes to a file that other processes may have open too. Close makes a waiting Read or Write return. In two
// cases it cannot, and waits itself: for a Write to a terminal that takes no output, and for a Read whose input another process has
// taken first. The owner must call Close.
type Stream struct {
	// reopened is set, on Linux only, if the file is a pipe and could be opened once more. O_NONBLOCK can be set on reopened
	// without effect on other processes, so Go's poller can wait for it. Otherwise reopened is nil.
	reopened *os.File
	// If reopened is nil, the method wait polls two files: shared, which is the file itself, and woken. woken is a pipe that
	// Close ends by closing wake.
	shared, wake, woken *os.File
	fd, end             int  // the descriptors of shared and woken
	socket, regular     bool // regular: neither a socket nor a pipe, such as a file or a terminal
	closing             sync.Once
	using               sync.RWMutex // read-locked while fd and end are in use
	closed              bool         // guarded by using
}

// Open returns a stream that reads from f or, if write is true, writes to f. From then on, the stream owns f, and its Close closes
// f. If Open returns an error, f still belongs to the caller.
func Open(f *os.File, write bool) (*Stream, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	fd, err := descriptor(f)
	if err != nil {
		return nil, err
	}
	s := &Stream{shared: f, fd: fd, socket: info.Mode()&os.ModeSocket != 0, regular: info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0}
	if info.Mode()&os.ModeNamedPipe != 0 && runtime.GOOS == "linux" {
		flags := syscall.O_RDONLY
		if write {
			flags = syscall.O_WRONLY
		}
		// A pipe that is opened again has flags of its own. Opening fails for an output that nobody reads any more.
		again, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(fd), flags|syscall.O_NONBLOCK, 0)
		if err == nil {
			f.Close()
			s.reopened, s.shared = again, nil
			return s, nil
		}
	}
	if s.woken, s.wake, err = os.Pipe(); err != nil {
		return nil, err
	}
	if s.end, err = descriptor(s.woken); err != nil {
		return nil, err
	}
	return s, nil
}

// Read implements io.Reader. After Close it returns io.EOF.
func (s *Stream) Read(p []byte) (int, error) {
	if s.reopened != nil {
		n, err := s.reopened.Read(p)
		if errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
		return n, err
	}
	s.using.RLock()
	defer s.using.RUnlock()
	if len(p) == 0 {
		return 0, nil
	}
	for {
		if err := s.wait(unix.POLLIN); errors.Is(err, os.ErrClosed) {
			return 0, io.EOF
		} else if err != nil {
			return 0, err
		}
		n, err := unix.Read(s.fd, p)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// atomicWrite is how many bytes one write to a pipe has at most. If poll reports a pipe as writable, every Unix accepts so many
// bytes without blocking, even if the pipe is in blocking mode.
const atomicWrite = 512

// Write implements io.Writer. After Close it returns an error.
func (s *Stream) Write(p []byte) (written int, err error) {
	if s.reopened != nil {
		return s.reopened.Write(p)
	}
	s.using.RLock()
	defer s.using.RUnlock()
	for len(p) > 0 {
		if err := s.wait(unix.POLLOUT); err != nil {
			return written, err
		}
		n := 0
		switch {
		case s.socket:
			n, err = unix.SendmsgN(s.fd, p, nil, nil, unix.MSG_DONTWAIT)
		case s.regular:
			n, err = unix.Write(s.fd, p)
		default:
			n, err = unix.Write(s.fd, p[:min(len(p), atomicWrite)])
		}
		if err != nil && err != unix.EINTR && err != unix.EAGAIN {
			return written, os.NewSyscallError("write", err)
		}
		n = max(n, 0)
		written, p = written+n, p[n:]
	}
	return written, nil
}

// wait waits until the file is ready for events, and returns os.ErrClosed after Close. Regular files are always ready. The caller
// holds the lock s.using.
func (s *Stream) wait(events int16) error {
	if s.closed {
		return os.ErrClosed
	}
	for {
		fds := []unix.PollFd{{Fd: int32(s.fd), Events: events}, {Fd: int32(s.end), Events: unix.POLLIN}}
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return os.NewSyscallError("poll", err)
		case fds[1].Revents != 0:
			return os.ErrClosed
		case fds[0].Revents != 0:
			return nil
		}
	}
}

// Close closes the file in this process only.
func (s *Stream) Close() error {
	if s.reopened != nil {
		return s.reopened.Close()
	}
	s.closing.Do(func() {
		s.wake.Close() // ends the waiting in wait
		s.using.Lock()
		defer s.using.Unlock()
		s.closed = true
		s.shared.Close()
		s.woken.Close()
	})
	return nil
}
