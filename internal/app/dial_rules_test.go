package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/mcptest"
)

// TestDial_Tools: the servers of a principal may have 200 tools together. Another principal is not affected.
func TestDial_Tools(t *testing.T) {
	e := hosted(t, nil, `[{"principals":["alice","bob"]}]`, dialRules)
	e.begin(t, &device{tools: 150}, "alice", "mine1", "")
	e.await(t, "mine1-", 1)
	over := e.begin(t, &device{tools: 51}, "alice", "mine2", "")
	err := <-over.over
	if websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "201 tools together, and may have 200") {
		t.Errorf("the server with one too many: %v", err)
	}
	defer func() {
		if t.Failed() {
			for _, s := range e.app.Registry.Snapshot().Servers {
				t.Logf("%s: known %v, %s, %s", s.Name, s.Known, s.State, s.Reason)
			}
		}
	}()
	mcptest.WaitFor(t, "the reason", dialPatience, func() bool {
		return slices.ContainsFunc(e.app.Registry.Snapshot().Servers, func(s catalog.Server) bool {
			return strings.HasPrefix(s.Name, "mine2-") && !s.Known && strings.Contains(s.Reason, "201 tools")
		})
	})
	e.begin(t, &device{tools: 50}, "alice", "mine2", "")
	e.begin(t, &device{tools: 200}, "bob", "mine", "")
	e.await(t, "mine", 3)
}

// TestDial_Large: the lists of all servers of a principal may have 4 MiB together, since a catalogue needs many times as much
// memory.
func TestDial_Large(t *testing.T) {
	e := hosted(t, nil, `[{"principals":["alice","bob"]}]`, dialRules)
	e.begin(t, &device{large: 3 << 20}, "alice", "mine1", "")
	e.await(t, "mine1-", 1)
	over := e.begin(t, &device{large: 2 << 20}, "alice", "mine2", "")
	if err := <-over.over; websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "may list 4194304") {
		t.Errorf("too much: %v", err)
	}
	e.begin(t, &device{large: 1000}, "alice", "mine2", "")
	e.begin(t, &device{large: 3 << 20}, "bob", "mine", "")
	e.await(t, "mine", 3)
}

