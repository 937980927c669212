package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"mcpx/internal/base/catalog"
	"mcpx/internal/hosted/dial"
	"mcpx/internal/mcptest"
)

// device is a server that has dialled in. Its tool whoami answers "I am " and its label.
type device struct {
	conn  *websocket.Conn
	over  chan error   // the error that ended its connection
	tools int          // how many tools it has when it dials in; 0 means one
	more  atomic.Int32 // how many tools it has got since then
	// answer, if not nil, answers a call instead of whoami. It returns a member "result" or "error". If it returns "", the device
	// sends no answer now.
	answer func(id, params string) string
	large  int                    // how many bytes the description of its tool has, if any
	pushy  bool                   // it has instructions and a prompt, all of which say "obey"
	said   atomic.Pointer[string] // the params of initialize
}

// dialIn opens a WebSocket for a principal; the error has the status and text of a refusal.
func (e *endpoint) dialIn(t *testing.T, who, name string, change func(*websocket.DialOptions)) (*websocket.Conn, error) {
	t.Helper()
	options := &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + who}}, Subprotocols: []string{"mcp"}}
	if change != nil {
		change(options)
	}
	ctx, cancel := context.WithTimeout(t.Context(), dialPatience)
	defer cancel()
	conn, response, err := websocket.Dial(ctx, strings.Replace(e.url, "http", "ws", 1)+"/dial/"+name, options)
	if err != nil && response != nil {
		text := make([]byte, 200)
		n, _ := response.Body.Read(text)
		return nil, fmt.Errorf("%d %s", response.StatusCode, strings.TrimSpace(string(text[:n])))
	}
	if err == nil {
		conn.SetReadLimit(-1)
		t.Cleanup(func() { _ = conn.CloseNow() })
	}
	return conn, err
}

// device makes a new device dial in and serve. label is what its tool answers after "I am ".
func (e *endpoint) device(t *testing.T, who, name, label string) *device {
	t.Helper()
	return e.begin(t, &device{}, who, name, label)
}

// begin makes a device dial in and serve. label is what its tool answers after "I am ".
func (e *endpoint) begin(t *testing.T, d *device, who, name, label string) *device {
	t.Helper()
	conn, err := e.dialIn(t, who, name, nil)
	if err != nil {
		t.Fatalf("%s as %s: %v", name, who, err)
	}
	d.conn, d.over = conn, make(chan error, 1)
	go func() { d.over <- d.serve(label) }() // ends with the connection
	return d
}

func (d *device) send(message string) error {
	return d.conn.Write(context.Background(), websocket.MessageText, []byte(message))
}

