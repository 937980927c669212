package app

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// workshop returns mcpx with servers whose calls create something that belongs to the caller, such as a task.
func workshop(t *testing.T, rights, more string) (*endpoint, map[string]*mcptest.HTTPServer) {
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	const working = `"taskId":"1","status":"working","createdAt":"2026-11-21T10:00:00Z","lastUpdatedAt":"2026-11-21T10:00:00Z","ttlMs":60000}`
	fakes := map[string]*mcptest.HTTPServer{
		"fake": mcptest.Spec{}.HTTP(t), "modern": mcptest.Spec{Era: mcptest.EraModern}.HTTP(t),
		"tasks": mcptest.Spec{
			Era: mcptest.EraModern, Tools: raw(`[{"name":"t","inputSchema":{"type":"object"}}]`),
			Results: map[string]json.RawMessage{"t": raw(`{"resultType":"task",` + working)},
			MethodResults: map[string]json.RawMessage{
				"server/discover": raw(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`),
				"tasks/get":       raw(`{"resultType":"complete",` + working), "tasks/update": raw(`{"resultType":"complete"}`), "tasks/cancel": raw(`{"resultType":"complete"}`),
				"tasks/list": raw(`{"resultType":"complete","tasks":[{` + working + `]}`),
			},
		}.HTTP(t),
	}
	servers := make(map[string]string)
	for name, fake := range fakes {
		servers[name] = fake.URL
	}
	return hosted(t, servers, rights, more), fakes
}

const everybody = `[{"principals":["alice","bob"]}]`

func execute(server, tool, arguments string) string {
	return `"name":"exec","arguments":{"server_name":"` + server + `","tool_name":"` + tool + `","arguments":` + arguments + `}`
}

// same fails the test unless bob gets the same answer for something of alice's (foreign) as for something that never existed
// (none). The answer must contain want.
func same(t *testing.T, what, foreign, none, want string) {
	t.Helper()
	if foreign != none || !strings.Contains(foreign, want) {
		t.Errorf("%s: bob gets %s, for one that never was %s, want %s", what, foreign, none, want)
	}
}

// TestForeign_Sessions: a principal cannot use a session or a stream of another principal, nor cancel its calls.
func TestForeign_Sessions(t *testing.T) {
	mcptest.NoLeaks(t)
	e, fakes := workshop(t, everybody, "")
	alice, bob := e.visitor(t, "alice", legacyEra, false), e.visitor(t, "bob", legacyEra, false)
	alice.ask(t, "/mcp", "ping", "")
	bob.ask(t, "/mcp", "ping", "")
	hers := map[string]string{"Mcp-Session-Id": alice.sessions["/mcp"]}
	none := map[string]string{"Mcp-Session-Id": "mcpx-NEVERWAS"}
	gate, waits := waitingCall(t)
	call := make(chan string, 1)
	body := `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":9},` + execute("fake", "slow", waits) + `}}`
	go func() { // ends with the answer
		_, answer, _ := alice.http(t, "POST", "/mcp", body, hers)
		call <- answer
	}()
	mcptest.WaitFor(t, "her call", patience, func() bool { return len(fakes["fake"].Log().Calls("slow")) == 1 })
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"foreign"}}`
	for _, way := range [][2]string{
		{"POST", `{"jsonrpc":"2.0","id":2,"method":"ping"}`}, {"POST", cancel}, {"POST", `[{"jsonrpc":"2.0","id":2,"method":"ping"}]`},
		{"POST", `{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`}, {"POST", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}`},
		{"GET", ""}, {"DELETE", ""},
	} {
		status, answer, _ := bob.http(t, way[0], "/mcp", way[1], hers)
		notThere, unknown, _ := bob.http(t, way[0], "/mcp", way[1], none)
		same(t, fmt.Sprint(way), fmt.Sprint(status, answer), fmt.Sprint(notThere, unknown), "404")
	}
	// The same holds for a request in bob's own session, and in the modern era.
	bob.http(t, "POST", "/mcp", cancel, map[string]string{"Mcp-Session-Id": bob.sessions["/mcp"]})
	bob.http(t, "POST", "/mcp", strings.Replace(cancel, `{"requestId"`, `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"requestId"`, 1), map[string]string{"Mcp-Protocol-Version": modernEra, "Mcp-Method": "notifications/cancelled"})
	if cancelled := fakes["fake"].Count("notifications/cancelled"); cancelled != 0 {
		t.Errorf("%d calls were cancelled", cancelled)
	}
	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	if answer := <-call; !strings.Contains(answer, `"id":5,"result"`) {
		t.Errorf("she gets %s", answer)
	}
	if status, answer, _ := alice.http(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, hers); status != 200 {
		t.Errorf("her session: %d %s", status, answer)
	}
	// A session belongs to one view. At the path of another view it is unknown.
	if status, answer, _ := alice.http(t, "POST", "/mcp/tools", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, hers); status != 404 {
		t.Errorf("at another path: %d %s", status, answer)
	}

	old := e.visitor(t, "alice", legacyEra, true)
	old.ask(t, "/mcp", "ping", "")
	before := len(old.streams["/mcp"].all())
	status, answer, _ := bob.http(t, "POST", old.sessions["/mcp"], `{"jsonrpc":"2.0","id":2,"method":"ping"}`, nil)
	notThere, unknown, _ := bob.http(t, "POST", "/mcp/messages?sessionId=mcpx-NEVERWAS", `{"jsonrpc":"2.0","id":2,"method":"ping"}`, nil)
	same(t, "her stream", fmt.Sprint(status, answer), fmt.Sprint(notThere, unknown), "404")
	if old.ask(t, "/mcp", "ping", ""); len(old.streams["/mcp"].all()) != before+1 {
		t.Errorf("on her stream: %s", old.streams["/mcp"].all())
	}
}

var handleIn = regexp.MustCompile(`handle\\*":\\*"(r[a-z0-9]{20,})`)

// TestForeign_Handles: only the principal that made a call can use the handle of its result, or of the running call.
func TestForeign_Handles(t *testing.T) {
	mcptest.NoLeaks(t)
	e, fakes := workshop(t, everybody, `,"result_token_limit":100,"result_preview_tokens":50,"clients":{"waiter":{"call_wait":"100ms"}}`)
	gate, waits := waitingCall(t)
	each(t, func(t *testing.T, visit func(string) *visitor) {
		for tool, call := range map[string]string{
			"read_result": execute("fake", "table", `{"rows":400}`), "wait_result": execute("fake", "slow", waits),
		} {
			alice, bob := visit("alice"), visit("bob")
			if tool == "wait_result" {
				alice.name = "waiter"
			}
			said := alice.ask(t, "/mcp", "tools/call", call)
			found := handleIn.FindStringSubmatch(said)
			if found == nil {
				t.Fatalf("no handle: %s", said)
			}
			read := func(v *visitor, handle string) string {
				return v.ask(t, "/mcp", "tools/call", execute("mcpx", tool, `{"handle":"`+handle+`"}`))
			}
			const never = "rabcdefghijklmnopqrst"
			same(t, tool, read(bob, found[1]), read(bob, never), "VALIDATION_ERROR")
			if own := read(alice, found[1]); strings.Contains(own, "VALIDATION_ERROR") {
				t.Errorf("%s: alice gets %s", tool, own)
			}
		}
	}, e)
	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
	if cancelled := fakes["fake"].Count("notifications/cancelled"); cancelled != 0 {
		t.Errorf("%d calls were cancelled", cancelled)
	}
}

// TestForeign_ListTakenAway: a stored list of resources can be read only as long as the principal may see every server in the
// list.
func TestForeign_ListTakenAway(t *testing.T) {
	mcptest.NoLeaks(t)
	const more = `,"result_token_limit":300,"result_preview_tokens":50`
	servers := make(map[string]string)
	for _, name := range []string{"first", "second"} {
		var resources []string
		for i := range 60 {
			resources = append(resources, fmt.Sprintf(`{"uri":"%s://%d","name":"number %d"}`, name, i, i))
		}
		servers[name] = mcptest.Spec{Resources: json.RawMessage("[" + strings.Join(resources, ",") + "]")}.HTTP(t).URL
	}
	const all = `[{"principals":["alice","bob"]}]`
	e := hosted(t, servers, all, more)
	alice, bob := e.visitor(t, "alice", modernEra, false), e.visitor(t, "bob", modernEra, false)
	lists := func(v *visitor, of string) (handle string) {
		said := v.ask(t, "/mcp", "tools/call", execute("mcpx", "list_resources", of))
		found := handleIn.FindStringSubmatch(said)
		if found == nil {
			t.Fatalf("no handle: %s", said)
		}
		return found[1]
	}
	reads := func(v *visitor, handle string) bool {
		said := v.ask(t, "/mcp", "tools/call", execute("mcpx", "read_result", `{"handle":"`+handle+`","grep":"://1"}`))
		return !strings.Contains(said, "/handle: is unknown or has expired")
	}
	both, first, second, his := lists(alice, `{}`), lists(alice, `{"server_name":"first"}`), lists(alice, `{"server_name":"second"}`), lists(bob, `{}`)
	for i, tt := range []struct {
		rights                   string
		both, first, second, his bool
	}{
		{all, true, true, true, true},
		{`[{"principals":["alice"],"servers":["first"]},{"principals":["bob"]}]`, false, true, false, true},
		{all, true, true, true, true},
	} {
		e.change(t, servers, tt.rights, more)
		got := []bool{reads(alice, both), reads(alice, first), reads(alice, second), reads(bob, his)}
		if want := []bool{tt.both, tt.first, tt.second, tt.his}; !slices.Equal(got, want) {
			t.Errorf("rights %d: read %t, want %t", i, got, want)
		}
	}
}

// TestForeign_TakenAway: if a reload removes a right, the principal also loses what was stored under that right: a long result,
// a running call, and an open question. What other principals have stored is still there. If the right is given back, the
// stored data can be used again.
func TestForeign_TakenAway(t *testing.T) {
	mcptest.NoLeaks(t)
	const more = `,"result_token_limit":100,"result_preview_tokens":50,"clients":{"waiter":{"call_wait":"100ms"}}`
	e, fakes := workshop(t, everybody, more)
	servers := make(map[string]string)
	for name, fake := range fakes {
		servers[name] = fake.URL
	}
	gate, waits := waitingCall(t)
	asking := func(deny string) string {
		return `[{"principals":["alice"],"confirm":"destructive","tools":{"deny":[` + deny + `]}},{"principals":["bob"]}]`
	}
	e.change(t, servers, asking(`"modern.echo"`), more)
	alice, bob := e.visitor(t, "alice", modernEra, false), e.visitor(t, "bob", modernEra, false)
	alice.caps = `{"elicitation":{}}`
	waiter := e.visitor(t, "bob", modernEra, false)
	waiter.name = "waiter"
	consent := func(call string) string { // makes a call that asks for consent, and returns the call with the answer
		state := stateIn.FindStringSubmatch(alice.ask(t, "/mcp", "tools/call", call))
		if state == nil {
			t.Fatalf("no question for %s", call)
		}
		return call + `,"inputResponses":{"q1":{"action":"accept","content":{"run":true}}},"requestState":` + state[1]
	}
	handle := func(v *visitor, call string) string {
		said := v.ask(t, "/mcp", "tools/call", call)
		found := handleIn.FindStringSubmatch(said)
		if found == nil {
			t.Fatalf("no handle: %s", said)
		}
		return found[1]
	}
	table := execute("fake", "table", `{"rows":40}`)
	hers, his := handle(alice, consent(table)), handle(bob, table)
	going := handle(waiter, execute("fake", "slow", waits))
	reads := func(v *visitor, tool, handle string) bool {
		return !strings.Contains(v.ask(t, "/mcp", "tools/call", execute("mcpx", tool, `{"handle":"`+handle+`"}`)), "/handle: is unknown or has expired")
	}
	if !reads(alice, "read_result", hers) || !reads(bob, "read_result", his) || !reads(waiter, "wait_result", going) {
		t.Error("cannot be read before")
	}
	echo := execute("fake", "echo", `{"text":"done"}`)
	waiting := consent(echo)
	before := len(fakes["fake"].Log().Calls("echo"))
	e.change(t, servers, asking(`"fake.*"`), more)
	if reads(alice, "read_result", hers) || !reads(bob, "read_result", his) {
		t.Error("alice reads what she may not call any more, or bob does not read what he may")
	}
	if said := alice.ask(t, "/mcp", "tools/call", waiting); !strings.Contains(said, "NOT_FOUND") || len(fakes["fake"].Log().Calls("echo")) != before {
		t.Errorf("a question answered afterwards: %s", said)
	}
	e.change(t, servers, `[{"principals":["alice"]},{"principals":["bob"],"tools":{"deny":["fake.slow"]}}]`, more)
	if !reads(alice, "read_result", hers) || !reads(bob, "read_result", his) || reads(waiter, "wait_result", going) {
		t.Error("alice has the right again, and bob has none to the call that goes on")
	}
	if err := os.Remove(gate); err != nil {
		t.Fatal(err)
	}
}

var taskIn = regexp.MustCompile(`"taskId":"([^"]*)"`)

// TestForeign_Tasks: a task id is valid only for its principal, even though the server gives the same id to all callers.
func TestForeign_Tasks(t *testing.T) {
	mcptest.NoLeaks(t)
	e, fakes := workshop(t, everybody, "")
	alice, bob := e.visitor(t, "alice", modernEra, false), e.visitor(t, "bob", modernEra, false)
	alice.caps = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	bob.caps = alice.caps
	said := alice.ask(t, "/mcp", "tools/call", execute("tasks", "t", `{}`))
	found := taskIn.FindStringSubmatch(said)
	if found == nil || !strings.HasPrefix(found[1], "tasks/1~") {
		t.Fatalf("no task: %s", said)
	}
	never := strings.Repeat("A", 22)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		ask := func(v *visitor, id string) string {
			return strings.ReplaceAll(v.ask(t, "/mcp", method, `"taskId":"`+id+`"`), id, "ID")
		}
		for _, foreign := range []string{found[1], "tasks/1", "tasks/", found[1] + "x", found[1][:len(found[1])-1] + "~"} {
			same(t, method+" "+foreign, ask(bob, foreign), ask(bob, "tasks/1~"+never), "there is no task")
		}
		if own := ask(alice, found[1]); strings.Contains(own, "error") {
			t.Errorf("%s: alice gets %s", method, own)
		}
		if seen := fakes["tasks"].Log().Method(method); len(seen) != 1 || !strings.Contains(string(seen[0].Message), `"taskId":"1"`) {
			t.Errorf("%s: the server got %v", method, seen)
		}
		if said := alice.ask(t, "/mcp/servers/tasks", method, `"taskId":"`+found[1]+`"`); strings.Contains(said, "error") {
			t.Errorf("%s at another view: %s", method, said)
		}
	}
	if said := alice.ask(t, "/mcp", "tasks/get", `"taskId":"`+found[1]+`"`); !strings.Contains(said, found[1]) {
		t.Errorf("the id changes: %s", said)
	}
	if said := bob.ask(t, "/mcp/servers/tasks", "tasks/list", ""); !strings.Contains(said, "not found") {
		t.Errorf("the tasks of all: %s", said)
	}
}

var stateIn = regexp.MustCompile(`"requestState":("(?:[^"\\]|\\.)*")`)

// TestForeign_States: a requestState is valid only for one principal and one request, whether mcpx or the server has asked the
// question. For a call that mcpx holds open, it is valid only once.
func TestForeign_States(t *testing.T) {
	mcptest.NoLeaks(t)
	e, fakes := workshop(t, `[{"principals":["alice","bob"],"servers":["modern","fake"]},{"principals":["alice","bob"],"servers":["fake"],"confirm":"all"}]`, "")
	alice, bob := e.visitor(t, "alice", modernEra, false), e.visitor(t, "bob", modernEra, false)
	alice.caps, bob.caps = `{"elicitation":{}}`, `{"elicitation":{}}`
	for name, test := range map[string]struct {
		call, key, answer, prefix, accepted string
		once                                bool
	}{
		"of mcpx":     {execute("fake", "echo", `{"text":"done"}`), "q1", `{"action":"accept","content":{"run":true}}`, `"mcpx.suspended.`, `"text":"done"`, true},
		"of a server": {execute("modern", "ask", `{}`), "word", `{"action":"accept","content":{"word":"mellon"}}`, `"mcpx.bound.`, "mellon", false},
	} {
		t.Run(name, func(t *testing.T) {
			said := alice.ask(t, "/mcp", "tools/call", test.call)
			found := stateIn.FindStringSubmatch(said)
			if found == nil || !strings.HasPrefix(found[1], test.prefix) {
				t.Fatalf("no state: %s", said)
			}
			reply := func(v *visitor, call, state string) string {
				return v.ask(t, "/mcp", "tools/call", call+`,"inputResponses":{"`+test.key+`":`+test.answer+`},"requestState":`+state)
			}
			// the parts are "mcpx", "suspended", the process, the secret; or "mcpx", "bound", the expiry, the tag, the server's
			// state
			parts := strings.Split(found[1], ".")
			parts[3] = "AAAAA" + parts[3][5:]
			never := strings.Join(parts, ".")
			same(t, "her state", reply(bob, test.call, found[1]), reply(bob, test.call, never), "requestState")
			other := strings.Replace(test.call, `"arguments":{"`, `"select":".","arguments":{"`, 1)
			if test.once {
				other = strings.Replace(test.call, "done", "something else", 1)
			}
			for what, refused := range map[string]string{
				"changed": reply(alice, test.call, never), "for another call": reply(alice, other, found[1]), "of nobody": reply(alice, test.call, `"state of ask"`),
				"without its tag": reply(alice, test.call, `"mcpx.bound.99999999999..x"`), "of the past": reply(alice, test.call, `"mcpx.bound.1.`+strings.Repeat("A", 22)+`.x"`),
			} {
				if what == "of nobody" && test.once {
					continue // mcpx does not know this state, so it makes the call anew, which asks again
				}
				if !strings.Contains(refused, `"error"`) || !strings.Contains(refused, "requestState") {
					t.Errorf("a state %s: %s", what, refused)
				}
			}
			if own := reply(alice, test.call, found[1]); !strings.Contains(own, test.accepted) {
				t.Errorf("alice gets %s", own)
			}
			if again := reply(alice, test.call, found[1]); test.once != strings.Contains(again, "answered already") {
				t.Errorf("a second time: %s", again)
			}
		})
	}
	if calls := fakes["fake"].Log().Calls("echo"); len(calls) != 1 {
		t.Errorf("the confirmed call was made %d times", len(calls))
	}
	for _, m := range fakes["modern"].Log().Method("tools/call") {
		if strings.Contains(string(m.Message), "mcpx.bound") {
			t.Errorf("the server got %s", m.Message)
		}
	}
}

// TestForeign_Upstreams: with a session per client, two principals never share a session with a server.
func TestForeign_Upstreams(t *testing.T) {
	mcptest.NoLeaks(t)
	own := mcptest.Spec{}.HTTP(t)
	e := hosted(t, map[string]string{"x": own.URL}, everybody, "")
	to := configOf(t, map[string]string{"x": own.URL}, everybody, "")
	to.Servers[0].Session = "per_client"
	if err := e.app.reload(to); err != nil {
		t.Fatal(err)
	}
	e.cfg = to
	mcptest.WaitFor(t, "the server", patience, func() bool { s, _ := e.app.Registry.Snapshot().Server("x"); return s.Known })
	each(t, func(t *testing.T, visit func(string) *visitor) {
		before := len(own.Log().Calls("echo"))
		for _, who := range []string{"alice", "bob"} {
			if said := visit(who).ask(t, "/mcp", "tools/call", execute("x", "echo", `{"text":"`+who+`"}`)); !strings.Contains(said, who) {
				t.Errorf("%s gets %s", who, said)
			}
		}
		calls := own.Log().Calls("echo")[before:]
		if len(calls) != 2 || calls[0].Session == calls[1].Session {
			t.Errorf("calls in %+v", calls)
		}
	}, e)
}

// TestConfirm_Principals: whether a call must be confirmed depends on the principal. A refusal says why, and which config key
// changes it.
func TestConfirm_Principals(t *testing.T) {
	mcptest.NoLeaks(t)
	e, fakes := workshop(t, `[{"principals":["alice"],"confirm":"destructive"},{"principals":["bob"]},{"principals":["carol"],"views":["two_tools"]},{"principals":["carol"],"confirm":"all","views":["tools"]}]`, "")
	ask := func(who, caps, path, tool, answer string) (said string, asked bool) {
		v := e.visitor(t, who, modernEra, false)
		v.caps = caps
		call := execute("fake", tool, `{"text":"done"}`)
		if path == "/mcp/tools" {
			call = `"name":"fake__` + tool + `","arguments":{"text":"done"}`
		}
		said = v.ask(t, path, "tools/call", call)
		if state := stateIn.FindStringSubmatch(said); state != nil {
			asked = true
			said = v.ask(t, path, "tools/call", call+`,"inputResponses":{"q1":{"action":"`+answer+`","content":{"run":true}}},"requestState":`+state[1])
		}
		return said, asked
	}
	const elicits = `{"elicitation":{}}`
	for _, test := range []struct {
		who, caps, path, tool, answer string
		want                          string
		asked, made                   bool
	}{
		{"alice", elicits, "/mcp", "read_echo", "", `"text":"done"`, false, true},
		{"alice", elicits, "/mcp", "echo", "accept", `"text":"done"`, true, true},
		{"alice", elicits, "/mcp", "echo", "decline", "the user declined the call of fake.echo; it was not made", true, false},
		{"alice", elicits, "/mcp", "echo", "cancel", "or was not there to be asked: the client gave no answer. It was not made. confirm of auth.rights in the config of mcpx says", true, false},
		{"alice", elicits, "/mcp", "echo", "", "the client gave no answer", true, false},
		{"alice", `{}`, "/mcp", "echo", "", "the user could not be asked: elicitation/create cannot be answered: the client visitor has not declared the capability elicitation. The call was not made; the user can make it, use a client with elicitation, or change confirm of auth.rights in the config of mcpx", false, false},
		{"bob", `{}`, "/mcp", "echo", "", `"text":"done"`, false, true},
		{"carol", `{}`, "/mcp", "echo", "", `"text":"done"`, false, true},
		{"carol", `{}`, "/mcp/tools", "echo", "", "the user could not be asked", false, false},
		{"carol", elicits, "/mcp/tools", "read_echo", "accept", `"text":"done"`, true, true},
	} {
		before := len(fakes["fake"].Log().Calls(test.tool))
		said, asked := ask(test.who, test.caps, test.path, test.tool, test.answer)
		if made := len(fakes["fake"].Log().Calls(test.tool)) > before; !strings.Contains(said, test.want) || asked != test.asked || made != test.made {
			t.Errorf("%+v: asked %t, made %t: %s", test, asked, made, said)
		}
	}
}
