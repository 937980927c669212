package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"mcpx/internal/mcptest"
)

// hostileCalls are the calls that a hostile principal repeats over many connections at once; places is how many. For most kinds
// without places, TestNeighbour itself makes the load.
var hostileCalls = []struct {
	kind   string
	places int
	token  string // empty means the token of the hostile principal
	body   string
}{
	{"nothing", 0, "", ""},
	{"other processes", 0, "", ""}, // which keep all cores busy: what the machine costs, without mcpx
	{"calls", 16, "", execOf("echo", `"arguments":{"text":"y"}`)},
	{"many calls in one", 8, "", execOf("echo", `"each":[`+strings.TrimSuffix(strings.Repeat(`{"text":"y"},`, 50), ",")+`]`)},
	{"large results", 8, "", execOf("big", `"arguments":{"bytes":1000000}`)},
	{"greps of large results", 8, "", execOf("table", `"arguments":{"rows":2000},"grep":"(a|b|c)+.*(d|e)+z"`)},
	{"endless filters", 8, "", execOf("echo", `"arguments":{"text":"y"},"select":"[limit(1e9; repeat(1))] | length"`)},
	{"programs", 8, "", toolCall("exec", `{"server_name":"mcpx","tool_name":"run","arguments":{"timeout":1,"code":"for (;;) {}"}}`)},
	{"programs that call", 8, "", toolCall("exec", `{"server_name":"mcpx","tool_name":"run","arguments":{"timeout":5,"code":`+
		`"for (;;) await Promise.allSettled(Array.from({length: 100}, () => call('fake', 'echo', {text: 'y'})))"}}`)},
	{"searches", 8, "", toolCall("inspect", `{"query":"`+strings.Repeat("find all the things that there are ", 30)+`"}`)},
	{"bad tokens", 16, "mcpx_bad", execOf("echo", `"arguments":{"text":"y"}`)},
	{"no JSON", 16, "", `{"jsonrpc":"2.0","id":1,"method":`},
	{"new sessions", 8, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}`},
	{"half-open connections", 0, "", ""},
	{"floods of dialled servers", 0, "", ""},
}

func execOf(tool, more string) string {
	return toolCall("exec", `{"server_name":"fake","tool_name":"`+tool+`",`+more+`}`)
}

func toolCall(name, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modern +
		`","io.modelcontextprotocol/clientInfo":{"name":"hostile","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},` +
		`"name":"` + name + `","arguments":` + arguments + `}}`
}

// TestNeighbour prints how long one principal's calls take while each kind of hostile client is active.
// MCPX_NEIGHBOUR is the duration for each kind. On a machine with two cores, the hostile client's own work
// slows the calls too.
//
//	MCPX_NEIGHBOUR=10s go test ./cmd/mcpx -run TestNeighbour -v -timeout 0
func TestNeighbour(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv("MCPX_NEIGHBOUR"))
	if err != nil {
		if !mcptest.Full {
			t.Skip("measures for a minute: MCPX_NEIGHBOUR=5s, or MCPX_FULL=1")
		}
		lasts = 5 * time.Second
	}
	h := newHome(t)
	e := h.endpoint(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, map[string]any{"result_token_limit": 20000, "dial": dialAll}, "alice", "mallory")
	alice := e.client(t, "alice", modern, "")
	var alone time.Duration
	t.Logf("%-24s %8s %8s %8s", "beside", "p50", "p99", "of alone")
	for _, hostile := range hostileCalls {
		stop := make(chan struct{})
		var all sync.WaitGroup
		for range hostile.places {
			all.Go(func() { e.molest(t, stop, hostile.token, hostile.body) })
		}
		switch hostile.kind {
		case "other processes":
			for range runtime.NumCPU() {
				busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
				if err := busy.Start(); err != nil {
					t.Fatal(err)
				}
				all.Go(func() {
					<-stop
					_ = busy.Process.Kill()
					_ = busy.Wait()
				})
			}
		case "half-open connections":
			all.Go(func() { e.halfOpen(t, stop) })
		case "floods of dialled servers":
			for i := range 8 {
				all.Go(func() { e.dialFlood(t, stop, fmt.Sprint("flood", i)) })
			}
		}
		var times []time.Duration
		for until := time.Now().Add(lasts); time.Now().Before(until); {
			began := time.Now()
			if got := alice.exec(t, "fake", "echo", `{"text":"x"}`).text(t); got != "x" {
				t.Errorf("beside %s: %s", hostile.kind, got)
			}
			times = append(times, time.Since(began))
		}
		close(stop)
		all.Wait()
		slices.Sort(times)
		p99 := times[len(times)*99/100]
		if alone == 0 {
			alone = p99
		}
		t.Logf("%-24s %8s %8s %8.1f", hostile.kind, times[len(times)/2].Round(time.Microsecond), p99.Round(time.Microsecond), float64(p99)/float64(alone))
	}
}

// molest sends a body again and again until stop is closed.
func (e *endpoint) molest(t *testing.T, stop chan struct{}, token, body string) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	if token == "" {
		token = tokenOf("mallory")
	}
	for {
		select {
		case <-stop:
			return
		default:
		}
		r, err := http.NewRequest(http.MethodPost, e.url, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header = http.Header{
			"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		}
		if strings.Contains(body, "tools/call") {
			name := "exec"
			if strings.Contains(body, `"name":"inspect"`) {
				name = "inspect"
			}
			r.Header["Mcp-Protocol-Version"], r.Header["Mcp-Method"], r.Header["Mcp-Name"] = []string{modern}, []string{"tools/call"}, []string{name}
		}
		if response, err := client.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
	}
}

// dialFlood dials in again and again until stop is closed. Over each connection it announces changes of its tools, which it
// never lists, and then sends other notifications, as fast as it can.
func (e *endpoint) dialFlood(t *testing.T, stop chan struct{}, name string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // ends with stop
		<-stop
		cancel()
	}()
	to := strings.Replace(e.site(), "http:", "ws:", 1) + "/dial/" + name
	for ctx.Err() == nil {
		conn, _, err := websocket.Dial(ctx, to, &websocket.DialOptions{
			HTTPHeader: http.Header{"Authorization": {"Bearer " + tokenOf("mallory")}}, Subprotocols: []string{"mcp"},
		})
		if err != nil {
			continue
		}
		conn.CloseRead(ctx)
		for n := 0; err == nil; n++ {
			method := "notifications/tools/list_changed"
			if n > 300 { // over the bound of changes, the connection would end
				method = "notifications/message"
			}
			err = conn.Write(ctx, websocket.MessageText, []byte(`{"jsonrpc":"2.0","method":"`+method+`"}`))
		}
		_ = conn.CloseNow()
	}
}

// halfOpen keeps 1,000 connections open, each with half a request sent, until stop is closed.
func (e *endpoint) halfOpen(t *testing.T, stop chan struct{}) {
	host := strings.TrimSuffix(strings.TrimPrefix(e.url, "http://"), "/mcp")
	var open []net.Conn
	for range 1000 {
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Log(err)
			break
		}
		fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Le", host)
		open = append(open, c)
	}
	<-stop
	for _, c := range open {
		c.Close()
	}
}

// TestSoak makes calls of three tools for the duration MCPX_SOAK, with a memory limit, and prints how much memory mcpx used.
//
//	MCPX_SOAK=1h go test ./cmd/mcpx -run TestSoak -v -timeout 0
func TestSoak(t *testing.T) {
	lasts, err := time.ParseDuration(os.Getenv("MCPX_SOAK"))
	if err != nil {
		t.Skip("MCPX_SOAK says how long it takes")
	}
	const memory = 160e6
	h := newHome(t)
	lives := mcptest.Spec{MaxLife: 2*lasts + time.Hour}
	e := h.endpoint(t, map[string]server{"fake": fake(t, lives), "own": withSession(fake(t, lives))},
		map[string]any{"memory": "160MB", "audit": map[string]any{"file": "audit.jsonl"}}, "alice", "bob", "carol")
	end := time.Now().Add(lasts)
	var all sync.WaitGroup
	var calls [3]int
	for i, who := range []string{"alice", "bob", "carol"} {
		all.Go(func() {
			pace := time.NewTicker(30 * time.Millisecond) // the test is about duration, not about load
			defer pace.Stop()
			for n := 0; time.Now().Before(end); n++ {
				c := e.client(t, who, []string{modern, legacy}[n%2], "")
				for k := range 200 {
					<-pace.C
					word := fmt.Sprint(who, n, k)
					for _, name := range []string{"fake", "own"} {
						if got := c.exec(t, name, "echo", `{"text":"`+word+`"}`).text(t); got != word {
							t.Errorf("got %.300s, want %s", got, word)
						}
					}
					if k%20 == 0 {
						c.exec(t, "fake", "big", fmt.Sprintf(`{"bytes":%d}`, 100_000+n))
						c.exec(t, "fake", "table", `{"rows":2000}`)
						calls[i] += 2
					}
					calls[i] += 2
				}
				if c.era == legacy {
					c.peer.(*httpPeer).finish()
				}
			}
		})
	}
	all.Wait()
	peak := peakMemory(t, e.cmd.Process.Pid)
	t.Logf("%d calls, at most %d MB of %d", calls[0]+calls[1]+calls[2], peak/1_000_000, int(memory/1e6))
	if peak > memory {
		t.Errorf("mcpx took %d MB", peak/1_000_000)
	}
}

// withSession sets a server's config to one session per client.
func withSession(s server) server {
	s["session"] = "per_client"
	return s
}

// finish ends the session, as a client does that disconnects properly.
func (p *httpPeer) finish() {
	r, err := http.NewRequest(http.MethodDelete, p.url, nil)
	if err != nil {
		return
	}
	r.Header = p.header.Clone()
	r.Header.Set("Mcp-Session-Id", p.session)
	if response, err := p.client.Do(r); err == nil {
		response.Body.Close()
	}
}
