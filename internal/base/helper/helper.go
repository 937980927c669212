// Package helper runs jobs in helper processes with limits: this executable, started again in a role.
//
// A job is bytes, and so is its answer; the role defines their meaning. During a job the helper can send requests to
// its parent, and gets a reply to each. A helper that exceeds a limit is killed, and the next job starts another.
// Between jobs the helper keeps running.
//
// # Roles
//
// The main function of the program calls Roles.Play first. Serve is the main function of roles whose jobs come from a
// Pool.
//
// # What limits a helper
//
// The parent measures the time and kills the helper; the helper also exits a little later by itself, in case the
// parent is stopped. Memory has three guards: the kernel refuses memory far over the limit (RLIMIT_DATA, Linux), the
// parent checks the resident size (Linux), and the helper checks its own heap (everywhere). A helper has no
// environment, the root as its working folder and UTC as its time zone. It exits when its stdin closes, even during a
// job, so it does not outlive its parent; the reaper of package proc ensures that too.
package helper

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"mcpx/internal/base/proc"
)

// Errors of Do, besides the error of its context and faults of the helper.
var (
	// ErrTime: the job took longer than Limits.Time. The helper is killed.
	ErrTime = errors.New("the job exceeds its time limit")
	// ErrMemory: the job, a reply or the work on the job exceeds Limits.Memory.
	ErrMemory = errors.New("the job exceeds its memory limit")
	// ErrClosed: the pool was closed before the job was done.
	ErrClosed = errors.New("the pool of helpers is closed")
)

// Limits bound the helpers of a pool. All must be set; Requests may be 0 if helpers get no Reply.
type Limits struct {
	// Time is the wall clock time of a job, including the transfer of job and answer and the parent's work on
	// requests, but not the start of a helper.
	Time time.Duration
	// Memory is the size in bytes that a helper may reach, including the job.
	Memory int64
	// Frame is the largest answer or request of a helper, in bytes.
	Frame int64
	// Requests is how many requests of a helper are handled at the same time; others wait.
	Requests int
	// Helpers is the maximum number of helpers; more jobs wait.
	Helpers int
	// Idle is how long a helper is kept without a job.
	Idle time.Duration
}

type Starter func(proc.Spec) (*proc.Process, error)

// Reply handles a request that a helper sends during a job. Several may run concurrently. ctx ends with the job, and
// Do returns only after all replies to its helper.
type Reply func(ctx context.Context, request []byte) []byte

// Pool distributes jobs to helpers of one role. It is safe for concurrent use.
type Pool struct {
	role   string
	limits Limits
	start  Starter
	slots  chan struct{} // holds one element per running job
	closed chan struct{} // closed by Close

	mu   sync.Mutex
	idle []*helper // guarded by mu; the most recently used is last

	helpers sync.WaitGroup // done when all helper processes have ended
}

// New returns a pool of helpers in a role from main's Roles. The first job starts the first helper.
func New(role string, l Limits, start Starter) *Pool {
	return &Pool{
		role:   role,
		limits: l,
		start:  start,
		slots:  make(chan struct{}, l.Helpers),
		closed: make(chan struct{}),
	}
}

// Do runs a job, which is its parts joined, in a helper and returns the answer, which the caller owns. reply handles
// the helper's requests; nil forbids them. The error is ErrTime, ErrMemory, ErrClosed, ctx.Err(), or says that a
// helper could not be started, died, or sent invalid data. If ctx ends, the helper is killed, and the next job starts
// another.
func (p *Pool) Do(ctx context.Context, reply Reply, job ...[]byte) ([]byte, error) {
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
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, ErrClosed
	}
	h, err := p.acquire(ctx)
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

// acquire returns an idle helper if there is one, else a new one.
func (p *Pool) acquire(ctx context.Context) (*helper, error) {
	p.mu.Lock()
	for len(p.idle) > 0 {
		h := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		h.timer.Stop()
		if h.process.ExitReason() == "" {
			p.mu.Unlock()
			return h, nil
		}
		h.kill()
	}
	if p.isClosed() {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	// Under mu, so that Close waits for this helper too.
	p.helpers.Add(1)
	p.mu.Unlock()
	return startHelper(ctx, p)
}

// release keeps a helper for the next job, for the time Idle.
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

// retire ends an idle helper. If a timer of an earlier idle time calls it late, it ends a helper too early, which
// costs only a start.
func (p *Pool) retire(h *helper) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, h); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		h.kill()
	}
}

// Close kills all helpers and returns when they are reaped. Running jobs return ErrClosed. Later calls wait for the
// same end.
func (p *Pool) Close() {
	p.mu.Lock()
	if !p.isClosed() {
		close(p.closed)
	}
	for _, h := range p.idle {
		h.timer.Stop()
		h.kill()
	}
	p.idle = nil
	p.mu.Unlock()
	p.helpers.Wait()
}

func (p *Pool) isClosed() bool {
	select {
	case <-p.closed:
		return true
	default:
		return false
	}
}
