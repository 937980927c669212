package telemetry

import (
	"io"

	"github.com/VictoriaMetrics/metrics"
)

// writeState writes the metrics that are read from the State.
func (m *Metrics) writeState(w io.Writer) {
	now := m.state()
	set := metrics.NewSet()
	gauge := func(value int, metric string, labels ...string) {
		set.GetOrCreateGauge(labelled(metric, labels...), nil).Set(float64(value))
	}
	for _, one := range now.Servers {
		up := one.State == "ready" || one.State == "degraded" || one.State == "idle"
		gauge(number(up), "mcpx_server_up", "mcpx_server", one.Name, "state", one.State)
		gauge(one.Tools, "mcpx_server_tools", "mcpx_server", one.Name)
		set.GetOrCreateCounter(labelled("mcpx_server_restarts_total", "mcpx_server", one.Name)).Set(uint64(one.Restarts))
	}
	gauge(now.Sessions, "mcpx_sessions")
	gauge(number(now.AuditFailing), "mcpx_audit_failing")
	gauge(1, "mcpx_build_info", "version", m.version)
	set.WritePrometheus(w)
}

func number(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
