package executor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/arguments"
	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/describe"
	"mcpx/internal/jq"
	"mcpx/internal/request"
	"mcpx/internal/resources"
	"mcpx/internal/results"
	"mcpx/internal/tokens"
)

// Panicked logs a panic during a call and returns the failure for the call. event may be nil.
func Panicked(log *slog.Logger, event *request.Event, tool string, what any) *results.Failure {
	if event != nil {
		event.Outcome = results.CodeExecution
	}
	log.Error("panic in a call", "tool", tool, "panic", what, "stack", string(debug.Stack()))
	return &results.Failure{Code: results.CodeExecution, Message: "internal error of mcpx; its log says more. The call may have been executed"}
}

// failure converts the error of a call into the failure that the model gets.
func (e run) failure(r *Request, t target, err error) *results.Failure {
	var (
		missing     *notFoundError
		invalid     *arguments.ValidationError
		unavailable *request.UnavailableError
		timeout     *request.TimeoutError
		lost        *request.LostError
		rpc         *wire.RPCError
		large       *request.TooLargeError
		odd         *request.AnswerError
		busy        *semaphore.BusyError
		over        *request.LimitError
		status      *request.HTTPError
		refused     *results.RefusedError
		failed      *results.FilterError
		unparsed    *jq.FilterError
	)
	if failed, ok := errors.AsType[*resources.ServerError](err); ok {
		named := *r
		r, named.Server = &named, failed.Server
	}
	switch {
	case errors.As(err, &refused):
		return results.Invalid(refused.Violation)
	case errors.As(err, &failed):
		return results.FilterFailure(failed, e.pages(r))
	case errors.Is(err, results.ErrBusy):
		return results.Busy()
	case errors.As(err, &unparsed):
		return results.Invalid("/select: " + unparsed.Message)
	case errors.As(err, &missing):
		return missing.failure()
	case errors.As(err, &invalid):
		return e.invalidFailure(r, t, invalid)
	case errors.As(err, &unavailable):
		return unavailableFailure(r.Server, unavailable)
	case errors.As(err, &timeout):
		return timeoutFailure(r, timeout)
	case errors.As(err, &lost):
		return lostFailure(r, lost)
	case errors.As(err, &rpc):
		return e.upstreamFailure(r, rpc)
	case errors.As(err, &status):
		return statusFailure(status)
	case errors.As(err, &large) && large.Request:
		return &results.Failure{Code: results.CodeExecution, Message: large.Error() + "; send less at once"}
	case errors.As(err, &large):
		return &results.Failure{Code: results.CodeExecution, Message: large.Error() + "; ask for less, for example a page or a filter. " + mayHaveRun}
	case errors.As(err, &odd), errors.Is(err, results.ErrNoResult), errors.Is(err, results.ErrTask):
		return oddFailure(err)
	case errors.As(err, &busy):
		return busyFailure(r.Server, busy)
	case errors.As(err, &over):
		return (&results.Failure{Code: results.CodeRateLimited, Message: over.Error()}).With("retry_after", over.Seconds())
	}
	return &results.Failure{Code: results.CodeExecution, Message: err.Error()}
}

// execOptions are the arguments of exec that models sometimes put among the arguments of the tool.
var execOptions = []string{"each", "select", "grep"}

// misplacedHint returns a hint for an argument that the model gave to the tool. If exec has an argument with this name, the hint
// says where it belongs. The hint is empty if exec has no such argument, or does not take it in this call.
func (r *Request) misplacedHint(name string) string {
	switch {
	case r.Native, !slices.Contains(execOptions, name), r.Server == builtin.Name && r.Tool == builtin.WaitTool:
		return ""
	case r.Client == nil: // the command line, where arguments of exec are flags
		return "it is the flag --" + name
	case r.Format.ShortNames:
		return "exec takes it beside args"
	}
	return "exec takes it beside arguments"
}

// misplaced completes the notes: for each argument of exec that the model put among the arguments of the tool, it adds a hint where
// that argument belongs.
func (r *Request) misplaced(notes arguments.Notes) arguments.Notes {
	for i, u := range notes.Unknown {
		if hint := r.misplacedHint(u.Name); hint != "" {
			notes.Unknown[i].Hint = hint
		}
	}
	return notes
}

