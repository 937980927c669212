package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestToken: a token is printed once and stored only as a digest. It gives access to mcpx until it is deleted;
// a running mcpx notices the deletion.
func TestToken(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	run := func(want string, code int, args ...string) (out string) {
		t.Helper()
		out, stderr, got := h.run(t, "", append([]string{"--config", path}, args...)...)
		if got != code || !strings.Contains(out+stderr, want) {
			t.Errorf("%q: exit %d\n%s\n%s", args, got, out, stderr)
		}
		return strings.TrimSpace(out)
	}
	ci := run("mcpx_", 0, "token", "new", "ci", "--group", "dev", "--group", "ops")
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), ci) || len(ci) != 32 {
		t.Fatalf("%q, %v\n%s", ci, err, data)
	}
	run("must have a name", exitConfig, "token", "new", "a b")
	run("mcpx token new ci", exitUsage, "token", "new", "ci/b")
	run("  groups: dev, ops", 0, "token", "list")
	run("must be a time to come", 80, "token", "new", "ci", "--expires", "0d")
	other := run("mcpx_", 0, "token", "new", "other")
	run("bob has no token in", exitFailed, "token", "delete", "bob")

	run("accepts no tokens of agents", exitFailed, "token", "agent", "kitchen")
	d := h.serveHTTP(t, "--config", path, "--watch")
	status := func(token string) int {
		response, _ := fetch(t, http.MethodPost, d.url, legacyInitialize, sendsJSON, bearer(token))
		return response.StatusCode
	}
	if a, b, c := status(ci), status(other), status("mcpx_x"); a != 200 || b != 200 || c != 401 {
		t.Errorf("%d %d %d", a, b, c)
	}
	peer := d.peer(t)
	peer.header.Set("Authorization", "Bearer "+other)
	c := &client{era: legacy, name: "e2e", peer: peer}
	c.open(t)
	stream, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	stream.Header = peer.header.Clone()
	stream.Header.Set("Mcp-Session-Id", peer.session)
	events, err := http.DefaultClient.Do(stream)
	if err != nil || events.StatusCode != 200 {
		t.Fatal(events, err)
	}
	defer events.Body.Close()

	// A further token of a name works beside the first one, and is deleted by its ID.
	second := run("ci has 2 tokens now", 0, "token", "new", "ci", "--expires", "1d")
	id := digestOf(second)[:8]
	run("ci  "+id+"  until ", 0, "token", "list")
	mcptest.WaitFor(t, "the second token", patience, func() bool { return status(ci) == 200 && status(second) == 200 })
	run("deleted the token "+id+" of ci", 0, "token", "delete", "ci", id)
	mcptest.WaitFor(t, "the end of the second token", patience, func() bool { return status(ci) == 200 && status(second) == 401 })
	again := run("mcpx_", 0, "token", "new", "ci", "--force")
	run("deleted the token of other", 0, "token", "delete", "other")
	mcptest.WaitFor(t, "the new tokens", patience, func() bool { return status(ci) == 401 && status(other) == 401 && status(again) == 200 })
	_, _ = io.Copy(io.Discard, events.Body) // the stream ends
	run("make another one first", exitFailed, "token", "delete", "ci")
	// If auth is removed from the config file, mcpx does not become open to everyone.
	d.follow(t, "the old one stays in force until mcpx restarts", func() { h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil) })
	if a, b := status(again), status("mcpx_x"); a != 200 || b != 401 {
		t.Errorf("without auth in the file: %d %d", a, b)
	}
	for _, token := range []string{ci, other, again} {
		if strings.Contains(d.stderr.String(), token) {
			t.Errorf("the log has a token:\n%s", d.stderr.String())
		}
	}
}

// TestToken_First: a user may make a token before the config has servers.
func TestToken_First(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	hasAll(t, h.must(t, 0, "token", "new", "alice"), "mcpx_", h.own())
	hasAll(t, h.must(t, 0, "add", "fake", fakeEntry(t)), "fake is ready")
	hasAll(t, h.must(t, 0, "token", "list"), "alice")
}

// TestToken_StaysHere: a client's token reaches no server, neither in a header nor in a message, and is in no log at any level.
func TestToken_StaysHere(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	web, local := mcptest.Spec{}.HTTP(t), mcptest.Spec{LogFile: filepath.Join(t.TempDir(), "log")}
	path := h.config(t, map[string]server{
		"web": {"url": web.URL}, "own": {"url": web.URL, "session": "per_client", "credentials": map[string]string{"X-Key": "header:X-User-Key"}},
		"local": fake(t, local),
	}, nil)
	out, stderr, code := h.run(t, "", "--config", path, "token", "new", "canary")
	if code != 0 {
		t.Fatal(stderr)
	}
	token := strings.TrimSpace(out)
	d := h.serveHTTP(t, "--config", path, "--log-level", "debug")
	for _, era := range []string{legacy, modern} {
		peer := d.peer(t)
		peer.header.Set("Authorization", "Bearer "+token)
		peer.header.Set("X-User-Key", "a key for the server")
		c := &client{era: era, name: "e2e", peer: peer}
		c.open(t)
		for _, server := range []string{"web", "own", "local"} {
			if got := c.exec(t, server, "echo", `{"text":"hello"}`).text(t); got != "hello" {
				t.Errorf("%s, %s: %s", era, server, got)
			}
		}
	}
	for where, log := range map[string]any{"http": web.Log(), "stdio": local.Log(t), "mcpx": d.stderr.String()} {
		text, err := json.Marshal(log)
		if err != nil || len(text) < 500 {
			t.Errorf("%s: %v, %s", where, err, text)
		}
		if strings.Contains(string(text), token[len("mcpx_"):]) {
			t.Errorf("the token reached %s", where)
		}
	}
}

func digestOf(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }
