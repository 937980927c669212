// Package telemetry exports what mcpx does, as metrics for Prometheus and as traces for an OpenTelemetry collector.
package telemetry

import (
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"mcpx/internal/request"
)

// Metrics counts calls, requests and sessions of clients, and tokens. Names follow the OpenTelemetry conventions for MCP
// (gen-ai, status "Development") in the form for Prometheus. Other names begin with mcpx_, except the names of metrics about
// Go and the process. No label contains text from a client: a server or tool that is not in the catalogue gets the
// label [other]. Safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	upstream *prometheus.HistogramVec // labels: server, tool, outcome
	requests *prometheus.HistogramVec // labels: method, error
	sessions *prometheus.HistogramVec // label: protocol revision
	calls    *prometheus.CounterVec   // labels: server, outcome
	tokens   *prometheus.CounterVec   // labels: server, direction
	bytes    *prometheus.CounterVec   // labels: server, direction
	saved    *prometheus.CounterVec   // labels: server, kind
	spent    *prometheus.CounterVec   // labels: server, kind
	refused  *prometheus.CounterVec   // label: status

	mu      sync.Mutex
	series  map[seriesKey]*series
	answers map[answerKey]prometheus.Observer
	savers  map[string]bool // the servers with series of their own in saved and spent
}

// State is the current state of mcpx.
type State struct {
	Servers []Server
	// Sessions are the HTTP sessions of legacy clients.
	Sessions     int
	AuditFailing bool
}

// Server is the current state of one MCP server. Restarts is how often its session was opened again after a loss.
type Server struct {
	Name, State     string
	Tools, Restarts int
}

const (
	// other is the label in place of servers and tools that are not in the catalogue, and of methods that mcpx does not know. A
	// call that mcpx did not try to send to its server gets this label for its tool. Once there are maxSeries series, a call that
	// would need a new series gets this label for its server and its tool, and a request gets it for its error code.
	other = "_other"
	// maxSeries is how many series of calls there are at most, and how many series of requests, not counting series with the
	// label other. The bound is needed because a server may change its tools all the time and use ever new error codes.
	maxSeries = 2000
	// maxSavers is how many servers have series of saved tokens at most. Further servers share the series with the label other.
	// The bound is needed because servers that dial in choose their names.
	maxSavers = 500
)

// buckets are the buckets that the conventions define, and finer ones below 10 ms, because mcpx itself usually takes
// less than that.
var buckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}

// NewMetrics makes metrics. It calls state whenever the metrics are read.
func NewMetrics(version string, state func() State) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		upstream: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mcp_client_operation_duration_seconds", Buckets: buckets,
			Help: "Time that calls spent on their upstream server: waiting for a session and for the answer.",
		}, []string{"mcp_method_name", "mcpx_server", "gen_ai_tool_name", "error_type"}),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mcp_server_operation_duration_seconds", Buckets: buckets,
			Help: "Time from a client's request to its answer.",
		}, []string{"mcp_method_name", "error_type"}),
		sessions: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mcp_server_session_duration_seconds", Buckets: buckets,
			Help: "Time from initialize to the end of a session of a client.",
		}, []string{"mcp_protocol_version"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcpx_calls_total", Help: "Calls of tools by their outcome: RESULT, TOOL_ERROR, CANCELLED, STILL_RUNNING or the code of a failure.",
		}, []string{"mcpx_server", "outcome"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcpx_result_tokens_total", Help: "Estimated o200k tokens of results: received from the server, sent to the client.",
		}, []string{"mcpx_server", "direction"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcpx_result_bytes_total", Help: "Bytes of results: received from the server, sent to the client.",
		}, []string{"mcpx_server", "direction"}),
		saved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcpx_saved_tokens_total",
			Help: "Estimated tokens saved: definitions of tools, once for each session; compression of results; cut, what was left behind a handle.",
		}, []string{"mcpx_server", "kind"}),
		spent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcpx_spent_tokens_total",
			Help: "Estimated tokens to subtract from mcpx_saved_tokens_total: mcpx's own tools and answers of inspect, results that became longer, parts that were read by a handle.",
		}, []string{"mcpx_server", "kind"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcpx_http_refused_total", Help: "HTTP requests that were answered with an error.",
		}, []string{"http_response_status_code"}),
		series:  make(map[seriesKey]*series),
		answers: make(map[answerKey]prometheus.Observer),
		savers:  make(map[string]bool),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "mcpx_build_info", Help: "Always 1; the version is the label.", ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	m.registry.MustRegister(
		m.upstream, m.requests, m.sessions, m.calls, m.tokens, m.bytes, m.saved, m.spent, m.refused, build, states(state),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler returns the handler from which Prometheus reads the metrics. It logs errors as warnings.
func (m *Metrics) Handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), MaxRequestsInFlight: 4,
	})
}

type seriesKey struct {
	server, tool, outcome string
	asked                 bool // whether mcpx tried to send a request to the upstream
}

