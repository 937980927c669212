package main

import (
	"encoding/json"
	"testing"

	"mcpx/internal/mcptest"
)

// TestLazy_Inspect: when a client inspects a lazy server, mcpx starts the server in the background, because a call will
// probably follow. The same holds if a tool of the server is the best match for a query. Other servers, and servers that the
// client may not see, do not start. A server with a session for each client starts with tools/list already. After a restart the
// others are idle again.
func TestLazy_Inspect(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	specs, servers := map[string]mcptest.Spec{}, map[string]server{}
	for name, tools := range map[string]string{
		"zoo":    `[{"name":"feed_zebra","description":"Feeds the zebras of the zoo.","inputSchema":{"type":"object"}}]`,
		"music":  `[{"name":"play_song","description":"Plays a song.","inputSchema":{"type":"object"}}]`,
		"own":    `[{"name":"write_diary","description":"Writes into the diary.","inputSchema":{"type":"object"}}]`,
		"hidden": `[{"name":"open_vault","description":"Opens the vault.","inputSchema":{"type":"object"}}]`,
	} {
		specs[name] = mcptest.Spec{Tools: json.RawMessage(tools)}.WithFiles(t)
		servers[name] = fake(t, specs[name])
	}
	servers["own"]["session"] = "per_client"
	path := h.config(t, servers, map[string]any{"start": "lazy", "groups": map[string]any{"g": map[string]any{"servers": []string{"zoo", "music", "own"}}}})
	h.must(t, 0, "--config", path, "check")
	starts := func(name string) int { return len(specs[name].Log(t).Event(mcptest.EventStart)) }
	before := map[string]int{}
	for name := range specs {
		before[name] = starts(name)
	}
	ask := func(c *client, started []string, arguments string) {
		t.Helper()
		c.tool(t, "inspect", arguments)
		for _, name := range started {
			mcptest.WaitFor(t, name+" to start", patience, func() bool { return starts(name) == before[name]+1 })
			before[name]++
		}
		for name := range specs {
			if n := starts(name); n != before[name] {
				t.Errorf("%s: %s was started %d times, want %d", arguments, name, n, before[name])
			}
		}
	}
	open := func() *client {
		c := &client{peer: h.serveStdio(t, "--config", path, "serve", "--view", "groups/g"), era: legacy, name: "e2e"}
		c.open(t)
		c.result(t, "tools/list", `{}`)
		// This server has a session for each client, so its lists are read over the client's own session, which stays
		// open.
		mcptest.WaitFor(t, "own to start", patience, func() bool { return starts("own") == before["own"]+1 })
		before["own"]++
		return c
	}
	for range 2 {
		c := open()
		ask(c, nil, `{}`)
		ask(c, nil, `{"server_name":"hidden","tool_name":"open_vault"}`)
		ask(c, nil, `{"query":"open the vault"}`)
		ask(c, nil, `{"server_name":"nothing"}`)
		ask(c, []string{"zoo"}, `{"query":"feed the zebra"}`)
		ask(c, nil, `{"query":"feed the zebra"}`)
		ask(c, []string{"music"}, `{"server_name":"music","tool_name":"play_song"}`)
		ask(c, nil, `{"server_name":"own"}`)
		ask(c, nil, `{"server_name":"own","tool_name":"write_diary"}`)
		if r := c.tool(t, "exec", `{"server_name":"zoo","tool_name":"feed_zebra"}`); starts("zoo") != before["zoo"] {
			t.Errorf("the call started it again: %s", r.Content)
		}
	}
	// The command mcpx inspect starts no lazy server.
	h.must(t, 0, "--config", path, "inspect", "zoo", "feed_zebra")
	h.must(t, 0, "--config", path, "inspect", "--query", "feed the zebra")
	for name := range specs {
		if n := starts(name); n != before[name] {
			t.Errorf("the command started %s", name)
		}
	}
}
