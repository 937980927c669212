package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"mcpx/internal/arguments"
	"mcpx/internal/catalog"
	"mcpx/internal/describe"
	"mcpx/internal/pages"
	"mcpx/internal/plain"
	"mcpx/internal/upstream"
	"mcpx/internal/wire"
)

// The codes of failures (design 7).
const (
	CodeServerNotFound    = "SERVER_NOT_FOUND"
	CodeToolNotFound      = "TOOL_NOT_FOUND"
	CodeValidation        = "VALIDATION_ERROR"
	CodeServerUnavailable = "SERVER_UNAVAILABLE"
	CodeTimeout           = "TIMEOUT"
	CodeConnectionLost    = "CONNECTION_LOST"
	CodeUpstream          = "UPSTREAM_ERROR"
	CodeExecution         = "EXECUTION_ERROR"
)

// Fault is a failure as the model gets it: a short text that says what to
// change, and the same as data.
type Fault struct {
	Code, Message string
	// Text is what the model reads; empty = Code: Message.
	Text   string
	fields []field
}

type field struct {
	name  string
	value any
}

// With adds a member to the structured form.
func (f *Fault) With(name string, value any) *Fault {
	f.fields = append(f.fields, field{name, value})
	return f
}

// Result is the fault as a tool result.
func (f *Fault) Result(structured bool) *Result {
	text := f.Text
	if text == "" {
		text = f.Code + ": " + f.Message
	}
	result := &Result{IsError: true, code: f.Code, Content: []json.RawMessage{wire.TextBlock(text)}, sent: roughly(text)}
	if structured {
		result.Structured = f.data()
	}
	return result
}

func (f *Fault) data() json.RawMessage {
	var out bytes.Buffer
	out.WriteString(`{"error":{"code":`)
	out.Write(wire.Encode(f.Code))
	out.WriteString(`,"message":`)
	out.Write(wire.Encode(f.Message))
	for _, extra := range f.fields {
		out.WriteByte(',')
		out.Write(wire.Encode(extra.name))
		out.WriteByte(':')
		out.Write(wire.Encode(extra.value))
	}
	out.WriteString("}}")
	return out.Bytes()
}

// fault says what err means to the model.
func (e run) fault(r Request, t target, err error) *Fault {
	var (
		missing     *notFoundError
		invalid     *arguments.ValidationError
		unavailable *upstream.UnavailableError
		timeout     *upstream.TimeoutError
		lost        *upstream.LostError
		rpc         *upstream.RPCError
		large       *upstream.TooLargeError
		odd         *upstream.AnswerError
		busy        *upstream.BusyError
		status      *upstream.HTTPError
		refused     *pages.RefusedError
		failed      *pages.FilterError
	)
	switch {
	case errors.As(err, &refused):
		return e.invalidFault(r, t, arguments.Invalid(refused.Violation))
	case errors.As(err, &failed):
		return filterFault(failed)
	case errors.As(err, &missing):
		return missing.fault()
	case errors.As(err, &invalid):
		return e.invalidFault(r, t, invalid)
	case errors.As(err, &unavailable):
		return unavailableFault(r.Server, unavailable)
	case errors.As(err, &timeout):
		return timeoutFault(r, timeout)
	case errors.As(err, &lost):
		return lostFault(r, lost)
	case errors.As(err, &rpc):
		return e.upstreamFault(r, rpc)
	case errors.As(err, &status):
		return statusFault(status)
	case errors.As(err, &large) && large.Request:
		return &Fault{Code: CodeExecution, Message: large.Error() + "; send less at once"}
	case errors.As(err, &large):
		return &Fault{Code: CodeExecution, Message: large.Error() + "; ask for less, for example a page or a filter. " + mayHaveRun}
	case errors.As(err, &odd), errors.Is(err, errNoResult), errors.Is(err, errTask):
		what := err.Error()
		if !strings.HasSuffix(what, "?") {
			what += "."
		}
		return &Fault{Code: CodeExecution, Message: what + " " + mayHaveRun}
	case errors.As(err, &busy):
		return busyFault(r.Server, busy)
	}
	return &Fault{Code: CodeExecution, Message: err.Error()}
}

func (e run) invalidFault(r Request, t target, invalid *arguments.ValidationError) *Fault {
	f := &Fault{Code: CodeValidation, Message: fmt.Sprintf("invalid arguments for %s.%s: %s", r.Server, r.Tool, invalid)}
	f.With("violations", invalid.Violations)
	f.Text = f.Code + ": " + invalid.Error()
	if t.tool == nil {
		return f
	}
	input := string(t.tool.InputSchema)
	if e.options.TypeScript {
		input = describe.Input(t.tool)
	}
	expected := "\nExpected: " + input
	if !e.pages(&r).Fits(f.Text, expected) {
		f.Text += "\nExpected: what inspect says of the tool"
		return f
	}
	f.Text += expected
	return f.With("typescript", describe.Input(t.tool))
}

