package app

import (
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// listening opens a visitor's stream for messages that are not part of any request.
func (v *visitor) listening(t *testing.T, path, uri string) *stream {
	t.Helper()
	switch {
	case v.sse:
		v.ask(t, path, "ping", "")
		if uri != "" {
			v.ask(t, path, "resources/subscribe", `"uri":"`+uri+`"`)
		}
		return v.streams[path]
	case v.era == modernEra:
		body := `{"jsonrpc":"2.0","id":7,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernEra +
			`","io.modelcontextprotocol/clientCapabilities":{}},"notifications":{"toolsListChanged":true,"resourcesListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["` + uri + `","` + hidden + `://1","mcpx://` + hidden + `/x"]}}}`
		s := v.open(t, "POST", path, body, map[string]string{"Mcp-Protocol-Version": modernEra, "Mcp-Method": "subscriptions/listen"})
		s.await(t, "subscriptions/acknowledged")
		return s
	}
	v.ask(t, path, "ping", "")
	s := v.open(t, "GET", path, "", map[string]string{"Mcp-Session-Id": v.sessions[path]})
	if uri != "" {
		v.ask(t, path, "resources/subscribe", `"uri":"`+uri+`"`)
	}
	return s
}

func (s *stream) count(text string) (n int) {
	for _, line := range s.all() {
		n += strings.Count(line, text)
	}
	return n
}

const toolsChanged = "notifications/tools/list_changed"

// TestHidden_Changes: a principal is notified of changes in what it may see, also when a reload causes them, and of no other
// changes.
func TestHidden_Changes(t *testing.T) {
	mcptest.NoLeaks(t)
	servers, fakes := airfield(t)
	e := hosted(t, servers, airRights, airGroups)
	tools := func(name string) json.RawMessage {
		return json.RawMessage(`[{"name":"` + name + `","inputSchema":{"type":"object"}},{"name":"notify","inputSchema":{"type":"object"}}]`)
	}
	turn := 0
	each(t, func(t *testing.T, visit func(string) *visitor) {
		bob, alice := visit("bob"), visit("alice")
		var his, hers []*stream
		for _, path := range []string{"/mcp", "/mcp/tools"} {
			his, hers = append(his, bob.listening(t, path, "open://1")), append(hers, alice.listening(t, path, "open://1"))
		}
		word := string(rune('a' + turn))
		turn++
		fakes[hidden].SetTools(tools(hidden + word))
		fakes[hidden].Notify(toolsChanged, "{}")
		fakes["books"].SetTools(json.RawMessage(`[{"name":"find_book","description":"Finds a book.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"` + hidden + word + `"}]`))
		fakes["books"].Notify(toolsChanged, "{}")
		for _, s := range hers {
			s.await(t, toolsChanged)
		}
		mcptest.WaitFor(t, "both to be known", patience, func() bool {
			seen := alice.ask(t, "/mcp/tools", "tools/list", "")
			return strings.Contains(seen, "books__"+hidden+word) && strings.Contains(seen, hidden+"__"+hidden+word)
		})
		fakes["open"].Notify("notifications/resources/updated", `{"uri":"open://1"}`)
		for _, s := range his {
			s.await(t, "notifications/resources/updated", "open://1")
			if n := s.count(toolsChanged); n != 0 {
				t.Errorf("%d times bob hears that something hidden has changed", n)
			}
		}
		fakes["open"].SetTools(tools("new" + word))
		fakes["open"].Notify(toolsChanged, "{}")
		for _, s := range his {
			s.await(t, toolsChanged)
			if said := strings.Join(s.all(), "\n"); strings.Contains(strings.ReplaceAll(said, "mcpx://"+hidden, ""), hidden+"/") || strings.Contains(said, hidden+word) {
				t.Errorf("bob hears %s", said)
			}
		}
	}, e)
	t.Run("a reload", func(t *testing.T) {
		var streams []*stream
		for _, bob := range []*visitor{e.visitor(t, "bob", legacyEra, false), e.visitor(t, "bob", modernEra, false), e.visitor(t, "bob", legacyEra, true)} {
			streams = append(streams, bob.listening(t, "/mcp", "open://1"))
		}
		carol := e.visitor(t, "carol", legacyEra, false).listening(t, "/mcp", "open://1")
		e.change(t, servers, `[{"principals":["alice","carol"]},{"principals":["bob"],"tools":{"allow":["books.find_*"]}}]`, airGroups)
		for _, s := range streams {
			s.await(t, toolsChanged)
			s.await(t, "notifications/resources/list_changed")
		}
		// bob may no longer see the resource to which he had subscribed.
		fakes["open"].Notify("notifications/resources/updated", `{"uri":"open://1"}`)
		carol.await(t, "notifications/resources/updated")
		for _, s := range streams {
			if n := s.count("notifications/resources/updated"); n != 0 {
				t.Errorf("%d updates of what bob may not see any more", n)
			}
		}
		if n := carol.count(toolsChanged); n != 0 {
			t.Errorf("carol, whose rights are the same, gets %d notifications of changes", n)
		}
		bob := e.visitor(t, "bob", modernEra, false)
		if said := bob.ask(t, "/mcp", "tools/list", ""); strings.Contains(said, "Server: open") || !strings.Contains(said, "find_book") {
			t.Errorf("bob sees %s", said)
		}
		if said, none := bob.ask(t, "/mcp/servers/open", "tools/list", ""), bob.ask(t, "/mcp/servers/nope", "tools/list", ""); said != none || !strings.HasPrefix(said, "404 ") {
			t.Errorf("a view that was taken away: %s, one that never was: %s", said, none)
		}
	})
}

