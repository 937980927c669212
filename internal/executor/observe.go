package executor

import (
	"context"
	"log/slog"
	"strings"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// LogEvents returns an observer that logs each message to a server as one record, without arguments, results or credentials.
func LogEvents(log *slog.Logger, level slog.Level) func(*request.Event) {
	return func(r *request.Event) {
		if !r.Attempted || !log.Enabled(context.Background(), level) {
			return
		}
		var room [19]slog.Attr // allocated on the stack; no record has more than 19 attributes
		attributes := room[:0]
		if r.IsCall() {
			attributes = append(attributes,
				slog.String("server", sanitize.Line(r.Server, maxLogged)), slog.String("tool", sanitize.Line(r.Tool, maxLogged)))
		} else {
			attributes = append(attributes, slog.String("method", sanitize.Line(r.Method, maxLogged)))
		}
		attributes = append(attributes,
			slog.String("outcome", r.Outcome), slog.Duration("duration", r.Duration), slog.Duration("upstream", r.Upstream),
			slog.Int("tokens_received", r.Received), slog.Int("tokens_sent", r.Sent),
			slog.Int("argument_bytes", r.ArgumentBytes), slog.Int("bytes_received", r.ReceivedBytes), slog.Int("bytes_sent", r.SentBytes))
		for _, one := range [...]struct{ name, value string }{
			{"server", serverOf(r)}, {"item", sanitize.Line(r.Item, maxLogged)},
			{"principal", r.Principal}, {"display", r.Display}, {"client", sanitize.Line(r.Client, maxLogged)}, {"trace", r.Trace.ID},
		} {
			if one.value != "" {
				attributes = append(attributes, slog.String(one.name, one.value))
			}
		}
		attributes = append(attributes, slog.Uint64("call", r.Number)) // as in the audit trail
		if r.Program > 0 {
			attributes = append(attributes, slog.Uint64("program", r.Program))
		}
		if n := len(r.Costs); n > 0 {
			attributes = append(attributes, slog.Int("calls", n))
		}
		// Logger.Log would spend time on looking up the caller's source position
		line := slog.NewRecord(r.Began.Add(r.Duration), level, "call", 0)
		line.AddAttrs(attributes...)
		_ = log.Handler().Handle(context.Background(), line)
	}
}

// serverOf returns the server of a message that is not a call. For a call it returns "", because LogEvents has already added
// the server of a call.
func serverOf(r *request.Event) string {
	if r.IsCall() {
		return ""
	}
	return sanitize.Line(r.Server, maxLogged)
}

// maxLogged is the maximum length, in characters, of a logged name that a client chose; a longer one is cut.
const maxLogged = 80

// tell adds to the event of a call the text of its error and, if the config wants that, its arguments and result.
func (e run) tell(event *request.Event, r *Request, result *results.Result) {
	if result.IsError && len(result.Content) > 0 {
		event.Said = beginning(wire.MemberText(result.Content[0], "text"))
	}
	if e.options.Record {
		event.Content = func() (arguments, text string) { return string(r.Arguments), result.Text() }
	}
}

// maxSaid is the maximum length, in bytes, of the error text in an event.
const maxSaid = 1000

// beginning returns at most maxSaid bytes of an error text. The result is a copy: otherwise a stored event would keep the whole
// text in memory.
func beginning(text string) string {
	return strings.Clone(strings.ToValidUTF8(text[:min(len(text), maxSaid)], ""))
}
