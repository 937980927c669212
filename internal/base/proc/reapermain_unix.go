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

// reaperRole is the role of the reaper.
const reaperRole = "reaper"

const (
	// reapRounds and reapPause bound how long the reaper kills processes before it exits: usually less than 100 ms.
	reapRounds = 12
	reapPause  = 5 * time.Millisecond
)

// init runs the reaper and exits if this process was started as a reaper. It does so before most packages of mcpx are initialised, since
// whatever runs earlier costs the reaper memory.
func init() {
	token, ok := strings.CutPrefix(os.Getenv(RoleVar), reaperRole+" ")
	if !ok || token == "" {
		return
	}
	// The reaper must survive signals that are sent to all processes of mcpx, and the closing of the terminal.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGPIPE)
	debug.SetGCPercent(10) // GOGC=10 in the environment would collect several times before main
	nameReaper()
	groups := listen(0)
	reapAll(groups, token)
	// os.Exit takes a second under the race detector.
	syscall.Exit(0)
}

// listen reads from a pipe which process groups to add or remove. When the pipe closes, listen returns the groups that were not
// removed. It uses plain system calls, so that the runtime starts no poller.
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

// note applies one line from the pipe to groups: +ID adds a group, -ID removes it.
func note(groups map[int]bool, line []byte) {
	if len(line) < 2 {
		return
	}
	id, err := strconv.Atoi(string(line[1:]))
	if err != nil || id <= 1 {
		return // kill(-1) would kill all processes of the user
	}
	switch line[0] {
	case '+':
		groups[id] = true
	case '-':
		delete(groups, id)
	}
}

// reapAll kills the groups and, on Linux, the processes that killFound finds. It repeats this until two searches in a row have
// found no process, but at most reapRounds times. One search is not enough, because it misses processes that were forked during the
// search, or that were between exec and the setup of their environment.
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
