package httpd

import (
	"context"
	"log/slog"
	"net/http"

	"mcpx/internal/limits"
	"mcpx/internal/plain"
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
	args := []any{"reason", plain.Line(reason, shownRefused)}
	if what != "" {
		args = append(args, reason, plain.Line(what, shownRefused))
	}
	args = append(args, "method", plain.Line(r.Method, shownRefused), "path", plain.Line(r.URL.Path, shownRefused), "remote", r.RemoteAddr)
	if left > 0 {
		args = append(args, "left_out_before", left)
	}
	l.log.Log(context.Background(), level, "request refused", args...)
}
