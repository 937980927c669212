// Package helper executes jobs in helper processes, which have limits. A helper is this executable, started again in a role.
//
// A job and its answer are bytes; the role defines their meaning. During a job the helper can send requests to its
// parent, and gets a reply to each. A helper that exceeds a limit is killed, and the next job starts another helper.
// Between jobs the helper keeps running.
//
// # Roles
//
// A package with a role calls Play in an init function. Serve is the main function of roles whose jobs come from a Pool.
//
// # What limits a helper
//
// The parent measures the time and kills a helper that takes too long. In case the parent is suspended, the helper also exits by
// itself, a little later. Memory has three guards: the kernel refuses memory far over the limit (RLIMIT_DATA, on Linux), the parent
// checks the helper's resident size (on Linux), and the helper checks its own heap (everywhere). A helper has no environment
// variables, the root as its working folder and UTC as its time zone. It exits when its stdin is closed, even during a job. So it
// does not outlive its parent; the reaper of package proc also makes sure of that.
package helper

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"mcpx/internal/base/proc"
	"mcpx/internal/base/semaphore"
)

// Errors that Do returns. It may also return the error of its context, or say that the helper failed.
var (
	// ErrTime: the job took longer than Limits.Time. The helper is killed, or exits.
	ErrTime = errors.New("the job exceeds its time limit")
	// ErrMemory: the job, a reply or executing the job needs more than Limits.Memory.
	ErrMemory = errors.New("the job exceeds its memory limit")
	// ErrClosed: the pool was closed before the job was done.
	ErrClosed = errors.New("the pool of helpers is closed")
)

// Limits bound the helpers of a pool. Queue may be zero, and so may Requests if Do is always called without a Reply. All other
// fields must be set.
type Limits struct {
	// Time bounds the time of a job. It includes sending the job and the answer, and the parent's work on requests,
	// but not the start of a helper.
	Time time.Duration
	// Memory is how much memory a helper may use, in bytes. The job is included.
	Memory int64
	// Frame bounds the size of an answer or request that a helper sends, in bytes.
	Frame int64
	// Requests is how many requests of one helper are handled at the same time. Further requests wait.
	Requests int
	// Helpers is the maximum number of helpers. Further jobs wait. The jobs of one owner use at most half of the helpers, but may
	// always use one; jobs without an owner may use all.
	Helpers int
	// Queue bounds the waiting jobs.
	Queue semaphore.Queue
	// Idle is how long a helper without a job is kept.
	Idle time.Duration
}

// A Starter starts a helper process, mostly with [proc.Start] and the reaper of this process.
type Starter func(proc.Spec) (*proc.Process, error)

// Reply handles a request that a helper sends during a job. Several calls may run at the same time. ctx ends with the
// job. Do returns only after all calls of its Reply have returned.
type Reply func(ctx context.Context, request []byte) []byte

// Pool distributes jobs to helpers of one role. It is safe for concurrent use.
type Pool struct {
	role   string
	limits Limits
	start  Starter
	slots  *semaphore.Semaphore // bounds the jobs that are executed
	open   context.Context      // ends when Close is called
	close  context.CancelFunc   // ends open

	mu   sync.Mutex
	idle []*helper // guarded by mu; the helper that was used last is at the end

	helpers sync.WaitGroup // done when all helper processes have ended
}

// New returns a pool of helpers in a role. A helper is this executable, so the program must play the role (see [Play]). The first
// job starts the first helper.
func New(role string, l Limits, start Starter) *Pool {
	open, end := context.WithCancel(context.Background())
	return &Pool{
		role:   role,
		limits: l,
		start:  start,
		slots:  semaphore.Shared(l.Helpers, l.Queue),
		open:   open, close: end,
	}
}

