package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestApps: a client that can show MCP apps sees more tools than the two of mcpx. It sees the first 20 tools that have an app,
// each with a resource URI that it can read. It also sees the tools of the same servers that only apps call. In views that list
// all tools, it sees all of these tools. Other clients, and the model through exec, do not see the tools that only apps call.
func TestApps(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	apps := func(content string) mcptest.Spec {
		return mcptest.Spec{
			Tools: json.RawMessage(`[
				{"name":"show","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://app/page.html"},"ui/resourceUri":"ui://app/page.html","own":1.10}},
				{"name":"poll_` + content + `","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}},
				{"name":"plain","inputSchema":{"type":"object"}}]`),
			MethodResults: map[string]json.RawMessage{"resources/read": json.RawMessage(`{"contents":[{"uri":"ui://app/page.html","mimeType":"text/html;profile=mcp-app","text":"` + content + `"}]}`)},
		}
	}
	var many strings.Builder
	for i := range 25 {
		fmt.Fprintf(&many, `,{"name":"show_%02d","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://many/%d"}}}`, i, i)
	}
	servers := map[string]server{
		"one": fake(t, apps("one")), "two": fake(t, apps("two")),
		"zmany": fake(t, mcptest.Spec{Tools: json.RawMessage("[" + many.String()[1:] + "]")}),
		"none":  fake(t, mcptest.Spec{Tools: json.RawMessage(`[{"name":"hidden","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}}]`)}),
	}
	config := h.config(t, servers, map[string]any{"apps": true, "startup_wait": 60, "exec_wait": 60})
	d := h.serveHTTP(t, "--config", config)
	const declares = `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`
	open := func(t *testing.T, path, capabilities string) *client {
		t.Helper()
		peer := d.peer(t)
		peer.url += path
		c := &client{peer: peer, era: legacy, name: "e2e"}
		c.result(t, "initialize", `{"protocolVersion":"`+legacy+`","capabilities":`+capabilities+`,"clientInfo":{"name":"e2e","version":"1"}}`)
		c.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return c
	}
	t.Run("two tools", func(t *testing.T) {
		c := open(t, "", declares)
		names, tools := c.rawTools(t)
		want := []string{"inspect", "exec", "one__show", "one__poll_one", "two__show", "two__poll_two"}
		for i := range 18 { // with these 18, 20 tools have an app, the most that a client sees
			want = append(want, fmt.Sprintf("zmany__show_%02d", i))
		}
		if !slices.Equal(names, want) {
			t.Errorf("names are %q\nwant %q", names, want)
		}
		if got := string(tools["two__show"]); got != `{"name":"two__show","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://mcpx/two/app/page.html"},"ui/resourceUri":"ui://mcpx/two/app/page.html","own":1.10}}` {
			t.Errorf("got %s", got)
		}
		if got := string(c.result(t, "resources/read", `{"uri":"ui://mcpx/two/app/page.html"}`)); !strings.Contains(got, `"text":"two"`) {
			t.Errorf("read %s", got)
		}
		for _, name := range []string{"two__show", "two__poll_two", "poll_two"} { // an app knows only the name that its own server uses
			if r := c.tool(t, name, `{"a":1}`); r.IsError || r.text(t) != `{"a":1}` {
				t.Errorf("%s got %s", name, r.Content)
			}
		}
		for _, name := range []string{"show", "hidden", "two__plain", "plain"} {
			if m := c.request(t, "tools/call", `{"name":"`+name+`","arguments":{}}`); m.Error == nil {
				t.Errorf("%s got %s", name, m.Result)
			}
		}
		for _, tool := range []string{"poll_two", "hidden"} {
			if r := c.exec(t, map[string]string{"poll_two": "two", "hidden": "none"}[tool], tool, `{}`); !strings.Contains(string(r.Content[0]), "TOOL_NOT_FOUND") {
				t.Errorf("exec %s: %s", tool, r.Content)
			}
		}
		if r := c.exec(t, "zmany", "show_24", `{"a":1}`); r.IsError {
			t.Errorf("exec show_24: %s", r.Content)
		}
		if text := c.tool(t, "inspect", `{"query":"poll"}`).text(t); strings.Contains(text, "poll_") {
			t.Errorf("inspect finds a tool for apps: %s", text)
		}
	})
	t.Run("no apps", func(t *testing.T) {
		c := open(t, "", `{}`)
		if names, _ := c.rawTools(t); len(names) != 2 {
			t.Errorf("names are %q", names)
		}
		if m := c.request(t, "tools/call", `{"name":"poll_two","arguments":{}}`); m.Error == nil {
			t.Errorf("got %s", m.Result)
		}
	})
	t.Run("tools", func(t *testing.T) {
		with, _ := open(t, "/tools", declares).rawTools(t)
		without, _ := open(t, "/tools", `{}`).rawTools(t)
		if len(with) != 2*3+25+1 || len(without) != 2*2+25 || !slices.Contains(with, "none__hidden") {
			t.Errorf("with apps %q\nwithout %q", with, without)
		}
	})
	t.Run("server", func(t *testing.T) {
		_, tools := open(t, "/servers/two", declares).rawTools(t)
		if got := string(tools["show"]); !strings.Contains(got, `"resourceUri":"ui://app/page.html"`) || tools["poll_two"] == nil {
			t.Errorf("got %s", got)
		}
	})
	t.Run("off", func(t *testing.T) {
		peer := h.serveStdio(t, "--config", h.config(t, servers, map[string]any{"startup_wait": 60}))
		c := &client{peer: peer, era: legacy, name: "e2e"}
		c.result(t, "initialize", `{"protocolVersion":"`+legacy+`","capabilities":`+declares+`,"clientInfo":{"name":"e2e","version":"1"}}`)
		if names, _ := c.rawTools(t); len(names) != 2 {
			t.Errorf("names are %q", names)
		}
	})
}
