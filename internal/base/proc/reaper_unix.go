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
	// writePatience bounds a write to the pipe of the reaper process. The pipe holds thousands of lines, so a write takes that long
	// only if the reaper process was stopped. Then Reaper replaces the process.
	writePatience = time.Second
	// closePatience is how long a reaper may take to end after its pipe was closed. It usually takes milliseconds.
	closePatience = 2 * time.Second
)

var errClosed = errors.New("the reaper is closed")

// Reaper manages the reaper process, which is this executable, started again. The reaper process holds the read end of a pipe and a
// list of the groups of the children. The pipe closes however this process ends; the reaper process then kills the groups and
// exits. If the reaper process dies, Reaper starts it again. A program needs only one Reaper. Reaper is safe for concurrent use.
// With a nil *Reaper, children survive when this process is killed.
//
// If this process adopts orphans (as the init process of a container, or as a subreaper), Reaper also reaps their zombies.
type Reaper struct {
	token string // unique on this machine
	seq   atomic.Uint64

	// starting is held from before the fork of a child until waitsFor returns true for the child, so that the sweeper does not reap
	// the child. It also makes children start one at a time, which withUmask needs. starting is locked before mu.
	starting sync.Mutex

	// mu is also held during writes to the pipe, so that groups always has the same content as the list of the reaper process.
	mu     sync.Mutex
	groups map[int]bool // guarded by mu; true while the reaper process lists the group; false from forget until reaped
	link   *link        // guarded by mu; nil before the first child and after Close
	sweep  *sweeper     // guarded by mu; nil if this process adopts no orphans
	closed bool         // guarded by mu
}

type link struct {
	pipe    *os.File
	proc    *os.Process
	started time.Time
	done    chan struct{} // closed when the reaper process has been reaped
}

// NewReaper returns a Reaper. Its process is started together with the first child.
func NewReaper() *Reaper {
	return &Reaper{token: rand.Text(), groups: make(map[int]bool)}
}

// mark returns the value of markVar for the next child. It ends in a dot so that the mark of child 1 is not a prefix
// of the mark of child 12.
func (r *Reaper) mark() string {
	if r == nil {
		return rand.Text() + "."
	}
	return r.token + "." + strconv.FormatUint(r.seq.Add(1), 10) + "."
}

// launch starts the reaper process if it does not run. Then it calls start, which forks a child, and puts the child's group on the
// list of the reaper process.
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

// ready starts the reaper process if it does not run and, if this process adopts orphans, the sweeper. After Close it returns
// errClosed.
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

// add puts a group on the list of the reaper process. If the write to that process fails, add starts another one, which gets the
// whole list.
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

// forget removes a group from the list of the reaper process, before the child is reaped. If the write to that process fails,
// forget replaces the process. The list of the new one does not contain the group.
func (r *Reaper) forget(id int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.groups[id] = false
	if r.link != nil && r.link.send('-', id) != nil {
		r.drop()
		// The next launch reports an error.
		_ = r.spawn()
	}
}

// reaped deletes a group from the map groups, once its child has been reaped: from then on, the kernel may give the id of the group
// to another group. The caller has called forget before.
func (r *Reaper) reaped(id int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.groups, id)
}

// spawn starts a reaper process and sends it the list of groups. The caller holds mu.
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
		Dir:   "/",
		Env:   []string{RoleVar + "=" + reaperRole + " " + r.token, "GOMAXPROCS=1"}, // a single thread keeps the reaper small
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

// attend waits for the end of a reaper process. If the process died while there are groups, attend replaces it. If it
// lived for less than a second, attend does not replace it; the next launch tries again and reports the error.
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
		_ = r.spawn() // the next launch reports an error
	}
}

// drop ends a reaper process that is dead or does not read its pipe. drop kills the process before it closes the pipe: a
// reaper process whose pipe is closed kills the children. The caller holds mu.
func (r *Reaper) drop() {
	if r.link != nil {
		r.link.end()
		r.link = nil
	}
}

func (l *link) end() {
	l.proc.Kill()
	l.pipe.Close()
}

// send tells the reaper process to add ('+') or remove ('-') a group. A write this short is atomic.
func (l *link) send(op byte, id int) error {
	l.pipe.SetWriteDeadline(time.Now().Add(writePatience))
	_, err := l.pipe.Write(append(strconv.AppendInt([]byte{op}, int64(id), 10), '\n'))
	return err
}

// Close ends the reaper process and waits for its end. Call Close after closing all children: the reaper kills those
// that still run. After Close, no child can be started with r.
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
