package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mcpx/internal/mcptest"
)

// fleet are replicas of mcpx behind a balancer that gives each request to the next replica, whichever session it belongs to.
// Like every balancer it takes another replica where one refuses the connection.
type fleet struct {
	url     string
	nats    *mcptest.NATS
	servers map[string]server
	global  map[string]any
	cluster map[string]any // more keys of cluster
	turn    atomic.Uint32

	mu       sync.Mutex
	replicas []*replica
}

// forget takes a replica out of the balancer.
func (f *fleet) forget(gone *replica) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replicas = slices.DeleteFunc(f.replicas, func(r *replica) bool { return r == gone })
}

type replica struct {
	*hosted
	home  *home
	name  string
	proxy *httputil.ReverseProxy
}

// startReplicas starts replicas with this config, each with a home of its own, and waits until they know each other.
func startReplicas(t testing.TB, count int, servers map[string]server, global map[string]any) *fleet {
	t.Helper()
	f := &fleet{nats: mcptest.StartNATS(t), servers: servers, global: global}
	f.startAll(t, count)
	return f
}

func (f *fleet) startAll(t testing.TB, count int) {
	t.Helper()
	for i := range count {
		f.start(t, fmt.Sprint("replica-", i+1))
	}
	for _, r := range f.replicas {
		mcptest.WaitFor(t, "the replicas know each other", patience, func() bool {
			return strings.Count(r.stderr.String(), "a replica is there") == count-1
		})
	}
	public, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.url = "http://" + public.Addr().String() + "/mcp"
	roundRobin(t, f, public)
}

// roundRobin serves the fleet at a listener.
func roundRobin(t testing.TB, f *fleet, public net.Listener) {
	web := httptest.NewUnstartedServer(f)
	web.Listener.Close()
	web.Listener = public
	web.Start()
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		for _, r := range f.replicas {
			r.proxy.Transport.(*http.Transport).CloseIdleConnections()
		}
	})
}