// TestDial_IDs: many clients call one server with the same request id. mcpx gives the calls different ids on the socket, so each
// client gets its own answer, in whatever order the answers come.
func TestDial_IDs(t *testing.T) {
	const clients = 20
	type open struct{ id, params string }
	calls := make(chan open, clients)
	e := hosted(t, nil, `[{"principals":["alice"]}]`, dialRules)
	d := e.begin(t, &device{answer: func(id, params string) string {
		calls <- open{id, params}
		return ""
	}}, "alice", "mine", "")
	name := e.await(t, "mine-", 1)[0]
	var all sync.WaitGroup
	for i := range clients {
		v := e.visitor(t, "alice", []string{modernEra, legacyEra}[i%2], false)
		all.Go(func() {
			answer := v.ask(t, "/mcp", "tools/call", fmt.Sprintf(`"name":"exec","arguments":{"server":%q,"tool":"whoami","arguments":{"n":"n%d."}}`, name, i))
			if want := fmt.Sprintf("for n%d.", i); !strings.Contains(answer, want) {
				t.Errorf("%s instead of %s", answer, want)
			}
		})
	}
	var got []open
	seen := make(map[string]bool)
	for range clients {
		got = append(got, <-calls)
		seen[got[len(got)-1].id] = true
	}
	if len(seen) != clients {
		t.Errorf("%d ids for %d calls", len(seen), clients)
	}
	slices.Reverse(got)
	for _, one := range got {
		_, n, _ := strings.Cut(one.params, `"n":"`)
		n, _, _ = strings.Cut(n, `"`)
		if err := d.send(`{"jsonrpc":"2.0","id":` + one.id + `,"result":{"content":[{"type":"text","text":"for ` + n + `"}]}}`); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
}

// TestDial_View: a server that dialled in for its owner alone has a view, which other principals cannot use. The overrides of the
// rule by which it dialled in apply to its tools.
func TestDial_View(t *testing.T) {
	e := hosted(t, nil, `[{"principals":["alice"]},{"principals":["bob"]}]`,
		`,"dial":{"allow":[{"names":["mine"],"overrides":{"whoami":{"name":"self","description":"Tells its name."}}}]}`)
	e.device(t, "alice", "mine", "the one of alice")
	path := "/mcp/servers/" + e.await(t, "mine-", 1)[0]
	alice := e.visitor(t, "alice", modernEra, false)
	if listed := alice.ask(t, path, "tools/list", ""); !strings.Contains(listed, `"name":"self"`) || !strings.Contains(listed, "Tells its name.") {
		t.Error(listed)
	}
	if answer := alice.ask(t, path, "tools/call", `"name":"self","arguments":{}`); !strings.Contains(answer, "I am the one of alice") {
		t.Error(answer)
	}
	if answer := e.visitor(t, "bob", modernEra, false).ask(t, path, "tools/list", ""); !strings.Contains(answer, "there is no such view") {
		t.Errorf("bob: %s", answer)
	}
}

// TestDial_ApprovalOfOwner: if another principal later dials in under the same name, the approval of the earlier server does not
// count for it, even if the tools are the same. It does not count for a server of this name in the config either.
func TestDial_ApprovalOfOwner(t *testing.T) {
	t.Chdir(t.TempDir())
	e := hosted(t, nil, `[{"principals":["alice","bob"]},{"principals":["carol"],"admin":true}]`, dialRules)
	first := e.device(t, "alice", "shared", "the first")
	e.await(t, "shared", 1)
	approve := func() {
		t.Helper()
		if status, answer, _ := e.visitor(t, "carol", modernEra, false).http(t, "POST", "/api/dialled/shared/approve", "", nil); status != 204 {
			t.Fatalf("%d %s", status, answer)
		}
	}
	approve()
	if answer := e.whoami(t, "bob", "shared"); !strings.Contains(answer, "I am the first") {
		t.Fatal(answer)
	}
	_ = first.conn.CloseNow()
	mcptest.WaitFor(t, "the state away", dialPatience, func() bool { return e.app.dialled.State("shared") == "away" })
	for i := range 10 { // the tenth makes the hub forget the server that has lost its connection
		e.device(t, "alice", fmt.Sprint("mine", i), "x")
	}
	e.device(t, "bob", "shared", "the second")
	mcptest.WaitFor(t, "the second", dialPatience, func() bool {
		_, listed, _ := e.visitor(t, "carol", modernEra, false).http(t, "GET", "/api/dialled", "", nil)
		return strings.Contains(listed, `"name":"shared","owner":"bob"`) && strings.Contains(listed, "whoami")
	})
	e.await(t, "shared", 1)
	if answer := e.whoami(t, "alice", "shared"); strings.Contains(answer, "I am") {
		t.Errorf("approved by the approval of another owner: %s", answer)
	}
	approve()
	if answer := e.whoami(t, "alice", "shared"); !strings.Contains(answer, "I am the second") {
		t.Errorf("approved: %s", answer)
	}
	lock, err := LoadLock(e.cfg)
	if err != nil || lock["shared"] != nil || len(lock) != 2 {
		t.Errorf("the lock has %v, %v", lock, err)
	}
}

// TestDial_Reload: if a reload removes a rule or a token, or denies a principal everything, the connections that were permitted are
// closed. Other connections stay open.
func TestDial_Reload(t *testing.T) {
	e := hosted(t, nil, `[{"principals":["alice","bob"]}]`, `,"dial":{"allow":[{"names":["mine"]},{"principals":["alice"],"names":["more"]}]}`)
	mine, more, bob := e.device(t, "alice", "mine", "mine"), e.device(t, "alice", "more", "more"), e.device(t, "bob", "mine", "bob's")
	e.await(t, "m", 3)
	cfg := configOf(t, nil, `[{"principals":["alice","bob"]}]`, `,"dial":{"allow":[{"names":["mine"]}]}`)
	if err := e.app.reload(cfg); err != nil {
		t.Fatal(err)
	}
	if err := <-more.over; websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "does not allow") {
		t.Errorf("without its rule: %v", err)
	}
	e.await(t, "m", 2)
	next := *cfg
	auth := *cfg.Auth
	auth.Tokens = slices.DeleteFunc(slices.Clone(auth.Tokens), func(token conf.Token) bool { return token.Name == "alice" })
	next.Auth = &auth
	if err := e.app.reload(&next); err != nil {
		t.Fatal(err)
	}
	if err := <-mine.over; websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "not valid any more") {
		t.Errorf("without its token: %v", err)
	}
	mcptest.WaitFor(t, "bob's", dialPatience, func() bool {
		for _, name := range e.await(t, "mine-", 1) {
			if strings.Contains(e.whoami(t, "bob", name), "I am bob's") {
				return true
			}
		}
		return false
	})
	select {
	case err := <-bob.over:
		t.Error(err)
	default:
	}
	last, rights := next, auth
	rights.Rights = append(slices.Clone(auth.Rights), conf.Right{Principals: []string{"bob"}, TakeAway: []string{"*"}})
	last.Auth = &rights
	if err := e.app.reload(&last); err != nil {
		t.Fatal(err)
	}
	if err := <-bob.over; websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "does not allow") {
		t.Errorf("denied everything: %v", err)
	}
}

