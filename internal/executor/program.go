package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/files"
	"mcpx/internal/programs"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// maxHeld is how many programs of one principal may wait for the user to confirm a call.
const maxHeld = 4

// holds counts the programs that wait for the user, by principal.
type holds struct {
	mu sync.Mutex
	of map[string]int
}

// enter adds a program of a principal. It returns false if maxHeld programs of the principal wait already.
func (h *holds) enter(principal string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[principal] >= maxHeld {
		return false
	}
	if h.of == nil {
		h.of = make(map[string]int)
	}
	h.of[principal]++
	return true
}

func (h *holds) leave(principal string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[principal]--; h.of[principal] == 0 {
		delete(h.of, principal)
	}
}

// program returns the func that runs a program as the caller of r: the program can call the tools, and read the results and
// files, of that caller.
func (e run) program(r *Request) func(context.Context, *request.Request, programs.Program) (*programs.Outcome, error) {
	return func(ctx context.Context, q *request.Request, p programs.Program) (*programs.Outcome, error) {
		if e.options.Runner == nil {
			return nil, fmt.Errorf("programs are not available here")
		}
		in := &inside{Executor: e.Executor, q: q, asking: make(chan struct{}, 1)}
		host := programs.Host{Call: in.call, Result: func(ctx context.Context, handle string) (json.RawMessage, *programs.Failure) {
			value, err := e.pages(r).Value(ctx, handle, "", false)
			return value, e.told(r, err)
		}}
		host.File = func(ctx context.Context, path string) (text string, _ *programs.Failure) {
			open, err := e.folders(ctx, q.Client)
			if err == nil {
				text, err = open.Read(path)
			}
			return text, e.told(r, err)
		}
		if tell := q.Sink.Progress; tell != nil {
			host.Progress = func(done, total int) {
				tell(fmt.Appendf(nil, `{"progress":%d,"total":%d,"message":"%d of %d calls"}`, done, total, done, total))
			}
		}
		out, err := e.options.Runner.Run(ctx, q.Client.On().Key(), p, host)
		if err == nil {
			in.showLast(out.Failure, e.pages(r))
		}
		q.Event.Costs, q.Event.Confirming, r.parts = in.costs, q.Event.Confirming+in.confirming, in.parts()
		return out, err
	}
}

// told converts the error of "result" or "file", two functions that programs can call, into the failure that the program gets. It
// returns nil if err is nil.
func (e run) told(r *Request, err error) *programs.Failure {
	if err == nil {
		return nil
	}
	violation := ""
	if wrong, ok := errors.AsType[*results.ValueError](err); ok {
		violation = "/" + wrong.Member + ": " + wrong.Reason
	}
	if wrong, ok := errors.AsType[*files.Error](err); ok {
		violation = "/path: " + wrong.Error()
	}
	if violation != "" {
		return &programs.Failure{Code: results.CodeValidation, Message: results.Invalid(violation).Said()}
	}
	f := e.failure(r, target{}, err)
	return &programs.Failure{Code: f.Code, Message: f.Said()}
}

// inside executes the tool calls that one program makes. Each call is handled as if the client that runs the program had made it.
type inside struct {
	*Executor
	q      *request.Request // the request to run the program
	asking chan struct{}    // a semaphore of one element: the program asks the user one question at a time

	mu         sync.Mutex
	costs      []request.Cost
	last       lastResult
	confirming time.Duration // how long the program has waited for the user to confirm calls
}

// lastResult is the value that a program got from its last successful call. The field tool names the tool of that call, as
// "server.tool".
type lastResult struct {
	tool  string
	value json.RawMessage
}

// showLast adds the shape of the last result to the failure of a program, if the program has most likely expected another shape.
// Otherwise the model would have to make the call again to see the shape. f may be nil.
func (in *inside) showLast(f *programs.Failure, p results.Pages) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if f != nil && in.last.tool != "" && (strings.HasPrefix(f.Message, "TypeError: ") || strings.HasPrefix(f.Message, "SyntaxError: ")) {
		f.Message += "\nThe last result, of " + in.last.tool + ": " + p.Shape(in.last.value)
	}
}

