//go:build linux || darwin

package proc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// exhausted reports whether a Read would return io.EOF at once. It would if everything was read and no process can write to the
// pipe any more, or if this process has closed the pipe. Then supervise need not wait for a reader.
func (o *output) exhausted() bool {
	conn, err := o.f.SyscallConn()
	if err != nil {
		return true // closed
	}
	over := false
	err = conn.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		over = err == nil && n > 0 && p[0].Revents&unix.POLLHUP != 0 && p[0].Revents&unix.POLLIN == 0
	})
	return over || err != nil
}

// trier holds what TryWrite needs. It is made once, to save allocations.
type trier struct {
	conn syscall.RawConn
	do   func(fd uintptr) bool // writes rest with one system call
	rest []byte
	n    int
}

// TryWrite writes as much of b as the pipe accepts without blocking, and returns the number of bytes. If the pipe is
// broken it returns 0; a following Write returns the error. Only one goroutine may call TryWrite or Write at a time.
func (i *input) TryWrite(b []byte) int {
	t := &i.try
	if t.conn == nil {
		conn, err := i.f.SyscallConn()
		if err != nil {
			return 0 // closed
		}
		t.conn = conn
		t.do = func(fd uintptr) bool {
			t.n, _ = unix.Write(int(fd), t.rest)
			return true
		}
	}
	t.rest, t.n = b, 0
	if err := t.conn.Write(t.do); err != nil {
		t.n = 0
	}
	t.rest = nil
	return max(t.n, 0)
}