// start starts a replica, which gets requests from then on.
func (f *fleet) start(t testing.TB, name string) {
	t.Helper()
	cluster := map[string]any{"nats": f.nats.URL, "key": "0123456789abcdef0123456789abcdef", "name": name}
	maps.Copy(cluster, f.cluster)
	config := map[string]any{"cluster": cluster}
	maps.Copy(config, f.global)
	h := newHome(t)
	d := h.serveHTTP(t, "--config", h.config(t, f.servers, config))
	at, err := url.Parse(strings.TrimSuffix(d.url, "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	r := &replica{hosted: d, home: h, name: name, proxy: httputil.NewSingleHostReverseProxy(at)}
	r.proxy.FlushInterval = -1
	r.proxy.Transport = &http.Transport{MaxIdleConnsPerHost: 100}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.replicas = append(f.replicas, r)
}

// ServeHTTP implements [http.Handler].
func (f *fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	all := slices.Clone(f.replicas)
	f.mu.Unlock()
	first := int(f.turn.Add(1))
	for i := range all {
		one := all[(first+i)%len(all)]
		refused := false
		proxy := *one.proxy
		proxy.ErrorHandler = func(_ http.ResponseWriter, _ *http.Request, err error) {
			var dial *net.OpError
			if refused = errors.As(err, &dial) && dial.Op == "dial"; !refused {
				panic(http.ErrAbortHandler) // the client's connection ends too
			}
		}
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, again)
		if !refused {
			return
		}
	}
	http.Error(w, "no replica answers", http.StatusBadGateway)
}

// TestReplicas_Pairs: clients of the SDKs of both eras work with three replicas of which each gets every third request, as with
// one mcpx: requests to the client, progress, cancellations, subscriptions. Two clients work at the same time. The quick check
// has the SDKs that have both eras.
func TestReplicas_Pairs(t *testing.T) {
	mcptest.Parallel(t)
	for _, session := range mcptest.Part(t, []string{"per_client", "shared"}, 1) {
		t.Run(session, func(t *testing.T) { pairsAtReplicas(t, session, threeReplicas) })
	}
}

func threeReplicas(t testing.TB, servers map[string]server, global map[string]any) *fleet {
	t.Helper()
	return startReplicas(t, 3, servers, global)
}

func pairsAtReplicas(t *testing.T, session string, start func(testing.TB, map[string]server, map[string]any) *fleet) {
	p := &pairing{newHome(t), pairLines(t)}
	servers := make(map[string]server)
	except := make(map[string][]string) // clients of the modern era fail these checks without mcpx too
	// This server asks for roots on its GET stream, and drops the request if that stream of mcpx is not open. A new session waits
	// for the stream before it passes calls, but only for a limited time, which a busy machine may exceed.
	lost := map[string][]string{"sdk2-http": {"roots"}}
	if session == "per_client" { // the session with the server is legacy too, and there it does not support these (docs/clients.md)
		lost["sdk2-http"] = append(lost["sdk2-http"], "need_elicit", "need_sample", "need_roots", "updates")
	}
	for _, line := range p.lines {
		if line.name == "sdk2" || line.name == "ts2" {
			name, entry := p.serve(t, line, "http")
			entry["session"] = session
			servers[name], except[name] = entry, pushed
		}
	}
	r := start(t, servers, map[string]any{"view": "tools"})
	targets := through(servers)
	var clients sync.WaitGroup
	places := make(chan struct{}, 2)
	for _, line := range p.lines {
		if line.role || strings.HasPrefix(line.name, "fastmcp") || !mcptest.Full && len(line.eras) == 1 {
			continue
		}
		places <- struct{}{}
		clients.Go(func() {
			defer func() { <-places }()
			for _, era := range line.eras {
				tries := p.try(t, line, era, line.name+era, targets, "http", r.url)
				if era == "legacy" {
					tries.want(t, line.title+" "+era, lost)
				} else {
					tries.want(t, line.title+" "+era, except)
				}
			}
		})
	}
	clients.Wait()
}

// visitor is a legacy client that sends each message to the replica that the test chooses.
type visitor struct {
	t       testing.TB
	session string
}

// post sends a message and returns the response, whose body the test reads.
func (v *visitor) post(to *hosted, body string, headers ...string) *http.Response {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, to.url, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if v.session != "" {
		request.Header.Set("Mcp-Session-Id", v.session)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	return response
}

// ask sends a request and returns the whole response.
func (v *visitor) ask(to *hosted, body string, headers ...string) string {
	v.t.Helper()
	response := v.post(to, body, headers...)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "broken off: " + err.Error()
	}
	return string(text)
}

func visitAt(t testing.TB, at *hosted) *visitor {
	t.Helper()
	v := &visitor{t: t}
	response := v.post(at, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"visitor","version":"1"}}}`)
	response.Body.Close()
	v.session = response.Header.Get("Mcp-Session-Id")
	if v.session == "" {
		t.Fatal("no session")
	}
	v.ask(at, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return v
}

// execute returns a tools/call of exec.
func execute(id int, server, tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":%q,"tool_name":%q,"arguments":%s}}}`, id, server, tool, arguments)
}

// until reads events until one contains the text.
func until(t *testing.T, in *bufio.Reader, text string) string {
	t.Helper()
	for {
		line, err := in.ReadString('\n')
		if strings.Contains(line, text) {
			return line
		}
		if err != nil {
			t.Fatalf("%v before %s", err, text)
		}
	}
}

