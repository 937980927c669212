package main

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestDial: mcpx dial offers a server of its config to a hosted mcpx, whose client calls it. Another principal does not see it.
// The token is the one that mcpx secret set dial has stored, unless another is given. A wrong one ends the command, and the
// token is never printed.
func TestDial(t *testing.T) {
	mcptest.Parallel(t)
	host, device := newHome(t), newHome(t)
	digest := func(token string) map[string]any {
		sum := sha256.Sum256([]byte(token))
		return map[string]any{"sha256": hex.EncodeToString(sum[:])}
	}
	file := host.config(t, map[string]server{}, map[string]any{
		"auth": map[string]any{"tokens": map[string]any{"ann": digest("ann-token"), "bob": digest("bob-token")}},
		"dial": map[string]any{"allow": []any{map[string]any{"names": []string{"laptop*"}}}},
	})
	hosted := host.serveHTTP(t, "--config", file)
	address := strings.Replace(hosted.site(), "http:", "ws:", 1) + "/dial/laptop"
	config := device.config(t, map[string]server{"alpha": fake(t, mcptest.Spec{})}, nil)

	if _, stderr, code := device.run(t, "ann-token\n", "secret", "set", "dial"); code != 0 { // in a file, as there is no keyring
		t.Fatal(stderr)
	}
	if _, stderr, code := device.run(t, "", "--config", config, "dial", "--token", "wrong", address, "alpha"); code != 1 || !strings.Contains(stderr, "401") {
		t.Errorf("a wrong token: exit %d: %s", code, stderr)
	}
	if _, stderr, code := device.run(t, "", "--config", config, "dial", "ws://example.com/dial/laptop"); code != exitUsage || !strings.Contains(stderr, "wss:") {
		t.Errorf("without TLS: exit %d: %s", code, stderr)
	}

	process := device.command(t, "--config", config, "dial", address, "alpha")
	stderr := &lockedBuffer{}
	process.Stderr = stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
	exec := func(token, server, tool, arguments string) string {
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{"server":"` + server + `","tool":"` + tool + `","arguments":` + arguments + `},` + meta + `}}`
		_, answer := fetch(t, "POST", hosted.url, body, "Authorization: Bearer "+token, "Content-Type: application/json",
			"Accept: application/json, text/event-stream", "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: exec")
		return answer
	}
	name := ""
	mcptest.WaitFor(t, "the dialled server", 30*time.Second, func() bool {
		listed := exec("ann-token", "laptop", "echo", `{"text":"hello"}`)
		if at := strings.Index(listed, "laptop-"); at >= 0 && len(listed) > at+15 {
			name = listed[at : at+15]
		}
		return name != ""
	})
	var answer string
	mcptest.WaitFor(t, "the answer", 30*time.Second, func() bool {
		answer = exec("ann-token", name, "echo", `{"text":"hello"}`)
		return strings.Contains(answer, `hello`)
	})
	if answer := exec("bob-token", name, "echo", `{"text":"hello"}`); !strings.Contains(answer, "SERVER_NOT_FOUND") {
		t.Errorf("bob: %s", answer)
	}
	if out, stderr, code := host.run(t, "", "--config", file, "check"); code != 0 || !strings.Contains(out, name+": dialled in, for self, ") {
		t.Errorf("check at the hosted end: exit %d: %s%s", code, out, stderr)
	}
	if text := stderr.String(); !strings.Contains(text, "connected to ") || strings.Contains(text, "ann-token") {
		t.Errorf("stderr: %s", text)
	}
}
