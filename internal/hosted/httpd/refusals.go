package httpd

import (
	"context"
	"log/slog"
	"net/http"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/hosted/limits"
)

// refusals logs refused requests. Anyone can cause refusals, so the lines are short, and their rate has a bound.
type refusals struct {
	log   *slog.Logger
	lines limits.Lines
}

// shownRefused is the maximum length, in characters, of a text from a request in a log line.
const shownRefused = 200

// note logs a refused request. reason says why it was refused. cause is the part of the request that was the reason; empty if
// reason says everything.
func (l *refusals) note(level slog.Level, r *http.Request, reason, cause string) {
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	left, ok := l.lines.Take()
	if !ok {
		return
	}
	args := []any{"reason", sanitize.Line(reason, shownRefused)}
	if cause != "" {
		args = append(args, reason, sanitize.Line(cause, shownRefused))
	}
	args = append(args, "method", sanitize.Line(r.Method, shownRefused), "path", sanitize.Line(r.URL.Path, shownRefused), "remote", r.RemoteAddr)
	if left > 0 {
		args = append(args, "left_out_before", left)
	}
	l.log.Log(context.Background(), level, "request refused", args...)
}
