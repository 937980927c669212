// Package programs runs JavaScript programs in bounded helper processes. If a program calls a tool, this process makes the call.
//
// A program comes from a model, so it may be wrong, endless or hostile. The engine (QuickJS) has no access to files, the network,
// the environment or other processes. Its helper process (see package helper) bounds memory and time. A program reaches the outside
// only by messages to this process, which ask for a call, a kept result or a file. This process decides about each such message,
// and trusts nothing that the helper sends: it counts the calls itself, and passes on only valid JSON.
//
// # Time
//
// Two clocks bound a program. The clock in the helper measures how long the engine runs. The clock in this process measures how
// long the whole program takes, and stands still while the user confirms a call. When the time of either clock is over, the helper
// interrupts the engine and still sends what the program has logged. If the helper does not do so at once, it is killed.
package programs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpx/internal/base/helper"
	"mcpx/internal/base/proc"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
)

// Limits bound programs. For each of them, 0 means the default.
type Limits struct {
	// Time bounds a program that asks for no other time; the default is 60 s. MaxTime is the longest time that a program may
	// ask for; the default is 300 s, and it is never less than Time.
	Time, MaxTime time.Duration
	// Memory bounds the engine, in bytes; the default is 64 MiB. Run ignores it: the memory given to New applies to all
	// programs.
	Memory int64
	// Calls is how many calls a program may make in all; the default is 200. AtOnce is how many of them may run at the
	// same time; the default is 16, and the maximum is maxAtOnce.
	Calls, AtOnce int
}

// WithDefaults returns l with the default for each limit that is 0.
func (l Limits) WithDefaults() Limits {
	l.Time = cmp.Or(l.Time, time.Minute)
	l.MaxTime = max(cmp.Or(l.MaxTime, 5*time.Minute), l.Time)
	l.Memory = cmp.Or(l.Memory, 64<<20)
	l.Calls = cmp.Or(l.Calls, 200)
	l.AtOnce = cmp.Or(l.AtOnce, 16)
	return l
}

const (
	// output bounds the value of a program, in bytes.
	output = 1 << 20
	// maxArguments bounds the arguments of a call, in bytes. This process may hold the arguments of Limits.AtOnce calls of one
	// program at the same time.
	maxArguments = 1 << 20
	// frame bounds one message of a helper, in bytes: the answer, or a call with its arguments.
	frame = 2*(output+maxLogs) + 64<<10
	// extraMemory is the memory of a helper, in bytes, in addition to the memory of the engine. It is for messages and for the Go
	// runtime, which does not give address space back between two programs.
	extraMemory = 128 << 20
	// helpers is how many programs may run at the same time. One principal uses at most half of them.
	helpers = 8
	// idle is how long a helper is kept for the next program.
	idle = 10 * time.Second
	// grace is how long a helper may take to end a program after its time is over, also on a busy machine. Then the helper is killed, and
	// what the program has logged is lost.
	grace = time.Second
	// maxConfirming is how much longer than Limits.MaxTime a program may take because the user confirms calls.
	maxConfirming = time.Hour
	// maxCode bounds the code of a program, in bytes.
	maxCode = 256 << 10
)

// queue bounds how many programs wait for a helper.
var queue = semaphore.Queue{Calls: 64, Wait: 30 * time.Second}

// These are the codes of failures that this package makes itself.
const (
	CodeFailed = "EXECUTION_ERROR"
	codeTime   = "TIMEOUT"
)

// Failure is an error of a call, or of a program, with its code.
type Failure struct{ Code, Message string }

func (f *Failure) Error() string { return f.Message }

// Program is one program to run, with its limits.
type Program struct {
	// Code is the body of an async function.
	Code string
	// Parameters is the pattern of the function's only parameter, such as {a, b}. Arguments is its value as JSON. Both may be
	// empty.
	Parameters string
	Arguments  json.RawMessage
	Limits     Limits
	// Timeout is how long the program may take, but not longer than Limits.MaxTime; 0 means Limits.Time.
	Timeout time.Duration
}

