package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestZero_Waits: a wait of 0 in the config means no wait, and not the default.
func TestZero_Waits(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	config := h.config(t, map[string]server{"hangs": fake(t, mcptest.Spec{NeverInit: true})}, map[string]any{"startup_wait": 0, "exec_wait": 0})
	var c *client
	for left := 5; ; left-- { // on a busy machine a single attempt may take as long as the default
		c = &client{era: legacy, name: "e2e", peer: h.serveStdio(t, "--config", config)}
		c.open(t)
		began := time.Now()
		c.list(t)
		took := time.Since(began)
		if took < 4*time.Second { // the default is 5 s
			break
		}
		if left == 0 {
			t.Fatalf("tools/list waited %v", took)
		}
	}
	began := time.Now()
	checkFault(t, "exec", c.exec(t, "hangs", "echo", `{}`), "SERVER_UNAVAILABLE", "connecting")
	if took := time.Since(began); took > 18*time.Second { // the default is 20 s
		t.Errorf("exec waited %v", took)
	}
}

// TestExecWait: if the config has exec_wait, a call waits no longer than that for a server, also for one whose command starts.
func TestExecWait(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	hangs := fake(t, mcptest.Spec{NeverInit: true})
	hangs["connect_timeout"] = 120
	config := h.config(t, map[string]server{"hangs": hangs}, map[string]any{"startup_wait": 0, "exec_wait": "1s"})
	c := &client{era: legacy, name: "e2e", peer: h.serveStdio(t, "--config", config)}
	c.open(t)
	began := time.Now()
	checkFault(t, "exec", c.exec(t, "hangs", "echo", `{}`), "SERVER_UNAVAILABLE", "connecting")
	if took := time.Since(began); took > 18*time.Second { // the default is 20 s
		t.Errorf("exec waited %v", took)
	}
}

func TestZero_Limits(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	end := "and this is the end."
	long := strings.Repeat("A long description of one parameter. ", 20) + end
	tools, err := json.Marshal([]any{map[string]any{"name": "one", "inputSchema": map[string]any{
		"type": "object", "properties": map[string]any{"p": map[string]any{"type": "string", "description": long}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]server{"fake": fake(t, mcptest.Spec{Tools: tools, ExtraTools: 200})}
	config := h.config(t, servers, map[string]any{
		"max_description_len": 0, "catalogue_token_budget": 2000, "clients": map[string]any{"claude-code": map[string]any{"description_chars": 0}},
	})
	if out, _, _ := h.run(t, "", "--config", config, "inspect", "fake", "one"); !strings.Contains(out, end) {
		t.Errorf("cut: %s", out)
	}
	c := &client{era: legacy, name: "claude-code", peer: h.serveStdio(t, "--config", config)}
	c.open(t)
	mcptest.WaitFor(t, "the catalogue", patience, func() bool { return strings.Contains(c.list(t)[0].Description, "extra_{0000(") })
	if n := len(c.list(t)[0].Description); n <= 2048 {
		t.Errorf("the description has %d characters for a client without a limit", n)
	}
}