// series are the metrics of all calls of one tool with one outcome.
type series struct {
	upstream                                         prometheus.Observer // nil if mcpx did not try to send a request to the upstream
	calls                                            prometheus.Counter
	tokensReceived, tokensSent, bytesReceived, bytes prometheus.Counter
}

// Event is an observer of [request.Event]. It counts requests of clients, calls of tools, the tokens that mcpx saved, and
// refusals.
func (m *Metrics) Event(r *request.Event) {
	switch {
	case r.Refused != nil:
		m.refused.WithLabelValues(strconv.Itoa(r.Refused.Status)).Inc()
		return
	case r.Request:
		method := ""
		if r.KnownMethod {
			method = r.Method
		}
		m.answered(method, r.Code, r.Code == 0 && r.IsCall() && r.Failed(), r.Duration+r.Confirming)
	}
	if r.Attempted && r.IsCall() {
		m.call(r)
	}
	m.savings(r)
}

// The kinds of savings.
const (
	kindDefinitions = "definitions"
	kindCompression = "compression"
	kindCut         = "cut"
)

// savings counts the tokens that a message has saved. A counter cannot fall, so the tokens that mcpx costs have a counter of
// their own (spent). Both counters always get a series with the same labels, so that queries can subtract one from the other.
func (m *Metrics) savings(r *request.Event) {
	add := func(server, kind string, tokens int) {
		if tokens != 0 {
			server = m.saver(server)
			m.saved.WithLabelValues(server, kind).Add(float64(max(tokens, 0)))
			m.spent.WithLabelValues(server, kind).Add(float64(max(-tokens, 0)))
		}
	}
	if r.Definitions != nil {
		for _, one := range r.Definitions() {
			add(one.Server, kindDefinitions, one.Tokens)
		}
	}
	switch {
	case r.Answered && r.KnownServer:
		add(r.Server, kindCompression, r.Compression())
		add(r.Server, kindCut, r.Cut)
	case r.ReadOn != nil:
		add(r.ReadOn.Server, kindCut, -r.Sent)
	}
}

// saver returns the label of a server in saved and spent: its name, or other if maxSavers servers have series already.
func (m *Metrics) saver(server string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.savers[server] && len(m.savers) >= maxSavers {
		return other
	}
	m.savers[server] = true
	return server
}

func (m *Metrics) call(r *request.Event) {
	key := seriesKey{r.Server, r.Tool, r.Outcome, r.Upstream > 0}
	if !r.KnownServer {
		key.server = other
	}
	if !r.Known || !key.asked {
		key.tool = other
	}
	s := m.seriesOf(key)
	s.calls.Inc()
	if key.asked {
		s.upstream.Observe(r.Upstream.Seconds())
	}
	s.tokensReceived.Add(float64(r.Received))
	s.tokensSent.Add(float64(r.Sent))
	s.bytesReceived.Add(float64(r.ReceivedBytes))
	s.bytes.Add(float64(r.SentBytes))
}

func (m *Metrics) seriesOf(key seriesKey) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.series[key] == nil && len(m.series) >= maxSeries {
		key.server, key.tool = other, other
	}
	if s := m.series[key]; s != nil {
		return s
	}
	fault := ""
	if key.outcome != "RESULT" {
		fault = key.outcome
	}
	s := &series{
		calls:          m.calls.WithLabelValues(key.server, key.outcome),
		tokensReceived: m.tokens.WithLabelValues(key.server, "received"), tokensSent: m.tokens.WithLabelValues(key.server, "sent"),
		bytesReceived: m.bytes.WithLabelValues(key.server, "received"), bytes: m.bytes.WithLabelValues(key.server, "sent"),
	}
	if key.asked {
		s.upstream = m.upstream.WithLabelValues("tools/call", key.server, key.tool, fault)
	}
	m.series[key] = s
	return s
}

type answerKey struct {
	method string
	code   int
	failed bool
}

// answered counts a request of a client. method is empty if it is unknown. code is the code of the JSON-RPC error, or 0 for a
// result. failed is true for a result that says that the call failed (isError).
func (m *Metrics) answered(method string, code int, failed bool, took time.Duration) {
	m.answerOf(answerKey{method, code, failed}).Observe(took.Seconds())
}

func (m *Metrics) answerOf(key answerKey) prometheus.Observer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.answers[key] == nil && len(m.answers) >= maxSeries { // servers may use any number of error codes
		key.code = -1
	}
	if o := m.answers[key]; o != nil {
		return o
	}
	method, fault := key.method, ""
	if method == "" {
		method = other
	}
	switch {
	case key.failed:
		fault = "tool_error"
	case key.code == -1:
		fault = other
	case key.code != 0:
		fault = strconv.Itoa(key.code)
	}
	o := m.requests.WithLabelValues(method, fault)
	m.answers[key] = o
	return o
}

// SessionEnded counts a session of this negotiated protocol version, and how long it lasted.
func (m *Metrics) SessionEnded(version string, lasted time.Duration) {
	m.sessions.WithLabelValues(version).Observe(lasted.Seconds())
}
