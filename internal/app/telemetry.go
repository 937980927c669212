package app

import (
	"net/http"

	"mcpx/internal/caller"
	"mcpx/internal/front"
	"mcpx/internal/hosted/telemetry"
	"mcpx/internal/policy"
	"mcpx/internal/request"
)

// OpenTraces makes the sender of traces, if the config names a collector, before anything is served. The
// caller calls end after Close.
func (a *App) OpenTraces() (end func()) {
	otlp := a.Config.Telemetry.OTLP
	if otlp == nil {
		return func() {}
	}
	a.traces = telemetry.NewTraces(telemetry.TraceOptions{
		Endpoint: otlp.Endpoint, Headers: otlp.Headers, Version: Version(), Logger: a.log,
	})
	return func() {
		if err := a.traces.Close(); err != nil {
			a.log.Warn("the last traces were not sent", "err", err)
		}
	}
}

// tracing says which calls get spans; nil = none, as those of single commands.
func (a *App) tracing() *request.Tracing {
	if wanted := a.Config.Telemetry.OTLP; wanted != nil && a.profile.spans {
		return &request.Tracing{Share: wanted.Sample}
	}
	return nil
}

// metricsHandler serves /metrics; nil if the config turns it off.
func (a *App) metricsHandler() http.Handler {
	if a.metrics == nil {
		return nil
	}
	return a.metrics.Handler(a.log)
}

// mayMeasure reports whether a principal may read the metrics: an admin, or one that the
// config names for nothing else, as the token of a Prometheus should open nothing else.
func (a *App) mayMeasure(p *caller.Principal) bool {
	return a.admin(p) || p != nil && policy.Match(a.Config.Telemetry.MetricsFor, p.Name)
}

// telemetryState is the state for the metrics.
func (a *App) telemetryState() telemetry.State {
	failing, _ := a.auditor.failing()
	out := telemetry.State{Sessions: a.sessions(), AuditFailing: failing}
	snap := a.Registry.Snapshot()
	for i := range snap.Servers {
		s := &snap.Servers[i]
		one := telemetry.Server{Name: s.Name, State: string(s.State), Tools: len(s.Tools)}
		if status, ok := a.Registry.Status(s.Name); ok {
			one.Restarts = status.Restarts
		}
		out.Servers = append(out.Servers, one)
	}
	return out
}

// sessions is the number of open sessions of clients over HTTP.
func (a *App) sessions() int {
	n := 0
	a.views.each(func(f *front.Front) { n += f.Sessions() })
	return n
}
