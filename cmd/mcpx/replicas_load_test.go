//go:build unix

package main

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// kill kills a replica, and then takes it out of the balancer, which until then may meet refused connections.
func (f *fleet) kill(t *testing.T, name string) {
	t.Helper()
	gone := f.named(name)
	_ = gone.cmd.Process.Kill()
	<-gone.exited
	f.forget(gone)
}

// stop stops a replica, as a rolling restart does: the balancer sends it nothing more when its probe says that it is not ready.
func (f *fleet) stop(t *testing.T, name string) {
	t.Helper()
	gone := f.named(name)
	_ = gone.cmd.Process.Signal(syscall.SIGTERM)
	mcptest.WaitFor(t, name+" says that it is not ready", patience, func() bool {
		resp, err := http.Get(strings.TrimSuffix(gone.url, "/mcp") + "/readyz")
		if err != nil {
			return true
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusServiceUnavailable
	})
	f.forget(gone)
	<-gone.exited
}

func (f *fleet) named(name string) *replica {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replicas[slices.IndexFunc(f.replicas, func(r *replica) bool { return r.name == name })]
}

// fleetCaller is a legacy client that calls through the fleet, each call with a text of its own.
type fleetCaller struct {
	url, session string
	client       *http.Client
	n            int
}

func (c *fleetCaller) post(message string) (status int, header http.Header, body string, err error) {
	req, err := http.NewRequest("POST", c.url, strings.NewReader(message))
	if err != nil {
		return 0, nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	if c.session != "" {
		req.Header.Set("Mcp-Session-Id", c.session)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(data), err
}

func (c *fleetCaller) open() error {
	status, header, body, err := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}`)
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("initialize: %d %s %w", status, body, err)
	}
	c.session = header.Get("Mcp-Session-Id")
	_, _, _, err = c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return err
}

// call calls once and returns "" if the answer is the right one, "lost" if the session is unknown, "broken" if the replica broke
// off, "wrong" for somebody else's answer, and otherwise the response.
func (c *fleetCaller) call(who int) string {
	c.n++
	text := fmt.Sprintf("caller %d call %d", who, c.n)
	status, _, body, err := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"fake","tool_name":"echo","arguments":{"text":%q}}}}`, c.n, text))
	switch {
	case err != nil || status == http.StatusBadGateway:
		return "broken"
	case status == http.StatusNotFound:
		return "lost"
	case status == http.StatusOK && strings.Contains(body, text) && strings.Contains(body, fmt.Sprintf(`"id":%d`, c.n)):
		return ""
	case status == http.StatusOK && strings.Contains(body, "caller "):
		return "wrong"
	}
	return fmt.Sprintf("%d %.200s", status, body)
}

// TestReplicas_Chaos: sessions go on while replicas are killed, stopped and restarted one after another, and while NATS does not
// run. Only calls that were open at a killed replica fail.
func TestReplicas_Chaos(t *testing.T) {
	mcptest.Parallel(t)
	f := startReplicas(t, 3, map[string]server{"fake": fake(t, mcptest.Spec{})}, map[string]any{"drain": 2})
	sessions, calls, pace := 20, 10, 50*time.Millisecond // leave the processor to other tests
	if mcptest.Full {
		sessions, calls, pace = 200, 100, 0
	}
	transport := &http.Transport{MaxIdleConnsPerHost: sessions}
	defer transport.CloseIdleConnections()
	callers := make([]*fleetCaller, sessions)
	for i := range callers {
		callers[i] = &fleetCaller{url: f.url, client: &http.Client{Transport: transport, Timeout: patience}}
		if err := callers[i].open(); err != nil {
			t.Fatal(err)
		}
	}
	// load makes calls in all sessions at once, for as long as during runs and until each session has made at least the number of
	// calls in the variable calls. It returns how often each outcome came.
	load := func(what string, during func()) map[string]int {
		stop := make(chan struct{})
		outcomes := make(map[string]int)
		var mu sync.Mutex
		var all sync.WaitGroup
		for i, c := range callers {
			all.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						if n >= calls {
							return
						}
					default:
					}
					time.Sleep(pace)
					out := c.call(i)
					mu.Lock()
					outcomes[out]++
					mu.Unlock()
				}
			})
		}
		began := time.Now()
		during()
		close(stop)
		all.Wait()
		t.Logf("%s: %v in %v", what, outcomes, time.Since(began).Round(time.Millisecond))
		return outcomes
	}
	// only fails the test if there was another outcome than these.
	only := func(what string, got map[string]int, allowed map[string]int) {
		t.Helper()
		for _, outcome := range slices.Sorted(maps.Keys(got)) {
			if outcome != "" && got[outcome] > allowed[outcome] {
				t.Errorf("%s: %d times %s", what, got[outcome], outcome)
			}
		}
	}
	only("nothing happens", load("nothing happens", func() {}), nil)
	only("a replica is killed", load("a replica is killed", func() {
		f.kill(t, "replica-2")
	}), map[string]int{"broken": sessions})
	only("it starts again", load("it starts again", func() { f.start(t, "replica-2") }), nil)
	only("a rolling restart", load("a rolling restart", func() {
		for _, name := range []string{"replica-1", "replica-2", "replica-3"} {
			f.stop(t, name)
			f.start(t, name)
		}
	}), nil)
	only("NATS is away", load("NATS is away", f.nats.Kill), nil)
	only("NATS is back", load("NATS is back", f.nats.Start), nil)
	if t.Failed() {
		for _, r := range f.replicas {
			t.Logf("%s:\n%.4000s", r.name, r.stderr.String())
		}
	}
}

