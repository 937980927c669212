package httpd

import (
	"context"
	"log/slog"
	"net/http"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/hosted/limits"
)

// refusals writes refused requests into the log: short lines, and few in a second, as
// anybody can cause them before a flood is counted.
type refusals struct {
	log   *slog.Logger
	lines limits.Lines
}

// shownRefused bounds each text of a request in a line, in bytes.
const shownRefused = 200

// note writes that a request was refused. what is the part of it that was wrong; empty =
// reason says all.
func (l *refusals) note(level slog.Level, r *http.Request, reason, what string) {
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	left, ok := l.lines.Take()
	if !ok {
		return
	}
	args := []any{"reason", sanitize.Line(reason, shownRefused)}
	if what != "" {
		args = append(args, reason, sanitize.Line(what, shownRefused))
	}
	args = append(args, "method", sanitize.Line(r.Method, shownRefused), "path", sanitize.Line(r.URL.Path, shownRefused), "remote", r.RemoteAddr)
	if left > 0 {
		args = append(args, "left_out_before", left)
	}
	l.log.Log(context.Background(), level, "request refused", args...)
}
