package main

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestShare: add and init write the key share for a package that mcpx knows, unless the entry has the key. check shows which
// share holds, and why.
func TestShare(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	from := h.write(t, "theirs.json", `{"mcpServers": {
		"memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "env": {"MEMORY_FILE_PATH": "/m.json"}, "enabled": false},
		"mine": {"command": "uvx", "args": ["mcp-server-git"], "share": "session", "enabled": false},
		"browser": {"command": "npx", "args": ["@playwright/mcp@latest"], "enabled": false},
		"unknown": {"command": "unknown-server", "enabled": false},
		"remote": {"url": "https://example.com/mcp", "enabled": false}}}`)
	h.must(t, 0, "init", "--from", from, "--yes", "--no-check")
	h.must(t, 0, "add", "time", "--no-check", "--", "uvx", "mcp-server-time")
	h.must(t, 0, "add", "git", "--no-check", `{"command": "uvx", "args": ["mcp-server-git", "--repository", "."], "enabled": false}`)
	text := readFile(t, h.own())
	for name, want := range map[string]string{"time": "user", "git": "folder", "mine": "session", "memory": "user", "browser": "", "unknown": "", "remote": ""} {
		entry := text[strings.Index(text, `"`+name+`": {`):]
		entry = entry[:strings.Index(entry, "\n    }")]
		if got := strings.Contains(entry, `"share"`); got != (want != "") || got && !strings.Contains(entry, `"share": "`+want+`"`) {
			t.Errorf("%s: want the share %q in\n%s", name, want, entry)
		}
	}

	hasAll(t, h.must(t, 0, "check", "browser", "remote"), "SHARE", "share: session, as @playwright/mcp keeps a browser open", "share: user, as it is a remote server")
	file := h.write(t, "unwritten.json", `{"mcpServers": {
		"git": {"command": "uvx", "args": ["mcp-server-git"], "enabled": false},
		"unknown": {"command": "unknown-server", "enabled": false}}}`)
	var o outcome
	if err := json.Unmarshal([]byte(h.must(t, 0, "check", "--json", "--config", file)), &o); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"folder: mcp-server-git keeps nothing of a session", "session: mcpx does not know what unknown-server keeps"} {
		if got := string(o.Servers[i].Share) + ": " + o.Servers[i].ShareWhy; !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}

	h.extra = append(h.extra, "IMAGE_TOKEN=hush-hush-1234")
	file = h.write(t, "secret.json", `{"mcpServers": {"image": {"command": "docker", "args": ["run", "registry/${IMAGE_TOKEN}"], "enabled": false}}}`)
	for _, out := range []string{h.must(t, 0, "check", "image", "--config", file), h.must(t, 0, "check", "--json", "--config", file)} {
		if hasAll(t, out, "does not know what registry/[secret] keeps"); strings.Contains(out, "hush-hush") {
			t.Errorf("the value of a variable is shown: %s", out)
		}
	}
}
