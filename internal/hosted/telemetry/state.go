package telemetry

import "github.com/prometheus/client_golang/prometheus"

// states is a Prometheus collector that gets the State whenever the metrics are read.
type states func() State

var (
	serverUp = prometheus.NewDesc("mcpx_server_up",
		"1 if calls to the server can succeed (ready, degraded or idle), else 0.", []string{"mcpx_server", "state"}, nil)
	tools    = prometheus.NewDesc("mcpx_server_tools", "Tools that the server lists.", []string{"mcpx_server"}, nil)
	restarts = prometheus.NewDesc("mcpx_server_restarts_total",
		"Sessions that were opened again after a loss.", []string{"mcpx_server"}, nil)
	sessions = prometheus.NewDesc("mcpx_sessions", "Open sessions of clients; requests since 2026-07-28 have none.", nil, nil)
	failing  = prometheus.NewDesc("mcpx_audit_failing", "1 if the audit trail cannot be written.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s states) Describe(out chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{serverUp, tools, restarts, sessions, failing} {
		out <- one
	}
}

// Collect implements prometheus.Collector.
func (s states) Collect(out chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	now := s()
	for _, one := range now.Servers {
		up := one.State == "ready" || one.State == "degraded" || one.State == "idle"
		gauge(serverUp, number(up), one.Name, one.State)
		gauge(tools, float64(one.Tools), one.Name)
		out <- prometheus.MustNewConstMetric(restarts, prometheus.CounterValue, float64(one.Restarts), one.Name)
	}
	gauge(sessions, float64(now.Sessions))
	gauge(failing, number(now.AuditFailing))
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
