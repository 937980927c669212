// Package telemetry exports what mcpx does, as metrics for Prometheus and as traces for an OpenTelemetry collector.
package telemetry

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"mcpx/internal/request"
)

// Metrics counts calls, requests and sessions of clients, and tokens. The names of its metrics follow the OpenTelemetry conventions
// for MCP (gen-ai, status "Development") in the form for Prometheus. A metric that these conventions do not have gets a name with
// mcpx_ in front; metrics about Go and the process have their usual names. No label contains text from a client: a server or tool
// that is not in the catalogue gets the label [other]. A Metrics may be used by several goroutines at the same time.
type Metrics struct {
	set     *metrics.Set // all metrics that only grow
	state   func() State
	version string

	mu      sync.Mutex
	series  map[seriesKey]*series
	answers map[answerKey]*metrics.PrometheusHistogram
	savings map[savingKey]saving
}

// State is what the metrics say about the current state of mcpx.
type State struct {
	Servers []Server
	// Sessions are the HTTP sessions of legacy clients.
	Sessions     int
	AuditFailing bool
}

// Server is the current state of one MCP server. Restarts is how many of its sessions were lost.
type Server struct {
	Name, State     string
	Tools, Restarts int
}

const (
	// other is the label in place of servers and tools that are not in the catalogue, and of methods that mcpx does not know. If
	// mcpx did not try to send a call to its server, the tool of the call gets this label. When there are maxSeries series already,
	// it also replaces the server and the tool of a call that would need a new series, and the error code of a request that would
	// need one.
	other = "_other"
	// maxSeries is the maximum number of series of calls, and also of series of requests. After that, only series with the label
	// other are added. The bound is needed because a server may change its tools all the time and use ever new error codes.
	maxSeries = 2000
	// maxSavings is the maximum number of series of saved tokens, of which a server has up to three. Further servers share the
	// series with the label other. The bound is needed because servers that dial in choose their names.
	maxSavings = 1500
)

// buckets are the buckets of all histograms: those of the conventions, and finer ones below 10 ms, because mcpx itself usually
// takes less than that.
var buckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}

// NewMetrics makes metrics. It calls state whenever the metrics are read.
func NewMetrics(version string, state func() State) *Metrics {
	metrics.ExposeMetadata(true)
	return &Metrics{
		set: metrics.NewSet(), state: state, version: version,
		series:  make(map[seriesKey]*series),
		answers: make(map[answerKey]*metrics.PrometheusHistogram),
		savings: make(map[savingKey]saving),
	}
}

// ServeHTTP implements http.Handler: Prometheus reads the metrics from it. With gzip, the text is about 25 times smaller.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Add("Vary", "Accept-Encoding")
	var text io.Writer = w
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		defer packed.Close()
		text = packed
	}
	m.write(text)
	metrics.WriteProcessMetrics(text)
	metrics.WriteFDMetrics(text)
}

// write writes all metrics but those about Go and the process.
func (m *Metrics) write(w io.Writer) {
	var text strings.Builder
	m.set.WritePrometheus(&text)
	m.writeState(&text)
	_, _ = help().WriteString(w, text.String()) // an error means that the client has gone
}

// help adds the texts that say what the metrics mean: the library writes a HELP line for each metric, but without a text.
var help = sync.OnceValue(func() *strings.Replacer {
	var pairs []string
	for metric, text := range map[string]string{
		"mcp_client_operation_duration_seconds": "Time that calls spent on their upstream server: waiting for a session and for the answer.",
		"mcp_server_operation_duration_seconds": "Time from a client's request to its answer.",
		"mcp_server_session_duration_seconds":   "Time from initialize to the end of a session of a client.",
		"mcpx_calls_total":                      "Calls of tools by their outcome: RESULT, TOOL_ERROR, CANCELLED, STILL_RUNNING or the code of a failure.",
		"mcpx_result_tokens_total":              "Estimated o200k tokens of results: received from the server, sent to the client.",
		"mcpx_result_bytes_total":               "Bytes of results: received from the server, sent to the client.",
		"mcpx_saved_tokens_total": "Estimated tokens saved: definitions of tools, once for each session; compression of results; " +
			"cut, what was left behind a handle.",
		"mcpx_spent_tokens_total": "Estimated tokens to subtract from mcpx_saved_tokens_total: mcpx's own tools and answers of inspect, " +
			"results that became longer, parts that were read by a handle.",
		"mcpx_http_refused_total":    "HTTP requests that were answered with an error.",
		"mcpx_server_up":             "1 if calls to the server can succeed (ready, degraded or idle), else 0.",
		"mcpx_server_tools":          "Tools that the server lists.",
		"mcpx_server_restarts_total": "Sessions with the server that were lost; each is opened again.",
		"mcpx_sessions":              "Open sessions of clients; requests since 2026-07-28 have none.",
		"mcpx_audit_failing":         "1 if the audit trail cannot be written.",
		"mcpx_build_info":            "Always 1; the version is the label.",
	} {
		pairs = append(pairs, "# HELP "+metric+"\n", "# HELP "+metric+" "+text+"\n")
	}
	return strings.NewReplacer(pairs...)
})

