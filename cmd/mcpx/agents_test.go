package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// joinStdio runs a script that connects a stdio server to a URL, until the test ends. output is what the script prints.
func joinStdio(t *testing.T, address string, command ...string) (output *lockedBuffer) {
	t.Helper()
	script := filepath.Join(testdata(), "pypi", "mcp_pipe.py")
	program := exec.Command(filepath.Join(python(t), "sdk1", "bin", "python"), append([]string{script}, command...)...)
	program.Env = append(os.Environ(), "MCP_ENDPOINT="+address)
	output = &lockedBuffer{}
	program.Stdout, program.Stderr = output, output
	program.WaitDelay = time.Second // the stdio server that it has started may still hold its output open
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Kill() // the stdio server that it has started ends when its stdin is closed
		_ = program.Wait()
	})
	return output
}

// stdioCommand returns the command of a fake server.
func stdioCommand(t *testing.T, spec mcptest.Spec) []string {
	t.Helper()
	program, args, env := spec.Stdio(t)
	command := []string{"env"}
	for name, value := range env {
		command = append(command, name+"="+value)
	}
	return append(append(command, program), args...)
}

// voice is what the client of a voice assistant has printed.
type voice struct {
	Server         string
	Tools, Results []string
	Ping           map[string]any
}

func voiceClient(t *testing.T, address string, calls ...string) (v voice) {
	t.Helper()
	script := filepath.Join(testdata(), "pypi", "voice_client.py")
	program := exec.Command(filepath.Join(python(t), "sdk1", "bin", "python"), append([]string{script, address}, calls...)...)
	out, err := program.Output()
	if failed, ok := err.(*exec.ExitError); ok {
		t.Fatalf("the client: %v: %s", err, failed.Stderr)
	}
	if err == nil {
		err = json.Unmarshal(out, &v)
	}
	if err != nil {
		t.Fatalf("the client: %v: %s", err, out)
	}
	return v
}

// awaitTools waits until mcpx knows as many tools of agents as the parameter tools says, and each server of an agent is
// connected.
func (d *hosted) awaitTools(t *testing.T, key string, tools int) {
	t.Helper()
	var health struct {
		Result struct {
			Connections struct {
				Tools   int                                          `json:"total_tools"`
				Servers map[string]map[string]struct{ State string } `json:"mcp_servers"`
			}
		}
	}
	mcptest.WaitFor(t, "the tool servers", patience, func() bool {
		response, answer := fetch(t, http.MethodGet, d.site()+"/mcp_endpoint/health?key="+url.QueryEscape(key), "")
		if response.StatusCode == http.StatusTooManyRequests { // WaitFor asks so often that it may exceed a limit
			return false
		}
		health.Result.Connections.Servers = nil
		if err := json.Unmarshal([]byte(answer), &health); err != nil {
			t.Fatal(err, answer)
		}
		for _, servers := range health.Result.Connections.Servers {
			for _, s := range servers {
				if s.State != "dialled in" {
					return false
				}
			}
		}
		return health.Result.Connections.Tools == tools
	})
}

// TestAgents: programs that were made for mcp-endpoint-server (see dial.compat) work unchanged with mcpx: scripts that join stdio
// servers to the URL of an agent, and the client of a voice assistant. They work again after their connections were cut. No token
// is in any log.
func TestAgents(t *testing.T) {
	mcptest.Parallel(t)
	const key = "a key for the agents of this test"
	h, audit := newHome(t), filepath.Join(t.TempDir(), "audit.jsonl")
	config := h.config(t, map[string]server{}, map[string]any{
		"dial":  map[string]any{"compat": "signed", "compat_key": key},
		"audit": map[string]any{"file": audit},
	})
	token := func(agent string) string {
		out, stderr, code := h.run(t, "", "--config", config, "token", "agent", agent, "--days", "1")
		if code != 0 || !strings.Contains(stderr, "the token of the agent "+agent) {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		return strings.TrimSpace(out)
	}
	kitchen, cellar := token("kitchen"), token("cellar")
	mcpx := h.serveHTTP(t, "--config", config, "--log-level", "debug")
	proxy := mcptest.NewProxy(t, strings.TrimPrefix(mcpx.site(), "http://"))
	at := func(path, token string) string {
		return "ws://" + proxy.Addr() + "/mcp_endpoint/" + path + "/?token=" + token
	}
	// In a full run the calculator is a real server from PyPI; it needs seconds to start.
	calculator := stdioCommand(t, mcptest.Spec{Tools: json.RawMessage(`[{"name":"calculate","inputSchema":{"type":"object"}}]`),
		Results: map[string]json.RawMessage{"calculate": json.RawMessage(`{"content":[{"type":"text","text":"16900000000"}]}`)}})
	if mcptest.Full {
		calculator = []string{filepath.Join(python(t), "sdk1", "bin", "mcp-server-calculator")}
	}
	logs := []*lockedBuffer{
		joinStdio(t, at("mcp", kitchen), calculator...),
		joinStdio(t, at("mcp", kitchen), stdioCommand(t, mcptest.Spec{Tools: json.RawMessage(`[{"name":"echo","inputSchema":{"type":"object"}}]`)})...),
		joinStdio(t, at("mcp", cellar), calculator...),
	}
	mcpx.awaitTools(t, key, 3)
	calls := []string{
		`{"name":"calculate","arguments":{"expression":"130000 * 130000"}}`, `{"name":"echo","arguments":{"text":"你好"},"serialNumber":null}`,
	}
	look := func() {
		t.Helper()
		got := voiceClient(t, at("call", kitchen), calls...)
		if got.Server != "mcpx" || !slices.Equal(got.Tools, []string{"calculate", "echo"}) || !slices.Equal(got.Results, []string{"16900000000", "你好"}) || len(got.Ping) != 0 {
			t.Errorf("%+v", got)
		}
	}
	look()
	if got := voiceClient(t, at("call", cellar), calls[1]); !slices.Equal(got.Tools, []string{"calculate"}) || !strings.Contains(got.Results[0], "unknown tool") {
		t.Errorf("another agent: %+v", got)
	}
	proxy.Cut()
	mcptest.WaitFor(t, "the pipes to come back", patience, func() bool {
		return !slices.ContainsFunc(logs, func(l *lockedBuffer) bool { return strings.Count(l.String(), "connected") < 2 })
	})
	mcpx.awaitTools(t, key, 3)
	look()

	written, err := os.ReadFile(audit)
	if err != nil || !strings.Contains(string(written), "agent:kitchen") && !strings.Contains(string(written), "agent kitchen") {
		t.Errorf("the audit trail does not name the agent: %v %s", err, written)
	}
	for _, secret := range []string{kitchen, cellar, strings.Split(kitchen, ".")[2], key} {
		for where, text := range map[string]string{"log": mcpx.stderr.String(), "audit trail": string(written)} {
			if strings.Contains(text, secret) {
				t.Errorf("a secret is in the %s", where)
			}
		}
	}
}
