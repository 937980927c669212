package telemetry

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"mcpx/internal/request"
)

func scraped(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != 200 {
		t.Fatal(w.Code, err)
	}
	return string(body)
}

// used returns metrics after a few calls.
func used() *Metrics {
	m := NewMetrics("1.2.3", func() State {
		return State{Servers: []Server{{"shop", "ready", 4, 1}, {"off", "unavailable", 0, 7}}, Sessions: 3, AuditFailing: true}
	})
	search := request.Target{Server: "shop", Tool: "search", KnownServer: true, Known: true}
	m.Event(&request.Event{
		Method: "tools/call", Attempted: true, Target: search, Outcome: "RESULT", Who: request.Who{Principal: "token canary", Client: "canary"},
		Durations: request.Durations{Duration: 30 * time.Millisecond, Upstream: 20 * time.Millisecond},
		Sizes:     request.Sizes{Received: 700, Sent: 500, ReceivedBytes: 3000, SentBytes: 2000},
	})
	m.Event(&request.Event{
		Method: "tools/call", Attempted: true, Target: search, Outcome: "TOOL_ERROR", Durations: request.Durations{Upstream: time.Second},
	})
	m.Event(&request.Event{Method: "tools/call", Attempted: true, Target: request.Target{Server: "canary", Tool: "canary"}, Outcome: "SERVER_NOT_FOUND"})
	m.Event(&request.Event{
		Method: "tools/call", Attempted: true, Target: request.Target{Server: "shop", KnownServer: true, Tool: "canary"}, Outcome: "TOOL_NOT_FOUND",
	})
	m.Event(&request.Event{Answered: true, Target: search, Sizes: request.Sizes{Received: 900, Sent: 100, Cut: 500, LeftOut: 100}})
	m.Event(&request.Event{ReadOn: &request.Target{Server: "shop", Tool: "search"}, Sizes: request.Sizes{Received: 40, Sent: 40}})
	m.Event(&request.Event{Method: "tools/list", Definitions: func() []request.Saving {
		return []request.Saving{{Server: "shop", Tokens: 3000}, {Server: "mcpx", Tokens: -800}}
	}})
	m.Event(answered("tools/call", true, "TOOL_ERROR", 0))
	m.Event(answered("canary", false, "ERROR -32601", -32601))
	m.SessionEnded("2025-11-25", 90*time.Second)
	m.Event(&request.Event{Refused: &request.Refused{Status: 401, Path: "/canary"}})
	return m
}

// answered returns the event of a client's request that was not sent to a server.
func answered(method string, known bool, outcome string, code int) *request.Event {
	return &request.Event{
		Method: method, KnownMethod: known, Request: true, Outcome: outcome, Code: code, Durations: request.Durations{Duration: time.Millisecond},
	}
}

