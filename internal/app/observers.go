package app

import (
	"fmt"
	"log/slog"
	"time"

	"mcpx/internal/executor"
	"mcpx/internal/front"
	"mcpx/internal/httpd"
	"mcpx/internal/telemetry"
	"mcpx/internal/upstream"
	"mcpx/internal/wiretrace"
)

// observers are who hears of what happens, beside the status page.
type observers struct {
	auditor *auditor // nil without a trail, and before OpenAudit
	// recorded hear of calls, and of requests that went to a server and are none.
	recorded []func(executor.Record)
	activity activity
	metrics  *telemetry.Metrics // nil where they are turned off
	traces   *telemetry.Traces  // nil before OpenTraces
	messages *wiretrace.Trace   // nil unless it was asked for
}

// observe sets who hears of calls, requests and refusals, before the parts are made.
func (a *App) observe() {
	// Over HTTP a call is a line of the log. Many clients over stdio keep all that mcpx
	// writes to stderr: there it is one at the level debug only.
	level := slog.LevelDebug
	if a.hosted {
		level = slog.LevelInfo
	}
	a.recorded = []func(executor.Record){executor.LogCalls(a.log, level)}
	if a.Config.Audit != nil {
		a.recorded = append(a.recorded, func(r executor.Record) { a.auditor.ended(r) })
	}
	if a.hosted && a.Config.Telemetry.Metrics {
		a.metrics = telemetry.NewMetrics(Version(), a.telemetryState)
	}
}

// callObservers hear of every call when it has ended.
func (a *App) callObservers() []func(executor.Record) {
	all := a.recorded
	if a.hosted {
		all = append(all, a.activity.add)
	}
	if a.metrics != nil {
		all = append(all, a.metrics.Call)
	}
	if a.tracing() != nil {
		all = append(all, func(r executor.Record) { a.traces.Call(r) })
	}
	if a.Config.UI && !a.stdio {
		all = append(all, a.hour.Add)
	}
	return all
}

// requestObserver hears of all requests of clients; nil where nobody wants to.
func (a *App) requestObserver() front.Observer {
	if !a.hosted && a.Config.Audit == nil {
		return nil
	}
	return (*requests)(a)
}

// requests tells metrics of all requests and sessions, and log and audit trail of those that went to a
// server and are no calls.
type requests App

// Relaying implements [front.Observer].
func (a *requests) Relaying(o *front.Operation) error {
	o.Number = a.Executor.NextNumber()
	if a.Config.Audit == nil {
		return nil
	}
	return a.auditor.began(recordOf(o))
}

// Answered implements [front.Observer].
func (a *requests) Answered(o *front.Operation) {
	if a.metrics != nil {
		method := ""
		if o.Known {
			method = o.Method
		}
		a.metrics.Request(method, o.Code, o.Failed.Load(), o.Duration)
	}
	if !o.Relayed {
		return
	}
	for _, tell := range a.recorded {
		tell(recordOf(o))
	}
}

// SessionEnded implements [front.Observer].
func (a *requests) SessionEnded(client *upstream.Client, lasted time.Duration) {
	if a.metrics != nil {
		a.metrics.SessionEnded(client.Version, lasted)
	}
}

// recordOf is the record of a request that is no call. The protocol's own only read; of
// others nobody knows.
func recordOf(o *front.Operation) executor.Record {
	r := executor.Record{Number: o.Number, Method: o.Method, ReadOnly: o.Known, Outcome: "RESULT", Began: o.Began, Duration: o.Duration}
	if o.Client != nil {
		r.Principal, r.Client = o.Client.Principal.Key(), o.Client.Name
	}
	if o.Code != 0 {
		r.Outcome = fmt.Sprintf("ERROR %d", o.Code)
	}
	return r
}

// onRefused hears of refused HTTP requests; nil where nobody wants to.
func (a *App) onRefused() func(httpd.Refusal) {
	if a.auditor == nil && a.metrics == nil {
		return nil
	}
	return func(r httpd.Refusal) {
		if a.metrics != nil {
			a.metrics.Refused(r.Status)
		}
		if a.auditor != nil {
			a.auditor.refused(r)
		}
	}
}
