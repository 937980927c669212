package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"mcpx/internal/desk/config"
	"mcpx/internal/hosted/identity"
	"mcpx/internal/mcptest"
)

const (
	agentsKey   = "0123456789abcdef0123456789abcdef"
	agentsRules = `,"exec_wait":"1s","dial":{"compat":"signed","compat_key":"` + agentsKey + `"}`
	// fewRights gives agents nothing.
	fewRights = `[{"principals":["alice"],"admin":true}]`
)

func agentToken(t testing.TB, agent string) string {
	t.Helper()
	token, err := identity.NewAgentToken(agentsKey, agent, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// socket opens a WebSocket at a path of the older system. query has further members, each after an &.
func (e *endpoint) socket(t testing.TB, path, token, query string) (*websocket.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), dialPatience)
	defer cancel()
	address := strings.Replace(e.url, "http", "ws", 1) + "/mcp_endpoint/" + path + "/?token=" + url.QueryEscape(token) + query
	conn, response, err := websocket.Dial(ctx, address, nil)
	if err != nil && response != nil {
		return nil, fmt.Errorf("%d", response.StatusCode)
	}
	if err == nil {
		conn.SetReadLimit(-1)
		t.Cleanup(func() { _ = conn.CloseNow() })
	}
	return conn, err
}

// toolServer is a tool server of an agent. Its tools answer with its label, their name and the argument n.
type toolServer struct {
	conn  *websocket.Conn
	tools []string
	label string
	over  chan error // the error that ended its connection
	// odd answers a request in another way; it returns false for an ordinary answer. It may be nil.
	odd func(s *toolServer, m toolMessage) bool
}

type toolMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name      string
		Arguments struct{ N string }
	}
}

func (e *endpoint) toolServer(t testing.TB, s toolServer, agent, query string) *toolServer {
	t.Helper()
	var err error
	if s.conn, err = e.socket(t, "mcp", agentToken(t, agent), query); err != nil {
		t.Fatalf("%s %s: %v", agent, query, err)
	}
	s.over = make(chan error, 1)
	go func() { s.over <- s.serve() }() // ends with the connection
	return &s
}

func (s *toolServer) say(message string) {
	_ = s.conn.Write(context.Background(), websocket.MessageText, []byte(message))
}

func (s *toolServer) answer(id json.RawMessage, rest string) {
	s.say(`{"jsonrpc":"2.0","id":` + string(id) + `,` + rest + `}`)
}

func (s *toolServer) serve() error {
	for {
		_, data, err := s.conn.Read(context.Background())
		if err != nil {
			return err
		}
		var m toolMessage
		if json.Unmarshal(data, &m) != nil || m.ID == nil || s.odd != nil && s.odd(s, m) {
			continue
		}
		switch m.Method {
		case "server/discover": // mcpx must not send this, because some devices never answer an unknown method
			return errors.New("server/discover")
		case "initialize":
			s.answer(m.ID, `"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"S","version":"7"}}`)
		case "tools/list":
			var tools []string
			for _, name := range s.tools {
				tools = append(tools, `{"name":"`+name+`","description":"d","inputSchema":{"type":"object","properties":{"n":{"type":"string"}},"required":[]}}`)
			}
			s.answer(m.ID, `"result":{"tools":[`+strings.Join(tools, ",")+`]}`)
		case "tools/call":
			text, _ := json.Marshal(s.label + m.Params.Name + m.Params.Arguments.N)
			s.answer(m.ID, `"result":{"content":[{"type":"text","text":`+string(text)+`}]}`)
		case "ping":
			s.answer(m.ID, `"result":{}`)
		default:
			s.answer(m.ID, `"error":{"code":-32601,"message":"unknown"}`)
		}
	}
}

// robot is a client of an agent. It collects all messages that it gets.
type robot struct {
	t     testing.TB
	conn  *websocket.Conn
	mu    sync.Mutex
	got   []string
	ended error
}

func (e *endpoint) robot(t testing.TB, agent string) *robot {
	t.Helper()
	conn, err := e.socket(t, "call", agentToken(t, agent), "")
	if err != nil {
		t.Fatal(err)
	}
	r := &robot{t: t, conn: conn}
	go func() { // ends with the connection
		for {
			_, data, err := conn.Read(context.Background())
			r.mu.Lock()
			if r.got = append(r.got, string(data)); err != nil {
				r.ended = err
				r.mu.Unlock()
				return
			}
			r.mu.Unlock()
		}
	}()
	return r
}

