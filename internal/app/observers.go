package app

import (
	"io"
	"net/http"
	"slices"
	"time"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wiretrace"
	"mcpx/internal/caller"
	"mcpx/internal/desk/config"
	"mcpx/internal/desk/savings"
	"mcpx/internal/executor"
	"mcpx/internal/front"
	"mcpx/internal/hosted/page"
	"mcpx/internal/hosted/telemetry"
	"mcpx/internal/policy"
	"mcpx/internal/request"
)

// observers has the parts of mcpx that observe messages, such as the metrics. All but the field messages receive an event at
// the end of each message.
type observers struct {
	journal  request.Journal
	book     *savings.Book
	metrics  *telemetry.Metrics // nil if mcpx has none
	traces   *telemetry.Traces  // nil before OpenTraces, and if the config names no collector
	messages *wiretrace.Trace   // nil without Options.Trace
}

// observe registers the observers that the config and the profile ask for.
func (a *App) observe() {
	a.openBook()
	all := []func(*request.Event){a.count, executor.LogEvents(a.log, a.profile.callLevel)}
	if a.Config.Audit != nil {
		all = append(all, func(r *request.Event) { a.auditor.ended(r) })
	}
	if a.profile.measured {
		all = append(all, a.history.activity.add)
	}
	if a.profile.measured && a.Config.Telemetry.Metrics {
		a.metrics = telemetry.NewMetrics(Version(), a.telemetryState)
		all = append(all, a.metrics.Event)
	}
	if a.tracing() != nil {
		all = append(all, func(r *request.Event) { a.traces.Call(r) })
	}
	if a.Config.UI.Shown && (a.profile.page || a.origin.History != nil) {
		a.history.calls.KeepContent(a.Config.UI.RecordCalls)
		all = append(all, a.history.hour.Add, func(r *request.Event) { a.history.calls.Add(r, a.strike) })
		if !a.profile.measured {
			all = append(all, a.history.activity.add)
		}
	}
	a.journal.Observe(all...)
}

// CallHistory is what the status page shows about the calls of one App, or of all Apps of a process.
type CallHistory struct {
	hour     page.Hour
	calls    page.Calls
	activity activity
}

// strike removes the secrets of the config from a text.
func (a *App) strike(text string) string {
	return a.current.Load().struck.Strike(text)
}

// sessionEnded tells the metrics that a session of an HTTP client has ended.
func (a *App) sessionEnded(client *caller.Client, lasted time.Duration) {
	if a.metrics != nil {
		a.metrics.SessionEnded(client.Version, lasted)
	}
}

// traceTo makes mcpx write all messages to out, without secrets. If out is nil, it does nothing. It must be called before the
// first call of build, which gives the trace to the servers.
func (a *App) traceTo(out io.Writer) {
	if out != nil {
		a.messages = wiretrace.New(out, config.SecretName, func() *sanitize.Secrets { return a.current.Load().struck }, a.log)
	}
}

// secretsOf returns the secrets of a config, which mcpx removes from the trace, from the audit trail and from what the page
// shows.
func secretsOf(cfg *config.Config) (secrets []string) {
	secrets = slices.Clone(cfg.Secrets)
	for _, s := range cfg.Servers {
		secrets = append(secrets, s.Secrets...)
	}
	return secrets
}

// traceClients returns the function to which every message of clients is passed; nil without a trace.
func (a *App) traceClients() func(peer string, received bool, message []byte) {
	if a.messages == nil {
		return nil
	}
	return a.messages.Client
}

// traceServer returns the function to which every message of the server called name is passed; nil without a trace.
func (a *App) traceServer(name string) func(received bool, message []byte) {
	if a.messages == nil {
		return nil
	}
	return func(received bool, message []byte) { a.messages.Server(name, received, message) }
}

// OpenTraces creates the sender of OpenTelemetry traces, if the config names a collector. It must be called before clients are
// served. The caller calls end after Close.
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

// tracing says what share of the calls gets spans; nil means that none does.
func (a *App) tracing() *request.Tracing {
	if wanted := a.Config.Telemetry.OTLP; wanted != nil && a.profile.spans {
		return &request.Tracing{Share: wanted.Sample}
	}
	return nil
}

// metricsHandler returns the handler of /metrics; nil if mcpx has no metrics.
func (a *App) metricsHandler() http.Handler {
	if a.metrics == nil {
		return nil
	}
	return a.metrics
}

// mayMeasure reports whether a principal may read the metrics: an admin, or a principal named in telemetry.metrics, such as a
// Prometheus whose token gives no other right.
func (a *App) mayMeasure(p *caller.Principal) bool {
	return a.admin(p) || p != nil && policy.Match(a.Config.Telemetry.MetricsFor, p.Name)
}

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

// sessions returns the number of HTTP clients' sessions of the legacy era that are open in this process.
func (a *App) sessions() int {
	n := 0
	a.views.each(func(f *front.Front) { n += f.Sessions() })
	return n
}
