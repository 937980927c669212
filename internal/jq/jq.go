// Package jq runs jq filters on JSON in a bounded helper process.
//
// A filter comes from a model, so it may be wrong, endless or hostile, and gojq
// bounds neither time nor memory: `range(1e12)` never ends and `[range(1e9)]` needs
// tens of gigabytes. Filters therefore run in helpers (see package helper), whose role has
// Main as its main function. Only the syntax of a filter may be checked in this process, by
// Check. Output is counted while it is written; input, modules, debug, stderr and halt are
// not there.
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
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/itchyny/gojq"

	"mcpx/internal/base/helper"
	"mcpx/internal/base/proc"
)

// Limits bound a filter and the helpers. A field that is zero or less has the default that
// its comment names.
type Limits struct {
	// Time is the wall clock time of one filter, its compilation and the transport of
	// the JSON included, the start of a helper not. 1 s.
	Time time.Duration
	// Memory is the size in bytes that a helper may reach, input and output included. 256 MB.
	Memory int64
	// Output is the size in bytes of all outputs of a filter; each counts 8 bytes
	// beyond its own, so that a million of nothing is something. 8 MB.
	Output int64
	// Helpers is the number of helpers at most; a Run beyond waits. 2.
	Helpers int
	// Idle is how long a helper stays without work. 60 s.
	Idle time.Duration
}

func (l Limits) withDefaults() Limits {
	setDefault(&l.Time, time.Second)
	setDefault(&l.Memory, 256<<20)
	setDefault(&l.Output, 8<<20)
	setDefault(&l.Helpers, 2)
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
// It needs no helper: the parser is not recursive, and its time and memory grow only
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

// LimitError says that a filter needs more than it may have. The helper is gone unless it
// was the output.
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

// Runner runs filters in helpers. It is safe for concurrent use.
type Runner struct {
	limits  Limits
	helpers *helper.Pool
}

// New returns a runner. It starts nothing until the first Run. Helpers are registered
// with the reaper, which may be nil and has to outlive the runner.
func New(l Limits, reaper *proc.Reaper) *Runner {
	return newRunner(l, func(s proc.Spec) (*proc.Process, error) { return proc.Start(s, reaper) })
}

func newRunner(l Limits, start helper.Starter) *Runner {
	l = l.withDefaults()
	return &Runner{limits: l, helpers: helper.New(Role, helper.Limits{
		Time:    l.Time,
		Memory:  l.Memory,
		Frame:   l.Output + notOutput,
		Helpers: l.Helpers,
		Idle:    l.Idle,
	}, start)}
}

// Run applies filter to input, which is one JSON value, and returns what the filter
// puts out: any number of values, none included. They share one buffer that is the
// caller's. With an error there are none, also if it came after some. The error is a
// *FilterError, a *LimitError, ErrClosed, ctx.Err(), or says that the input is no JSON
// or that a helper could not be started. The end of ctx kills the helper, which costs
// the next Run a start.
func (r *Runner) Run(ctx context.Context, filter string, input []byte) ([]json.RawMessage, error) {
	if err := checkLength(filter); err != nil {
		return nil, err
	}
	data, err := r.helpers.Do(ctx, nil, binary.BigEndian.AppendUint64(nil, uint64(len(filter))), []byte(filter), input)
	switch {
	case err == nil:
		return answer(data).parse(r.limits)
	case errors.Is(err, helper.ErrTime):
		return nil, limitError("time", r.limits)
	case errors.Is(err, helper.ErrMemory):
		return nil, limitError("memory", r.limits)
	case errors.Is(err, helper.ErrClosed):
		return nil, ErrClosed
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil, err
	}
	return nil, fmt.Errorf("running the filter: %w", err)
}

// Close kills all helpers and returns when they are reaped. A Run under way returns
// ErrClosed. Calls after the first wait for the same end.
func (r *Runner) Close() { r.helpers.Close() }

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
