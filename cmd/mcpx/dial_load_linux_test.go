package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"mcpx/internal/mcptest"
)

const (
	loadOwners  = 20 // principals, each with loadDevices servers and loadAgents agents
	loadDevices = 5
	loadAgents  = 50
	loadCalls   = 10 // calls of each agent
)

// loadDevice is a server that dials in again whenever its connection ends.
type loadDevice struct {
	to, token, says string

	mu    sync.Mutex
	raw   net.Conn
	mute  atomic.Bool // the device reads, but answers nothing, not even pings
	dials atomic.Int32
}

// run dials in until ctx ends.
func (d *loadDevice) run(ctx context.Context) {
	for ctx.Err() == nil {
		_ = d.once(ctx)
		select {
		case <-time.After(rand.N(200 * time.Millisecond)): // the pause of a device, not of the test
		case <-ctx.Done():
		}
	}
}

func (d *loadDevice) once(ctx context.Context) error {
	var raw net.Conn
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		raw = conn
		return conn, err
	}}}
	conn, _, err := websocket.Dial(ctx, d.to, &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: http.Header{"Authorization": {"Bearer " + d.token}}, Subprotocols: []string{"mcp"},
	})
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	conn.SetReadLimit(-1)
	d.mu.Lock()
	d.raw = raw
	d.mu.Unlock()
	d.mute.Store(false)
	d.dials.Add(1)
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			return err
		}
		if d.mute.Load() {
			continue
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Arguments struct{ Text string } }
		}
		if json.Unmarshal(data, &m) != nil || m.ID == nil {
			continue
		}
		answer := `"error":{"code":-32601,"message":"unknown"}`
		switch m.Method {
		case "initialize":
			answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"device","version":"1"}}`
		case "tools/list":
			answer = `"result":{"tools":[{"name":"echo","description":"Says the text.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}`
		case "tools/call":
			answer = `"result":{"content":[{"type":"text","text":"` + d.says + ` says ` + m.Params.Arguments.Text + `"}]}`
		case "ping":
			answer = `"result":{}`
		}
		if err := conn.Write(ctx, websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,`+answer+`}`)); err != nil {
			return err
		}
	}
}

// cut ends the connection in one of four ways.
func (d *loadDevice) cut(way int) {
	d.mu.Lock()
	raw := d.raw
	d.mu.Unlock()
	if raw == nil {
		return
	}
	switch way {
	case 0: // FIN
	case 1: // RST
		_ = raw.(*net.TCPConn).SetLinger(0)
	case 2: // half a frame
		_, _ = raw.Write([]byte{0x81, 0xfe, 0x01})
	case 3: // silence for a second
		d.mute.Store(true)
		time.AfterFunc(time.Second, func() { _ = raw.Close() })
		return
	}
	_ = raw.Close()
}

// used returns the memory and the processor time of a process, as text.
func used(t *testing.T, pid int) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return "ended"
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "ended"
	}
	kb := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')'):]))
	user, _ := strconv.Atoi(fields[12])
	system, _ := strconv.Atoi(fields[13])
	rss, _ := strconv.Atoi(string(kb[1]))
	return fmt.Sprintf("%d MB, %.1f s of CPU", rss/1000, float64(user+system)/100)
}

// dialLoad is a hundred devices and a thousand agents of twenty principals.
type dialLoad struct {
	url     string
	devices []*loadDevice
	served  [][]string // the names of each owner's servers
	agents  []*fleetCaller
	print   func(what string)
}

func ownerOf(i int) string { return fmt.Sprintf("owner%02d", i) }

func loadConfig() map[string]any {
	tokens := make(map[string]any)
	for i := range loadOwners {
		tokens[ownerOf(i)] = map[string]any{"sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(tokenOf(ownerOf(i)))))}
	}
	return map[string]any{"auth": map[string]any{"tokens": tokens}, "dial": dialAll, "exec_wait": 10}
}

// begin lets all devices dial in, and all agents open their sessions.
func (l *dialLoad) begin(t *testing.T, client *http.Client) {
	t.Helper()
	l.print("nothing")
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	site := strings.Replace(strings.TrimSuffix(l.url, "/mcp"), "http:", "ws:", 1)
	for i := range loadOwners * loadDevices {
		owner := ownerOf(i / loadDevices)
		name := fmt.Sprintf("device%d", i%loadDevices)
		d := &loadDevice{to: site + "/dial/" + name, token: tokenOf(owner), says: owner + " " + name}
		l.devices = append(l.devices, d)
		running.Go(func() { d.run(ctx) })
	}
	for i := range loadOwners {
		first := &fleetCaller{url: l.url, client: &http.Client{Transport: asOwner{client.Transport, tokenOf(ownerOf(i))}, Timeout: patience}}
		var names []string
		mcptest.WaitFor(t, "the devices of "+ownerOf(i), patience, func() bool {
			if first.session == "" && first.open() != nil {
				return false
			}
			_, _, body, _ := first.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"inspect","arguments":{}}}`)
			seen := make(map[string]bool)
			for _, name := range regexp.MustCompile(`device\d-[0-9a-f]{8}`).FindAllString(body, -1) {
				seen[name] = true
			}
			names = names[:0]
			for n := range loadDevices {
				for name := range seen {
					if strings.HasPrefix(name, fmt.Sprintf("device%d-", n)) {
						names = append(names, name)
					}
				}
			}
			return len(names) == loadDevices
		})
		l.served = append(l.served, names)
	}
	l.print("100 servers")
	for i := range loadOwners * loadAgents {
		owner := ownerOf(i / loadAgents)
		l.agents = append(l.agents, &fleetCaller{url: l.url, client: &http.Client{Transport: asOwner{client.Transport, tokenOf(owner)}, Timeout: 5 * time.Minute}})
	}
	l.all(func(_ int, agent *fleetCaller) {
		if err := agent.open(); err != nil {
			t.Error(err)
		}
	})
	l.print("and 1,000 agents")
}

