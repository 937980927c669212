package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// get requests a page from a running mcpx. If token is empty, it sends none.
func (d *hosted) get(t *testing.T, path, token string) (status int, body string) {
	t.Helper()
	var headers []string
	if token != "" {
		headers = []string{bearer(token)}
	}
	response, body := fetch(t, http.MethodGet, d.site()+path, "", headers...)
	return response.StatusCode, body
}

// TestMetrics_http: /metrics and /status contain the servers and their calls, and no secrets. With auth, only
// admins may read them; /metrics may also be read by principals that the config names.
func TestMetrics_http(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	h.extra = append(h.extra, "SECRET=canary-of-the-config")
	s := fake(t, mcptest.Spec{Tools: json.RawMessage(`[{"name":"echo"}]`)})
	s["env"].(map[string]string)["API_KEY"] = "${SECRET}"
	tokens := map[string]any{}
	for _, name := range []string{"ann", "prometheus", "root"} {
		tokens[name] = map[string]any{"sha256": fmt.Sprintf("%x", sha256.Sum256([]byte("mcpx_canary_"+name)))}
	}
	config := h.config(t, map[string]server{"shop": s}, map[string]any{
		"auth":      map[string]any{"tokens": tokens, "rights": []any{map[string]any{"principals": []string{"root"}, "admin": true}, map[string]any{"principals": []string{"ann"}, "servers": []string{"*"}}}},
		"telemetry": map[string]any{"metrics": []string{"prom*"}},
	})
	d := h.serveHTTP(t, "--config", config)
	p := d.peer(t)
	p.header.Set("Authorization", "Bearer mcpx_canary_ann")
	c := &client{peer: p, era: legacy, name: "canary of a client"}
	c.open(t)
	c.exec(t, "shop", "echo", `{"text":"canary of an argument"}`)
	c.exec(t, "shop", "canary of a tool", `{}`)
	c.exec(t, "canary of a server", "echo", `{}`)
	for _, one := range []struct {
		path, token string
		status      int
	}{
		{"/metrics", "", 401}, {"/metrics", "mcpx_canary_ann", 403}, {"/metrics", "mcpx_canary_prometheus", 200}, {"/metrics", "mcpx_canary_root", 200},
		{"/status", "", 401}, {"/status", "mcpx_canary_ann", 403}, {"/status", "mcpx_canary_prometheus", 403}, {"/status", "mcpx_canary_root", 200},
		{"/healthz", "", 200}, {"/readyz", "", 200},
	} {
		if status, body := d.get(t, one.path, one.token); status != one.status {
			t.Errorf("%s as %q: %d %s", one.path, one.token, status, body)
		}
	}
	var metrics string
	mcptest.WaitFor(t, "the last call in the metrics", patience, func() bool { // the metrics are updated after the client has its answer
		_, metrics = d.get(t, "/metrics", "mcpx_canary_prometheus")
		return strings.Contains(metrics, `{error_type="tool_error",mcp_method_name="tools/call"} 2`)
	})
	hasAll(t, metrics,
		`mcpx_calls_total{mcpx_server="shop",outcome="RESULT"} 1`, `mcpx_calls_total{mcpx_server="shop",outcome="TOOL_NOT_FOUND"} 1`, `mcpx_calls_total{mcpx_server="_other",outcome="SERVER_NOT_FOUND"} 1`,
		`mcp_client_operation_duration_seconds_count{error_type="",gen_ai_tool_name="echo",mcp_method_name="tools/call",mcpx_server="shop"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="",mcp_method_name="initialize"} 1`,
		`mcp_server_operation_duration_seconds_count{error_type="tool_error",mcp_method_name="tools/call"} 2`,
		`mcpx_sessions 1`, `mcpx_http_refused_total{http_response_status_code="401"} 2`,
	)
	_, text := d.get(t, "/status", "mcpx_canary_root")
	var status struct {
		Servers []struct {
			Name                 string
			Calls, Errors, Tools int
		}
		ToolNames map[string][]string `json:"tool_names"`
		Clients   []struct {
			Principal, Name string
			Calls, Errors   int
		}
		Sessions int
	}
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		t.Fatal(err)
	}
	if len(status.Servers) != 1 || status.Servers[0].Calls != 2 || status.Servers[0].Errors != 1 || !slices.Equal(status.ToolNames["shop"], []string{"echo"}) || status.Sessions != 1 ||
		len(status.Clients) != 1 || status.Clients[0].Principal != "ann" || status.Clients[0].Calls != 3 || status.Clients[0].Errors != 2 {
		t.Error(text)
	}
	for _, canary := range []string{"canary-of-the-config", "canary of an argument", "mcpx_canary"} {
		for name, text := range map[string]string{"metrics": metrics, "status": text, "log": d.stderr.String()} {
			if strings.Contains(text, canary) {
				t.Errorf("%s has %q", name, canary)
			}
		}
	}
	if strings.Contains(metrics, "canary") || strings.Contains(metrics, `"ann"`) {
		t.Errorf("a label has text of a client:\n%s", metrics)
	}
}
