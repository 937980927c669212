package app

import (
	"log/slog"

	"mcpx/internal/executor"
)

// observers are told of every call when it has ended. Over HTTP a call is a line of the
// log; over stdio, where many clients keep all that mcpx writes to stderr, only at the
// level debug.
func (a *App) observers() []func(executor.Record) {
	level := slog.LevelDebug
	if a.hosted {
		level = slog.LevelInfo
	}
	all := []func(executor.Record){executor.LogCalls(a.log, level)}
	if a.Config.Audit != nil {
		all = append(all, func(r executor.Record) { a.auditor.ended(r) })
	}
	if a.Config.UI && !a.stdio {
		all = append(all, a.hour.Add)
	}
	return all
}