// misplacedOnly returns the violations of invalid with hints that say where arguments of exec belong. It returns nil if anything
// else is wrong too.
func (r *Request) misplacedOnly(invalid *arguments.ValidationError) *arguments.ValidationError {
	said := &arguments.ValidationError{Places: invalid.Places}
	for _, violation := range invalid.Violations {
		name, unknown := strings.CutSuffix(strings.TrimPrefix(violation, "/"), ": is unknown")
		hint := r.misplacedHint(name)
		if !unknown || hint == "" {
			return nil
		}
		said.Violations = append(said.Violations, violation+"; "+hint)
	}
	return said
}

func (e run) invalidFailure(r *Request, t target, invalid *arguments.ValidationError) *results.Failure {
	misplaced := r.misplacedOnly(invalid)
	invalid = cmp.Or(misplaced, invalid)
	f := &results.Failure{Code: results.CodeValidation, Message: fmt.Sprintf("invalid arguments for %s.%s: %s", r.Server, r.Tool, invalid)}
	f.With("violations", invalid.Violations)
	f.Text = f.Code + ": " + invalid.Error()
	if t.tool == nil || misplaced != nil || invalid.Reference { // then it does not help to show what the tool takes
		return f
	}
	left := maxInvalid - tokens.Ceiling(f.Text)
	if most := e.options.ResultTokens; most > 0 {
		left = min(left, most-tokens.Ceiling(f.Text))
	}
	expected := describe.Input(t.tool, invalid.Places, left)
	if expected != "" {
		f.With("typescript", expected)
	}
	if schema, ok := wire.Compact(string(t.tool.InputSchema)); ok && !e.options.TypeScript && tokens.Ceiling(schema) <= left {
		expected = schema
	}
	f.Text += "\nExpected: " + cmp.Or(expected, "what inspect says of the tool")
	return f
}

// maxInvalid limits the length, in tokens, of the text of a VALIDATION_ERROR. The text also says which arguments the tool takes, as
// far as there is room for that.
const maxInvalid = 390

func unavailableFailure(server string, u *request.UnavailableError) *results.Failure {
	if u.State == catalog.NeedsLogin {
		f := &results.Failure{Code: results.CodeServerUnavailable, Message: fmt.Sprintf("%q needs the user's own login: %s", server, u.Reason)}
		return f.With("state", string(u.State)).With("reason", u.Reason)
	}
	text := fmt.Sprintf("server %q is %s", server, u.State)
	if u.Reason != "" {
		text += ": " + u.Reason
	}
	retry := int(math.Ceil(u.RetryAfter.Seconds()))
	switch {
	case u.State == catalog.Connecting:
		text += "; try again shortly"
	case retry > 0:
		text += fmt.Sprintf(". Next attempt in %d s", retry)
	}
	f := (&results.Failure{Code: results.CodeServerUnavailable, Message: text}).With("state", string(u.State)).With("reason", u.Reason)
	return f.With("retry_after", retry)
}

// busyFailure returns the failure for a call that was not made because of a concurrency limit, although the server is ready: the
// server, or mcpx as a whole (busy.All), has too many open calls. Either too many calls were waiting, or this call has waited too
// long.
func busyFailure(server string, busy *semaphore.BusyError) *results.Failure {
	if busy.Refused {
		whose := "of " + strconv.Quote(server)
		if busy.All {
			whose = "of all servers together"
		}
		over := request.LimitError{Limit: fmt.Sprintf("%d calls at once %s", busy.Open, whose)}
		return (&results.Failure{Code: results.CodeRateLimited, Message: over.Error()}).With("retry_after", over.Seconds())
	}
	f := &results.Failure{Code: results.CodeServerUnavailable, Message: fmt.Sprintf("server %q is %s; the call was not made, try again in 1 s", server, busy)}
	if busy.All {
		f.Message = fmt.Sprintf("mcpx is %s; the call was not made, try again in 1 s", busy)
	}
	return f.With("state", string(catalog.Ready)).With("reason", busy.Error()).With("retry_after", 1)
}

// oddFailure returns the failure for an answer of a server that is not a valid result.
func oddFailure(err error) *results.Failure {
	what := err.Error()
	if !strings.HasSuffix(what, "?") {
		what += "."
	}
	return &results.Failure{Code: results.CodeExecution, Message: what + " " + mayHaveRun}
}

// dropped returns the answer of a call whose result was discarded, because too many other large results had to be processed.
func dropped(structured bool) *results.Result {
	f := results.Busy()
	f.Text = f.Said() + "\nThe call was made; its result was dropped"
	return f.Result(structured)
}

