package main

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestWebSocket: a server of the Python SDK over WebSocket, as its URL says.
func TestWebSocket(t *testing.T) {
	mcptest.Parallel(t)
	program := exec.Command(filepath.Join(python(t), "sdk1", "bin", "python"), filepath.Join("..", "..", "testdata", "pypi", "websocket_server.py"))
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = program.Process.Kill()
		_ = program.Wait()
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	h := newHome(t)
	config := h.config(t, map[string]server{"socket": {"url": strings.TrimSpace(url)}}, patient)
	got, stderr, code := h.run(t, "", "--config", config, "exec", "socket", "add", `{"a":2,"b":40}`)
	if code != 0 || got != "42\n" {
		t.Errorf("exit %d: %s%s", code, got, stderr)
	}
}
