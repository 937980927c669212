package main

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// origins returns the names of the servers that the notifications of a method say they come from.
func origins(t *testing.T, c *client, method string) (names []string) {
	t.Helper()
	for _, note := range c.notes(method) {
		var params struct {
			Meta map[string]any `json:"_meta"`
		}
		if err := json.Unmarshal(note.Params, &params); err != nil {
			t.Fatal(err)
		}
		name, _ := params.Meta["mcpx/origin"].(string)
		names = append(names, name)
	}
	return names
}

// TestOrigin: every notification from a server that mcpx passes on has the server's name, over stdio and over HTTP. A server
// cannot use another server's name.
func TestOrigin(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	const resources = `[{"uri":"x://1","name":"one"}]`
	config := h.config(t, map[string]server{
		"a":    fake(t, mcptest.Spec{Resources: json.RawMessage(resources)}),
		"b c":  fake(t, mcptest.Spec{}),
		"late": fake(t, mcptest.Spec{Era: mcptest.EraModern}),
	}, nil)
	for _, over := range []string{"stdio", "http"} {
		c := &client{era: legacy, name: "e2e"}
		if over == "stdio" {
			c.peer = h.serveStdio(t, "--config", config)
		} else {
			c.peer = h.serveHTTP(t, "--config", config).peer(t)
		}
		c.open(t)
		c.result(t, "logging/setLevel", `{"level":"debug"}`)
		c.listen(t)
		for server, want := range map[string]string{"a": "a", "b_c": "b_c", "late": "late"} {
			before := len(c.notes("notifications/message"))
			id := c.start(t, "tools/call", `{"name":"exec","arguments":{"server_name":"`+server+`","tool_name":"notify","arguments":{"method":"notifications/message","mine":true,`+
				`"params":{"level":"error","data":1.10,"_meta":{"mcpx/origin":"forged","kept":9007199254740993}}}}}`, "")
			c.answer(t, id)
			mcptest.WaitFor(t, "the log message", patience, func() bool { return len(c.notes("notifications/message")) > before })
			got, last := origins(t, c, "notifications/message"), c.notes("notifications/message")
			if got[before] != want || strings.Contains(string(last[before].Params), "forged") || !strings.Contains(string(last[before].Params), "9007199254740993") {
				t.Errorf("%s, a log message of %s: %s", over, server, last[before].Params)
			}
			before = len(c.notes("notifications/progress"))
			id = c.start(t, "tools/call", `{"name":"exec","arguments":{"server_name":"`+server+`","tool_name":"progress","arguments":{"steps":2}}}`, `"progressToken":"`+server+`"`)
			c.answer(t, id)
			mcptest.WaitFor(t, "progress", patience, func() bool { return len(c.notes("notifications/progress")) > before })
			if got := origins(t, c, "notifications/progress"); got[before] != want {
				t.Errorf("%s, progress of %s: %q", over, server, got)
			}
		}
		c.result(t, "resources/subscribe", `{"uri":"x://1"}`)
		c.answer(t, c.start(t, "tools/call", `{"name":"exec","arguments":{"server_name":"a","tool_name":"notify","arguments":{"method":"notifications/resources/updated","params":{"uri":"x://1"}}}}`, ""))
		mcptest.WaitFor(t, "the update", patience, func() bool { return len(c.notes("notifications/resources/updated")) > 0 })
		if got := origins(t, c, "notifications/resources/updated"); got[0] != "a" {
			t.Errorf("%s, an update: %q", over, got)
		}
	}
	c := &client{peer: h.serveStdio(t, "--config", config, "serve", "--view", "servers/b c"), era: legacy, name: "e2e"}
	c.open(t)
	c.answer(t, c.start(t, "tools/call", `{"name":"notify","arguments":{"method":"notifications/x/new"}}`, ""))
	mcptest.WaitFor(t, "the unknown notification", patience, func() bool { return len(c.notes("notifications/x/new")) > 0 })
	if got := origins(t, c, "notifications/x/new"); got[0] != "b_c" {
		t.Errorf("an unknown notification: %q", got)
	}
}
