//go:build unix

package handover

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"mcpx/internal/mcptest"
)

// pair returns two connected sockets.
func pair(t *testing.T) (a, b *os.File) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	a, b = os.NewFile(uintptr(fds[0]), "a"), os.NewFile(uintptr(fds[1]), "b")
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func conns(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	one, other := pair(t)
	made := func(f *os.File) *net.UnixConn {
		conn, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn.(*net.UnixConn)
	}
	return made(one), made(other)
}

// blockingPipe returns a pipe as a shell gives it to a program.
func blockingPipe(t *testing.T) (read, write *os.File) {
	t.Helper()
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(fds[0])
	syscall.CloseOnExec(fds[1])
	read, write = os.NewFile(uintptr(fds[0]), "read"), os.NewFile(uintptr(fds[1]), "write")
	t.Cleanup(func() { read.Close(); write.Close() })
	return read, write
}

func nonblocking(t *testing.T, f *os.File) bool {
	t.Helper()
	fd, err := descriptor(f)
	if err != nil {
		t.Fatal(err)
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		t.Fatal(err)
	}
	return flags&unix.O_NONBLOCK != 0
}

// handedOver hands two files over, and returns the streams of the other side.
func handedOver(t *testing.T, read, write *os.File) (in, out *Stream) {
	t.Helper()
	from, to := conns(t)
	if err := Send(from, read, write); err != nil {
		t.Fatal(err)
	}
	got, err := Receive(to, 2)
	if err != nil {
		t.Fatal(err)
	}
	if in, err = Open(got[0], false); err != nil {
		t.Fatal(err)
	}
	if out, err = Open(got[1], true); err != nil {
		t.Fatal(err)
	}
	return in, out
}

// TestHandover: a pipe or socket that is handed over works at the other side, and stays without O_NONBLOCK for the first
// process. A message that is larger than what a pipe or socket holds is written whole.
func TestHandover(t *testing.T) {
	mcptest.NoLeaks(t)
	large := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	for name, open := range map[string]func(*testing.T) (read, write *os.File){"pipe": blockingPipe, "socket": pair} {
		t.Run(name, func(t *testing.T) {
			read, write := open(t)
			in, out := handedOver(t, read, write)
			defer in.Close()
			written := make(chan error, 1)
			go func() { // ends when everything is read
				_, err := out.Write(large)
				written <- errors.Join(err, out.Close())
			}()
			buffer := make([]byte, len(large))
			if _, err := io.ReadFull(in, buffer); err != nil || !bytes.Equal(buffer, large) {
				t.Errorf("read: %v", err)
			}
			if err := <-written; err != nil {
				t.Error(err)
			}
			if nonblocking(t, read) || nonblocking(t, write) {
				t.Error("O_NONBLOCK is set on what others share")
			}
			write.Close()
			if n, err := in.Read(buffer); n != 0 || err != io.EOF {
				t.Errorf("at the end: %d, %v", n, err)
			}
		})
	}
}

// TestStream_Close ends reads that wait for input, and writes that nobody reads.
func TestStream_Close(t *testing.T) {
	mcptest.NoLeaks(t)
	for name, open := range map[string]func(*testing.T) (read, write *os.File){"pipe": blockingPipe, "socket": pair} {
		t.Run(name, func(t *testing.T) {
			read, write := open(t)
			in, out := handedOver(t, read, write)
			ended := make(chan error, 2)
			go func() { // ends with Close
				_, err := out.Write(make([]byte, 8<<20))
				ended <- err
			}()
			started := make([]byte, 1)
			if _, err := io.ReadFull(in, started); err != nil {
				t.Fatal(err)
			}
			out.Close()
			if err := <-ended; !errors.Is(err, os.ErrClosed) {
				t.Errorf("write: %v", err)
			}
			go func() { // ends with Close
				_, err := io.Copy(io.Discard, in)
				ended <- err
			}()
			in.Close()
			if err := <-ended; err != nil {
				t.Errorf("read: %v", err)
			}
		})
	}
}

func TestReceive_Nothing(t *testing.T) {
	from, to := conns(t)
	if _, err := from.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if files, err := Receive(to, 3); err == nil {
		t.Errorf("got %v", files)
	}
}

func TestPeerUID(t *testing.T) {
	a, _ := conns(t)
	if uid, err := PeerUID(a); err != nil || uid != os.Getuid() {
		t.Errorf("%d, %v", uid, err)
	}
}
