// Package helper runs jobs in bounded helper processes: this executable, started again in
// a role.
//
// A job is bytes, and so is its answer; what they mean is up to the role. While a helper
// works on a job it can send requests to its parent and gets a reply to each. A helper that
// exceeds a limit is killed, and the next job starts another. Between jobs it stays warm.
//
// # Roles
//
// The main function of the program plays its Roles before it does anything else. Serve is
// the main function of a role whose jobs come from a Pool.
//
// # What bounds a helper
//
// The parent measures time and kills; the helper ends itself a little later in case the
// parent is stopped. Memory has three guards: the kernel refuses what is far beyond the
// limit (RLIMIT_DATA, Linux), the parent looks at the resident size (Linux), and the helper
// looks at its own heap (everywhere, and alone elsewhere). A helper has no environment, the
// root as its folder and UTC as its time zone. It ends when its stdin closes, also in the
// middle of a job, so that nothing is left of it when the parent is killed; the reaper of
// package proc sees to that as well.
package helper

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"mcpx/internal/base/proc"
)

// Why a job was not done, beside the end of its context and faults of the helper.
var (
	// ErrTime: the job ran longer than Limits.Time. The helper is gone.
	ErrTime = errors.New("the job needs more time than it may have")
	// ErrMemory: the job or a reply is too large for Limits.Memory, or the work on it was.
	ErrMemory = errors.New("the job needs more memory than it may have")
	// ErrClosed: the pool was closed before the job was done.
	ErrClosed = errors.New("the pool of helpers is closed")
)

// Limits bound the helpers of a pool. All of them must be set, but Requests may be 0 where
// helpers get no Reply.
type Limits struct {
	// Time is the wall clock time of a job. It includes the transport of the job and of its
	// answer, and the parent's work on requests, but not the start of a helper.
	Time time.Duration
	// Memory is the size in bytes that a helper may reach. The job is part of it.
	Memory int64
	// Frame is the size in bytes of what a helper may send at once: an answer or a request.
	Frame int64
	// Requests is how many requests of a helper are under way at most; more wait.
	Requests int
	// Helpers is how many helpers there are at most; a job beyond that waits.
	Helpers int
	// Idle is how long a helper stays without a job.
	Idle time.Duration
}

// Starter starts the process of a helper, usually with proc.Start and a reaper.
type Starter func(proc.Spec) (*proc.Process, error)

// Reply answers a request that a helper makes during a job. Several may run at the same
// time. ctx ends with the job; Do returns only after all replies to its helper have.
type Reply func(ctx context.Context, request []byte) []byte

// Pool gives jobs to helpers of one role. It is safe for concurrent use.
type Pool struct {
	role   string
	limits Limits
	start  Starter
	slots  chan struct{} // holds one element per job under way
	closed chan struct{} // closed by Close

	mu   sync.Mutex
	idle []*helper // guarded by mu; the last was used last

	helpers sync.WaitGroup // ends with the helpers' processes
}

// New returns a pool of helpers in a role, which main must have in its Roles. It starts
// nothing until the first job.
func New(role string, l Limits, start Starter) *Pool {
	return &Pool{
		role:   role,
		limits: l,
		start:  start,
		slots:  make(chan struct{}, l.Helpers),
		closed: make(chan struct{}),
	}
}

// Do has a helper do a job, which are its parts joined, and returns the answer. The answer
// is the caller's. reply answers what the helper asks meanwhile; with nil it may not ask.
// The error is ErrTime, ErrMemory, ErrClosed, ctx.Err(), or says that a helper could not be
// started, died, or sent what it should not. The end of ctx kills the helper, which costs
// the next job a start.
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

// acquire returns a warm helper if there is one, else a new one.
func (p *Pool) acquire(ctx context.Context) (*helper, error) {
	p.mu.Lock()
	for len(p.idle) > 0 {
		h := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		h.timer.Stop()
		if !h.ended() {
			p.mu.Unlock()
			return h, nil
		}
		h.kill()
	}
	if p.isClosed() {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	// Under mu, so that Close cannot begin to wait before this helper is among those that
	// it waits for.
	p.helpers.Add(1)
	p.mu.Unlock()
	return startHelper(ctx, p)
}

// release keeps a helper for the next job, for a while.
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

// retire ends a helper that has been idle for long, unless it was just taken. The timer of
// an earlier idleness may still come here: then it ends a warm helper, which costs a start.
func (p *Pool) retire(h *helper) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, h); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		h.kill()
	}
}

// Close kills all helpers and returns when they are reaped. A job under way returns
// ErrClosed. Calls after the first wait for the same end.
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
