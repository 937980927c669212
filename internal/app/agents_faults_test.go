package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"mcpx/internal/hosted/identity"
	"mcpx/internal/mcptest"
)

// TestAgents_IDs: many clients of two agents use the same request ids, of any form. Each request gets exactly one answer, and
// never the answer to another request.
func TestAgents_IDs(t *testing.T) {
	e := hosted(t, nil, fewRights, agentsRules+`,"startup_wait":"1m"`)
	ids := []string{`0`, `1`, `-1`, `9007199254740993`, `"0"`, `""`, `"null"`, `"1_n_1"`, `"\u0000"`, `1.5`}
	var all sync.WaitGroup
	for i, agent := range []string{"a1", "a2"} {
		e.toolServer(t, toolServer{tools: []string{"echo"}, label: agent + " "}, agent, "")
		e.await(t, "default-", i+1)
		for c := range 4 {
			r := e.robot(t, agent)
			r.open()
			all.Go(func() {
				for _, id := range ids[1:] {
					r.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"echo","arguments":{"n":"` + fmt.Sprint(c) + `"}}}`)
				}
				for _, id := range ids[1:] {
					if got := r.await(`{"jsonrpc":"2.0","id":` + id + `,`); !strings.Contains(got, fmt.Sprintf(`"%s echo%d"`, agent, c)) {
						t.Errorf("%s %d, id %s: %s", agent, c, id, got)
					}
				}
				r.ask(`"last"`, "ping", "")
				for _, id := range ids {
					if got := r.find(`{"jsonrpc":"2.0","id":` + id + `,`); len(got) != 1 {
						t.Errorf("%s %d, id %s: %d answers: %q", agent, c, id, len(got), got)
					}
				}
			})
		}
	}
	all.Wait()
}

// TestAgents_BadServers: one server does not answer, and another one disconnects during a call. Calls to other servers are not
// delayed, and each call to these two servers gets an error.
func TestAgents_BadServers(t *testing.T) {
	mcptest.NoLeaks(t)
	e := hosted(t, nil, fewRights, agentsRules+`,"startup_wait":"100ms"`)
	asked := make(chan struct{}, 1)
	leaves := e.toolServer(t, toolServer{tools: []string{"leave"}, odd: func(_ *toolServer, m toolMessage) bool {
		if m.Method == "tools/call" {
			asked <- struct{}{}
		}
		return m.Method == "tools/call"
	}}, "a1", "&server_id=leaves")
	e.toolServer(t, toolServer{odd: func(*toolServer, toolMessage) bool { return true }}, "a1", "&server_id=silent")
	e.toolServer(t, toolServer{tools: []string{"good"}, label: "a good "}, "a1", "&server_id=good")
	e.await(t, "good-", 1)
	e.await(t, "leaves-", 1)
	r, other := e.robot(t, "a1"), e.robot(t, "a1")
	r.open()
	other.open()
	if list := other.ask("1", "tools/list", ""); !strings.Contains(list, `"good"`) || !strings.Contains(list, `"leave"`) {
		t.Errorf("listed beside a silent server: %s", list)
	}
	r.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"leave"}}`)
	<-asked
	if got := other.call("2", "good", ""); !strings.Contains(got, "a good good") {
		t.Errorf("beside an open call: %s", got)
	}
	_ = leaves.conn.CloseNow()
	if got := r.await(`"id":1,`); !strings.Contains(got, `"isError":true`) || strings.Contains(got, `"error":{`) {
		t.Errorf("its server left: %s", got)
	}
	if got := r.call("3", "leave", ""); !strings.Contains(got, "SERVER_UNAVAILABLE") {
		t.Errorf("while its server is away: %s", got)
	}
	if got := r.call("4", "good", ""); !strings.Contains(got, "a good good") {
		t.Errorf("afterwards: %s", got)
	}
}

// TestAgents_Unchanged: the answers of a server reach the client unchanged: errors, isError, structured content and texts of any
// form. The client also gets the tools beyond the first page.
func TestAgents_Unchanged(t *testing.T) {
	e := hosted(t, nil, fewRights, agentsRules)
	const tool = `{"name":"%s","inputSchema":{"type":"object"}}`
	results := map[string]string{
		"1": `"error":{"code":-32050,"message":"no \"way\"","data":{"why":[1.10]}}`,
		"2": `"result":{"content":[{"type":"text","text":"bad"}],"isError":true}`,
		"3": `"result":{"content":[{"type":"text","text":"{\"a\":[{\"b\":1.10},{\"b\":2}]}"},{"type":"text","text":"null"}],"structuredContent":{"a":9007199254740993}}`,
		"4": `"result":{"content":[]}`,
		"5": `"result":{"content":[{"type":"text","text":"[` + strings.Repeat(`{\"id\":1,\"name\":\"one\"},`, 50) + `{\"id\":2,\"name\":\"two\"}]"}]}`,
		"6": `"result":{"content":[{"type":"text","text":"` + strings.Repeat("long ", 100_000) + `"}]}`,
	}
	listed := 0
	e.toolServer(t, toolServer{odd: func(s *toolServer, m toolMessage) bool {
		switch {
		case m.Method == "tools/call":
			s.answer(m.ID, results[m.Params.Arguments.N])
		case m.Method == "tools/list" && listed%2 == 0:
			s.answer(m.ID, `"result":{"tools":[`+fmt.Sprintf(tool, "first")+`],"nextCursor":"2"}`)
			listed++
		case m.Method == "tools/list":
			s.answer(m.ID, `"result":{"tools":[`+fmt.Sprintf(tool, "second")+`]}`)
			listed++
		default:
			return false
		}
		return true
	}}, "a1", "")
	e.await(t, "default-", 1)
	r := e.robot(t, "a1")
	r.open()
	if list := r.ask(`"list"`, "tools/list", `"cursor":""`); !strings.Contains(list, `"first"`) || !strings.Contains(list, `"second"`) || strings.Contains(list, "nextCursor") {
		t.Errorf("listed: %s", list)
	}
	for n, want := range results {
		if got := r.call(n, "second", n); got != `{"jsonrpc":"2.0","id":`+n+`,`+want+`}` {
			t.Errorf("%.1000s\nwant %.1000s", got, want)
		}
	}
}

// TestAgents_Back: if a server connects again under its name, the new connection replaces the older one. The older one is closed
// with a code that says so. Its end does not disturb the new one.
func TestAgents_Back(t *testing.T) {
	e := hosted(t, nil, fewRights, agentsRules)
	older := e.toolServer(t, toolServer{tools: []string{"who"}, label: "older "}, "a1", "&server_id=box")
	e.await(t, "box-", 1)
	r := e.robot(t, "a1")
	r.open()
	e.toolServer(t, toolServer{tools: []string{"who"}, label: "newer "}, "a1", "&server_id=box")
	if err := <-older.over; websocket.CloseStatus(err) != 4001 {
		t.Errorf("the older one: %v", err)
	}
	mcptest.WaitFor(t, "the newer one", dialPatience, func() bool {
		return strings.Contains(r.call(fmt.Sprint(time.Now().UnixNano()), "who", ""), "newer who")
	})
}

// TestAgents_BothWays: mcpx answers a ping from a server, passes a question of the server only to the client whose call caused
// it, and notifies all clients of the agent of new tools.
func TestAgents_BothWays(t *testing.T) {
	e := hosted(t, nil, fewRights, agentsRules)
	var call json.RawMessage
	e.toolServer(t, toolServer{tools: []string{"ask"}, odd: func(s *toolServer, m toolMessage) bool {
		switch {
		case m.Method == "tools/call":
			call = bytes.Clone(m.ID)
			s.say(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		case string(m.ID) == `"p"`: // the answer to the ping
			s.say(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"messages":[],"maxTokens":7}}`)
		case string(m.ID) == `"q"`:
			s.answer(call, `"result":{"content":[{"type":"text","text":"asked"}]}`)
		default:
			return false
		}
		return true
	}}, "a1", "")
	e.await(t, "default-", 1)
	r, other := e.robot(t, "a1"), e.robot(t, "a1")
	r.open()
	other.open()
	r.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}`)
	question := r.await(`"sampling/createMessage"`)
	var m struct{ ID json.RawMessage }
	if err := json.Unmarshal([]byte(question), &m); err != nil {
		t.Fatal(err)
	}
	r.say(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"role":"assistant","content":{"type":"text","text":"yes"},"model":"m"}}`)
	if got := r.await(`"result":{"content"`); got != `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"asked"}]}}` {
		t.Errorf("the call: %s", got)
	}
	if got := other.find("sampling"); len(got) > 0 {
		t.Errorf("another client was asked: %q", got)
	}
	e.toolServer(t, toolServer{tools: []string{"more"}}, "a1", "&server_id=more")
	r.await("notifications/tools/list_changed")
	other.await("notifications/tools/list_changed")
}

// TestAgents_OddClients: a client that sends no JSON gets an error, and a client that sends a batch gets answers. A client that
// does not read delays no other client.
func TestAgents_OddClients(t *testing.T) {
	e := hosted(t, nil, fewRights, agentsRules)
	e.toolServer(t, toolServer{tools: []string{"echo"}, label: strings.Repeat("long ", 20_000)}, "a1", "")
	e.await(t, "default-", 1)
	deaf, err := e.socket(t, "call", agentToken(t, "a1"), "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		_ = deaf.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo"}}`, i))
	}
	r := e.robot(t, "a1")
	r.open()
	r.say("hello")
	if got := r.await(`"id":null`); !strings.Contains(got, "-32700") {
		t.Errorf("no JSON: %s", got)
	}
	r.say(`[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","id":8,"method":"ping"}]`)
	r.await(`"id":7,"result":{}`)
	r.await(`"id":8,"result":{}`)
	if got := r.call("1", "echo", ""); !strings.Contains(got, "long echo") {
		t.Errorf("beside a client that does not read: %.200s", got)
	}
}

