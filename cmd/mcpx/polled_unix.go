//go:build unix

package main

import (
	"io"
	"os"
	"syscall"
	"time"
)

// polled returns a reader of in. If in is a pipe or a socket, Go's network poller waits for its input. Then a waiting read does not
// block a thread, and the thread that has read a call also runs it. With one caller this saves a fifth of the time that mcpx adds to a
// call. The reader makes in non-blocking. The caller must call restore at the end, which makes it blocking again, because other
// processes may use the same pipe.
//
// polled leaves a terminal as it is, because the shell uses it too. It also leaves a socket that is one of the outputs as it is,
// because writes to a non-blocking output would fail while the client is slow to read.
func polled(in io.Reader, outputs ...*os.File) (_ io.Reader, restore func()) {
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
	if err != nil || file.SetReadDeadline(time.Time{}) == nil { // the poller is already in use
		return in, unchanged
	}
	var through int // a duplicate descriptor: closing in must not close this one
	closed := conn.Control(func(fd uintptr) {
		syscall.ForkLock.RLock() // so that no child process inherits the duplicate
		defer syscall.ForkLock.RUnlock()
		if through, err = syscall.Dup(int(fd)); err == nil {
			syscall.CloseOnExec(through)
			err = syscall.SetNonblock(through, true) // this sets the flag for both descriptors
		}
	})
	if closed != nil || err != nil {
		return in, unchanged
	}
	return os.NewFile(uintptr(through), file.Name()), func() {
		_ = conn.Control(func(fd uintptr) { _ = syscall.SetNonblock(int(fd), false) })
	}
}