// TestDial_Group: after an admin has approved the server, it is visible to principals that share with its owner a group of the
// rule. mcpx declares no capabilities for questions to the server, and refuses its questions.
func TestDial_Group(t *testing.T) {
	t.Chdir(t.TempDir())
	cfg := configOf(t, nil, `[{"principals":["alice","bob","nobody"]},{"principals":["carol"],"admin":true}]`,
		`,"dial":{"allow":[{"groups":["lab"],"names":["scope"],"for":"group"}]}`)
	for i := range cfg.Auth.Tokens {
		switch token := &cfg.Auth.Tokens[i]; token.Name {
		case "alice":
			token.Groups = []string{"staff", "lab"}
		case "bob":
			token.Groups = []string{"lab"}
		case "nobody":
			token.Groups = []string{"staff"}
		}
	}
	e := serving(t, cfg)
	if _, err := e.dialIn(t, "nobody", "scope", nil); err == nil || !strings.HasPrefix(err.Error(), "403") {
		t.Errorf("without the group: %v", err)
	}
	d := &device{}
	asked := make(chan string, 1)
	d.answer = func(string, string) string {
		if err := d.send(`{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"your password?","requestedSchema":{"type":"object","properties":{}}}}`); err != nil {
			t.Error(err)
		}
		_, refusal, err := d.conn.Read(t.Context())
		if err != nil {
			t.Error(err)
		}
		asked <- string(refusal)
		return `"result":{"content":[{"type":"text","text":"I am the scope"}]}`
	}
	e.begin(t, d, "alice", "scope", "")
	e.await(t, "scope", 1)
	for _, approved := range []bool{false, true} {
		if approved {
			if status, answer, _ := e.visitor(t, "carol", modernEra, false).http(t, "POST", "/api/dialled/scope/approve", "", nil); status != 204 {
				t.Fatalf("%d %s", status, answer)
			}
		}
		for who, sees := range map[string]bool{"bob": true, "nobody": false} {
			v := e.visitor(t, who, modernEra, false)
			v.caps = `{"elicitation":{},"sampling":{}}`
			answer := v.ask(t, "/mcp", "tools/call", fmt.Sprintf(call, "scope"))
			if got := strings.Contains(answer, "I am the scope"); got != (sees && approved) {
				t.Errorf("%s, approved %v: %s", who, approved, answer)
			}
			if strings.Contains(answer, "password") {
				t.Errorf("the question reached %s: %s", who, answer)
			}
		}
	}
	if refusal := <-asked; !strings.Contains(refusal, `"error"`) || !strings.Contains(refusal, `"q1"`) {
		t.Errorf("the question is answered with %s", refusal)
	}
	if said := *d.said.Load(); strings.Contains(said, "elicitation") || strings.Contains(said, "sampling") {
		t.Errorf("the server is told %s", said)
	}
}

