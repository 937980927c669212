//go:build linux || darwin

package proc

import (
	"bytes"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// reapRounds and reapPause bound the reaper's own end to well under 100 ms.
	reapRounds = 12
	reapPause  = 5 * time.Millisecond
)

// ReaperMain runs the reaper and exits if this process was started as one; otherwise it
// does nothing. Call it first thing in main, and in TestMain: whatever runs before it
// costs the reaper memory.
func ReaperMain() {
	token, ok := strings.CutPrefix(os.Getenv(RoleVar), ReaperRole+" ")
	if !ok || token == "" {
		return
	}
	// A signal to everything that belongs to us, or the end of the terminal, must not
	// end the one process that has to outlive us.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGPIPE)
	debug.SetGCPercent(10)
	nameReaper()
	groups := listen(0)
	reapAll(groups, token)
	// Not os.Exit, which under the race detector takes a second.
	syscall.Exit(0)
}

// listen follows the list until the pipe closes. It reads with a plain system call so
// that the runtime needs no poller.
func listen(fd int) map[int]bool {
	debug.FreeOSMemory()
	DropFilePages()
	groups := make(map[int]bool)
	buf := make([]byte, 1024)
	held := 0
	for {
		n, err := unix.Read(fd, buf[held:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return groups
		}
		data := buf[:held+n]
		for {
			line, rest, whole := bytes.Cut(data, []byte{'\n'})
			if !whole {
				break
			}
			note(groups, line)
			data = rest
		}
		held = copy(buf, data)
	}
}

// note takes one line of the list: +ID or -ID.
func note(groups map[int]bool, line []byte) {
	if len(line) < 2 {
		return
	}
	id, err := strconv.Atoi(string(line[1:]))
	if err != nil || id <= 1 {
		return // kill(-1) would be everything
	}
	switch line[0] {
	case '+':
		groups[id] = true
	case '-':
		delete(groups, id)
	}
}

// reapAll kills the groups, and what carries the token, until two looks in a row find
// nothing. The second is for a child that was between its exec and having its
// environment, and for what was forked during the first.
func reapAll(groups map[int]bool, token string) {
	clean := 0
	for round := 0; round < reapRounds && clean < 2; round++ {
		if round > 0 {
			<-time.After(reapPause)
		}
		for id := range groups {
			unix.Kill(-id, unix.SIGKILL)
		}
		if killFound(groups, token) {
			clean = 0
		} else {
			clean++
		}
	}
}
