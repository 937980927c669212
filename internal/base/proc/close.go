package proc

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// orphanGrace is what a child's group gets between TERM and KILL when the child
	// ended without being asked to: its session is lost, nobody waits for the rest.
	orphanGrace = 200 * time.Millisecond
	// killPatience is how long anything may take to disappear after SIGKILL. More is
	// needed only by a process in an uninterruptible system call.
	killPatience = 2 * time.Second
	// outputGrace is how long after the end a pipe may stay open that a process out of
	// our reach inherited, and how long a reader has to take what is in it.
	outputGrace = 500 * time.Millisecond
	// pollFirst and pollMost bound the growing pauses between looks at a group.
	pollFirst = 2 * time.Millisecond
	pollMost  = 50 * time.Millisecond
)

// Grace is the time a group gets after each step of Close to end by itself.
type Grace struct {
	// EOF is the time after stdin was closed; 0 means 500 ms.
	EOF time.Duration
	// TERM is the time after SIGTERM (CTRL_BREAK on Windows); 0 means 2 s.
	TERM time.Duration
}

// ending is how callers tell supervise to end the child.
type ending struct {
	closing   chan Grace // the grace of the first Close
	closeOnce sync.Once
	killing   chan struct{} // closed by the first Kill
	killOnce  sync.Once
}

func newEnding() *ending {
	return &ending{closing: make(chan Grace, 1), killing: make(chan struct{})}
}

// Close ends the child and all of its group: stdin is closed; after g.EOF the group
// gets TERM; after g.TERM it gets KILL. Each step is left out when nothing lives any
// more, also of the grandchildren. The end of ctx, of any caller, goes straight to
// KILL. Close returns when nothing of the group lives and all descriptors are closed,
// that is after at most g.EOF + g.TERM and about half a second. Calls after the first
// wait for the same end; they get the first one's grace. The error is not nil only when
// something outlived SIGKILL by 2 s (an uninterruptible system call, another user's
// process).
func (p *Process) Close(ctx context.Context, g Grace) error {
	if g.EOF == 0 {
		g.EOF = 500 * time.Millisecond
	}
	if g.TERM == 0 {
		g.TERM = 2 * time.Second
	}
	p.ending.closeOnce.Do(func() {
		p.stdin.Close()
		p.ending.closing <- g
	})
	select {
	case <-ctx.Done():
		p.Kill()
	case <-p.stuck:
	case <-p.finished:
	}
	select {
	case <-p.stuck:
	case <-p.finished: // err is not written any more
	}
	return p.err
}

// Kill sends KILL to the whole group, soon and without waiting for its end. A later
// Close waits.
func (p *Process) Kill() {
	p.ending.killOnce.Do(func() { close(p.ending.killing) })
}

// supervise is the one place that signals and reaps; see the package comment for why it
// is one goroutine. It ends after the child has.
func (p *Process) supervise(stderr *output, drained <-chan struct{}) {
	defer close(p.finished)
	var g Grace
	select {
	case <-p.exited:
		g.TERM = orphanGrace
	case g = <-p.ending.closing:
	case <-p.ending.killing:
	}
	gone := p.gone(g.EOF)
	if !gone {
		select {
		case <-p.ending.killing:
		default:
			p.group.terminate()
			gone = p.gone(g.TERM)
		}
	}
	if !gone {
		p.kill()
	}
	<-p.exited
	p.group.signal(sigKill) // what a look at /proc, which takes its time, may have missed
	p.reaper.forget(p.PID())
	p.reap()

	cut, cancel := context.WithTimeout(context.Background(), outputGrace)
	defer cancel()
	select {
	case <-drained:
	case <-cut.Done():
		stderr.end()
		<-drained
	}
	close(p.done)
	if !p.stdout.exhausted() {
		select {
		case <-p.stdout.ended:
		case <-cut.Done():
		}
	}
	p.stdout.end()
	p.stdin.Close()
}

// gone waits until the child has ended and nothing of its group lives. It gives up
// after d, or when somebody lost patience.
func (p *Process) gone(d time.Duration) bool {
	limit := time.After(d)
	select {
	case <-p.exited:
	default:
		select {
		case <-p.exited:
		case <-limit:
			return false
		case <-p.ending.killing:
			return false
		}
	}
	for pause := pollFirst; p.group.alive(); pause = min(2*pause, pollMost) {
		select {
		case <-time.After(pause):
		case <-limit:
			return false
		case <-p.ending.killing:
			return false
		}
	}
	return true
}

// kill sends KILL until nothing of the group lives. One round is not enough where a
// process forks while it is being looked for.
func (p *Process) kill() {
	limit := time.After(killPatience)
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		p.group.kill()
		select {
		case <-p.exited:
			if !p.group.alive() {
				return
			}
		default:
		}
		select {
		case <-time.After(pause):
		case <-limit:
			p.err = fmt.Errorf("ending %q: a process of group %d lives %v after SIGKILL", p.name, p.PID(), killPatience)
			close(p.stuck)
			return
		}
	}
}

// reap takes the child's exit status, and the zombies of its group that became our
// children because we are the init process of a container.
func (p *Process) reap() {
	p.seen.stop()
	p.group.reapAdopted()
	state, err := p.proc.Wait()
	if err != nil {
		p.reason = "unknown: " + err.Error()
	} else {
		p.state, p.reason = state, state.String()
	}
	p.reaper.reaped(p.PID())
	p.group.release()
}