func (l *dialLoad) all(do func(i int, agent *fleetCaller)) {
	var all sync.WaitGroup
	for i, agent := range l.agents {
		all.Go(func() { do(i, agent) })
	}
	all.Wait()
}

// asOwner adds the token of a principal to each request.
type asOwner struct {
	http.RoundTripper
	token string
}

// RoundTrip implements [http.RoundTripper].
func (a asOwner) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+a.token)
	return a.RoundTripper.RoundTrip(r)
}

// call calls a server of the agent's owner. It returns "" for the right answer, and otherwise what happened.
func (l *dialLoad) call(i, n int, agent *fleetCaller) string {
	owner, device := i/loadAgents, (i+n)%loadDevices
	text := fmt.Sprintf("<agent %d call %d>", i, n)
	status, _, body, err := agent.post(fmt.Sprintf(
		`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":%q,"tool_name":"echo","arguments":{"text":%q}}}}`,
		n, l.served[owner][device], text))
	body = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(body)
	switch want := fmt.Sprintf("%s device%d says %s", ownerOf(owner), device, text); {
	case err != nil || status == http.StatusBadGateway:
		return "broken"
	case strings.Contains(body, want):
		return ""
	case strings.Contains(body, " says <") || !strings.Contains(body, fmt.Sprintf(`"id":%d`, n)):
		return "crossed: " + body
	case strings.Contains(body, "CALL_LOST") || strings.Contains(body, "LOST"):
		return "one clear error: lost"
	case strings.Contains(body, "SERVER_UNAVAILABLE"):
		return "one clear error: unavailable"
	}
	return fmt.Sprintf("%d %.300s", status, body)
}

