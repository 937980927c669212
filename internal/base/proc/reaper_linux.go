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

// nameReaper gives the reaper a name of its own in ps; the kernel would call it "exe".
func nameReaper() {
	name := []byte("mcpx-reaper\x00")
	unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0)
}

// DropFilePages gives back the pages of the program's file that were needed to start it:
// several megabytes, of which the reaper uses hardly any. The kernel reads them again
// where they are touched.
func DropFilePages() {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	var from, to uint64
	for line := range strings.Lines(string(smaps)) {
		// proc_pid_smaps(5): "from-to mode offset device inode path", then "Field:
		// value kB".
		f := strings.Fields(line)
		if low, high, header := strings.Cut(f[0], "-"); header {
			from, to = 0, 0
			if len(f) == 6 && f[1][1] == '-' && f[5][0] == '/' {
				from, _ = strconv.ParseUint(low, 16, 64)
				to, _ = strconv.ParseUint(high, 16, 64)
			}
			continue
		}
		// Read-only memory that was written to before, such as relocated addresses, is
		// no longer what the file has. It counts as anonymous.
		if f[0] == "Anonymous:" && f[1] == "0" && to > from {
			unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), unix.MADV_DONTNEED)
		}
	}
}

// killFound kills what is left of the groups' sessions and everything that carries the
// token. It reports whether there was anything alive.
func killFound(groups map[int]bool, token string) bool {
	found := find(func(m member) bool {
		return m.state != zombie && (groups[m.session] || carries(m.pid, token+"."))
	})
	for _, m := range found {
		signalMember(m, unix.SIGKILL)
	}
	return len(found) > 0
}

// adoptsOrphans reports whether processes whose parent ended become our children.
func adoptsOrphans() bool {
	var subreaper int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&subreaper)), 0, 0, 0)
	return os.Getpid() == 1 || err == nil && subreaper != 0
}

// sweeper reaps adopted zombies while the program runs: a server may leave some behind
// every minute for weeks.
type sweeper struct {
	signals chan os.Signal
	done    chan struct{}
}

// newSweeper starts the goroutine; stop ends it.
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

// reapAdopted reaps the zombies that no other code waits for: children of ours in
// another session, so descendants of the processes that Start started, but not those
// processes. Children that other packages started are in our session: they reap them.
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

// waitsFor reports whether a child is one that somebody here reaps.
func (r *Reaper) waitsFor(pid int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, started := r.groups[pid]
	return started || r.link != nil && r.link.proc.Pid == pid
}