// Call is a call that a program makes.
type Call struct {
	Server, Tool string
	Arguments    json.RawMessage
	// Hold stops the clock of the program until the returned function release is called.
	Hold func() (release func())
}

// Host is what a program can reach. The functions may be called concurrently, but not after Run has returned. They
// must return soon after ctx has ended.
type Host struct {
	// Call makes a call and returns the value that the program gets. outcome is how the call ended, in the words of
	// request.Event.
	Call func(ctx context.Context, c Call) (value json.RawMessage, outcome string, failure *Failure)
	// Result returns a kept result as a value.
	Result func(ctx context.Context, handle string) (json.RawMessage, *Failure)
	// File returns the text of a file.
	File func(ctx context.Context, path string) (text string, failure *Failure)
	// Progress gets how many of the calls have ended, and how many calls the program has asked for. It is nil if the client wants
	// no progress.
	Progress func(done, total int)
}

// Outcome is how a program ended.
type Outcome struct {
	// Value is JSON; nil for undefined, and if there is a Failure.
	Value json.RawMessage
	// Logs are the lines of console.log. If there were too many, the last line has the number of the missing lines.
	Logs string
	// Made are the calls, in the order in which they began.
	Made []Made
	// Failure is nil if the program returned a value within the limits, or undefined.
	Failure *Failure
}

// Runner runs programs in helpers. It is safe for concurrent use.
type Runner struct {
	memory  int64
	helpers *helper.Pool
}

// New returns a runner for programs whose engine may use this much memory, in bytes; 0 means the default. It starts its first
// helper at the first Run or Check. Helpers are registered with the reaper, which ends them if this process is killed. The reaper
// may be nil, and must outlive the runner.
func New(memory int64, reaper *proc.Reaper) *Runner {
	return newRunner(memory, func(s proc.Spec) (*proc.Process, error) { return proc.Start(s, reaper) })
}

func newRunner(memory int64, start helper.Starter) *Runner {
	memory = Limits{Memory: memory}.WithDefaults().Memory
	return &Runner{memory: memory, helpers: helper.New(role, helper.Limits{
		Time:     24 * time.Hour, // Run has its own clocks
		Memory:   memory + extraMemory,
		Frame:    frame,
		Requests: maxAtOnce + 2, // for the calls, the clock, and a result or a file
		Helpers:  helpers,
		Queue:    queue,
		Idle:     idle,
	}, start)}
}

// maxAtOnce bounds Limits.AtOnce.
const maxAtOnce = 64

// errOver is the cause of the end of a program's context if the helper must be killed because the program's time is over.
var errOver = errors.New("the time of the program is over")

// Run runs a program on behalf of owner, the ID of a principal. The error is a *semaphore.BusyError or ctx.Err(), or
// says that a helper could not be started or has failed. How the program itself ended is in the Outcome, even if it exceeded a
// limit. When Run returns, all calls of host have returned.
func (r *Runner) Run(ctx context.Context, owner string, p Program, host Host) (*Outcome, error) {
	l := p.Limits.WithDefaults()
	l.Memory, l.AtOnce = r.memory, min(l.AtOnce, maxAtOnce)
	limit := min(cmp.Or(p.Timeout, l.Time), l.MaxTime)
	if len(p.Code) > maxCode {
		return &Outcome{Failure: &Failure{CodeFailed, fmt.Sprintf("the program is longer than %s", helper.Size(maxCode))}}, nil
	}
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run := &running{host: host, limits: l, timeUp: make(chan struct{}), over: func() { cancel(errOver) }}
	run.clock.Set(limit, func() { close(run.timeUp) })
	defer run.clock.End()
	h := header{
		Nanoseconds: int64(limit), Memory: l.Memory, Calls: l.Calls, AtOnce: l.AtOnce, Output: output,
		Parameters: p.Parameters, Arguments: p.Arguments,
	}
	backstop := time.AfterFunc(l.MaxTime+maxConfirming, run.over)
	defer backstop.Stop()
	data, err := r.helpers.Do(bounded, owner, run.reply, h.encode(), []byte(p.Code))
	out := &Outcome{Made: run.calls()}
	switch {
	case err == nil:
		run.read(out, data, p.Code, limit)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(context.Cause(bounded), errOver):
		out.Failure = timeFailure(limit, "")
	case errors.Is(err, helper.ErrMemory):
		out.Failure = memoryFailure(l.Memory)
	case errors.Is(err, helper.ErrTime):
		out.Failure = timeFailure(limit, "")
	default:
		if busy, ok := errors.AsType[*semaphore.BusyError](err); ok {
			return nil, busy
		}
		return nil, fmt.Errorf("running the program: %w", err)
	}
	return out, nil
}