func TestMetrics(t *testing.T) {
	text := scraped(t, used())
	for _, want := range []string{
		`mcp_client_operation_duration_seconds_bucket{error_type="",gen_ai_tool_name="search",mcp_method_name="tools/call",mcpx_server="shop",le="0.02"} 1`,
		`mcp_client_operation_duration_seconds_count{error_type="TOOL_ERROR",gen_ai_tool_name="search",mcp_method_name="tools/call",mcpx_server="shop"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="tool_error",mcp_method_name="tools/call"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="-32601",mcp_method_name="_other"} 1`,
		`mcpx_calls_total{mcpx_server="shop",outcome="RESULT"} 1`,
		`mcpx_calls_total{mcpx_server="shop",outcome="TOOL_NOT_FOUND"} 1`, `mcpx_calls_total{mcpx_server="_other",outcome="SERVER_NOT_FOUND"} 1`,
		`mcpx_result_tokens_total{direction="received",mcpx_server="shop"} 700`,
		`mcpx_result_bytes_total{direction="sent",mcpx_server="shop"} 2000`,
		`mcpx_saved_tokens_total{kind="compression",mcpx_server="shop"} 200`, `mcpx_spent_tokens_total{kind="compression",mcpx_server="shop"} 0`,
		`mcpx_saved_tokens_total{kind="cut",mcpx_server="shop"} 500`, `mcpx_spent_tokens_total{kind="cut",mcpx_server="shop"} 40`,
		`mcpx_saved_tokens_total{kind="definitions",mcpx_server="shop"} 3000`, `mcpx_spent_tokens_total{kind="definitions",mcpx_server="mcpx"} 800`,
		`mcp_server_session_duration_seconds_bucket{mcp_protocol_version="2025-11-25",le="60"} 0`, `mcp_server_session_duration_seconds_bucket{mcp_protocol_version="2025-11-25",le="120"} 1`,
		`mcpx_http_refused_total{http_response_status_code="401"} 1`,
		`mcpx_server_up{mcpx_server="shop",state="ready"} 1`,
		`mcpx_server_up{mcpx_server="off",state="unavailable"} 0`,
		`mcpx_server_restarts_total{mcpx_server="off"} 7`,
		`mcpx_sessions 3`, `mcpx_audit_failing 1`, `mcpx_build_info{version="1.2.3"} 1`, `go_goroutines `, `process_open_fds `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing: %s", want)
		}
	}
	if strings.Contains(text, "canary") {
		t.Error("text of a client is in a label")
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestMetrics_gzip: a client that takes gzip, as Prometheus does, gets the same text compressed.
func TestMetrics_gzip(t *testing.T) {
	m := used()
	plain := len(scraped(t, m))
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	sent := w.Body.Len()
	if w.Header().Get("Content-Encoding") != "gzip" || 3*sent > plain {
		t.Fatalf("%d bytes instead of %d, %v", sent, plain, w.Header())
	}
	unpacked, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil || !strings.Contains(string(text), "mcpx_build_info") || !strings.Contains(string(text), "process_") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestMetrics_oneEvent: one event is counted as the request of a client and also as the call of a tool. A JSON-RPC
// error is not counted as an error of the tool, whatever the outcome of the call is.
func TestMetrics_oneEvent(t *testing.T) {
	m := NewMetrics("1", func() State { return State{} })
	e := answered("tools/call", true, "TOOL_NOT_FOUND", -32602)
	e.Attempted, e.Target = true, request.Target{Server: "shop", KnownServer: true, Tool: "canary"}
	m.Event(e)
	m.Event(answered("tools/call", true, "ERROR -32602", -32602))
	m.Event(answered("tools/call", true, "CANCELLED", -32800))
	m.Event(answered("tools/call", true, "STILL_RUNNING", 0))
	m.Event(answered("resources/read", true, "ERROR -32002", -32002))
	text := scraped(t, m)
	for _, want := range []string{
		`mcp_server_operation_duration_seconds_count{error_type="-32602",mcp_method_name="tools/call"} 2`,
		`mcp_server_operation_duration_seconds_count{error_type="-32800",mcp_method_name="tools/call"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="",mcp_method_name="tools/call"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="-32002",mcp_method_name="resources/read"} 1`,
		`mcpx_calls_total{mcpx_server="shop",outcome="TOOL_NOT_FOUND"} 1`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing: %s", want)
		}
	}
	if strings.Contains(text, `tool_error`) || strings.Count(text, "mcpx_calls_total{") != 1 {
		t.Error(text)
	}
}

// TestMetrics_lint: the names are valid according to the linter of Prometheus, and to promtool if it is installed.
func TestMetrics_lint(t *testing.T) {
	m := used()
	var text bytes.Buffer
	m.write(&text)
	problems, err := promlint.New(&text).Lint()
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	if _, err := promlint.New(strings.NewReader(scraped(t, m))).Lint(); err != nil {
		t.Error("the whole text:", err)
	}
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool")
	}
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(scraped(t, m))
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestLabelled: whatever the value of a label is, Prometheus can read the series.
func TestLabelled(t *testing.T) {
	got := labelled("m", "a", "x", "b", "q\"\\\n\xffé")
	if want := `m{a="x",b="q\"\\\n` + "\ufffdé" + `"}`; got != want || metrics.ValidateMetric(got) != nil {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestMetrics_bounded: the number of series stays bounded if servers change their tools all the time or use ever new
// error codes, and if servers dial in under ever new names.
func TestMetrics_bounded(t *testing.T) {
	m := NewMetrics("1", func() State { return State{} })
	for i := range maxSeries + 100 {
		m.Event(&request.Event{
			Method: "tools/call", Attempted: true, Outcome: "RESULT", Durations: request.Durations{Upstream: 1},
			Target: request.Target{Server: "s", Tool: fmt.Sprint("tool", i), KnownServer: true, Known: true},
		})
		m.Event(answered("tools/call", true, fmt.Sprint("ERROR ", i+1), i+1))
	}
	for i := range maxSavings + 100 {
		m.Event(&request.Event{Method: "tools/list", Definitions: func() []request.Saving {
			return []request.Saving{{Server: fmt.Sprint("dialled", i), Tokens: 10}}
		}})
	}
	text := scraped(t, m)
	if n := strings.Count(text, "mcp_client_operation_duration_seconds_count{"); n != maxSeries+1 {
		t.Errorf("%d series of calls", n)
	}
	if n := strings.Count(text, "mcp_server_operation_duration_seconds_count{"); n != maxSeries+1 {
		t.Errorf("%d series of requests", n)
	}
	if n := strings.Count(text, "mcpx_saved_tokens_total{"); n != maxSavings+1 {
		t.Errorf("%d series of saved tokens", n)
	}
}

// exist checks that all metrics and labels of mcpx in a text exist.
func exist(t *testing.T, in string) {
	t.Helper()
	text := scraped(t, used())
	names := regexp.MustCompile(`\bmcpx?_[a-z_]+`).FindAllString(in, -1)
	if len(names) < 10 {
		t.Errorf("only %q", names)
	}
	for _, name := range names {
		if !strings.Contains(text, name+"{") && !strings.Contains(text, name+" ") && !strings.Contains(text, name+"=") {
			t.Errorf("there is no %s", name)
		}
	}
}

// TestDashboard: Grafana can read the dashboard, which uses only metrics and labels that exist, and its panels do not overlap.
func TestDashboard(t *testing.T) {
	data, err := os.ReadFile("../../../deploy/grafana/mcpx.json")
	if err != nil {
		t.Fatal(err)
	}
	exist(t, string(data))
	var dashboard struct {
		UID    string
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil || dashboard.UID == "" {
		t.Fatalf("%+v, %v", dashboard, err)
	}
	taken, kinds := map[[2]int]string{}, map[string]bool{}
	for _, p := range dashboard.Panels {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok || x >= 24 {
					t.Errorf("%q is over %q, or too wide", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "saved_tokens") {
				kinds[regexp.MustCompile(`kind="(\w+)"`).FindStringSubmatch(target.Expr)[1]] = true
			}
		}
	}
	if len(kinds) != 3 || !kinds[kindDefinitions] || !kinds[kindCompression] || !kinds[kindCut] {
		t.Errorf("it shows %v", kinds)
	}
}

// TestAlerts: the alert rules are valid, and use only metrics and labels that exist.
func TestAlerts(t *testing.T) {
	const folder = "../../../deploy/prometheus/"
	rules, err := os.ReadFile(folder + "alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	exist(t, string(rules))
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("no promtool")
	}
	for _, args := range [][]string{{"check", "rules", folder + "alerts.yml"}, {"check", "config", "--syntax-only", folder + "prometheus.yml"}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}