// labelled returns the name of a series. labels are names and values in turn, sorted by the names.
func labelled(metric string, labels ...string) string {
	if len(labels) == 0 {
		return metric
	}
	pairs := make([]string, 0, len(labels)/2)
	for i := 0; i < len(labels); i += 2 {
		pairs = append(pairs, labels[i]+`="`+labelEscapes.Replace(strings.ToValidUTF8(labels[i+1], "\ufffd"))+`"`)
	}
	return metric + "{" + strings.Join(pairs, ",") + "}"
}

// labelEscapes writes the value of a label.
var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// counter returns the counter with these labels (see labelled).
func (m *Metrics) counter(metric string, labels ...string) *metrics.Counter {
	return m.set.GetOrCreateCounter(labelled(metric, labels...))
}

// seconds returns the histogram of durations with these labels (see labelled).
func (m *Metrics) seconds(metric string, labels ...string) *metrics.PrometheusHistogram {
	return m.set.GetOrCreatePrometheusHistogramExt(labelled(metric, labels...), buckets)
}

type seriesKey struct {
	server, tool, outcome string
	asked                 bool // true if mcpx tried to send a request to the upstream
}

// series are the metrics of all calls of one tool with one outcome.
type series struct {
	// upstream is nil if mcpx did not try to send a request to the upstream.
	upstream                                         *metrics.PrometheusHistogram
	calls                                            *metrics.Counter
	tokensReceived, tokensSent, bytesReceived, bytes *metrics.Counter
}

// Event is an observer: mcpx calls it at the end of each [request.Event]. It counts requests of clients, calls of tools, the tokens
// that mcpx saved, and refusals.
func (m *Metrics) Event(r *request.Event) {
	switch {
	case r.Refused != nil:
		m.counter("mcpx_http_refused_total", "http_response_status_code", strconv.Itoa(r.Refused.Status)).Inc()
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
	m.saved(r)
}

// The kinds of savings.
const (
	kindDefinitions = "definitions"
	kindCompression = "compression"
	kindCut         = "cut"
)

type savingKey struct{ server, kind string }

// saving has the counters of the tokens that one kind of saving saved or cost. There are two, as a counter cannot fall. Both are
// always there, so that queries can subtract one from the other.
type saving struct{ saved, spent *metrics.Counter }

// saved counts the tokens that a message has saved.
func (m *Metrics) saved(r *request.Event) {
	add := func(server, kind string, tokens int) {
		if tokens != 0 {
			s := m.savingOf(savingKey{server, kind})
			s.saved.Add(max(tokens, 0))
			s.spent.Add(max(-tokens, 0))
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

func (m *Metrics) savingOf(key savingKey) saving {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.savings[key]
	if !ok && len(m.savings) >= maxSavings {
		key.server = other
		s, ok = m.savings[key]
	}
	if !ok {
		s = saving{
			saved: m.counter("mcpx_saved_tokens_total", "kind", key.kind, "mcpx_server", key.server),
			spent: m.counter("mcpx_spent_tokens_total", "kind", key.kind, "mcpx_server", key.server),
		}
		m.savings[key] = s
	}
	return s
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
		s.upstream.Update(r.Upstream.Seconds())
	}
	s.tokensReceived.Add(r.Received)
	s.tokensSent.Add(r.Sent)
	s.bytesReceived.Add(r.ReceivedBytes)
	s.bytes.Add(r.SentBytes)
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
	result := func(metric, direction string) *metrics.Counter {
		return m.counter(metric, "direction", direction, "mcpx_server", key.server)
	}
	s := &series{
		calls:          m.counter("mcpx_calls_total", "mcpx_server", key.server, "outcome", key.outcome),
		tokensReceived: result("mcpx_result_tokens_total", "received"), tokensSent: result("mcpx_result_tokens_total", "sent"),
		bytesReceived: result("mcpx_result_bytes_total", "received"), bytes: result("mcpx_result_bytes_total", "sent"),
	}
	if key.asked {
		s.upstream = m.seconds("mcp_client_operation_duration_seconds",
			"error_type", fault, "gen_ai_tool_name", key.tool, "mcp_method_name", "tools/call", "mcpx_server", key.server)
	}
	m.series[key] = s
	return s
}

type answerKey struct {
	method string
	code   int
	failed bool
}

// answered counts a request of a client. method is empty if mcpx does not know the method. code is the code of the JSON-RPC error,
// or 0 for a result. failed is true for a result that says that the call failed (isError).
func (m *Metrics) answered(method string, code int, failed bool, took time.Duration) {
	m.answerOf(answerKey{method, code, failed}).Update(took.Seconds())
}

func (m *Metrics) answerOf(key answerKey) *metrics.PrometheusHistogram {
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
	o := m.seconds("mcp_server_operation_duration_seconds", "error_type", fault, "mcp_method_name", method)
	m.answers[key] = o
	return o
}

// SessionEnded counts a session of this negotiated protocol version, and how long it lasted.
func (m *Metrics) SessionEnded(version string, lasted time.Duration) {
	m.seconds("mcp_server_session_duration_seconds", "mcp_protocol_version", version).Update(lasted.Seconds())
}
