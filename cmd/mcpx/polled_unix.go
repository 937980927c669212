//go:build unix

package main

import (
	"io"
	"os"
	"syscall"
	"time"
)

// polled lets the runtime's poller wait for in, if that is a pipe or a socket. Then a read
// holds no thread while it waits, and a call runs on the thread that has read it: with one
// caller that is a fifth of what mcpx adds to a call. The func that it returns takes it back,
// as other processes may have the same pipe.
//
// A terminal stays as it is, since it is the shell's too, and so does a socket that is one of
// the outputs as well: a write to it would fail where the client is slow to read.
func polled(in io.Reader, outputs ...*os.File) (io.Reader, func()) {
	unchanged := func() {}
	file, ok := in.(*os.File)
	if !ok {
		return in, unchanged
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return in, unchanged
	}
	for _, out := range outputs {
		if other, err := out.Stat(); err == nil && os.SameFile(info, other) {
			return in, unchanged
		}
	}
	conn, err := file.SyscallConn()
	if err != nil || file.SetReadDeadline(time.Time{}) == nil { // it is polled already
		return in, unchanged
	}
	var through int // a descriptor of its own: that of in has an owner
	closed := conn.Control(func(fd uintptr) {
		syscall.ForkLock.RLock() // no child gets it
		defer syscall.ForkLock.RUnlock()
		if through, err = syscall.Dup(int(fd)); err == nil {
			syscall.CloseOnExec(through)
			err = syscall.SetNonblock(through, true) // both descriptors have the flag in common
		}
	})
	if closed != nil || err != nil {
		return in, unchanged
	}
	return os.NewFile(uintptr(through), file.Name()), func() {
		_ = conn.Control(func(fd uintptr) { _ = syscall.SetNonblock(int(fd), false) })
	}
}