// TestAgents_Bounds: the sessions, servers, calls and messages of an agent are limited. When a token expires, the connections
// that it has opened end.
func TestAgents_Bounds(t *testing.T) {
	e := hosted(t, nil, fewRights, agentsRules+`,"limits":{"principal":{"sessions":2,"requests_per_second":1,"calls_per_minute":3}}`)
	e.toolServer(t, toolServer{tools: []string{"echo"}}, "a1", "")
	e.await(t, "default-", 1)
	r := e.robot(t, "a1")
	r.open()
	for i := range 4 {
		r.call(fmt.Sprint(10+i), "echo", "")
	}
	if got := r.await(`"id":13,`); !strings.Contains(got, "RATE_LIMITED") {
		t.Errorf("the fourth call: %s", got)
	}
	for i := range 300 {
		r.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, 1000+i))
	}
	if got := r.await(`"id":1299,`); !strings.Contains(got, "RATE_LIMITED") {
		t.Errorf("a flood: %s", got)
	}
	for i := range 9 {
		e.toolServer(t, toolServer{}, "a2", fmt.Sprintf("&server_id=n%d", i))
	}
	e.robot(t, "a2")
	e.robot(t, "a2")
	if _, err := e.socket(t, "call", agentToken(t, "a2"), ""); err == nil || err.Error() != "429" {
		t.Errorf("the third session: %v", err)
	}
	e.toolServer(t, toolServer{}, "a2", "")
	if _, err := e.socket(t, "mcp", agentToken(t, "a2"), ""); err == nil || err.Error() != "429" {
		t.Errorf("the eleventh server: %v", err)
	}

	ending := make(map[string]*websocket.Conn)
	for lasts := time.Second; len(ending) < 2; lasts *= 2 { // on a slow machine the token may end before both are open
		short, err := identity.NewAgentToken(agentsKey, "a3", time.Now().Add(lasts))
		if err != nil {
			t.Fatal(err)
		}
		clear(ending)
		for _, path := range []string{"mcp", "call"} {
			if conn, err := e.socket(t, path, short, ""); err == nil {
				ending[path] = conn
			}
		}
	}
	for path, conn := range ending {
		if err := untilClosed(conn); websocket.CloseStatus(err) != websocket.StatusPolicyViolation || !strings.Contains(err.Error(), "token has expired") {
			t.Errorf("%s after the end of its token: %v", path, err)
		}
	}
}