func timeoutFailure(r *Request, timeout *request.TimeoutError) *results.Failure {
	seconds := timeout.After.Round(time.Millisecond).Seconds()
	what := "no answer from"
	if timeout.Idle {
		what = "no progress from"
	}
	f := &results.Failure{Code: results.CodeTimeout, Message: fmt.Sprintf("%s %s.%s within %g s", what, r.Server, r.Tool, seconds)}
	if queued := timeout.Queued.Round(100 * time.Millisecond); queued > 0 {
		f.Message += fmt.Sprintf(", of which the call waited %g s for a place among the concurrent calls", queued.Seconds())
		f.With("queued_seconds", queued.Seconds())
	}
	switch {
	case timeout.Told:
		f.Message += "; it was told to cancel. " + mayHaveRun
	case timeout.MayHaveRun:
		f.Message += ". " + mayHaveRun
	default:
		f.Message += "; the call was not sent: the server did not take it. " + notRun
	}
	if timeout.Noise != "" {
		f.Message += ". Meanwhile the server wrote lines that are no messages (a message is one line of JSON), the first: " + timeout.Noise
		f.With("noise", timeout.Noise)
	}
	return f.With("seconds", seconds).With("may_have_been_executed", timeout.Told || timeout.MayHaveRun)
}

// mayHaveRun warns that a failed call may have had its effect. notRun says that it certainly had none.
const (
	mayHaveRun = "The call may have been executed; check before you repeat it"
	notRun     = "The call was not executed; it can be repeated"
)

func lostFailure(r *Request, lost *request.LostError) *results.Failure {
	may := notRun
	if lost.MayHaveRun {
		may = mayHaveRun
	}
	if lost.CrashLoop {
		may = "The server is in a crash loop: it is lost again and again. " + may
	}
	text := "the session with %q broke: %s. %s"
	if lost.Unsent {
		text = "the call of %q cannot go on: %s. %s"
	}
	f := &results.Failure{Code: results.CodeConnectionLost, Message: fmt.Sprintf(text, r.Server, lost.Reason, may)}
	return f.With("may_have_been_executed", lost.MayHaveRun).With("reason", lost.Reason)
}

// statusFailure returns the failure for a server that answered with an HTTP error status.
func statusFailure(status *request.HTTPError) *results.Failure {
	f := &results.Failure{Code: results.CodeUpstream, Message: status.Reason + ". " + mayHaveRun}
	f.With("may_have_been_executed", true).With("status", status.Status)
	if retry := int(math.Ceil(status.RetryAfter.Seconds())); retry > 0 {
		f.With("retry_after", retry)
	}
	return f
}

// upstreamFailure returns the failure for a JSON-RPC error from a server. The text for the model is sanitized and cut. The
// structured data has what the server wrote, but a message that is too long is cut there too, and data that is too long is left
// out.
func (e run) upstreamFailure(r *Request, rpc *wire.RPCError) *results.Failure {
	p := e.pages(r)
	f := &results.Failure{Code: results.CodeUpstream, Message: p.CutText(sanitize.Lines(rpc.Message), math.MaxInt)}
	message := f.Message
	if p.Fits(rpc.Message) {
		message = rpc.Message
	}
	f.Text = f.Code + ": " + f.Message
	code, note := numericCode(rpc), sanitize.Line(rpc.CodeNote(), 0)
	if note != "" {
		f.Text += " " + note
	}
	var upstreamError []results.Field
	if code != nil {
		f.With("upstream_code", code)
		upstreamError = append(upstreamError, results.Field{Name: "code", Value: code})
	} else if note != "" {
		f.Message += " " + note // note is a code that is not a number; no other member contains it
	}
	upstreamError = append(upstreamError, results.Field{Name: "message", Value: message})
	if data := string(rpc.Data); rpc.Data != nil {
		if p.Fits(data) {
			upstreamError = append(upstreamError, results.Field{Name: "data", Value: rpc.Data})
		}
		if data != "null" {
			f.Text += "\n" + p.CutText(sanitize.Lines(data), dataTokens)
		}
	}
	return f.With("upstream", results.Object(upstreamError))
}

// numericCode returns the code of an error, or nil if the error has no code or the code is not a number.
func numericCode(rpc *wire.RPCError) any {
	switch {
	case rpc.NoCode:
		return nil
	case rpc.OddCode == nil:
		return rpc.Code
	}
	var number float64
	if json.Unmarshal(rpc.OddCode, &number) != nil {
		return nil
	}
	return rpc.OddCode
}

// dataTokens is the maximum length, in tokens, of the member data of a server's error in the text for the model.
const dataTokens = 300
