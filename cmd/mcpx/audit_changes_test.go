package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestAudit_Changes: the trail has each change of the servers, with who made it and what differs. It also has each config that
// came into force, with who asked for it and its digest. It contains no secret. With --watch, mcpx also follows the lock file.
// What the trail says of a person can be exported and forgotten.
func TestAudit_Changes(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	tools := h.write(t, "tools.json", `[{"name":"echo","inputSchema":{"type":"object"}}]`)
	config := h.config(t, map[string]server{"box": fake(t, mcptest.Spec{ToolsFile: tools})}, map[string]any{
		"audit": map[string]any{"file": "audit.jsonl", "key": "a key of the tests"}, "pin": "block", "structured_content": "always",
		"auth": map[string]any{"tokens": map[string]any{}, "rights": []any{map[string]any{"principals": []string{"ann"}, "admin": true}, map[string]any{"principals": []string{"bob"}}}},
	})
	token := map[string]string{}
	for _, who := range []string{"ann", "bob"} {
		out, stderr, code := h.run(t, "", "--config", config, "token", "new", who)
		if token[who] = strings.TrimSpace(out); code != 0 {
			t.Fatal(stderr)
		}
	}
	d := h.serveHTTP(t, "--config", config, "--watch")
	agent := func(who string) *client {
		peer := d.peer(t)
		peer.header.Set("Authorization", "Bearer "+token[who])
		c := &client{era: modern, name: "e2e", peer: peer}
		c.open(t)
		return c
	}
	bob := agent("bob")
	checkFault(t, "a tool that is not approved", bob.exec(t, "box", "echo", `{"text":"x"}`), "TOOL_NOT_FOUND", "echo")
	d.follow(t, loadedAgain, func() { h.must(t, 0, "--config", config, "lock", "--yes") })
	mcptest.WaitFor(t, "the approved tool", patience, func() bool { return !bob.exec(t, "box", "echo", `{"text":"x"}`).IsError })

	for _, one := range [][3]string{
		{"POST", "", `{"name":"more","command":"mcpx-no-such-program","args":["first"],"env":{"MORE_TOKEN":"canary of a secret"}}`},
		{"PATCH", "/more", `{"args":["second"],"env":{"MORE_TOKEN":"another canary"}}`}, {"DELETE", "/more", ""},
	} {
		if status, body := d.api(t, one[0], one[1], one[2], bearer(token["bob"])); status != 403 {
			t.Errorf("%s by bob: %d %s", one[0], status, body)
		}
		if status, body := d.api(t, one[0], one[1], one[2], bearer(token["ann"])); status/100 != 2 {
			t.Errorf("%s by ann: %d %s", one[0], status, body)
		}
	}
	terminate(d.cmd)
	<-d.exited
	trail := filepath.Join(h.dir, "audit.jsonl")
	text := readFile(t, trail)
	var changes, loaded []map[string]any
	for line := range strings.Lines(text) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err, line)
		}
		switch record["event"] {
		case "servers_change":
			changes = append(changes, record)
		case "config_loaded":
			loaded = append(loaded, record)
		}
	}
	if len(changes) != 3 {
		t.Fatalf("%d changes:\n%s", len(changes), text)
	}
	for i, want := range []string{"first", "second", "more"} {
		c := changes[i]
		if said, _ := c["changes"].(string); c["principal"] != "ann" || c["server"] != "more" || c["what"] == "" || !strings.Contains(said, want) {
			t.Errorf("change %d: %v", i, c)
		}
	}
	by := map[any]bool{}
	for _, one := range loaded {
		by[one["by"]] = true
		if digest, _ := one["sha256"].(string); len(digest) != 64 {
			t.Errorf("no digest: %v", one)
		}
	}
	if !by["the start"] || !by["a changed file"] || !by["principal ann"] {
		t.Errorf("loaded by %v", by)
	}
	if strings.Contains(text, "canary") {
		t.Error("a secret is in the trail")
	}

	hasAll(t, h.must(t, 0, "--config", config, "audit", "report", "--by", "server", "--csv"), `"box","",2,1,`)
	before := h.must(t, 0, "--config", config, "audit", "report", "--user", "bob", "--json")
	if !strings.Contains(before, `"bob"`) || strings.Contains(before, `"ann"`) {
		t.Errorf("the export of bob: %s", before)
	}
	h.must(t, 0, "--config", config, "audit", "forget", trail, "--user", "bob", "--yes")
	hasAll(t, h.must(t, 0, "--config", config, "audit", "verify", trail), "as it was written")
	after := readFile(t, trail)
	if strings.Contains(after, "bob") || !strings.Contains(after, `"principal":"ann"`) || strings.Count(after, "call_ended") != strings.Count(text, "call_ended") {
		t.Errorf("after bob was forgotten:\n%s", after)
	}
}
