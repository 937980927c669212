//go:build linux || darwin

package proc

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// writePatience bounds a write to the reaper. Its pipe has room for thousands of
	// lines, so only a reaper that was stopped can exceed it; it is replaced.
	writePatience = time.Second
	// closePatience is how long a reaper may take to end at EOF; it needs some
	// milliseconds.
	closePatience = 2 * time.Second
)

var errClosed = errors.New("the reaper is closed")

// Reaper is a small process, this executable started again, that holds the read end of
// a pipe to us and the list of our children's groups. When the pipe closes, which no
// kind of our end can prevent, it kills them and ends. One is enough for all children
// of a program, whose main must call ReaperMain. It is replaced when it dies. Safe for
// concurrent use. With a nil *Reaper children are started without one, and survive us
// when we are killed.
//
// Where orphans become our children (we are the init process of a container, or a
// subreaper), it also sees to it that their zombies are reaped.
type Reaper struct {
	token string // nothing else on this machine carries it
	seq   atomic.Uint64

	// starting is held from before a process is forked until it is on the list, so that
	// the sweep for adopted zombies cannot take it for one. It is locked before mu.
	starting sync.Mutex

	// mu is held during writes to the pipe too: our list and the reaper's must not
	// differ, and the pipe has room.
	mu     sync.Mutex
	groups map[int]bool // guarded by mu; false between forget and reaped
	link   *link        // guarded by mu; nil before the first child and after Close
	sweep  *sweeper     // guarded by mu; nil where no orphans come to us
	closed bool         // guarded by mu
}

// link is one run of the reaper process.
type link struct {
	pipe    *os.File
	proc    *os.Process
	started time.Time
	done    chan struct{} // closed when it has been reaped
}

// NewReaper returns a reaper whose process is started with the first child.
func NewReaper() *Reaper {
	return &Reaper{token: rand.Text(), groups: make(map[int]bool)}
}

// mark is the value of markVar for the next child. The dot at its end keeps child 1
// from being the beginning of child 12.
func (r *Reaper) mark() string {
	if r == nil {
		return rand.Text() + "."
	}
	return r.token + "." + strconv.FormatUint(r.seq.Add(1), 10) + "."
}

// launch runs start, which forks a child, and puts the child's group on the list. The
// reaper is there before the child is.
func (r *Reaper) launch(start func() (*os.Process, error)) (*os.Process, error) {
	if r == nil {
		return start()
	}
	r.starting.Lock()
	defer r.starting.Unlock()
	if err := r.ready(); err != nil {
		return nil, fmt.Errorf("starting the reaper: %w", err)
	}
	proc, err := start()
	if err != nil {
		return nil, err
	}
	if err := r.add(proc.Pid); err != nil {
		syscall.Kill(-proc.Pid, syscall.SIGKILL)
		proc.Wait()
		r.reaped(proc.Pid)
		return nil, fmt.Errorf("registering with the reaper: %w", err)
	}
	return proc, nil
}

// ready starts the reaper's process unless it runs.
func (r *Reaper) ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	if r.sweep == nil && adoptsOrphans() {
		r.sweep = newSweeper(r)
	}
	if r.link != nil {
		return nil
	}
	return r.spawn()
}

// add puts a group on the list. A reaper that does not take it is replaced once.
func (r *Reaper) add(id int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	r.groups[id] = true
	if r.link != nil && r.link.send('+', id) == nil {
		return nil
	}
	r.drop()
	return r.spawn()
}

// forget takes a group off the list. It must be called before the child is reaped. A
// reaper that does not read this is replaced by one that never knew the group.
func (r *Reaper) forget(id int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups[id] = false
	if r.link != nil && r.link.send('-', id) != nil {
		r.drop()
		// An error here comes again with the next launch, which reports it.
		_ = r.spawn()
	}
}

// reaped ends what forget began: the number is free.
func (r *Reaper) reaped(id int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.groups, id)
}

// spawn starts a reaper process and gives it the list. Callers hold mu.
func (r *Reaper) spawn() error {
	exe, err := Executable()
	if err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	proc, err := os.StartProcess(exe, []string{"mcpx-reaper"}, &os.ProcAttr{
		Dir: "/",
		// One thread and a tight heap, before the runtime has chosen otherwise.
		Env:   []string{RoleVar + "=" + ReaperRole + " " + r.token, "GOMAXPROCS=1", "GOGC=10"},
		Files: []*os.File{read, null, null},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		write.Close()
		return err
	}
	l := &link{pipe: write, proc: proc, started: time.Now(), done: make(chan struct{})}
	for id, listed := range r.groups {
		if listed {
			if err := l.send('+', id); err != nil {
				l.end()
				l.proc.Wait()
				return err
			}
		}
	}
	r.link = l
	go r.attend(l)
	return nil
}

// attend waits for the end of a reaper process, which comes at the latest with Close or
// with drop. One that died by itself while it was needed is replaced, but not one that
// did not even live a second: then the next launch tries, and says what is wrong.
func (r *Reaper) attend(l *link) {
	l.proc.Wait()
	r.starting.Lock()
	defer r.starting.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(l.done)
	if r.closed || r.link != l {
		return
	}
	r.drop()
	if len(r.groups) > 0 && time.Since(l.started) > time.Second {
		_ = r.spawn() // as in forget
	}
}

// drop ends a reaper that is dead or does not read. It is killed before its pipe is
// closed, as a live one would kill the children at the end of the pipe. Callers hold mu.
func (r *Reaper) drop() {
	if r.link != nil {
		r.link.end()
		r.link = nil
	}
}

// end kills a reaper process before its pipe is closed.
func (l *link) end() {
	l.proc.Kill()
	l.pipe.Close()
}

// send tells the reaper to add ('+') or remove ('-') a group. Such a short write is
// whole or not at all.
func (l *link) send(op byte, id int) error {
	l.pipe.SetWriteDeadline(time.Now().Add(writePatience))
	_, err := l.pipe.Write(append(strconv.AppendInt([]byte{op}, int64(id), 10), '\n'))
	return err
}

// Close ends the reaper's process and waits for that. It belongs after the Close of all
// children: those that are left are killed. Nothing can be started with r afterwards.
func (r *Reaper) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	l, s := r.link, r.sweep
	r.link, r.sweep, r.closed = nil, nil, true
	r.mu.Unlock()
	if s != nil {
		s.stop()
	}
	if l == nil {
		return nil
	}
	l.pipe.Close()
	select {
	case <-l.done:
		return nil
	case <-time.After(closePatience):
		l.proc.Kill()
		<-l.done
		return fmt.Errorf("ending the reaper: still there %v after its pipe was closed", closePatience)
	}
}