// call executes one tool call that the program makes. If the call succeeds, value is the result that the program gets; otherwise
// failure is the error that the program gets. The result outcome says in one word how the call ended, as its event does.
func (in *inside) call(
	ctx context.Context, c programs.Call,
) (value json.RawMessage, outcome string, failure *programs.Failure) {
	q := in.q
	r := Request{
		From:  request.From{Client: q.Client, Meta: q.Meta, Sink: request.Sink{Log: q.Sink.Log, Level: q.Sink.Level}},
		Scope: q.Scope, Apps: q.Apps, ReadOnly: q.ReadOnly,
		Server: c.Server, Tool: c.Tool, Arguments: c.Arguments,
		Format: results.Format{JSON: true}, Native: true,
	}
	r.part = 1
	r.Consent = request.Consent{Ask: q.Consent.Ask, Hold: func(ctx context.Context) (func(), error) { return in.hold(ctx, c) }}
	r.Event = in.journal.Begin("tools/call", q.Client)
	r.Event.Program = q.Event.Number
	r, _ = in.started(r)
	event := r.Event
	defer func() {
		if what := recover(); what != nil {
			f := Panicked(in.log, event, c.Tool, what)
			failure = &programs.Failure{Code: f.Code, Message: f.Said()}
		}
		if event.Stop(); ctx.Err() != nil {
			event.Outcome = request.OutcomeCancelled
		}
		outcome = event.Outcome
		in.ended(event)
	}()
	run := in.begin()
	raw, t, err := run.call(ctx, &r)
	var v *results.Value
	if err == nil {
		v, err = results.ReadValue(raw, typeOf(t.tool))
	}
	if err != nil {
		f := run.failure(&r, t, err)
		event.Outcome, event.Said = f.Code, beginning(f.Said())
		return nil, "", &programs.Failure{Code: f.Code, Message: f.Said()}
	}
	v.Learn(run.learns(&r, t))
	event.Answered, event.Received, event.Outcome = r.Server != builtin.Name, v.Tokens, request.OutcomeResult
	event.LeftOut = event.Received // the model gets the output of the program instead
	if v.IsError {
		event.Outcome, event.Said = request.OutcomeToolError, beginning(v.Text)
		return nil, "", &programs.Failure{Code: request.OutcomeToolError, Message: v.Text}
	}
	if value = v.JSON; value == nil {
		run.nameLinks(ctx, v.Blocks, &r, t.server)
		blocks := make([]json.RawMessage, len(v.Blocks))
		for i := range v.Blocks {
			blocks[i] = v.Blocks[i].Raw
		}
		value = wire.Encode(blocks)
	}
	in.mu.Lock()
	in.last = lastResult{sanitize.Line(c.Server+"."+c.Tool, 120), value}
	in.mu.Unlock()
	return value, "", nil
}

// ended records what a tool call that the program made has cost, and ends the event of the call.
func (in *inside) ended(event *request.Event) {
	in.mu.Lock()
	in.costs = append(in.costs, request.Cost{
		Server: event.Server, Tool: event.Tool, Outcome: event.Outcome,
		Duration: event.Duration, Received: event.Received,
	})
	in.mu.Unlock()
	in.journal.End(event)
}

// hold is called before the user is asked to confirm a tool call that the program makes. It waits until the user is not being
// asked about another call by the same program. From the start of hold until release is called, the program's time limit is
// paused. hold returns an error if ctx ends first, or if maxHeld programs of the principal wait for the user already.
func (in *inside) hold(ctx context.Context, c programs.Call) (release func(), err error) {
	resume := c.Hold()
	select {
	case in.asking <- struct{}{}:
	case <-ctx.Done():
		resume()
		return nil, ctx.Err()
	}
	principal := in.q.Client.On().Key()
	if !in.held.enter(principal) {
		<-in.asking
		resume()
		return nil, &request.LimitError{Limit: fmt.Sprintf("%d programs that wait for the user's confirmation", maxHeld), RetryAfter: time.Minute}
	}
	began := time.Now()
	return func() {
		in.mu.Lock()
		in.confirming += time.Since(began)
		in.mu.Unlock()
		in.held.leave(principal)
		<-in.asking
		resume()
	}, nil
}

// parts returns the tools that the program has called, each once, in the form of [builtin.OfProgram].
func (in *inside) parts() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	seen := make(map[string]bool)
	var out strings.Builder
	for _, c := range in.costs {
		if line := c.Server + "\t" + c.Tool + "\n"; !seen[line] {
			seen[line] = true
			out.WriteString(line)
		}
	}
	return out.String()
}
