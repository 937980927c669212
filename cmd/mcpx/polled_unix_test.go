//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// pipe returns a pipe whose reads block, like the one that a shell gives to a program.
func pipe(t *testing.T) (in *os.File, out *os.File) {
	var ends [2]int
	syscall.ForkLock.RLock() // a child that inherits the other end would keep it open
	defer syscall.ForkLock.RUnlock()
	if err := syscall.Pipe(ends[:]); err != nil {
		t.Fatal(err)
	}
	syscall.CloseOnExec(ends[0])
	syscall.CloseOnExec(ends[1])
	in, out = os.NewFile(uintptr(ends[0]), "in"), os.NewFile(uintptr(ends[1]), "out")
	t.Cleanup(func() { in.Close(); out.Close() })
	return in, out
}

func TestPolled(t *testing.T) {
	in, out := pipe(t)
	through, restore := polled(in)
	if err := through.(*os.File).SetReadDeadline(time.Now()); err != nil { // this fails for files whose reads block
		t.Fatalf("the pipe is not polled: %v", err)
	}
	if _, err := through.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read: %v", err)
	}
	_ = through.(*os.File).SetReadDeadline(time.Time{})
	if again, _ := polled(through); again != through {
		t.Error("what is polled is not taken as it is")
	}
	if _, err := out.WriteString("a message"); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if data, err := io.ReadAll(through); err != nil || string(data) != "a message" {
		t.Errorf("read %q, %v", data, err)
	}
	restore()
	fd, err := syscall.Dup(int(in.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	now := os.NewFile(uintptr(fd), "as other processes have it")
	defer now.Close()
	if now.SetReadDeadline(time.Time{}) == nil {
		t.Error("reads of other processes from the pipe fail where they would wait")
	}
}

func TestPolled_SocketForBoth(t *testing.T) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	both, client := os.NewFile(uintptr(ends[0]), "both"), os.NewFile(uintptr(ends[1]), "client")
	defer both.Close()
	defer client.Close()
	if in, _ := polled(both, both); in != io.Reader(both) {
		t.Error("writes to the socket would fail where the client is slow to read")
	}
	if in, restore := polled(both, client); in == io.Reader(both) {
		t.Error("a socket for the input alone is not polled")
	} else {
		restore()
	}
}

func TestPolled_File(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if in, _ := polled(file); in != io.Reader(file) {
		t.Error("a file is never waited for, and must be taken as it is")
	}
}