func (r *robot) say(message string) {
	r.t.Helper()
	if err := r.conn.Write(context.Background(), websocket.MessageText, []byte(message)); err != nil {
		r.t.Error(err)
	}
}

// find returns the messages so far that contain part.
func (r *robot) find(part string) (found []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.got {
		if strings.Contains(m, part) {
			found = append(found, m)
		}
	}
	return found
}

// await waits for a message that contains part, and returns the first one.
func (r *robot) await(part string) string {
	r.t.Helper()
	var found []string
	mcptest.WaitFor(r.t, part, dialPatience, func() bool {
		found = r.find(part)
		return len(found) > 0
	})
	return found[0]
}

// ask sends a request and waits for its answer. id is JSON; params is a JSON object without its braces.
func (r *robot) ask(id, method, params string) string {
	r.t.Helper()
	r.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `}}`)
	return r.await(`"id":` + id + `,`)
}

func (r *robot) open() string {
	r.t.Helper()
	answer := r.ask("0", "initialize", `"protocolVersion":"2024-11-05","capabilities":{"sampling":{},"roots":{"listChanged":false}},"clientInfo":{"name":"xz-mcp-broker","version":"0.0.1"}`)
	r.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return answer
}

func (r *robot) call(id, tool, n string) string {
	r.t.Helper()
	return r.ask(id, "tools/call", fmt.Sprintf(`"name":%q,"arguments":{"n":%q},"serialNumber":null`, tool, n))
}