func unavailableFault(server string, u *upstream.UnavailableError) *Fault {
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
	f := (&Fault{Code: CodeServerUnavailable, Message: text}).With("state", string(u.State)).With("reason", u.Reason)
	return f.With("retry_after", retry)
}

// busyFault has the form of the other reasons why a server is not available.
func busyFault(server string, busy *upstream.BusyError) *Fault {
	f := &Fault{Code: CodeServerUnavailable, Message: fmt.Sprintf("server %q is %s; the call was not made", server, busy)}
	if busy.All {
		f.Message = fmt.Sprintf("mcpx is %s; the call was not made", busy)
	}
	return f.With("state", string(catalog.Ready)).With("reason", busy.Error()).With("retry_after", 1)
}

func timeoutFault(r Request, timeout *upstream.TimeoutError) *Fault {
	seconds := timeout.After.Round(time.Millisecond).Seconds()
	what := "no answer from"
	if timeout.Idle {
		what = "no progress from"
	}
	f := &Fault{Code: CodeTimeout, Message: fmt.Sprintf("%s %s.%s within %g s", what, r.Server, r.Tool, seconds)}
	if queued := timeout.Queued.Round(100 * time.Millisecond); queued > 0 {
		f.Message += fmt.Sprintf(", of which the call waited %g s for a place among the concurrent calls", queued.Seconds())
		f.With("queued_seconds", queued.Seconds())
	}
	f.Message += "; it was told to cancel. "
	noise := ""
	if timeout.Noise != "" {
		noise = ". Meanwhile the server wrote lines that are no messages (a message is one line of JSON), the first: " + timeout.Noise
		f.With("noise", timeout.Noise)
	}
	f.Message += mayHaveRun + noise
	return f.With("seconds", seconds)
}

// mayHaveRun warns of a call that did something although its answer is of no use.
const mayHaveRun = "The call may have been executed; check before you repeat it"

func lostFault(r Request, lost *upstream.LostError) *Fault {
	may := "The call was not executed; it can be repeated"
	if lost.MayHaveRun {
		may = mayHaveRun
	}
	if lost.CrashLoop {
		may = "The server is in a crash loop: it is lost again and again. " + may
	}
	f := &Fault{Code: CodeConnectionLost, Message: fmt.Sprintf("the session with %q broke: %s. %s", r.Server, lost.Reason, may)}
	return f.With("may_have_been_executed", lost.MayHaveRun).With("reason", lost.Reason)
}

// statusFault is an HTTP error status in the place of an answer.
func statusFault(status *upstream.HTTPError) *Fault {
	f := &Fault{Code: CodeUpstream, Message: status.Reason + ". " + mayHaveRun}
	f.With("may_have_been_executed", true).With("status", status.Status)
	if retry := int(math.Ceil(status.RetryAfter.Seconds())); retry > 0 {
		f.With("retry_after", retry)
	}
	return f
}

// upstreamFault passes an error on. Its texts are foreign and of any length: over
// the limit they are cut like results. As data they are what the upstream wrote.
func (e run) upstreamFault(r Request, rpc *upstream.RPCError) *Fault {
	p := e.pages(&r)
	f := &Fault{Code: CodeUpstream, Message: p.CutText(plain.Lines(rpc.Message), math.MaxInt)}
	message := f.Message
	if p.Fits(rpc.Message) {
		message = rpc.Message
	}
	f.Text = f.Code + ": " + f.Message
	code, note := numericCode(rpc), plain.Line(rpc.CodeNote(), 0)
	if note != "" {
		f.Text += " " + note
	}
	var upstreamError []field
	if code != nil {
		f.With("upstream_code", code)
		upstreamError = append(upstreamError, field{"code", code})
	} else if note != "" {
		f.Message += " " + note // no member has it
	}
	upstreamError = append(upstreamError, field{"message", message})
	if data := string(rpc.Data); rpc.Data != nil {
		if p.Fits(data) {
			upstreamError = append(upstreamError, field{"data", rpc.Data})
		}
		if data != "null" {
			f.Text += "\n" + p.CutText(plain.Lines(data), dataTokens)
		}
	}
	return f.With("upstream", object(upstreamError))
}

// numericCode is the code of an error; nil where it has none that is a number.
func numericCode(rpc *upstream.RPCError) any {
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

// dataTokens is what an error may show of its data.
const dataTokens = 300

// object marshals fields in their order.
type object []field

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(wire.Encode(f.name))
		out.WriteByte(':')
		out.Write(wire.Encode(f.value))
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}
