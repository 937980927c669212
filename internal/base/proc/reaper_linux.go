package proc

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nameReaper names the reaper in ps; the kernel would name it "exe".
func nameReaper() {
	name := []byte("mcpx-reaper\x00")
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
}

// DropFilePages releases the memory pages of the executable that were needed only for the start. They are several
// megabytes, and the reaper uses hardly any of them. The kernel reads a page again when it is accessed.
func DropFilePages() {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	var from, to uint64
	for line := range strings.Lines(string(smaps)) {
		// proc_pid_smaps(5): "from-to mode offset device inode path", then lines "Field: value kB".
		f := strings.Fields(line)
		if low, high, header := strings.Cut(f[0], "-"); header {
			from, to = 0, 0
			if len(f) == 6 && f[1][1] == '-' && f[5][0] == '/' {
				from, _ = strconv.ParseUint(low, 16, 64)
				to, _ = strconv.ParseUint(high, 16, 64)
			}
			continue
		}
		// Read-only memory that was written to at the start (relocated addresses) differs from the file, so it must stay. The
		// kernel lists it as anonymous.
		if f[0] == "Anonymous:" && f[1] == "0" && to > from {
			unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), unix.MADV_DONTNEED)
		}
	}
}

// killFound kills all processes whose session id is a key of groups, and all processes whose mark (see markVar) begins with
// the token. It reports whether it found any.
func killFound(groups map[int]bool, token string) bool {
	found := find(func(m member) bool {
		return m.state != zombie && (groups[m.session] || carries(m.pid, token+"."))
	})
	for _, m := range found {
		signalMember(m, unix.SIGKILL)
	}
	return len(found) > 0
}

// adoptsOrphans reports whether orphaned processes become children of this process. They do if this process is process 1 or a
// subreaper.
func adoptsOrphans() bool {
	var subreaper int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&subreaper)), 0, 0, 0)
	return os.Getpid() == 1 || err == nil && subreaper != 0
}

// sweeper reaps adopted zombies while the program runs, as an MCP server may leave some behind every minute.
type sweeper struct {
	signals chan os.Signal
	done    chan struct{}
}

func newSweeper(r *Reaper) *sweeper {
	s := &sweeper{signals: make(chan os.Signal, 1), done: make(chan struct{})}
	signal.Notify(s.signals, syscall.SIGCHLD)
	go func() {
		defer close(s.done)
		for range s.signals {
			r.reapAdopted()
		}
	}()
	return s
}

func (s *sweeper) stop() {
	signal.Stop(s.signals)
	close(s.signals)
	<-s.done
}

// reapAdopted reaps zombies that no other code waits for: orphaned descendants of the children that Start started, which this
// process has adopted. It finds them among the children of this process: they are in another session, and Start did not start them.
// Children that other packages start are in the session of this process.
func (r *Reaper) reapAdopted() {
	r.starting.Lock()
	defer r.starting.Unlock()
	self := os.Getpid()
	own, err := unix.Getsid(0)
	if err != nil {
		return
	}
	for _, m := range find(func(m member) bool {
		return m.state == zombie && m.parent == self && m.session != own && !r.waitsFor(m.pid)
	}) {
		unix.Wait4(m.pid, nil, unix.WNOHANG, nil)
	}
}

// waitsFor reports whether this package itself reaps the child pid.
func (r *Reaper) waitsFor(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, started := r.groups[pid]
	return started || r.link != nil && r.link.proc.Pid == pid
}