// TestDial_Unapproved: until an admin has approved a server, principals other than its owner do not see its name, its prompts or
// why it is hidden. They never see its title and instructions, because an approval covers only tools.
func TestDial_Unapproved(t *testing.T) {
	t.Chdir(t.TempDir())
	e := hosted(t, nil, `[{"principals":["alice","bob"]},{"principals":["carol"],"admin":true}]`, dialRules)
	e.begin(t, &device{pushy: true}, "alice", "shared", "")
	e.await(t, "shared", 1)
	look := func() (all string) {
		v := e.visitor(t, "bob", modernEra, false)
		for _, path := range []string{"/mcp", "/mcp/tools", "/mcp/servers/shared"} {
			for method, params := range map[string]string{
				"server/discover": "", "tools/list": "", "prompts/list": "", "tools/call": `"name":"inspect","arguments":{}`,
			} {
				all += v.ask(t, path, method, params)
			}
		}
		return all
	}
	if all := look(); strings.Contains(all, "obey") || strings.Contains(all, "shared") {
		t.Errorf("not approved: %s", all)
	}
	if answer := e.visitor(t, "alice", modernEra, false).ask(t, "/mcp", "prompts/list", ""); !strings.Contains(answer, "obey") {
		t.Errorf("the owner: %s", answer)
	}
	if status, answer, _ := e.visitor(t, "carol", modernEra, false).http(t, "POST", "/api/dialled/shared/approve", "", nil); status != 204 {
		t.Fatalf("%d %s", status, answer)
	}
	if all := look(); !strings.Contains(all, "shared__obey") || strings.Contains(all, "obey me") {
		t.Errorf("approved: %s", all)
	}
}

// TestDial_Confirm: confirm of the file counts for servers that dial in, too.
func TestDial_Confirm(t *testing.T) {
	t.Chdir(t.TempDir())
	e := hosted(t, nil, `[{"principals":["alice"]}]`, `,"confirm":"all"`+dialRules)
	e.device(t, "alice", "mine", "")
	mine := e.await(t, "mine-", 1)[0]
	if answer := e.whoami(t, "alice", mine); !strings.Contains(answer, "needs the user's confirmation") {
		t.Errorf("called without a question: %s", answer)
	}
}

// TestDial_Limits: limits.server counts for servers that dial in, too.
func TestDial_Limits(t *testing.T) {
	t.Chdir(t.TempDir())
	e := hosted(t, nil, `[{"principals":["alice"]}]`, `,"limits":{"server":{"concurrent_calls":3}}`+dialRules)
	e.device(t, "alice", "mine", "")
	mine := e.await(t, "mine-", 1)[0]
	for _, s := range e.app.current.Load().servers {
		if s.Spec.Name == mine && s.Spec.Concurrency.Max != 3 {
			t.Errorf("%d calls at once", s.Spec.Concurrency.Max)
		}
	}
}

