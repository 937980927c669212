package app

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// hidden is a part of nearly all names that bob may not see. absent has the same length, but nothing contains it.
const (
	hidden = "zeppelin"
	absent = "quokkaly"
)

// airfield starts three servers. bob may see nothing of the first, one tool of the second, and all of the third.
func airfield(t *testing.T) (servers map[string]string, fakes map[string]*mcptest.HTTPServer) {
	raw := func(text string) json.RawMessage { return json.RawMessage(strings.ReplaceAll(text, "NAME", hidden)) }
	fakes = map[string]*mcptest.HTTPServer{
		hidden: mcptest.Spec{
			Name: hidden, Instructions: "Flies a " + hidden,
			Tools: raw(`[{"name":"NAME_fly","description":"Flies the NAME.","inputSchema":{"type":"object"}},{"name":"echo","inputSchema":{"type":"object"}},{"name":"notify","inputSchema":{"type":"object"}},
				{"name":"NAME_app","_meta":{"ui":{"resourceUri":"ui://NAME","visibility":["app"]}}}]`),
			Resources: raw(`[{"uri":"NAME://1","name":"NAME"},{"uri":"skill://NAME/SKILL.md","name":"NAME"}]`), Templates: raw(`[{"uriTemplate":"NAME://{id}","name":"NAME"}]`),
			Prompts: raw(`[{"name":"NAME_prompt","arguments":[{"name":"NAME"}]}]`),
			MethodResults: map[string]json.RawMessage{
				"initialize":  raw(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{},"prompts":{},"completions":{},"resources":{"subscribe":true},"extensions":{"io.modelcontextprotocol/skills":{}}},"serverInfo":{"name":"NAME","version":"1"},"instructions":"Flies a NAME"}`),
				"skills/list": raw(`{"skills":[{"uri":"skill://NAME/SKILL.md","frontmatter":{"name":"NAME","description":"A NAME."},"resources":[]}]}`),
			},
		}.HTTP(t),
		"books": mcptest.Spec{
			Tools: raw(`[{"name":"find_book","description":"Finds a book.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
				{"name":"NAME_delete","title":"NAME","description":"Deletes by NAME.","inputSchema":{"type":"object","required":["NAME_id"]}},{"name":"NAME_view","_meta":{"ui":{"resourceUri":"ui://NAME","visibility":["app"]}}}]`),
			Resources: raw(`[{"uri":"book://NAME","name":"NAME"}]`), Templates: raw(`[{"uriTemplate":"NAME-book://{id}","name":"NAME"}]`), Prompts: raw(`[{"name":"NAME_review"}]`),
			MethodResults: map[string]json.RawMessage{"NAME/anything": raw(`{"NAME":1}`), "other/thing": raw(`{"NAME":1}`)},
		}.HTTP(t),
		"open": mcptest.Spec{Resources: raw(`[{"uri":"open://1","name":"one"}]`), Prompts: raw(`[{"name":"hello"}]`)}.HTTP(t),
	}
	servers = make(map[string]string)
	for name, fake := range fakes {
		servers[name] = fake.URL
	}
	return servers, fakes
}

const (
	airRights = `[{"principals":["alice","carol"]},{"principals":["bob"],"servers":["open"]},{"principals":["bob"],"tools":{"allow":["books.find_*"]}}]`
	// deniedRights give bob the same rights as airRights, but with a deny rule. The rule writes the names in another way.
	deniedRights = `[{"principals":["alice","carol"]},{"principals":["*"]},{"groups":["x"],"deny":["*"]},{"principals":["Bob"],"deny":["Zeppeli[n]","Books.?EPPELIN_*"]}]`
	airGroups    = `,"apps":true,"groups":{"` + hidden + `":["` + hidden + `"],"mixed":["` + hidden + `","open"],"flat":{"servers":["` + hidden + `","books","open"],"view":"tools"}}`
)

// cursorAt returns a pagination cursor for a page that begins with this server.
func cursorAt(kind, server string) string {
	data, _ := json.Marshal(map[string]any{"Kind": kind, "Server": server, "Index": 0, "Item": "x"})
	return base64.RawURLEncoding.EncodeToString(data)
}

// TestHidden: what a principal may not see does not exist for it, with many methods, in each era and over each HTTP transport.
// The answer about something hidden is, byte for byte, the answer about a name that does not exist.
func TestHidden(t *testing.T) {
	for name, rights := range map[string]string{"not given": airRights, "taken away": deniedRights} {
		t.Run(name, func(t *testing.T) { checkHidden(t, rights) })
	}
}

func checkHidden(t *testing.T, rights string) {
	mcptest.NoLeaks(t)
	servers, _ := airfield(t)
	e := hosted(t, servers, rights, airGroups)
	call := func(tool, arguments string) string { return `"name":"` + tool + `","arguments":` + arguments }
	ways := []struct {
		name, path, method, params string
		// want is a text that the answer contains. It shows that the request did what it should. If the request must be refused,
		// want is a part of the error.
		want string
		// shows means that the answer to alice, who may see everything, contains what is hidden from bob.
		shows bool
	}{
		{"the handshake", "/mcp", "initialize", "", "Gateway to books, mcpx, open", true},
		{"its discovery", "/mcp", "server/discover", "", "Gateway to books, mcpx, open", true},
		{"that of all tools", "/mcp/tools", "initialize", "", `"capabilities"`, true},
		{"tools/list", "/mcp", "tools/list", "", "find_book", true},
		{"all servers", "/mcp", "tools/call", call("inspect", `{}`), "books", true},
		{"a server in part", "/mcp", "tools/call", call("inspect", `{"server_name":"books"}`), "find_book", true},
		{"a hidden server", "/mcp", "tools/call", call("inspect", `{"server_name":"NAME"}`), "SERVER_NOT_FOUND", true},
		{"a tool of it", "/mcp", "tools/call", call("inspect", `{"server_name":"NAME","tool_name":"NAME_fly"}`), "SERVER_NOT_FOUND", true},
		{"a query", "/mcp", "tools/call", call("inspect", `{"query":"book"}`), "find_book", false},
		{"a query by its words", "/mcp", "tools/call", call("inspect", `{"query":"flies NAME"}`), "No tool matches", true},
		{"a query to it", "/mcp", "tools/call", call("inspect", `{"server_name":"NAME","query":"fly"}`), "SERVER_NOT_FOUND", true},
		{"a tool that is on both", "/mcp", "tools/call", call("inspect", `{"query":"echo"}`), "echo", true},
		{"a hidden tool", "/mcp", "tools/call", call("inspect", `{"server_name":"books","tool_name":"NAME_delete"}`), "TOOL_NOT_FOUND", true},
		{"several", "/mcp", "tools/call", call("inspect", `{"server_name":"books","tool_name":"find_book,NAME_delete"}`), "TOOL_NOT_FOUND", true},
		{"one without its server", "/mcp", "tools/call", call("inspect", `{"tool_name":"NAME_delete"}`), "is missing", false},
		{"the server mcpx", "/mcp", "tools/call", call("inspect", `{"server_name":"mcpx"}`), "read_resource", true},
		{"a skill", "/mcp", "tools/call", call("inspect", `{"server_name":"mcpx","tool_name":"skill_NAME"}`), "TOOL_NOT_FOUND", true},
		{"a call", "/mcp", "tools/call", call("exec", `{"server_name":"NAME","tool_name":"NAME_fly","arguments":{}}`), "SERVER_NOT_FOUND", true},
		{"a call of a hidden tool", "/mcp", "tools/call", call("exec", `{"server_name":"books","tool_name":"NAME_delete","arguments":{}}`), "TOOL_NOT_FOUND", true},
		{"one near it", "/mcp", "tools/call", call("exec", `{"server_name":"books","tool_name":"zepelin_delete"}`), `on server \"books\". Available: find_book.`, true},
		{"one of another server", "/mcp", "tools/call", call("exec", `{"server_name":"books","tool_name":"NAME_fly"}`), "TOOL_NOT_FOUND", true},
		{"a server near it", "/mcp", "tools/call", call("exec", `{"server_name":"zepelin","tool_name":"fly"}`), "SERVER_NOT_FOUND", true},
		{"without a server", "/mcp", "tools/call", call("exec", `{"tool_name":"NAME_fly"}`), "is missing", true},
		{"with its server", "/mcp", "tools/call", call("exec", `{"tool_name":"NAME.NAME_fly"}`), "is missing", true},
		{"in place of a server", "/mcp", "tools/call", call("exec", `{"server_name":"NAME.NAME_fly"}`), "is missing", true},
		{"as a tool of mcpx", "/mcp", "tools/call", call("NAME_fly", `{}`), "only inspect and exec", true},
		{"the tool of an app", "/mcp", "tools/call", call("NAME_view", `{}`), "only inspect and exec", false},
		{"a skill as a call", "/mcp", "tools/call", call("exec", `{"server_name":"mcpx","tool_name":"skill_NAME"}`), "TOOL_NOT_FOUND", true},
		{"what can be read", "/mcp", "tools/call", call("exec", `{"server_name":"mcpx","tool_name":"list_resources"}`), "open://1", true},
		{"what a hidden server has", "/mcp", "tools/call", call("exec", `{"server_name":"mcpx","tool_name":"list_resources","arguments":{"server_name":"NAME"}}`), "SERVER_NOT_FOUND", true},
		{"what one in part has", "/mcp", "tools/call", call("exec", `{"server_name":"mcpx","tool_name":"list_resources","arguments":{"server_name":"books"}}`), "There are no resources", true},
		{"a resource by a tool", "/mcp", "tools/call", call("exec", `{"server_name":"mcpx","tool_name":"read_resource","arguments":{"uri":"NAME://1"}}`), "Resource not found", true},
		{"one named with its server", "/mcp", "tools/call", call("exec", `{"server_name":"mcpx","tool_name":"read_resource","arguments":{"uri":"mcpx://NAME/NAME://1"}}`), "Resource not found", true},
		{"a prompt by a tool", "/mcp", "tools/call", call("exec", `{"server_name":"mcpx","tool_name":"get_prompt","arguments":{"name":"NAME__NAME_prompt"}}`), "VALIDATION_ERROR", true},
		{"resources", "/mcp", "resources/list", "", "open://1", true},
		{"resources from it on", "/mcp", "resources/list", `"cursor":"` + cursorAt("resources", hidden) + `"`, `"resources":[]`, true},
		{"templates", "/mcp", "resources/templates/list", "", `"resourceTemplates":[]`, true},
		{"prompts", "/mcp", "prompts/list", "", "open__hello", true},
		{"a resource", "/mcp", "resources/read", `"uri":"NAME://1"`, `"error"`, true},
		{"a resource of one in part", "/mcp", "resources/read", `"uri":"book://NAME"`, `"error"`, true},
		{"one by its server", "/mcp", "resources/read", `"uri":"mcpx://NAME/NAME://1"`, `"error"`, true},
		{"one by that in part", "/mcp", "resources/read", `"uri":"mcpx://books/book://NAME"`, `"error"`, true},
		{"an app", "/mcp", "resources/read", `"uri":"ui://mcpx/NAME/1"`, `"error"`, true},
		// the only server with resources may have this one
		{"a subscription", "/mcp", "resources/subscribe", `"uri":"NAME://1"`, `"result":{}`, false},
		{"a prompt", "/mcp", "prompts/get", `"name":"NAME__NAME_prompt"`, `"error"`, true},
		{"a prompt of one in part", "/mcp", "prompts/get", `"name":"books__NAME_review"`, `"error"`, true},
		{"a completion", "/mcp", "completion/complete", `"ref":{"type":"ref/prompt","name":"NAME__NAME_prompt"},"argument":{"name":"x","value":""}`, `"error"`, true},
		{"one of a template", "/mcp", "completion/complete", `"ref":{"type":"ref/resource","uri":"NAME://{id}"},"argument":{"name":"x","value":""}`, `"values":["fake"`, true},
		{"a task", "/mcp", "tasks/get", `"taskId":"NAME/1"`, `"error"`, false},
		{"all tools", "/mcp/tools", "tools/list", "", "books__find_book", true},
		{"one of them", "/mcp/tools", "tools/call", call("NAME__NAME_fly", `{}`), "unknown tool", true},
		{"a hidden one", "/mcp/tools", "tools/call", call("books__NAME_delete", `{}`), "unknown tool", true},
		{"one like it", "/mcp/tools", "tools/call", call("books__zepelin_delete", `{}`), "unknown tool", true},
		{"the view of a hidden server", "/mcp/servers/NAME", "tools/list", "", "there is no such view", true},
		{"the view of one in part", "/mcp/servers/books", "tools/list", "", "find_book", true},
		{"its resources", "/mcp/servers/books", "resources/list", "", `"resources":[]`, true},
		{"one of its resources", "/mcp/servers/books", "resources/read", `"uri":"book://NAME"`, `"error"`, true},
		{"its prompts", "/mcp/servers/books", "prompts/get", `"name":"NAME_review"`, `"error"`, true},
		{"a hidden tool there", "/mcp/servers/books", "tools/call", call("NAME_delete", `{}`), "unknown tool", true},
		{"what mcpx does not know", "/mcp/servers/books", "other/thing", "", `"error"`, true},
		{"a hidden group", "/mcp/groups/NAME", "tools/list", "", "there is no such view", true},
		{"a group in part", "/mcp/groups/mixed", "tools/list", "", "echo", true},
		{"a group of tools", "/mcp/groups/flat", "tools/list", "", "find_book", true},
		{"a path that is none", "/mcp/NAME", "tools/list", "", "there is no such view", false},
		{"a path around", "/mcp/servers/NAME/../books", "tools/list", "", "", false},
	}
	tryAll := func(t *testing.T, visit func(string) *visitor, caps string) {
		bob, alice := visit("bob"), visit("alice")
		alice.caps = caps
		for _, way := range ways {
			if way.method == "server/discover" && bob.era != modernEra || way.method == "initialize" && bob.era == modernEra ||
				way.method == "resources/subscribe" && bob.era == modernEra || way.method == "tasks/get" && bob.era != modernEra {
				continue
			}
			always := map[string]string{"Mcpx-Structured-Content": "always"}
			if bob.caps = caps; strings.HasPrefix(way.method, "tasks/") {
				bob.caps = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
			}
			named := func(v *visitor, name string) string {
				in := func(text string) string { return strings.ReplaceAll(text, "NAME", name) }
				return v.askWith(t, in(way.path), way.method, in(way.params), always)
			}
			said, none := named(bob, hidden), named(bob, absent)
			if strings.Contains(way.path+way.params, "NAME") && said != strings.ReplaceAll(none, absent, hidden) {
				t.Errorf("%s: bob gets %s, of what nobody has %s", way.name, said, none)
			} else if strings.Contains(strings.ToLower(none), hidden) || !strings.Contains(none, way.want) {
				t.Errorf("%s: bob wants %q and nothing hidden: %s", way.name, way.want, none)
			}
			if !way.shows || alice.sse && way.method == "initialize" {
				continue
			}
			seen := named(alice, hidden)
			if trimmed := strings.ReplaceAll(said, hidden, ""); strings.ReplaceAll(seen, hidden, "") == trimmed {
				t.Errorf("%s: alice, who may see it, gets the same: %s", way.name, seen)
			}
		}
	}
	each(t, func(t *testing.T, visit func(string) *visitor) {
		tryAll(t, visit, `{}`)
		tryAll(t, visit, `{"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}`)
	}, e)
}