// TestReplicas_Conformance: the conformance suite gives the same results, for both revisions, for three replicas as for one mcpx.
// Each replica gets every third request.
func TestReplicas_Conformance(t *testing.T) {
	if !mcptest.Full {
		t.Skip("takes a minute: MCPX_FULL=1")
	}
	conformanceAtReplicas(t, threeReplicas)
}

func conformanceAtReplicas(t *testing.T, start func(testing.TB, map[string]server, map[string]any) *fleet) {
	s := findSuite(t)
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			protocol := "auto"
			if revision == revisions[1] {
				protocol = "modern"
			}
			// One process of the suite's server serves all replicas, because a change of its lists must reach each of them.
			h := newHome(t)
			shared := h.serveHTTP(t, "--config", h.config(t, map[string]server{
				"suite": {"command": s.node, "args": []string{filepath.Join(s.dir, "server.mjs")}, "protocol": protocol},
			}, nil))
			f := start(t, map[string]server{
				"suite": {"url": shared.url + "/servers/suite", "type": "http", "protocol": protocol},
			}, map[string]any{"startup_wait": 60, "exec_wait": 60, "prefix": "never"})
			s.run(t, newHome(t), fmt.Sprintf("expected/server-tools-%s.yml", revision), "server", "--url", f.url+"/tools", "--requirements", revision)
		})
	}
}

// TestReplicas_Leave: when a replica begins to shut down, new calls of its clients are executed by another one. What only it
// can answer is still forwarded to it, and what was forwarded before is finished.
func TestReplicas_Leave(t *testing.T) {
	mcptest.Parallel(t)
	spec := mcptest.Spec{}.WithFiles(t)
	own := fake(t, spec)
	own["session"] = "per_client"
	f := startReplicas(t, 2, map[string]server{"own": own}, map[string]any{"shutdown_grace": 60, "result_token_limit": 100, "result_preview_tokens": 50})
	one, two := f.replicas[0].hosted, f.replicas[1].hosted
	alice := visitAt(t, one)
	pid := func() string { return processOf(alice.ask(two, execute(1, "own", "pid", `{}`))) }
	before := pid()
	handle := regexp.MustCompile(`r[a-z0-9]{8}r[a-z2-7]{20}`).FindString(alice.ask(two, execute(1, "own", "table", `{"rows":400}`)))
	if handle == "" {
		t.Fatal("no handle")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	slow := make(chan string, 1)
	calls := func() int { return len(spec.Log(t).Method("tools/call")) }
	earlier := calls()
	go func() { slow <- alice.ask(two, execute(2, "own", "slow", `{"while":"`+file+`"}`)) }()
	mcptest.WaitFor(t, "the call", patience, func() bool { return calls() > earlier })
	_ = one.cmd.Process.Signal(syscall.SIGTERM)
	mcptest.WaitFor(t, "new calls are executed elsewhere", patience, func() bool { return pid() != before })
	if said := alice.ask(two, execute(3, "mcpx", "read_result", `{"handle":"`+handle+`","offset":7,"limit":1}`)); strings.Contains(said, "VALIDATION_ERROR") {
		t.Errorf("the kept result: %s", said)
	}
	mcptest.WaitFor(t, "the listener is closed", patience, func() bool {
		resp, err := http.Get(one.url)
		if err == nil {
			resp.Body.Close()
		}
		return err != nil
	})
	select {
	case said := <-slow:
		t.Fatalf("the forwarded call ends with %s", said)
	default:
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if said := <-slow; !strings.Contains(said, "slept") || strings.Count(said, "jsonrpc") != 1 {
		t.Errorf("the forwarded call ends with %s", said)
	}
	<-one.exited
}