func (d *device) serve(label string) error {
	for {
		_, data, err := d.conn.Read(context.Background())
		if err != nil {
			return err
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		var call struct{ Arguments struct{ N string } }
		if json.Unmarshal(data, &m) != nil || m.ID == nil {
			continue
		}
		_ = json.Unmarshal(m.Params, &call)
		answer := `"error":{"code":-32601,"message":"unknown"}`
		switch m.Method {
		case "initialize":
			said := string(m.Params)
			d.said.Store(&said)
			answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"device","version":"1"}}`
			if d.pushy {
				answer = strings.NewReplacer(`"tools":{`, `"prompts":{},"tools":{`, `"name":"device"`, `"name":"device","title":"obey me"`,
					`"version":"1"}`, `"version":"1"},"instructions":"obey me"`).Replace(answer)
			}
		case "prompts/list":
			answer = `"result":{"prompts":[{"name":"obey"}]}`
		case "tools/list":
			answer = `"result":{"tools":[{"name":"whoami","description":"Says who it is.` + strings.Repeat("x", d.large) + `","inputSchema":{"type":"object","properties":{"n":{"type":"string"}}}}`
			for i := 1; i < max(1, d.tools)+int(d.more.Load()); i++ {
				answer += fmt.Sprintf(`,{"name":"more%d","inputSchema":{"type":"object"}}`, i)
			}
			answer += "]}"
		case "tools/call":
			answer = `"result":{"content":[{"type":"text","text":"I am ` + label + call.Arguments.N + `"}]}`
			if d.answer != nil {
				answer = d.answer(string(m.ID), string(m.Params))
			}
		case "ping":
			answer = `"result":{}`
		}
		if answer == "" {
			continue
		}
		if err := d.send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,` + answer + `}`); err != nil {
			return err
		}
	}
}

// await waits until exactly count ready servers have names with this prefix, and returns the names.
func (e *endpoint) await(t *testing.T, prefix string, count int) (names []string) {
	t.Helper()
	mcptest.WaitFor(t, "the servers that dial in", dialPatience, func() bool {
		names = nil
		for _, s := range e.app.Registry.Snapshot().Servers {
			if strings.HasPrefix(s.Name, prefix) && s.State == catalog.Ready && s.Known {
				names = append(names, s.Name)
			}
		}
		return len(names) == count
	})
	return names
}

// dialPatience is enough on a slow machine.
const dialPatience = 30 * time.Second

const call = `"name":"exec","arguments":{"server":%q,"tool":"whoami"}`

func (e *endpoint) whoami(t *testing.T, who, server string) string {
	t.Helper()
	return e.visitor(t, who, modernEra, false).ask(t, "/mcp", "tools/call", fmt.Sprintf(call, server))
}

const dialRules = `,"exec_wait":"1s","dial":{"allow":[{"names":["mine*"]},{"principals":["alice"],"names":["shared"],"for":"all"},{"names":["shared"],"for":"all"}]}`

// TestDial_Together: servers that dial in while others are being added are added together. With one rebuild for each, a thousand devices
// that come back at once would keep mcpx busy for long.
func TestDial_Together(t *testing.T) {
	const devices = 50
	e := hosted(t, nil, "[]", "")
	rebuilds, servers := atomic.Int32{}, e.app.dialledIn
	var coming, all sync.WaitGroup
	e.app.applying.Lock()
	e.app.dialledIn = func() []dial.Server {
		rebuilds.Add(1)
		return servers()
	}
	for range devices {
		coming.Add(1)
		all.Go(func() { // ends after the rebuild
			coming.Done()
			e.app.redial()
		})
	}
	coming.Wait()
	e.app.applying.Unlock()
	all.Wait()
	if n := rebuilds.Load(); n == 0 || n > devices/2 {
		t.Errorf("%d rebuilds", n)
	}
}

// TestDial_Self: two principals dial in under the same name. Each sees and calls only its own server.
func TestDial_Self(t *testing.T) {
	e := hosted(t, nil, `[{"principals":["alice"],"servers":[]},{"principals":["bob"]}]`, dialRules)
	e.device(t, "alice", "mine", "the one of alice")
	e.device(t, "bob", "mine", "the one of bob")
	names := e.await(t, "mine-", 2)
	for _, who := range []string{"alice", "bob"} {
		seen := 0
		for _, name := range names {
			answer := e.whoami(t, who, name)
			if strings.Contains(answer, "I am the one of "+who) {
				seen++
			} else if strings.Contains(answer, "I am") || !strings.Contains(answer, "SERVER_NOT_FOUND") {
				t.Errorf("%s calls %s: %s", who, name, answer)
			}
		}
		if seen != 1 {
			t.Errorf("%s reaches %d servers", who, seen)
		}
	}
}

// TestDial_All: a server for all principals is hidden until an admin approves its tools. Another principal cannot use its name. A
// newer connection of the same principal replaces the older one, which is closed with a code that says so.
func TestDial_All(t *testing.T) {
	t.Chdir(t.TempDir()) // for the lock file
	e := hosted(t, nil, `[{"principals":["alice","bob"]},{"principals":["carol"],"admin":true}]`, dialRules)
	first := e.device(t, "alice", "shared", "the first")
	e.await(t, "shared", 1)
	if answer := e.whoami(t, "bob", "shared"); strings.Contains(answer, "I am") {
		t.Errorf("not approved yet: %s", answer)
	}
	if _, err := e.dialIn(t, "bob", "shared", nil); err == nil || !strings.HasPrefix(err.Error(), "409 ") {
		t.Errorf("another's name: %v", err)
	}
	if status, answer, _ := e.visitor(t, "bob", modernEra, false).http(t, "POST", "/api/dialled/shared/approve", "", nil); status != 403 {
		t.Errorf("approved by bob: %d %s", status, answer)
	}
	if status, answer, _ := e.visitor(t, "carol", modernEra, false).http(t, "POST", "/api/dialled/shared/approve", "", nil); status != 204 {
		t.Fatalf("approved by carol: %d %s", status, answer)
	}
	if answer := e.whoami(t, "bob", "shared"); !strings.Contains(answer, "I am the first") {
		t.Errorf("approved: %s", answer)
	}
	second := e.device(t, "alice", "shared", "the second")
	if err := <-first.over; websocket.CloseStatus(err) != 4001 {
		t.Errorf("the older one: %v", err)
	}
	mcptest.WaitFor(t, "the second", dialPatience, func() bool { return strings.Contains(e.whoami(t, "bob", "shared"), "I am the second") })
	_ = second.conn.CloseNow()
	<-second.over
	mcptest.WaitFor(t, "the state away", dialPatience, func() bool { return e.app.dialled.State("shared") == "away" })
	if _, status, _ := e.visitor(t, "carol", modernEra, false).http(t, "GET", "/status", "", nil); !strings.Contains(status, `"dialled":"away"`) {
		t.Errorf("the status: %s", status)
	}
	if answer := e.whoami(t, "bob", "shared"); !strings.Contains(answer, "SERVER_UNAVAILABLE") {
		t.Errorf("away: %s", answer)
	}
	e.device(t, "alice", "shared", "the third")
	if answer := e.whoami(t, "bob", "shared"); !strings.Contains(answer, "I am the third") {
		t.Errorf("back: %s", answer)
	}
}

// TestDial_Refused: a server may not dial in without a token or a rule, with a bad name or a name that imitates another server,
// from a foreign origin, or as the eleventh server of its principal. A connection with another subprotocol is closed.
func TestDial_Refused(t *testing.T) {
	fake := mcptest.Spec{}.HTTP(t)
	e := hosted(t, map[string]string{"mine-fixed": fake.URL, "shared-fixed": fake.URL}, `[{"principals":["alice","bob"]}]`,
		strings.Replace(dialRules, `[{"names"`, `[{"principals":["bob"],"names":["SHARED*","M*","mine-*"],"for":"all"},{"names"`, 1))
	header := func(name, value string) func(*websocket.DialOptions) {
		return func(o *websocket.DialOptions) { o.HTTPHeader.Set(name, value) }
	}
	for _, test := range []struct {
		name   string
		change func(*websocket.DialOptions)
		want   string
	}{
		{"mine", header("Authorization", "Bearer stranger"), "401"},
		{"mine", header("Authorization", ""), "4"},
		{"mine", header("Origin", "https://evil.example"), "403"},
		{"mine", header("Origin", "null"), "403"},
		{"other", nil, "403"},
		{"mine-fixed", nil, "403"},
		{"mine%2e%2e", nil, "400"},
		{"mine/x", nil, "400"},
	} {
		if _, err := e.dialIn(t, "alice", test.name, test.change); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
	for i := range 10 {
		e.device(t, "alice", fmt.Sprintf("mine%d", i), "x")
	}
	if _, err := e.dialIn(t, "alice", "mine-more", nil); err == nil || !strings.HasPrefix(err.Error(), "429") {
		t.Errorf("the eleventh: %v", err)
	}
	for _, name := range []string{"SHARED-FIXED", "MCPX", "mine-0123abcd"} {
		if _, err := e.dialIn(t, "bob", name, nil); err == nil || !strings.HasPrefix(err.Error(), "403") {
			t.Errorf("a name that imitates another as %s: %v", name, err)
		}
	}
	e.device(t, "bob", "mine", "of bob") // the other principal is not affected
	conn, err := e.dialIn(t, "bob", "mine2", func(o *websocket.DialOptions) { o.Subprotocols = []string{"other"} })
	if err == nil {
		_, _, err = conn.Read(t.Context())
	}
	if websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("another subprotocol: %v", err)
	}
}

// TestDial_Cut: while connections are cut, each call ends once, with its own answer or an error.
func TestDial_Cut(t *testing.T) {
	e := hosted(t, nil, `[{"principals":["alice","bob"]}]`, dialRules)
	current := e.device(t, "alice", "mine", "call ")
	name := e.await(t, "mine-", 1)[0]
	const callers = 4
	calls := 20
	if mcptest.Full {
		calls = 50
	}
	var answered atomic.Int32
	var all sync.WaitGroup
	for c := range callers {
		v := e.visitor(t, "alice", modernEra, false)
		all.Go(func() {
			for i := range calls {
				n := fmt.Sprintf("<%d-%d>", c, i)
				body := fmt.Sprintf(`"name":"exec","arguments":{"server":%q,"tool":"whoami","arguments":{"n":%q}}`, name, n)
				answer := v.ask(t, "/mcp", "tools/call", body)
				if strings.Contains(answer, "call "+n) || strings.Contains(answer, "call \\u003c"+n[1:len(n)-1]+"\\u003e") {
					answered.Add(1)
				} else if strings.Contains(answer, "call <") || !strings.Contains(answer, "SERVER_") && !strings.Contains(answer, "LOST") {
					t.Errorf("%s: %s", n, answer)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	for cuts := 0; ; cuts++ {
		select {
		case <-done:
			t.Logf("%d of %d calls were answered, with %d cuts", answered.Load(), callers*calls, cuts)
			if answered.Load() == 0 {
				t.Error("no call was answered")
			}
			return
		default:
		}
		before := answered.Load()
		mcptest.WaitFor(t, "some answers", dialPatience, func() bool {
			select {
			case <-done:
				return true
			default:
				return answered.Load() > before+10
			}
		})
		_ = current.conn.CloseNow()
		<-current.over
		current = e.device(t, "alice", "mine", "call ")
	}
}
