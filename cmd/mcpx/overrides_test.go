package main

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestNPM_Overrides: the config changes the tools of a real server. The changes are effective in exec, in
// inspect, in search, and in views with all tools. Fixed arguments reach the server.
func TestNPM_Overrides(t *testing.T) {
	mcptest.Parallel(t)
	p, h := findPeers(t), newHome(t)
	servers, folder := p.real(t, h)
	servers["filesystem"]["read_only"] = true
	servers["filesystem"]["overrides"] = map[string]any{
		"list_directory": map[string]any{"name": "ls", "description": "Names the zebras of the folder.", "arguments": map[string]string{"path": folder}},
		"read_*":         map[string]any{"annotations": map[string]bool{"readOnlyHint": false}},
	}
	config := h.config(t, map[string]server{"filesystem": servers["filesystem"]}, map[string]any{"structured_content": "always", "startup_wait": 60, "exec_wait": 60})
	onViews(t, h, config, "two_tools", func(t *testing.T, c *client) {
		c.awaitReady(t, "filesystem")
		if r := c.exec(t, "filesystem", "ls", `{}`); r.IsError || !strings.Contains(string(r.Content[0]), "notes.txt") {
			t.Errorf("ls: %s", r.Content)
		}
		checkFault(t, "the old name", c.exec(t, "filesystem", "list_directory", `{}`), "TOOL_NOT_FOUND", "list_directory")
		checkFault(t, "a tool that is no reader any more", c.exec(t, "filesystem", "read_text_file", `{"path":"x"}`), "TOOL_NOT_FOUND", "read_text_file")
		if text := c.tool(t, "inspect", `{"server_name":"filesystem","tool_name":"ls"}`).text(t); !strings.Contains(text, "zebras") || strings.Contains(text, "path") {
			t.Errorf("inspect: %s", text)
		}
		if text := c.tool(t, "inspect", `{"query":"zebras"}`).text(t); !strings.Contains(text, "ls(") {
			t.Errorf("query: %s", text)
		}
		if description := c.list(t)[0].Description; !strings.Contains(description, "ls") || strings.Contains(description, "read_text_file") {
			t.Errorf("the description is\n%s", description)
		}
	})
	onViews(t, h, config, "tools", func(t *testing.T, c *client) {
		_, tools := c.rawTools(t)
		var ls struct {
			Description string
			InputSchema struct {
				Properties map[string]any
				Required   []string
			}
		}
		if err := json.Unmarshal(tools["filesystem__ls"], &ls); err != nil || ls.Description != "Names the zebras of the folder." || len(ls.InputSchema.Properties)+len(ls.InputSchema.Required) > 0 {
			t.Errorf("%v: %s", err, tools["filesystem__ls"])
		}
		if tools["filesystem__read_text_file"] != nil || tools["filesystem__list_directory"] != nil {
			t.Error("a tool that is hidden or renamed is there")
		}
		if r := c.tool(t, "filesystem__ls", `{}`); r.IsError || !strings.Contains(string(r.Content[0]), "notes.txt") {
			t.Errorf("ls: %s", r.Content)
		}
	})
	out, stderr, code := h.run(t, "", "--config", config, "check", "filesystem.list_directory", "filesystem.read_text_file")
	if !strings.Contains(out, "visible as ls") || !strings.Contains(out, "hidden by filesystem.read_only") || code != exitFailed {
		t.Errorf("exit %d\n%s%s", code, out, stderr)
	}
}