// TestReplicas_Forwarded: a message about something that only one replica has reaches this replica, whichever replica gets it:
// the answer to a server's request, a cancellation, the wait for a call, the rest of a suspended call. Another client that sends
// the same changes nothing.
func TestReplicas_Forwarded(t *testing.T) {
	mcptest.Parallel(t)
	spec := mcptest.Spec{}.HTTP(t)
	r := startReplicas(t, 2, map[string]server{"fake": {"url": spec.URL, "type": "http"}}, map[string]any{
		"clients": map[string]any{"visitor": map[string]any{"call_wait": 1}},
	})
	one, two := r.replicas[0].hosted, r.replicas[1].hosted
	t.Run("a question", func(t *testing.T) {
		alice, bob := visitAt(t, one), visitAt(t, two)
		asked := func() (events *bufio.Reader, id string) {
			call := alice.post(one, execute(1, "fake", "ask", `{}`))
			t.Cleanup(func() { call.Body.Close() })
			events = bufio.NewReader(call.Body)
			found := regexp.MustCompile(`"id":("q-[^"]+")`).FindStringSubmatch(until(t, events, "elicitation/create"))
			if found == nil {
				t.Fatal("the question has no id of a replica")
			}
			return events, found[1]
		}
		events, id := asked()
		answer := `{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"word":"%s"}}}`
		bob.ask(two, fmt.Sprintf(answer, "wrong"))
		bob.ask(one, fmt.Sprintf(answer, "wrong"))
		alice.ask(two, fmt.Sprintf(answer, "mellon"))
		if said := until(t, events, `"id":1`); !strings.Contains(said, "mellon") {
			t.Error(said)
		}
		events, id = asked()
		alice.ask(two, `{"jsonrpc":"2.0","id":`+id+`}`)
		if said := until(t, events, `"id":1`); !strings.Contains(said, "neither result nor error") {
			t.Errorf("an invalid answer: %s", said)
		}
	})
	t.Run("a wait", func(t *testing.T) {
		alice := visitAt(t, one)
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		said := alice.ask(one, execute(1, "fake", "slow", `{"while":"`+file+`"}`))
		handle := regexp.MustCompile(`r[a-z0-9]{8}r[a-z2-7]{20}`).FindString(said)
		if handle == "" {
			t.Fatal(said)
		}
		wait := execute(2, "mcpx", "wait_result", `{"handle":"`+handle+`"}`)
		if said := alice.ask(two, wait); !strings.Contains(said, "still running") {
			t.Errorf("while it runs: %s", said)
		}
		read := execute(3, "mcpx", "read_result", `{"handle":"`+handle+`"}`)
		if here, there := alice.ask(one, read), alice.ask(two, read); here != there || !strings.Contains(there, "wait_result has its result") {
			t.Errorf("read_result: %s, at the other replica %s", here, there)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		for _, at := range []*hosted{two, one} {
			if said := alice.ask(at, wait); !strings.Contains(said, "slept") {
				t.Errorf("at the end: %s", said)
			}
		}
	})
	t.Run("a suspended call", func(t *testing.T) {
		v := &visitor{t: t}
		const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"modern","version":"1"}},`
		headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "exec"}
		call := strings.Replace(execute(1, "fake", "ask", `{}`), `"params":{`, `"params":{`+meta, 1)
		state := regexp.MustCompile(`"requestState":"([^"]+)"`).FindStringSubmatch(v.ask(one, call, headers...))
		if state == nil {
			t.Fatal("no state")
		}
		again := strings.Replace(call, `"params":{`, `"params":{"inputResponses":{"q1":{"action":"accept","content":{"word":"mellon"}}},"requestState":"`+state[1]+`",`, 1)
		if said := v.ask(two, again, headers...); !strings.Contains(said, "mellon") {
			t.Errorf("at the other replica: %s", said)
		}
		if said := v.ask(two, again, headers...); !strings.Contains(said, "was answered already") {
			t.Errorf("the second time: %s", said)
		}
	})
	t.Run("a cancellation", func(t *testing.T) {
		alice, bob := visitAt(t, one), visitAt(t, two)
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		calls := spec.Count("tools/call")
		ended := make(chan string, 1)
		go func() { ended <- alice.ask(one, execute(7, "fake", "slow", `{"while":"`+file+`"}`)) }()
		mcptest.WaitFor(t, "the call", patience, func() bool { return spec.Count("tools/call") > calls })
		const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
		bob.ask(one, cancel)
		bob.ask(two, cancel)
		select {
		case said := <-ended:
			t.Fatalf("bob has cancelled the call of alice: %s", said)
		default:
		}
		alice.ask(two, cancel)
		if said := <-ended; strings.Contains(said, `"id":7`) {
			t.Errorf("a cancelled call is answered: %s", said)
		}
	})
}

// processOf returns the process in the answer to the tool pid.
func processOf(answer string) string {
	if found := regexp.MustCompile(`\\?"text\\?":\\?"(\d+)|text: (\d+)`).FindStringSubmatch(answer); found != nil {
		return found[1] + found[2]
	}
	return answer
}

