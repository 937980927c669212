//go:build linux || darwin

package proc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// exhausted reports whether a Read would be io.EOF: nobody can write, and everything
// was read. Then there is nothing to wait for, whether somebody reads or not.
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

// trier is what TryWrite needs besides the file. It is made once, as it costs several
// allocations.
type trier struct {
	conn syscall.RawConn
	do   func(fd uintptr) bool // writes rest, once
	rest []byte
	n    int
}

// TryWrite writes as much of b as the pipe takes at once and returns how much that
// was, 0 where it is broken: a Write says how. One goroutine calls it at a time, and
// none calls Write meanwhile.
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
