// Package jq runs jq filters on JSON in a bounded helper process.
//
// A filter comes from a model, so it may be wrong, endless or hostile, and gojq
// bounds neither time nor memory: `range(1e12)` never ends and `[range(1e9)]` wants
// tens of gigabytes. Filters therefore run in workers: this executable, started again
// with an environment variable that Main answers to. A worker that goes beyond a limit
// is killed, and the next Run starts another. Between runs it stays warm. Only the
// syntax of a filter may be checked in this process, by Check.
//
// # What holds a filter
//
// Time is measured by the parent, which kills; the worker ends itself a little later
// in case the parent is stopped. Memory has three guards: the kernel refuses what is
// far beyond the limit (RLIMIT_DATA, Linux), the parent looks at the resident size
// (Linux), and the worker looks at its own heap (everywhere, and alone elsewhere).
// Output is counted while it is written. A worker has no environment, "/" as its
// directory and UTC as its time zone; input, modules, debug, stderr and halt are not there.
// It ends when its stdin closes, also while a filter spins, so that nothing is
// left of it when the parent is killed; the reaper of package proc sees to that as well.
//
// # What a filter does to JSON
//
// The keys of an object come out sorted, as always with gojq; of equal keys the last
// counts. A number that the filter only passes on keeps its literal (1.10, 1e2, 2^53+1).
// Arithmetic is exact for integers of any size and float64 for the rest, so that
// 1.10 * 1 is 1.1. NaN becomes null and the infinities the largest float64.
// In strings, <, > and & are not escaped, and invalid UTF-8 becomes U+FFFD.
package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/itchyny/gojq"

	"mcpx/internal/base/proc"
)

// Limits bound a filter and the workers. A field that is zero or less has the
// default that stands with it.
type Limits struct {
	// Time is the wall clock time of one filter, its compilation and the transport of
	// the JSON included, the start of a worker not. 1 s.
	Time time.Duration
	// Memory is the size in bytes that a worker may reach, input and output included. 256 MB.
	Memory int64
	// Output is the size in bytes of all outputs of a filter; each counts 8 bytes
	// beyond its own, so that a million of nothing is something. 8 MB.
	Output int64
	// Workers is the number of workers at most; a Run beyond waits. 2.
	Workers int
	// Idle is how long a worker stays without work. 60 s.
	Idle time.Duration
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.Time, time.Second)
	setDefault(&l.Memory, 256<<20)
	setDefault(&l.Output, 8<<20)
	setDefault(&l.Workers, 2)
	setDefault(&l.Idle, time.Minute)
	return l
}

