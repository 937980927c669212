package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestNPM_Transparent: a client of a view with only one server can use parts of the protocol that mcpx does not know, in both
// directions: requests, notifications and capabilities. In other views it cannot.
func TestNPM_Transparent(t *testing.T) {
	mcptest.Parallel(t)
	p, h := findPeers(t), newHome(t)
	servers := map[string]server{
		"strange": {"command": p.node, "args": []string{filepath.Join(p.dir, "strange-server.mjs")}},
		"other":   fake(t, mcptest.Spec{}),
	}
	config := h.config(t, servers, map[string]any{"startup_wait": 60, "exec_wait": 60})
	// mcpx check stores the server's capabilities on disk; the handshake needs them.
	if out, stderr, code := h.run(t, "", "--config", config, "check"); code != 0 {
		t.Fatal(out, stderr)
	}
	d := h.serveHTTP(t, "--config", config)
	open := func(t *testing.T, c *client) json.RawMessage {
		t.Helper()
		hello := c.result(t, "initialize", `{"protocolVersion":"`+legacy+`","capabilities":{"elicitation":{},"extensions":{"x/client":{"a":1}}},"clientInfo":{"name":"e2e","version":"1"}}`)
		c.send(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		return hello
	}
	for _, over := range []string{"stdio", "http"} {
		t.Run(over, func(t *testing.T) {
			c := &client{era: legacy, name: "e2e"}
			var arrived *inbox
			if over == "stdio" {
				peer := h.serveStdio(t, "--config", config, "serve", "--view", "servers/strange")
				c.peer, arrived = peer, peer.inbox
			} else {
				peer := d.peer(t)
				peer.url += "/servers/strange"
				c.peer, arrived = peer, peer.inbox
			}
			hello := string(open(t, c))
			for _, want := range []string{`"experimental":{"x/strange":{"level":2}}`, `"instructions":"Strange, and alone."`} {
				if !strings.Contains(hello, want) {
					t.Errorf("no %s in %s", want, hello)
				}
			}
			c.listen(t)
			got := string(c.result(t, "x/do", `{"z":1.10,"a":[9007199254740993]}`))
			if !strings.Contains(got, `"method":"x/do"`) || !strings.Contains(got, `"z":1.1`) {
				t.Errorf("x/do got %s", got)
			}
			if extensions := strings.Contains(got, `"x/client":{"a":1}`); extensions != (over == "stdio") {
				t.Errorf("the server sees the capabilities %s", got)
			}
			c.send(t, `{"jsonrpc":"2.0","method":"notifications/x/hello","params":{"from":"`+over+`"}}`)
			mcptest.WaitFor(t, "the notification", patience, func() bool {
				return strings.Contains(string(c.result(t, "x/heard", `{}`)), `"from":"`+over+`"`)
			})
			call := c.start(t, "tools/call", `{"name":"poke","arguments":{}}`, "")
			mcptest.WaitFor(t, "the question", patience, func() bool {
				arrived.mu.Lock()
				defer arrived.mu.Unlock()
				for _, m := range arrived.all {
					if m.Method == "x/ask" && m.ID != nil && strings.Contains(string(m.Params), "why?") {
						go c.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"because":"notifications/%s"}}`, m.ID, over))
						return true
					}
				}
				return false
			})
			if m := c.answer(t, call); !strings.Contains(string(m.Result), "because notifications/"+over) {
				t.Errorf("poke got %s %s", m.Result, m.Error)
			}
			mcptest.WaitFor(t, "the notification of the server", patience, func() bool { return len(c.notes("notifications/x/poked")) > 0 })
		})
	}
	t.Run("modern", func(t *testing.T) {
		peer := d.peer(t)
		peer.url += "/servers/strange"
		c := &client{peer: peer, era: modern, name: "e2e"}
		if hello := string(c.open(t)); !strings.Contains(hello, `"experimental":{"x/strange":{"level":2}}`) {
			t.Errorf("no capability in %s", hello)
		}
		if got := string(c.result(t, "skills/list", `{"cursor":"a"}`)); !strings.Contains(got, `"method":"skills/list"`) || !strings.Contains(got, `"cursor":"a"`) || !strings.Contains(got, `"resultType":"complete"`) {
			t.Errorf("skills/list got %s", got)
		}
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern + `","io.modelcontextprotocol/clientInfo":{"name":"e2e","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
		c.send(t, `{"jsonrpc":"2.0","id":"poke","method":"tools/call","params":{`+meta+`,"name":"poke","arguments":{}}}`)
		var asked struct {
			RequestState  json.RawMessage
			InputRequests map[string]struct{ Method string }
		}
		m := c.answer(t, `"poke"`)
		if err := json.Unmarshal(m.Result, &asked); err != nil || len(asked.InputRequests) != 1 {
			t.Fatalf("poke got %s %s", m.Result, m.Error)
		}
		for key, question := range asked.InputRequests {
			if question.Method != "x/ask" {
				t.Errorf("asked %+v", question)
			}
			c.send(t, `{"jsonrpc":"2.0","id":"again","method":"tools/call","params":{`+meta+`,"name":"poke","arguments":{},"requestState":`+string(asked.RequestState)+`,"inputResponses":{"`+key+`":{"because":"modern"}}}}`)
		}
		if m := c.answer(t, `"again"`); !strings.Contains(string(m.Result), "because modern") {
			t.Errorf("poke got %s %s", m.Result, m.Error)
		}
	})
	for _, path := range []string{"", "/tools"} {
		peer := d.peer(t)
		peer.url += path
		c := &client{peer: peer, era: legacy, name: "e2e"}
		if hello := open(t, c); strings.Contains(string(hello), "x/strange") {
			t.Errorf("%s: the handshake is %s", path, hello)
		}
		if m := c.request(t, "x/do", `{}`); !strings.Contains(string(m.Error), "-32601") {
			t.Errorf("%s: x/do got %s %s", path, m.Result, m.Error)
		}
	}
}

// TestView_OnlyItsServers: over stdio mcpx starts only the servers that its view shows.
func TestView_OnlyItsServers(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	shown, other := mcptest.Spec{}.WithFiles(t), mcptest.Spec{}.WithFiles(t)
	config := h.config(t, map[string]server{"shown": fake(t, shown), "other": fake(t, other)}, map[string]any{"startup_wait": 60, "exec_wait": 60})
	c := &client{peer: h.serveStdio(t, "--config", config, "serve", "--view", "servers/shown"), era: legacy, name: "e2e"}
	c.open(t)
	if r := c.tool(t, "echo", `{"text":"hello"}`); r.IsError || r.text(t) != "hello" {
		t.Errorf("got %s", r.Content)
	}
	if n := len(other.Log(t)); n > 0 || len(shown.Log(t)) == 0 {
		t.Errorf("the other server has %d entries", n)
	}
}
