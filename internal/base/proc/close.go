package proc

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

const (
	// orphanGrace is the time between TERM and KILL for the other processes of a group whose child ended unexpectedly.
	// The MCP session with the child is lost by then, so it is no use to wait longer.
	orphanGrace = 200 * time.Millisecond
	// killPatience is how long processes may take to disappear after SIGKILL. Only two kinds take longer: a process in an
	// uninterruptible system call, and a process of another user, which mcpx may not kill.
	killPatience = 2 * time.Second
	// outputGrace is how long stdout and stderr stay open after the end of the child. In this time the rest of the
	// output can still be read. Without a limit, a process that cannot be signalled could hold them open for ever.
	outputGrace = 500 * time.Millisecond
	// pollMin and pollMax are the shortest and the longest pause between two checks of a group.
	pollMin = 2 * time.Millisecond
	pollMax = 50 * time.Millisecond
)

// Grace is how long a group may take to end after each step of Close.
type Grace struct {
	// EOF is the time after stdin was closed; 0 means 500 ms.
	EOF time.Duration
	// TERM is the time after SIGTERM (CTRL_BREAK on Windows); 0 means 2 s.
	TERM time.Duration
}

// Close ends the child and its whole group in steps: it closes stdin; after g.EOF it sends TERM; after g.TERM it sends KILL. It
// skips the remaining steps once no process of the group runs, grandchildren included. If the ctx of any caller ends, Close sends
// KILL at once. Close returns when the group is gone and all descriptors are closed, usually after at most g.EOF + g.TERM and half
// a second. Further calls wait for the end too, but their g is ignored. The error is not nil only if a process survived SIGKILL for
// 2 s: it is in an uninterruptible system call, or belongs to another user. Close then returns while the process still runs.
func (p *Process) Close(ctx context.Context, g Grace) error {
	g.EOF, g.TERM = cmp.Or(g.EOF, 500*time.Millisecond), cmp.Or(g.TERM, 2*time.Second)
	p.closeOnce.Do(func() {
		// supervise must have g before stdin is closed, because the child may end at once when its input ends.
		p.closing <- g
		p.stdin.Close()
	})
	select {
	case <-ctx.Done():
		p.Kill()
	case <-p.stuck:
	case <-p.finished:
	}
	select {
	case <-p.stuck:
	case <-p.finished: // p.err no longer changes
	}
	return p.err
}

// Kill makes supervise send KILL to the whole group. Kill returns at once; Close waits for the end.
func (p *Process) Kill() {
	p.killOnce.Do(func() { close(p.killing) })
}

// supervise is the only code that signals and reaps the child, so that no signal is sent to an id that the kernel has given to
// another process. supervise ends after the child.
func (p *Process) supervise(stderr *output, drained <-chan struct{}) {
	defer close(p.finished)
	var g Grace
	select {
	case <-p.exited:
		select {
		case g = <-p.closing:
		default:
			g.TERM = orphanGrace
		}
	case g = <-p.closing:
	case <-p.killing:
	}
	gone := p.gone(g.EOF)
	if !gone {
		select {
		case <-p.killing:
		default:
			p.group.terminate()
			gone = p.gone(g.TERM)
		}
	}
	if !gone {
		p.kill()
	}
	<-p.exited
	p.group.signal(sigKill) // for processes that were forked during the search in /proc
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

// gone waits until the child has ended and its group is empty, and then returns true. It returns false after the time d, or when
// Kill is called.
func (p *Process) gone(d time.Duration) bool {
	limit := time.After(d)
	select {
	case <-p.exited:
	default:
		select {
		case <-p.exited:
		case <-limit:
			return false
		case <-p.killing:
			return false
		}
	}
	for pause := pollMin; p.group.alive(); pause = min(2*pause, pollMax) {
		select {
		case <-time.After(pause):
		case <-limit:
			return false
		case <-p.killing:
			return false
		}
	}
	return true
}

// kill sends KILL until the group is empty, or until killPatience is over. One round is not enough if a process forks
// during the search for processes.
func (p *Process) kill() {
	limit := time.After(killPatience)
	for pause := pollMin; ; pause = min(2*pause, pollMax) {
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
			p.err = fmt.Errorf("ending %q: a process of group %d still runs %v after SIGKILL", p.name, p.PID(), killPatience)
			close(p.stuck)
			return
		}
	}
}

// reap collects the child's exit status. If this process is the init process of a container, it has adopted orphans of the child's
// group; reap also reaps those that are zombies.
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