// TestNobody: a principal without any rights gets texts that say so and what it can do about it. They do not say which servers or
// tools exist.
func TestNobody(t *testing.T) {
	mcptest.NoLeaks(t)
	servers, _ := airfield(t)
	e := hosted(t, servers, airRights, airGroups)
	each(t, func(t *testing.T, visit func(string) *visitor) {
		nobody := visit("nobody")
		opens := "initialize"
		if nobody.era == modernEra {
			opens = "server/discover"
		}
		for _, way := range [][3]string{
			{"/mcp", opens, ""}, {"/mcp/tools", opens, ""}, {"/mcp", "tools/list", ""}, {"/mcp", "tools/call", `"name":"inspect","arguments":{}`},
			{"/mcp", "tools/call", `"name":"exec","arguments":{"server_name":"x","tool_name":"y"}`},
		} {
			said := nobody.ask(t, way[0], way[1], way[2])
			if !strings.Contains(said, "The operator of mcpx can allow it (auth.rights)") {
				t.Errorf("%s %s: %s", way[0], way[1], said)
			}
			for _, name := range []string{hidden, "books", "open", "echo"} {
				if strings.Contains(strings.ReplaceAll(said, "openWorldHint", ""), name) {
					t.Errorf("%s %s names %s: %s", way[0], way[1], name, said)
				}
			}
		}
		if said := nobody.ask(t, "/mcp/tools", "tools/list", ""); !strings.Contains(said, `"tools":[]`) {
			t.Errorf("all tools: %s", said)
		}
		for _, path := range []string{"/mcp/servers/open", "/mcp/groups/mixed", "/mcp/groups/" + hidden} {
			if said, none := nobody.ask(t, path, "tools/list", ""), nobody.ask(t, "/mcp/servers/none", "tools/list", ""); said != none {
				t.Errorf("%s: %s, and where nothing is %s", path, said, none)
			}
		}
	}, e)
}

// TestHidden_Messages: log messages and unknown notifications of a server are sent only to principals that may see the whole
// server. Unknown notifications of other principals are not sent to the server.
func TestHidden_Messages(t *testing.T) {
	mcptest.NoLeaks(t)
	servers, fakes := airfield(t)
	e := hosted(t, servers, airRights, airGroups)
	each(t, func(t *testing.T, visit func(string) *visitor) {
		bob, alice := visit("bob"), visit("alice")
		var his []*stream
		for _, path := range []string{"/mcp", "/mcp/servers/books"} {
			his = append(his, bob.listening(t, path, ""))
			if bob.era == legacyEra {
				bob.ask(t, path, "logging/setLevel", `"level":"debug"`)
			}
		}
		hers := alice.listening(t, "/mcp/servers/books", "")
		const secret = `{"level":"error","data":"` + hidden + `"}`
		said := alice.ask(t, "/mcp", "tools/call", `"name":"exec","arguments":{"server_name":"`+hidden+`","tool_name":"notify","arguments":{"method":"notifications/message","params":`+secret+`,"mine":true}}`)
		if alice.era == modernEra && !strings.Contains(said, "notifications/message") {
			t.Errorf("alice gets %s", said)
		}
		fakes[hidden].Notify("notifications/message", secret)
		fakes["books"].Notify("books/odd", `{"about":"`+hidden+`"}`)
		if alice.era == legacyEra {
			hers.await(t, "books/odd")
			note := func(who string) string {
				return `{"jsonrpc":"2.0","method":"other/` + who + `","params":{}}`
			}
			for _, v := range []*visitor{bob, alice} { // bob's notification would arrive before alice's
				path, head := "/mcp/servers/books", map[string]string{"Mcp-Session-Id": v.sessions["/mcp/servers/books"]}
				if v.sse {
					path, head = v.sessions["/mcp/servers/books"], nil
				}
				v.http(t, "POST", path, note(v.who), head)
				v.ask(t, "/mcp/servers/books", "tools/call", `"name":"find_book","arguments":{}`)
			}
			mcptest.WaitFor(t, "the note of alice", patience, func() bool { return fakes["books"].Count("other/alice") > 0 })
			if n := fakes["books"].Count("other/bob"); n > 0 {
				t.Errorf("%d notes of bob came to the server", n)
			}
		}
		for i, path := range []string{"/mcp", "/mcp/servers/books"} {
			bob.ask(t, path, "tools/list", "")
			if said := strings.Join(his[i].all(), "\n"); strings.Contains(strings.ReplaceAll(said, `"uri":"mcpx://`+hidden, ""), hidden+`"`) || strings.Contains(said, "books/odd") {
				t.Errorf("%s: bob hears %s", path, said)
			}
		}
	}, e)
}
