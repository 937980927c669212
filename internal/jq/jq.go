// Package jq runs jq filters on JSON in a bounded helper process.
//
// A filter comes from a model, so it may be wrong, endless or hostile, and gojq bounds neither time nor memory: `range(1e12)`
// hardly ends and `[range(1e9)]` needs tens of gigabytes. So filters run in helper processes (see package helper): a helper is this
// executable, started again in the role jq. This process only parses a filter, in Check and Constructed. The size of the output is
// checked while it is written. The functions input, debug, stderr and halt, and modules, are not available.
//
// # What a filter does to JSON
//
// gojq sorts the keys of an object; if a key occurs twice, the last value is used. A number
// without arithmetic keeps its literal (1.10, 1e2, 2^53+1). Arithmetic is exact for integers
// of any size and float64 for other numbers, so that 1.10 * 1 is 1.1. NaN becomes null, and
// an infinity the largest float64. In strings, <, > and & are not escaped, and half a surrogate pair and invalid UTF-8
// become U+FFFD.
package jq

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/itchyny/gojq"

	"mcpx/internal/base/helper"
	"mcpx/internal/base/proc"
	"mcpx/internal/base/semaphore"
)

// Limits has the limits for one filter (Time, Memory and Output) and for the helper processes (Helpers and Idle). In each field,
// 0 means the default.
type Limits struct {
	// Time is the wall clock time of one filter, with its compilation and the transport of
	// the JSON, but without the start of a helper. Default 1 s.
	Time time.Duration
	// Memory is how many bytes of memory a helper may use. The input and the output of the
	// filter are included. Default 256 MB.
	Memory int64
	// Output is how many bytes all outputs of a filter may have together. Each output counts as
	// 8 bytes more than it has, so that the number of outputs is bounded too. Default 8 MB.
	Output int64
	// Helpers is how many helpers may run at the same time. If all are busy, at most queue.Calls further calls of Run wait for a
	// helper. One principal uses at most half of the helpers at the same time. Default 2.
	Helpers int
	// Idle is the time after which an unused helper ends. Default 60 s.
	Idle time.Duration
}

// queue limits how many filters wait for a helper, since each waiting filter holds its input in memory.
var queue = semaphore.Queue{Calls: 256, Wait: 30 * time.Second}

func (l Limits) withDefaults() Limits {
	l.Time = cmp.Or(l.Time, time.Second)
	l.Memory = cmp.Or(l.Memory, 256<<20)
	l.Output = cmp.Or(l.Output, 8<<20)
	l.Helpers = cmp.Or(l.Helpers, 2)
	l.Idle = cmp.Or(l.Idle, time.Minute)
	return l
}

// FilterError means that a filter is wrong or failed on its input. Message is for the caller,
// who can correct it.
type FilterError struct {
	// Message is one short line, with the position if the filter could not be parsed.
	Message string
}

func (e *FilterError) Error() string { return "jq: " + e.Message }

// Check parses a filter without running it. It returns a *FilterError if the filter is too
// long or has a syntax error. Other errors, such as an undefined function, appear only in Run.
//
// Check needs no helper: the parser is not recursive, and it takes time and memory in proportion to the filter, which has at most
// 64 KB.
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
		return &FilterError{Message: fmt.Sprintf("the filter is longer than %s", helper.Size(maxFilter))}
	}
	return nil
}

// LimitError means that a filter exceeded a limit. The helper was then killed, except if the limit was the output.
type LimitError struct {
	// What is "time", "memory" or "output".
	What string
	// Limit is the limit as text, such as "1s" or "8 MB".
	Limit string
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("jq: the filter needs more than %s of %s", e.Limit, e.What)
}

// Runner runs filters in helpers. It is safe for concurrent use.
type Runner struct {
	limits  Limits
	helpers *helper.Pool
}

// New returns a runner, which starts its first helper at the first Run. Helpers are registered with the reaper, which ends them
// if this process is killed. The reaper may be nil, and must outlive the runner.
func New(l Limits, reaper *proc.Reaper) *Runner {
	return newRunner(l, func(s proc.Spec) (*proc.Process, error) { return proc.Start(s, reaper) })
}

func newRunner(l Limits, start helper.Starter) *Runner {
	l = l.withDefaults()
	return &Runner{limits: l, helpers: helper.New(role, helper.Limits{
		Time:    l.Time,
		Memory:  l.Memory,
		Frame:   l.Output + notOutput,
		Helpers: l.Helpers,
		Queue:   queue,
		Idle:    l.Idle,
	}, start)}
}

// Run applies a filter to input, which is one JSON value, and returns the outputs of the filter, if any. The parameter owner is the
// ID of the principal for whom the filter runs. The outputs share one buffer, which the caller owns. After an error there are no
// outputs. The error is a *FilterError, a *LimitError, a *semaphore.BusyError or ctx.Err(). It is another error if the input is not
// JSON, or if the helper could not be started or has failed. If ctx ends, the helper is killed.
func (r *Runner) Run(ctx context.Context, owner, filter string, input []byte) ([]json.RawMessage, error) {
	if err := checkLength(filter); err != nil {
		return nil, err
	}
	data, err := r.helpers.Do(ctx, owner, nil, binary.BigEndian.AppendUint64(nil, uint64(len(filter))), []byte(filter), input)
	switch {
	case err == nil:
		return answer(data).parse(r.limits)
	case errors.Is(err, helper.ErrTime):
		return nil, limitError("time", r.limits)
	case errors.Is(err, helper.ErrMemory):
		return nil, limitError("memory", r.limits)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil, err
	}
	if busy, ok := errors.AsType[*semaphore.BusyError](err); ok {
		return nil, busy
	}
	return nil, fmt.Errorf("running the filter: %w", err)
}

// Close kills all helpers, and returns when they have ended. A second call also waits for this. A Run that is under way fails.
func (r *Runner) Close() { r.helpers.Close() }

func limitError(what string, l Limits) *LimitError {
	e := &LimitError{What: what}
	switch what {
	case "time":
		e.Limit = l.Time.String()
	case "memory":
		e.Limit = helper.Size(l.Memory)
	case "output":
		e.Limit = helper.Size(l.Output)
	}
	return e
}