func setDefault[T ~int | ~int64](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// FilterError says that a filter is wrong or failed on its input: the fault is the
// caller's, and Message is for it to read.
type FilterError struct {
	// Message is one short line, with the position if the filter could not be parsed.
	Message string
}

func (e *FilterError) Error() string { return "jq: " + e.Message }

// Check parses a filter without running it. It returns a *FilterError if the filter is
// too long or is not the syntax of jq. Other faults, such as a function that does not
// exist, show when it runs.
//
// It needs no worker: the parser is not recursive, and its time and memory grow only
// with the filter, which has at most 64 KB.
func Check(filter string) error {
	if err := checkLength(filter); err != nil {
		return err
	}
	if _, err := gojq.Parse(filter); err != nil {
		return &FilterError{Message: oneLine(describe(filter, err))}
	}
	return nil
}

func checkLength(filter string) error {
	if len(filter) > maxFilter {
		return &FilterError{Message: fmt.Sprintf("the filter is longer than %s", size(maxFilter))}
	}
	return nil
}

// LimitError says that a filter wanted more than it may have. The worker is gone
// unless it was the output.
type LimitError struct {
	// What is "time", "memory" or "output".
	What string
	// Limit is the limit in a form to read, such as "1s" or "8 MB".
	Limit string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("jq: the filter needs more than %s of %s", e.Limit, e.What)
}

// ErrClosed is what Run returns after Close, and when Close interrupts it.
var ErrClosed = errors.New("jq runner is closed")

// Runner runs filters in workers. It is safe for concurrent use.
type Runner struct {
	limits Limits
	reaper *proc.Reaper
	slots  chan struct{} // holds one element per Run under way
	closed chan struct{} // closed by Close

	mu   sync.Mutex
	idle []*worker // guarded by mu; the last was used last

	workers sync.WaitGroup // ends with the workers' processes
}

// New returns a runner. It starts nothing until the first Run. Workers are registered
// with the reaper, which may be nil and has to outlive the runner.
func New(l Limits, reaper *proc.Reaper) *Runner {
	l = l.withDefaults()
	return &Runner{
		limits: l,
		reaper: reaper,
		slots:  make(chan struct{}, l.Workers),
		closed: make(chan struct{}),
	}
}

// Run applies filter to input, which is one JSON value, and returns what the filter
// puts out: any number of values, none included. They share one buffer that is the
// caller's. With an error there are none, also if it came after some. The error is a
// *FilterError, a *LimitError, ErrClosed, ctx.Err(), or says that the input is no JSON
// or that a worker could not be started. The end of ctx kills the worker, which costs
// the next Run a start.
func (r *Runner) Run(ctx context.Context, filter string, input []byte) ([]json.RawMessage, error) {
	if err := checkLength(filter); err != nil {
		return nil, err
	}
	if int64(len(input)) >= r.limits.Memory {
		return nil, limitError("memory", r.limits)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.closed:
		return nil, ErrClosed
	}
	w, err := r.acquire(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := w.run(ctx, filter, input)
	if err != nil {
		w.kill()
		return nil, err
	}
	r.release(w)
	return answer.parse(r.limits)
}

// acquire returns a warm worker if there is one, else a new one.
func (r *Runner) acquire(ctx context.Context) (*worker, error) {
	r.mu.Lock()
	for len(r.idle) > 0 {
		w := r.idle[len(r.idle)-1]
		r.idle = r.idle[:len(r.idle)-1]
		w.timer.Stop()
		if !w.ended() {
			r.mu.Unlock()
			return w, nil
		}
		w.kill()
	}
	if r.isClosed() {
		r.mu.Unlock()
		return nil, ErrClosed
	}
	// Under mu, so that Close cannot start to wait before this is counted.
	r.workers.Add(1)
	r.mu.Unlock()
	return startWorker(ctx, r)
}

// release keeps a worker for the next Run, for a while.
func (r *Runner) release(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isClosed() {
		w.kill()
		return
	}
	r.idle = append(r.idle, w)
	w.timer = time.AfterFunc(r.limits.Idle, func() { r.retire(w) })
}

// retire ends a worker that has been idle for long, unless it was just taken. The timer of
// an earlier idleness may still come here: then it ends a warm worker, which costs a start.
func (r *Runner) retire(w *worker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.idle, w); i >= 0 {
		r.idle = slices.Delete(r.idle, i, i+1)
		w.kill()
	}
}

// Close kills all workers and returns when they are reaped. A Run under way returns
// ErrClosed. Calls after the first wait for the same end.
func (r *Runner) Close() {
	r.mu.Lock()
	if !r.isClosed() {
		close(r.closed)
	}
	for _, w := range r.idle {
		w.timer.Stop()
		w.kill()
	}
	r.idle = nil
	r.mu.Unlock()
	r.workers.Wait()
}

func (r *Runner) isClosed() bool {
	select {
	case <-r.closed:
		return true
	default:
		return false
	}
}

func limitError(what string, l Limits) *LimitError {
	e := &LimitError{What: what}
	switch what {
	case "time":
		e.Limit = l.Time.String()
	case "memory":
		e.Limit = size(l.Memory)
	case "output":
		e.Limit = size(l.Output)
	}
	return e
}

// size writes a number of bytes as people do.
func size(n int64) string {
	switch {
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