// Do executes a job for an owner in a helper and returns the answer, which the caller owns. The job is its parts
// joined. reply handles the helper's requests; if reply is nil, the helper must not send any. The error is ErrTime,
// ErrMemory, ErrClosed, a *semaphore.BusyError or ctx.Err(), or says that a helper could not be started, died, or sent
// invalid data. If ctx ends, the helper is killed, and the next job starts another.
func (p *Pool) Do(ctx context.Context, owner string, reply Reply, job ...[]byte) ([]byte, error) {
	size := 0
	for _, part := range job {
		size += len(part)
	}
	if int64(size) >= p.limits.Memory {
		return nil, ErrMemory
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := p.enter(ctx, owner); err != nil {
		return nil, err
	}
	defer p.slots.Leave(owner)
	h, err := p.acquire(ctx, owner)
	if err != nil {
		return nil, err
	}
	answer, err := h.do(ctx, reply, job)
	if err != nil {
		h.kill()
		return nil, err
	}
	p.release(h)
	return answer, nil
}

// enter waits until the pool may execute one more job. After a nil error the caller must call p.slots.Leave. In a closed pool the
// error is ErrClosed.
func (p *Pool) enter(ctx context.Context, owner string) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(p.open, cancel)
	defer stop()
	err := p.slots.Enter(waiting, owner)
	busy, isBusy := errors.AsType[*semaphore.BusyError](err)
	switch {
	case p.isClosed():
		if err == nil {
			p.slots.Leave(owner)
		}
		return ErrClosed
	case isBusy && !busy.Refused:
		return ctx.Err()
	}
	return err
}

// acquire returns an idle helper whose last job was of the same owner. If there is none, it starts a new helper, even if helpers of
// other owners are idle. The reason: if this owner's jobs exceed limits, only this owner's helpers are killed, and the other owners
// keep theirs. If the pool may not have one more helper, acquire returns the helper that was idle for the longest time.
func (p *Pool) acquire(ctx context.Context, owner string) (*helper, error) {
	p.mu.Lock()
	for len(p.idle) > 0 {
		i := len(p.idle) - 1
		for i >= 0 && p.idle[i].owner != owner {
			i--
		}
		if i < 0 {
			if running, _ := p.slots.Use(); running+len(p.idle) <= p.limits.Helpers {
				break
			}
			i = 0
		}
		h := p.idle[i]
		p.idle = slices.Delete(p.idle, i, i+1)
		h.timer.Stop()
		if h.process.ExitReason() == "" {
			h.owner = owner
			p.mu.Unlock()
			return h, nil
		}
		h.kill()
	}
	if p.isClosed() {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	// mu is locked here, so that Close waits for this helper too.
	p.helpers.Add(1)
	p.mu.Unlock()
	h, err := startHelper(ctx, p)
	if err == nil {
		h.owner = owner
	}
	return h, err
}

// release keeps a helper for the next job, at most for Limits.Idle. In a closed pool, it kills the helper.
func (p *Pool) release(h *helper) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosed() {
		h.kill()
		return
	}
	p.idle = append(p.idle, h)
	h.timer = time.AfterFunc(p.limits.Idle, func() { p.retire(h) })
}

// retire ends an idle helper. Its timer may fire late, after a further job has taken the helper. As long as the job runs, h is not
// in p.idle, and nothing happens. If that job has ended as well, the helper is idle again, and retire ends it too early. That does
// no harm: the next job starts another helper.
//
// When no helper is left, retire gives the memory of jobs, replies and answers back to the system, because the next garbage
// collection may be far away.
func (p *Pool) retire(h *helper) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, h); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		h.kill()
		if running, _ := p.slots.Use(); running+len(p.idle) == 0 {
			go debug.FreeOSMemory() // ends after one garbage collection
		}
	}
}

// Close kills all helpers and returns when they are reaped. Running jobs return ErrClosed. Further calls of Close also
// wait until all helpers are reaped.
func (p *Pool) Close() {
	p.mu.Lock()
	p.close()
	for _, h := range p.idle {
		h.timer.Stop()
		h.kill()
	}
	p.idle = nil
	p.mu.Unlock()
	p.helpers.Wait()
}

func (p *Pool) isClosed() bool { return p.open.Err() != nil }

// Size writes a number of bytes, such as a limit of helpers, in a short form: "64 MB".
func Size(n int64) string {
	switch {
	case n%1e6 == 0:
		return fmt.Sprintf("%d MB", int64(n/1e6))
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