// TestReplicas_Home: the calls of a client of a PerClient server reach one replica, whichever gets them. If that replica is
// killed, its open calls end with a clear error, and the client goes on in its session with a new session at the server; the
// calls that other replicas execute go on.
func TestReplicas_Home(t *testing.T) {
	mcptest.Parallel(t)
	spec := mcptest.Spec{}.WithFiles(t)
	own := fake(t, spec)
	own["session"] = "per_client"
	r := startReplicas(t, 2, map[string]server{"own": own}, nil)
	one, two := r.replicas[0].hosted, r.replicas[1].hosted
	alice, bob := visitAt(t, one), visitAt(t, two)
	pid := func(v *visitor, at *hosted) string { return processOf(v.ask(at, execute(1, "own", "pid", `{}`))) }
	hers, his := pid(alice, one), pid(bob, two)
	if hers == his || pid(alice, two) != hers || pid(bob, one) != his {
		t.Fatalf("alice has %s and %s, bob %s and %s", hers, pid(alice, two), his, pid(bob, one))
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	slow := func(v *visitor, at *hosted) <-chan string {
		ended := make(chan string, 1)
		go func() { ended <- v.ask(at, execute(2, "own", "slow", `{"while":"`+file+`"}`)) }()
		return ended
	}
	calls := func() int { return len(spec.Log(t).Method("tools/call")) }
	earlier := calls()
	aliceSlow, bobSlow := slow(alice, two), slow(bob, two)
	stream := alice.get(two)
	mcptest.WaitFor(t, "both calls", patience, func() bool { return calls() == earlier+2 })
	_ = one.cmd.Process.Kill()
	<-one.exited
	if said := <-aliceSlow; !strings.Contains(said, "Call again") || !strings.Contains(said, `"id":2`) || strings.Count(said, "jsonrpc") != 1 {
		t.Errorf("the call at the killed replica ends with %s", said)
	}
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Logf("the stream of the killed replica ends with %v", err)
	}
	said := alice.ask(two, execute(1, "own", "pid", `{}`))
	next := processOf(said)
	if again := alice.ask(two, execute(1, "own", "pid", `{}`)); !strings.Contains(said, "began anew") || strings.Contains(again, "began anew") {
		t.Errorf("after the end of the replica: %s, then %s", said, again)
	}
	if next == hers || next == his || pid(alice, two) != next {
		t.Errorf("then alice has %s; before %s, bob %s", next, hers, his)
	}
	select {
	case said := <-bobSlow:
		t.Errorf("the call of bob has ended: %s", said)
	default:
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if said := <-bobSlow; !strings.Contains(said, "slept") {
		t.Errorf("the call of bob: %s", said)
	}
	if pid(bob, two) != his {
		t.Error("bob has another session with the server")
	}
}

// TestReplicas_HomeAway: while NATS does not run, a client of a PerClient server is served by the replica that has its sessions,
// and the others say why they cannot. Shared servers answer at each replica.
func TestReplicas_HomeAway(t *testing.T) {
	mcptest.Parallel(t)
	own := fake(t, mcptest.Spec{})
	own["session"] = "per_client"
	r := startReplicas(t, 2, map[string]server{"own": own, "shared": fake(t, mcptest.Spec{})}, nil)
	one, two := r.replicas[0].hosted, r.replicas[1].hosted
	alice := visitAt(t, one)
	pid := func(at *hosted) string { return processOf(alice.ask(at, execute(1, "own", "pid", `{}`))) }
	hers := pid(one)
	r.nats.Kill()
	mcptest.WaitFor(t, "the other replica says why", patience, func() bool { return strings.Contains(pid(two), "while NATS is away") })
	if got := pid(one); got != hers {
		t.Errorf("at her replica: %s", got)
	}
	for _, at := range []*hosted{one, two} {
		if said := alice.ask(at, execute(2, "shared", "echo", `{"text":"hello"}`)); !strings.Contains(said, "hello") {
			t.Errorf("a shared server: %s", said)
		}
	}
	r.nats.Start()
	mcptest.WaitFor(t, "both serve her", patience, func() bool { return pid(two) == hers && pid(one) == hers })
}

// get opens the GET stream of the session.
func (v *visitor) get(from *hosted) *http.Response {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, from.url, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Mcp-Session-Id", v.session)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { response.Body.Close() })
	return response
}

// BenchmarkReplicas measures a small call at the replica that executes it, and one at a replica that forwards it.
func BenchmarkReplicas(b *testing.B) {
	own := fake(b, mcptest.Spec{})
	own["session"] = "per_client"
	r := startReplicas(b, 2, map[string]server{"own": own}, nil)
	v := visitAt(b, r.replicas[0].hosted)
	for i, name := range []string{"local", "forwarded"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if said := v.ask(r.replicas[i].hosted, execute(1, "own", "echo", `{"text":"hello"}`)); !strings.Contains(said, "hello") {
					b.Fatal(said)
				}
			}
		})
	}
}
