package app

import (
	"fmt"
	"time"

	"mcpx/internal/base/wiretrace"
	"mcpx/internal/executor"
	"mcpx/internal/front"
	"mcpx/internal/hosted/httpd"
	"mcpx/internal/hosted/telemetry"
	"mcpx/internal/upstream"
)

// observers get records of calls and requests, beside the status page.
type observers struct {
	auditor *auditor // nil without a trail, and before OpenAudit
	// recorded get a record of each call, and of each other request that went to a server.
	recorded []func(executor.Record)
	activity activity
	metrics  *telemetry.Metrics // nil where they are turned off
	traces   *telemetry.Traces  // nil before OpenTraces
	messages *wiretrace.Trace   // nil unless it was asked for
}

// observe makes the observers that the config wants, before the parts that report to them.
func (a *App) observe() {
	a.recorded = []func(executor.Record){executor.LogCalls(a.log, a.profile.callLevel)}
	if a.Config.Audit != nil {
		a.recorded = append(a.recorded, func(r executor.Record) { a.auditor.ended(r) })
	}
	if a.profile.measured && a.Config.Telemetry.Metrics {
		a.metrics = telemetry.NewMetrics(Version(), a.telemetryState)
	}
}

// callObservers are called with the record of every call when it has ended.
func (a *App) callObservers() []func(executor.Record) {
	all := a.recorded
	if a.profile.measured {
		all = append(all, a.activity.add)
	}
	if a.metrics != nil {
		all = append(all, a.metrics.Call)
	}
	if a.tracing() != nil {
		all = append(all, func(r executor.Record) { a.traces.Call(r) })
	}
	if a.Config.UI && a.profile.page {
		all = append(all, a.hour.Add)
	}
	return all
}

// requestObserver gets all requests of clients; nil where nothing uses them.
func (a *App) requestObserver() front.Observer {
	if !a.profile.measured && a.Config.Audit == nil {
		return nil
	}
	return (*requests)(a)
}

// requests reports all requests to the metrics and, to the log and the audit trail, those that
// went to a server and are no calls.
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

// recordOf is the record of a request that is no call. The methods that mcpx knows only read;
// another one may write.
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

// onRefused is called with refused HTTP requests; nil where nothing uses them.
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
