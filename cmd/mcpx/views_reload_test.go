//go:build unix

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestReload_Views: after a reload a view has its new config, its clients are notified of changes that concern
// them, and the sessions of a removed view end.
func TestReload_Views(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	changing := mcptest.Spec{}.HTTP(t)
	servers := map[string]server{"alpha": fake(t, mcptest.Spec{}), "beta": {"url": changing.URL}}
	groups := map[string]any{
		"kept": map[string]any{"servers": []string{"alpha"}, "view": "tools"},
		"gone": map[string]any{"servers": []string{"alpha"}, "view": "tools"},
	}
	config := h.config(t, servers, map[string]any{"groups": groups, "startup_wait": 60})
	if _, stderr, code := h.run(t, "", "--config", config, "check"); code != 0 { // so that starting the servers changes nothing
		t.Fatal(stderr)
	}
	d := h.serveHTTP(t, "--config", config)
	open := func(path string) *client {
		peer := d.peer(t)
		peer.url += path
		c := &client{peer: peer, era: legacy, name: "e2e"}
		c.open(t)
		c.listen(t)
		c.rawTools(t) // so that the view has been listed once
		return c
	}
	kept, gone, all, one := open("/groups/kept"), open("/groups/gone"), open("/tools"), open("/servers/alpha")
	heard := func(c *client) int { return len(c.notes("notifications/tools/list_changed")) }

	before := heard(kept) + heard(one)
	known := heard(all)
	changing.SetTools(json.RawMessage(`[{"name":"brand_new","inputSchema":{"type":"object"}}]`))
	mcptest.WaitFor(t, "list_changed of all tools", patience, func() bool { return heard(all) > known })
	if after := heard(kept) + heard(one); after != before {
		t.Error("views of another server heard of the change")
	}

	known = heard(kept)
	delete(groups, "gone")
	groups["kept"] = map[string]any{"tools": map[string]any{"allow": []string{"beta.*", "alpha.echo"}}, "view": "tools"}
	h.config(t, servers, map[string]any{"groups": groups, "startup_wait": 60})
	d.follow(t, loadedAgain, func() { d.hangUp(t) })
	if names, _ := kept.rawTools(t); !slices.Equal(names, []string{"alpha__echo", "beta__brand_new"}) {
		t.Errorf("names are %q", names)
	}
	mcptest.WaitFor(t, "list_changed of the group", patience, func() bool { return heard(kept) > known })
	if m := kept.request(t, "tools/call", `{"name":"alpha__add","arguments":{"a":1,"b":2}}`); m.Error == nil {
		t.Errorf("a tool that the group lost got %s", m.Result)
	}
	peer, ok := gone.peer.(*httpPeer)
	if !ok {
		t.Fatal("no HTTP")
	}
	if err := peer.post(`{"jsonrpc":"2.0","id":99,"method":"tools/list"}`); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a group that is gone got %v", err)
	}
}