// TestDial_Unlisted: of a server that has not listed its tools yet, an admin reads no empty list, which could not be approved.
func TestDial_Unlisted(t *testing.T) {
	t.Chdir(t.TempDir())
	e := hosted(t, nil, `[{"principals":["alice"]},{"principals":["carol"],"admin":true}]`, dialRules)
	conn, err := e.dialIn(t, "alice", "shared", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	carol := e.visitor(t, "carol", modernEra, false)
	if status, text, _ := carol.http(t, "GET", "/api/dialled/shared", "", nil); status != 404 || !strings.Contains(text, "has not listed its tools") {
		t.Errorf("%d %s", status, text)
	}
}

// TestDial_Reviewed: an admin reads the tool definitions of a server, and approves exactly these. If the server has changed a
// definition meanwhile, nothing is approved.
func TestDial_Reviewed(t *testing.T) {
	t.Chdir(t.TempDir())
	e := hosted(t, nil, `[{"principals":["alice","bob"]},{"principals":["carol"],"admin":true}]`, dialRules)
	d := e.device(t, "alice", "shared", "")
	e.await(t, "shared", 1)
	carol := e.visitor(t, "carol", modernEra, false)
	read := func() (digest, text string) {
		status, text, _ := carol.http(t, "GET", "/api/dialled/shared", "", nil)
		var read struct{ Digest string }
		if err := json.Unmarshal([]byte(text), &read); status != 200 || err != nil {
			t.Fatalf("%d %s", status, text)
		}
		return read.Digest, text
	}
	digest, text := read()
	if digest == "" || !strings.Contains(text, "Says who it is.") {
		t.Errorf("carol reads %s", text)
	}
	d.more.Store(1)
	if err := d.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`); err != nil {
		t.Fatal(err)
	}
	mcptest.WaitFor(t, "the change", dialPatience, func() bool { _, text := read(); return strings.Contains(text, "more1") })
	if status, answer, _ := carol.http(t, "POST", "/api/dialled/shared/approve?digest="+digest, "", nil); status != 409 {
		t.Errorf("approved after a change: %d %s", status, answer)
	}
	if answer := e.whoami(t, "bob", "shared"); strings.Contains(answer, "I am") {
		t.Errorf("visible: %s", answer)
	}
	digest, _ = read()
	if status, answer, _ := carol.http(t, "POST", "/api/dialled/shared/approve?digest="+digest, "", nil); status != 204 {
		t.Errorf("approved as read: %d %s", status, answer)
	}
	if answer := e.whoami(t, "bob", "shared"); !strings.Contains(answer, "I am") {
		t.Errorf("approved: %s", answer)
	}
}

// TestDial_ApprovalRecorded: the audit trail has who approved the tools of a server, with their digest. With audit.required, nothing
// is approved while the trail cannot be written.
func TestDial_ApprovalRecorded(t *testing.T) {
	t.Chdir(t.TempDir()) // for the lock file
	trail := filepath.Join(t.TempDir(), "audit.jsonl")
	e := hosted(t, nil, `[{"principals":["alice","bob"]},{"principals":["carol"],"admin":true}]`,
		dialRules+fmt.Sprintf(`,"audit":{"file":%q,"required":true}`, trail))
	d := e.device(t, "alice", "shared", "the first")
	e.await(t, "shared", 1)
	carol := e.visitor(t, "carol", modernEra, false)
	approve := func() int {
		status, _, _ := carol.http(t, "POST", "/api/dialled/shared/approve", "", nil)
		return status
	}
	approvals := func() (all []string) {
		text, err := os.ReadFile(trail)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `"servers_change"`) {
				all = append(all, line)
			}
		}
		return all
	}
	if status := approve(); status != 204 {
		t.Fatal(status)
	}
	_, definitions, _ := carol.http(t, "GET", "/api/dialled/shared", "", nil)
	var read struct{ Digest string }
	if err := json.Unmarshal([]byte(definitions), &read); err != nil || read.Digest == "" {
		t.Fatal(definitions, err)
	}
	if all := approvals(); len(all) != 1 || !strings.Contains(all[0], `"principal":"carol","what":"approve","server":"shared"`) ||
		!strings.Contains(all[0], read.Digest) {
		t.Errorf("the trail has %s", all)
	}
	d.more.Store(1)
	if err := d.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`); err != nil {
		t.Fatal(err)
	}
	mcptest.WaitFor(t, "the new tool", dialPatience, func() bool {
		s, _ := e.app.Registry.Snapshot().Server("shared")
		return len(s.Tools) == 2
	})
	if err := e.app.auditor.trail.Close(); err != nil {
		t.Fatal(err)
	}
	if status := approve(); status != 503 {
		t.Errorf("without a trail: %d", status)
	}
	if list := e.app.Dialled(); len(list) != 1 || list[0].Approved {
		t.Errorf("without a trail, approved: %+v", list)
	}
}