// calls makes all calls, and returns how often each outcome of call came. If while is not nil, it runs at the same time, and
// connections are cut.
func (l *dialLoad) calls(t *testing.T, while func(done <-chan struct{})) map[string]int {
	t.Helper()
	outcomes := make(map[string]int)
	var mu sync.Mutex
	done, cutting := make(chan struct{}), sync.WaitGroup{}
	var cuts [4]int
	if while != nil {
		cutting.Go(func() { while(done) })
		cutting.Go(func() { // ends with the calls
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				case <-time.After(20 * time.Millisecond): // the pace of the cuts
				}
				l.devices[rand.N(len(l.devices))].cut(n % 4)
				cuts[n%4]++
			}
		})
	}
	began := time.Now()
	l.all(func(i int, agent *fleetCaller) {
		for n := range loadCalls {
			outcome := l.call(i, n, agent)
			mu.Lock()
			outcomes[outcome]++
			mu.Unlock()
		}
	})
	took := time.Since(began)
	close(done)
	cutting.Wait()
	l.print(fmt.Sprintf("%d calls in %.1f s", loadOwners*loadAgents*loadCalls, took.Seconds()))
	t.Logf("outcomes %v; cuts: FIN %d, RST %d, half a frame %d, silence %d", outcomes, cuts[0], cuts[1], cuts[2], cuts[3])
	return outcomes
}

// only fails the test if a call had another outcome than the right answer or one of the allowed outcomes.
func (l *dialLoad) only(t *testing.T, outcomes map[string]int, allowed ...string) {
	t.Helper()
	for outcome, n := range outcomes {
		ok := outcome == ""
		for _, one := range allowed {
			ok = ok || strings.HasPrefix(outcome, one)
		}
		if !ok {
			t.Errorf("%d times %.600s", n, outcome)
		}
	}
}

// TestDial_Load: a hundred servers that have dialled in and a thousand agents. Of 10,000 calls none is lost or crossed while
// connections are cut at random: a call that was open gets one clear error. It prints the memory and the processor time of
// mcpx.
//
//	MCPX_FULL=1 go test ./cmd/mcpx -count=1 -run TestDial_Load -v
func TestDial_Load(t *testing.T) {
	if !mcptest.Full {
		t.Skip("takes a minute: MCPX_FULL=1")
	}
	h := newHome(t)
	d := h.serveHTTP(t, "--config", h.config(t, map[string]server{}, loadConfig()))
	transport := &http.Transport{MaxIdleConnsPerHost: 2000}
	defer transport.CloseIdleConnections()
	l := &dialLoad{url: d.url, print: func(what string) { t.Logf("%-28s %s", what, used(t, d.cmd.Process.Pid)) }}
	l.begin(t, &http.Client{Transport: transport})
	l.only(t, l.calls(t, nil))
	l.only(t, l.calls(t, func(<-chan struct{}) {}), "one clear error")
	l.only(t, l.calls(t, nil), "one clear error") // a device may still be on its way back
}

// TestReplicas_DialLoad is TestDial_Load with three replicas, of which one is killed and started again.
func TestReplicas_DialLoad(t *testing.T) {
	if !mcptest.Full {
		t.Skip("takes a minute: MCPX_FULL=1")
	}
	f := startReplicas(t, 3, map[string]server{}, loadConfig())
	transport := &http.Transport{MaxIdleConnsPerHost: 2000}
	defer transport.CloseIdleConnections()
	l := &dialLoad{url: f.url, print: func(what string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, r := range f.replicas {
			t.Logf("%-28s %s: %s", what, r.name, used(t, r.cmd.Process.Pid))
		}
	}}
	l.begin(t, &http.Client{Transport: transport})
	l.only(t, l.calls(t, nil))
	outcomes := l.calls(t, func(done <-chan struct{}) {
		select {
		case <-done:
			t.Error("the calls have ended before a replica was killed")
		case <-time.After(time.Second):
			f.kill(t, "replica-2")
			f.start(t, "replica-2")
		}
	})
	l.only(t, outcomes, "one clear error", "broken")
	if n := outcomes["broken"]; n > len(l.agents) {
		t.Errorf("%d broken calls of %d agents", n, len(l.agents))
	}
	l.only(t, l.calls(t, nil), "one clear error")
}