// TestAgents_Merged: an agent has three tool servers, two of them without a name. Their tools are in one list. Of two tools
// with the same name, one gets the name of its server as a prefix, and both can be called. A client may call before it lists.
func TestAgents_Merged(t *testing.T) {
	mcptest.NoLeaks(t)
	e := hosted(t, nil, fewRights, agentsRules)
	calculator := e.toolServer(t, toolServer{tools: []string{"add", "time"}, label: "calculator "}, "a1", "")
	e.await(t, "default-", 1)
	// The same URL, but it must be treated as another server.
	e.toolServer(t, toolServer{tools: []string{"lamp"}, label: "light "}, "a1", "")
	e.toolServer(t, toolServer{tools: []string{"time", "add2"}, label: "clock "}, "a1", "&server_id=my_clock")
	e.await(t, "default-", 2)
	e.await(t, "my_clock-", 1)
	r := e.robot(t, "a1")
	if got := r.open(); !strings.Contains(got, `"protocolVersion":"2024-11-05"`) || !strings.Contains(got, `"serverInfo"`) || !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":0,"result":{`) {
		t.Errorf("initialize: %s", got)
	}
	if got := r.call("1", "lamp", "<1>"); !strings.Contains(got, `light lamp`) {
		t.Errorf("called before it was listed: %s", got)
	}
	list := r.ask("2", "tools/list", "")
	var listed struct {
		Result struct {
			Tools []struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(list), &listed); err != nil {
		t.Fatal(err, list)
	}
	var names []string
	for _, tool := range listed.Result.Tools {
		names = append(names, tool.Name)
	}
	if len(names) != 5 || !slices.Contains(names, "add") || !slices.Contains(names, "time") || !strings.HasPrefix(names[4], "my_clock-") && !strings.HasPrefix(names[3], "my_clock-") {
		t.Errorf("listed: %q", names)
	}
	for i, name := range names {
		want := map[bool]string{true: "clock time", false: name}[strings.HasPrefix(name, "my_clock-")]
		if got := r.call(fmt.Sprint(10+i), name, ""); !strings.Contains(got, want+`"`) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := r.call("20", "none", ""); !strings.Contains(got, `"error":{"code":-32602`) || strings.Contains(got, `"result"`) {
		t.Errorf("no such tool: %s", got)
	}
	if got := r.ask("21", "ping", ""); !strings.Contains(got, `"result":{}`) {
		t.Errorf("ping: %s", got)
	}
	status, answer, _ := e.visitor(t, "", modernEra, false).http(t, "GET", "/mcp_endpoint/health?key=wrong", "", nil)
	if status != http.StatusUnauthorized || !strings.Contains(answer, `"code":-32004`) || strings.Contains(answer, "a1") {
		t.Errorf("health with a wrong key: %d %s", status, answer)
	}
	_, answer, _ = e.visitor(t, "", modernEra, false).http(t, "GET", "/mcp_endpoint/health?key="+agentsKey, "", nil)
	for _, part := range []string{`"status":"success"`, `"mcp_server_connections":3`, `"robot_connections":1`, `"total_tools":5`, `"available_agents":["a1"]`, `"robot_connections_by_agent":{"a1":1}`, `"state":"dialled in"`} {
		if !strings.Contains(strings.ReplaceAll(answer, ": ", ":"), part) {
			t.Errorf("health lacks %s: %s", part, answer)
		}
	}
	calculator.conn.CloseNow()
	mcptest.WaitFor(t, "a server that is away, and no connection", dialPatience, func() bool {
		_, answer, _ = e.visitor(t, "", modernEra, false).http(t, "GET", "/mcp_endpoint/health?key="+agentsKey, "", nil)
		compact := strings.ReplaceAll(answer, ": ", ":")
		return strings.Contains(compact, `"state":"away"`) && strings.Contains(compact, `"mcp_server_connections":2`) && strings.Contains(compact, `"total_connections":3`)
	})
}

// TestAgents_Tenants: an agent sees only its own servers and the servers that auth.rights gives it. Other agents and other
// principals do not see its servers.
func TestAgents_Tenants(t *testing.T) {
	fake := mcptest.Spec{}.HTTP(t)
	e := hosted(t, map[string]string{"shared": fake.URL, "secret": fake.URL}, `[{"principals":["alice","a*"],"servers":["secret"]},{"principals":["agent:a2"],"servers":["shared"]}]`, agentsRules)
	e.toolServer(t, toolServer{tools: []string{"same"}, label: "of a1 "}, "a1", "&server_id=box")
	e.toolServer(t, toolServer{tools: []string{"same"}, label: "of a2 "}, "a2", "&server_id=box")
	boxes := e.await(t, "box-", 2)
	for _, agent := range []string{"a1", "a2", "a3"} {
		r := e.robot(t, agent)
		greeting, list := r.open(), r.ask("1", "tools/list", "")
		if got := r.call("2", "same", ""); agent != "a3" && !strings.Contains(got, "of "+agent) || agent == "a3" && !strings.Contains(got, "unknown tool") {
			t.Errorf("%s calls same: %s", agent, got)
		}
		if strings.Contains(list, `"echo"`) != (agent == "a2") {
			t.Errorf("%s lists %s", agent, list)
		}
		if strings.Contains(greeting, "No tool server of this agent") != (agent == "a3") {
			t.Errorf("%s is greeted with %s", agent, greeting)
		}
		for _, name := range boxes {
			if got := r.call(`"`+name+`"`, name+"__same", ""); strings.Contains(got, "of a") {
				t.Errorf("%s calls %s: %s", agent, name, got)
			}
		}
	}
	for _, name := range boxes {
		if answer := e.visitor(t, "alice", modernEra, false).ask(t, "/mcp", "tools/call", fmt.Sprintf(`"name":"exec","arguments":{"server":%q,"tool":"same"}`, name)); !strings.Contains(answer, "SERVER_NOT_FOUND") {
			t.Errorf("alice calls %s: %s", name, answer)
		}
	}
}

// TestAgents_NoRules: without auth.rights, an agent sees only its own servers. Even if the config has no auth, only agents may
// connect.
func TestAgents_NoRules(t *testing.T) {
	fake := mcptest.Spec{}.HTTP(t)
	cfg, err := config.Parse("c.json", []byte(`{"mcpServers":{"secret":{"url":"`+fake.URL+`"}},"shutdown_grace":1`+agentsRules+`}`), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := serving(t, cfg)
	first := e.robot(t, "a1") // before any server has dialled in
	first.open()
	if list := first.ask("1", "tools/list", ""); !strings.Contains(list, `"tools":[]`) {
		t.Errorf("listed without a server: %s", list)
	}
	if got := first.call("2", "echo", ""); !strings.Contains(got, "unknown tool") {
		t.Errorf("called without a server: %s", got)
	}
	e.toolServer(t, toolServer{tools: []string{"own"}}, "a1", "")
	e.await(t, "default-", 1)
	r := e.robot(t, "a1")
	r.open()
	if list := r.ask("1", "tools/list", ""); !strings.Contains(list, `"own"`) || strings.Contains(list, `"echo"`) {
		t.Errorf("listed: %s", list)
	}
	if status, _, _ := e.visitor(t, "alice", modernEra, false).http(t, "POST", "/mcp", "{}", nil); status != http.StatusUnauthorized {
		t.Errorf("another client: %d", status)
	}
	if status, _, _ := e.visitor(t, agentToken(t, "a1"), modernEra, false).http(t, "POST", "/mcp", "{}", nil); status != http.StatusUnauthorized {
		t.Errorf("an agent's token elsewhere: %d", status)
	}
}