// TestAgents_Ends: if the config gets another key, the connections that tokens of the old key have opened end. A shutdown lets
// open calls finish, and then closes the connections with the code for a shutdown.
func TestAgents_Ends(t *testing.T) {
	cfg := configOf(t, nil, fewRights, agentsRules)
	cfg.ShutdownGrace = dialPatience
	e := serving(t, cfg)
	open := func() (ends []*websocket.Conn) {
		for _, path := range []string{"mcp", "call"} {
			conn, err := e.socket(t, path, agentToken(t, "a1"), "")
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, conn)
		}
		return ends
	}
	revoked := open()
	e.change(t, nil, fewRights, strings.Replace(agentsRules, agentsKey, `another key, which is long enough`, 1))
	for i, conn := range revoked {
		if err := untilClosed(conn); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
			t.Errorf("%d, another key: %v", i, err)
		}
	}
	if _, err := e.socket(t, "call", agentToken(t, "a1"), ""); err == nil || err.Error() != "401" {
		t.Errorf("a token of the old key: %v", err)
	}
	e.change(t, nil, fewRights, agentsRules)
	asked, answer := make(chan struct{}), make(chan struct{})
	s := e.toolServer(t, toolServer{tools: []string{"slow"}, odd: func(s *toolServer, m toolMessage) bool {
		if m.Method == "tools/call" {
			close(asked)
			<-answer
		}
		return false
	}}, "a1", "")
	e.await(t, "default-", 1)
	r := e.robot(t, "a1")
	r.open()
	r.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}`)
	<-asked
	e.stop()
	mcptest.WaitFor(t, "the end of the listener", dialPatience, func() bool {
		_, err := e.socket(t, "call", agentToken(t, "a1"), "")
		return err != nil
	})
	close(answer)
	if got := r.await(`"id":1,`); !strings.Contains(got, `"slow"`) {
		t.Errorf("a call during the shutdown: %s", got)
	}
	if err := <-s.over; websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("the server at the shutdown: %v", err)
	}
	mcptest.WaitFor(t, "the end of the client", dialPatience, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.ended != nil
	})
	if websocket.CloseStatus(r.ended) != websocket.StatusGoingAway {
		t.Errorf("the client at the shutdown: %v", r.ended)
	}
}

// untilClosed reads until the connection ends, and returns the error.
func untilClosed(conn *websocket.Conn) error {
	for {
		if _, _, err := conn.Read(context.Background()); err != nil {
			return err
		}
	}
}
