//go:build linux || darwin

package proc

import "golang.org/x/sys/unix"

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