// Check compiles a program in a helper, without running it. It returns what is wrong with the program, or why it cannot be
// checked; nil if nothing is wrong. In the Fault, the field File is empty.
func (r *Runner) Check(ctx context.Context, code string) *Fault {
	h := header{Nanoseconds: int64(time.Minute), Memory: r.memory, Check: true}
	var a answer
	data, err := r.helpers.Do(ctx, "", func(ctx context.Context, _ []byte) []byte { <-ctx.Done(); return nil }, h.encode(), []byte(code))
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	switch {
	case err != nil:
		return &Fault{Text: "cannot be checked: " + err.Error()}
	case a.End == endValue:
		return nil
	}
	if a.Column > 0 {
		a.Message += fmt.Sprintf(", column %d", a.Column)
	}
	return &Fault{Line: a.Line, Text: a.Message}
}

// Close kills all helpers, and returns when they have ended. A second call also waits until they have ended.
func (r *Runner) Close() { r.helpers.Close() }

// read puts the helper's answer into the Outcome.
func (p *running) read(out *Outcome, data []byte, code string, limit time.Duration) {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		out.Failure = &Failure{CodeFailed, "reading the answer of the helper: " + err.Error()}
		return
	}
	out.Logs = a.Logs
	if a.Dropped > 0 {
		out.Logs += fmt.Sprintf("[%d more lines]\n", a.Dropped)
	}
	place := at(code, a.Line, a.Column)
	switch a.End {
	case endValue:
		if a.Value != nil && !wire.Valid(a.Value) {
			out.Failure = &Failure{CodeFailed, "the value of the program is not valid JSON"}
			return
		}
		out.Value = a.Value
	case endTime:
		out.Failure = timeFailure(limit, place)
	case endMemory:
		out.Failure = memoryFailure(p.limits.Memory)
	case endNull:
		out.Failure = &Failure{CodeFailed, fmt.Sprintf("the program needs more than %s of memory, so handle less at once, unless it threw null itself", helper.Size(p.limits.Memory))}
	case endOutput:
		out.Failure = &Failure{CodeFailed, fmt.Sprintf("the value of the program has %s bytes, over the limit of %s; return less", a.Message, helper.Size(output))}
	case endStuck:
		out.Failure = &Failure{CodeFailed, "the program awaits a promise that nothing will settle: no call is open"}
	default:
		text := a.Message
		if place != "" {
			text += "\nat " + place
		}
		out.Failure = &Failure{CodeFailed, text}
	}
}

func timeFailure(limit time.Duration, place string) *Failure {
	text := fmt.Sprintf("the program took longer than %g s and was ended", limit.Seconds())
	if place != "" {
		text += " at " + place
	}
	return &Failure{codeTime, text}
}

func memoryFailure(limit int64) *Failure {
	return &Failure{CodeFailed, fmt.Sprintf("the program needs more than %s of memory; handle less at once", helper.Size(limit))}
}
