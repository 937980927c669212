package app

import (
	"time"

	"mcpx/internal/base/wiretrace"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/hosted/telemetry"
	"mcpx/internal/request"
)

// observers get the events of messages, beside the status page.
type observers struct {
	journal  request.Journal
	auditor  *auditor // nil without a trail, and before OpenAudit
	activity activity
	metrics  *telemetry.Metrics // nil where they are turned off
	traces   *telemetry.Traces  // nil before OpenTraces
	messages *wiretrace.Trace   // nil unless it was asked for
}

// observe makes the observers that the config asks for.
func (a *App) observe() {
	all := []func(*request.Event){a.Executor.Count, executor.LogEvents(a.log, a.profile.callLevel)}
	if a.Config.Audit != nil {
		all = append(all, func(r *request.Event) { a.auditor.ended(r) })
	}
	if a.profile.measured {
		all = append(all, a.activity.add)
	}
	if a.profile.measured && a.Config.Telemetry.Metrics {
		a.metrics = telemetry.NewMetrics(Version(), a.telemetryState)
		all = append(all, a.metrics.Event)
	}
	if a.tracing() != nil {
		all = append(all, func(r *request.Event) { a.traces.Call(r) })
	}
	if a.Config.UI && a.profile.page {
		all = append(all, a.hour.Add)
	}
	a.journal.Observe(all...)
}

// sessionEnded is [front.Options.SessionEnded].
func (a *App) sessionEnded(client *caller.Client, lasted time.Duration) {
	if a.metrics != nil {
		a.metrics.SessionEnded(client.Version, lasted)
	}
}
