package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// traceLine is a line in the file of --trace.
type traceLine struct {
	From, To, Peer, Text string
	Message              struct {
		Method string
		ID     json.RawMessage
		Result json.RawMessage
		Params json.RawMessage
	}
}

// linesOf reads a file in which each line is JSON.
func linesOf[Line any](t *testing.T, path string) (lines []Line) {
	t.Helper()
	for line := range strings.Lines(readFile(t, path)) {
		var one Line
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines = append(lines, one)
	}
	return lines
}

// TestTrace: a trace has the messages of a call between client and mcpx and between mcpx and server, over all
// transports. It has no secrets from the config, wherever they occur, and no texts that look like secrets.
func TestTrace(t *testing.T) {
	mcptest.Parallel(t)
	for _, over := range []string{"stdio", "http"} {
		t.Run(over, func(t *testing.T) {
			h := newHome(t)
			h.extra = append(h.extra, "SECRET=canary-of-the-config")
			tools := mcptest.Spec{
				Tools: json.RawMessage(`[{"name":"echo"},{"name":"leak"}]`),
				Results: map[string]json.RawMessage{"leak": json.RawMessage(
					`{"content":[{"type":"text","text":"canary-of-the-config"},{"type":"text","text":"{\"access_token\":\"canary2\"}"}],"structuredContent":{"api_key":"canary3"}}`)},
			}
			local := fake(t, tools)
			local["env"].(map[string]string)["API_KEY"] = "${SECRET}"
			remote, sse := tools.HTTP(t), tools.SSE(t)
			config := h.config(t, map[string]server{
				"local": local, "remote": {"url": remote.URL, "headers": map[string]string{"Authorization": "Bearer ${SECRET}"}}, "old": {"url": sse.URL, "type": "sse"},
			}, nil)
			path := filepath.Join(h.dir, "trace.jsonl")
			var c *client
			var p *stdioPeer
			if over == "stdio" {
				p = h.serveStdio(t, "--config", config, "serve", "--trace", path)
				c = &client{peer: p, era: legacy, name: "e2e"}
			} else {
				d := h.serveHTTP(t, "--config", config, "--trace", path)
				peer := d.peer(t)
				peer.header.Set("Authorization", "Bearer canary4canary4")
				p, c = d.stdioPeer, &client{peer: peer, era: legacy, name: "e2e"}
			}
			c.open(t)
			for _, server := range []string{"local", "remote", "old"} {
				c.exec(t, server, "leak", `{"password":"canary5","text":"plain text","note":"mcpx_canary60123456789abcdef"}`)
			}
			terminate(p.cmd)
			p.wait(t)
			if code := p.cmd.ProcessState.ExitCode(); code != 0 && runtime.GOOS != "windows" {
				t.Errorf("exit code %d", code)
			}
			text := readFile(t, path)
			if strings.Contains(text, "canary") || !strings.Contains(text, "plain text") || strings.Contains(strings.ToLower(text), "authorization") {
				t.Error(text)
			}
			lines := linesOf[traceLine](t, path)
			has := func(from, to, method string) bool {
				return slices.ContainsFunc(lines, func(l traceLine) bool {
					return l.From == from && l.To == to && (l.Message.Method == method || method == "" && l.Message.Result != nil)
				})
			}
			for _, want := range [][3]string{
				{"client", "mcpx", "initialize"}, {"client", "mcpx", "notifications/initialized"}, {"client", "mcpx", "tools/call"}, {"mcpx", "client", ""},
				{"mcpx", "server local", "tools/call"}, {"server local", "mcpx", ""},
				{"mcpx", "server remote", "tools/call"}, {"server remote", "mcpx", ""},
				{"mcpx", "server old", "tools/call"}, {"server old", "mcpx", ""},
			} {
				if !has(want[0], want[1], want[2]) {
					t.Errorf("no %v in\n%s", want, text)
				}
			}
			info, err := os.Stat(path)
			if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			if said := p.stderr.String(); !strings.Contains(said, "every message is written to a file") || strings.Contains(said, "canary") {
				t.Error(said)
			}
			first := slices.IndexFunc(lines, func(l traceLine) bool { return l.From == "client" })
			if answers := fmt.Sprint(lines[first].Peer); over == "stdio" && answers != "stdio" || over == "http" && !strings.HasPrefix(answers, "127.0.0.1:") {
				t.Error(answers)
			}
		})
	}
	h := newHome(t)
	for _, flag := range []string{"--trace", "--view"} {
		if _, said, code := h.run(t, "", "serve", "--demo", flag, "x"); code != exitUsage || !strings.Contains(said, flag+" is for the servers of a config, not for --demo") {
			t.Errorf("%d %s", code, said)
		}
	}
}
