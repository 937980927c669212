package executor_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"mcpx/internal/executor"
	"mcpx/internal/front"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/results"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
	"mcpx/internal/view"
)

// rounds is how many random results are sent in each way; fewer in a short run (see [mcptest.Rounds]).
const rounds = 100

// upstreams are the names of the fake servers, one for each transport and protocol era.
var upstreams = []string{"stdio-legacy", "stdio-modern", "http-legacy", "http-modern", "http-streams", "sse"}

func upstreamSpec(t *testing.T, name string) upstream.Spec {
	fake := mcptest.Spec{AnswerSSE: name == "http-streams"}
	if strings.HasSuffix(name, "modern") {
		fake.Era = mcptest.EraModern
	}
	spec := upstream.Spec{Options: transport.Options{Name: name, Type: transport.HTTP}}
	switch {
	case strings.HasPrefix(name, "stdio"):
		command, args, env := fake.Stdio(t)
		spec.Type, spec.Launch.Command, spec.Launch.Args = transport.Stdio, command, args
		for key, value := range env {
			spec.Launch.Env = append(spec.Launch.Env, key+"="+value)
		}
	case name == "sse":
		spec.Type, spec.Remote.URL = transport.SSE, fake.SSE(t).URL
	default:
		spec.Remote.URL = fake.HTTP(t).URL
	}
	return spec
}

// assembly is mcpx, without its commands, connected to fake servers.
type assembly struct {
	executor *executor.Executor
	front    *front.Front
}

func assemble(t *testing.T, options executor.Options) *assembly {
	t.Helper()
	servers := make([]registry.Server, len(upstreams))
	for i, name := range upstreams {
		servers[i].Spec = upstreamSpec(t, name)
	}
	return assembleServers(t, servers, options)
}

func assembleServers(t *testing.T, servers []registry.Server, options executor.Options) *assembly {
	t.Helper()
	r := registry.New(servers, registry.Options{})
	a := &assembly{executor: executor.New(r, options)}
	r.Use(a.executor.Chain(nil, nil)...)
	two := view.NewTwoTools(r, a.executor, view.Options{
		NeverCut: true, Clients: []view.ClientRule{{Name: "program", Structured: view.StructuredAlways}},
	})
	a.front = front.New(two, front.Options{Version: "1"})
	r.Start()
	t.Cleanup(func() {
		a.front.Close()
		two.Close()
		r.Close(0)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r.WaitTried(ctx)
	return a
}

// TestOracle compares random results that went through mcpx with what the server sent, over every transport and era on both
// sides.
func TestOracle(t *testing.T) {
	mcptest.NoLeaks(t)
	a := assemble(t, executor.Options{TOON: true})
	o := &oracle{}
	for i, name := range upstreams {
		t.Run("exec "+name, func(t *testing.T) {
			o.run(t, uint64(i), anyPolicy, func(n int, structured results.Structured, direct string) answered {
				return a.exec(t, name, direct, structured)
			})
		})
	}
	for i, way := range ways {
		t.Run("front "+way.name, func(t *testing.T) {
			client := way.open(t, a.front)
			policy := headerPolicy
			if way.client != "" {
				policy = func(*generator) results.Structured { return clientPolicies[way.client] }
			}
			o.run(t, uint64(100+i), policy, func(n int, structured results.Structured, direct string) answered {
				response := client(structured, n+1, execParams(upstreams[n%len(upstreams)], direct))
				return readResponse(t, response, n+1, way.modern)
			})
		})
	}
	t.Logf("%d results, %d blocks the same, %d texts shrunk, %d of them TOON", o.results, o.same, o.shrunk, len(o.toon))
	if !t.Failed() && (o.shrunk < o.results/4 || len(o.toon) < o.results/20) {
		t.Error("the results are too plain to prove anything")
	}
	t.Run("reference decoder", o.reference)
}

func anyPolicy(g *generator) results.Structured { return results.Structured(g.IntN(4)) }

// headerPolicy returns at random one of the policies that an HTTP header of a request can choose.
func headerPolicy(g *generator) results.Structured {
	return []results.Structured{results.StructuredNone, results.StructuredOwn, results.StructuredAlways}[g.IntN(3)]
}

// clientPolicies are the policies for structuredContent that apply to clients of these names.
var clientPolicies = map[string]results.Structured{
	"claude-code": results.StructuredNone, "google-adk": results.StructuredOnce, "test": results.StructuredOwn, "program": results.StructuredAlways,
}

// run makes calls with random results, and fails the test if an answer differs from what its result and the policy demand. policy
// returns the policy for structuredContent of the next call.
func (o *oracle) run(t *testing.T, seed uint64, policy func(*generator) results.Structured, call func(n int, structured results.Structured, direct string) answered) {
	g := newGenerator(seed)
	for n := range mcptest.Rounds(t, rounds, 25) {
		direct := g.result()
		if g.chance(8) {
			direct = g.echoing()
		}
		structured := policy(g)
		got := call(n, structured, direct)
		before := len(o.toon)
		for _, difference := range o.differences(direct, got, structured) {
			t.Errorf("result %d, structured %v: %s", n, structured, difference)
		}
		for i := range o.toon[before:] {
			o.toon[before+i].where = fmt.Sprintf("%s, result %d", t.Name(), n)
		}
		if t.Failed() {
			t.Fatalf("sent %.3000s", direct)
		}
	}
}

func rawArguments(direct string) json.RawMessage {
	quoted, err := json.Marshal(direct)
	if err != nil {
		panic(err) // strings always marshal
	}
	return json.RawMessage(`{"result":` + string(quoted) + `}`)
}

// exec calls the tool whose result is the JSON in direct.
func (a *assembly) exec(t *testing.T, server, direct string, structured results.Structured) answered {
	t.Helper()
	result, err := a.executor.Exec(t.Context(), executor.Request{
		Server: server, Tool: "raw", Arguments: rawArguments(direct), Format: results.Format{Structured: structured},
	})
	if err != nil {
		t.Fatalf("calling: %v", err)
	}
	return fromResult(t, result)
}

func fromResult(t *testing.T, r *results.Result) answered {
	t.Helper()
	got := answered{isError: r.IsError}
	for _, block := range r.Content {
		got.content = append(got.content, mustRead(t, block))
	}
	if r.Structured != nil {
		got.structured = mustRead(t, r.Structured)
	}
	if r.Meta != nil {
		got.meta = mustRead(t, r.Meta)
	}
	return got
}

func mustRead(t *testing.T, raw []byte) *node {
	t.Helper()
	value := readJSON(string(raw))
	if value == nil {
		t.Fatalf("no JSON: %.600q", raw)
	}
	return value
}

func execParams(server, direct string) string {
	return `"name":"exec","arguments":{"server_name":"` + server + `","tool_name":"raw","arguments":` + string(rawArguments(direct)) + `}`
}

// readResponse parses the JSON-RPC response that the client received.
func readResponse(t *testing.T, raw []byte, id int, modern bool) answered {
	t.Helper()
	message := mustRead(t, raw)
	if got := message.last("id"); got == nil || got.raw != fmt.Sprint(id) {
		t.Fatalf("answer to another request than %d: %.600s", id, raw)
	}
	result := message.last("result")
	if result == nil {
		t.Fatalf("no result: %.600s", raw)
	}
	got := answered{structured: result.last("structuredContent"), meta: result.last("_meta"), legacy: !modern, sdk: true}
	content := result.last("content")
	if content == nil || content.kind != '[' {
		t.Fatalf("no content: %.600s", raw)
	}
	got.content = content.kids
	if isError := result.last("isError"); isError != nil {
		got.isError = isError.raw == "true"
	}
	if modern {
		if kind := result.last("resultType"); kind == nil || kind.text != "complete" {
			t.Fatalf("no resultType: %.600s", raw)
		}
		got.meta = withoutServerInfo(t, got.meta)
	}
	return got
}

// withoutServerInfo removes the member with which mcpx describes itself in the modern era, and checks that it was there.
func withoutServerInfo(t *testing.T, meta *node) *node {
	t.Helper()
	out := &node{kind: '{'}
	found := false
	if meta != nil {
		for i, key := range meta.keys {
			if key == "io.modelcontextprotocol/serverInfo" {
				found = true
				continue
			}
			out.keys, out.kids = append(out.keys, key), append(out.kids, meta.kids[i])
		}
	}
	if !found {
		t.Error("the answer does not say who answers")
	}
	return out
}

// caller sends a tools/call with these params and returns the response.
type caller func(structured results.Structured, id int, params string) []byte

// ways are the ways in which a client can connect to mcpx.
var ways = []struct {
	name string
	// client is the client's name, if structuredContent depends on the session.
	client string
	modern bool
	open   func(t *testing.T, f *front.Front) caller
}{
	{"stdio legacy", "test", false, func(t *testing.T, f *front.Front) caller { return openStdio(t, f, "test") }},
	{"stdio legacy, only text", "claude-code", false, func(t *testing.T, f *front.Front) caller { return openStdio(t, f, "claude-code") }},
	{"stdio legacy, a client that shows both", "google-adk", false, func(t *testing.T, f *front.Front) caller { return openStdio(t, f, "google-adk") }},
	{"stdio legacy, a program", "program", false, func(t *testing.T, f *front.Front) caller { return openStdio(t, f, "program") }},
	{"stdio modern", "", true, func(t *testing.T, f *front.Front) caller {
		call := openStdio(t, f, "")
		return func(want results.Structured, id int, params string) []byte {
			return call(want, id, params+","+modernMeta(want))
		}
	}},
	{"http legacy", "", false, func(t *testing.T, f *front.Front) caller { return openHTTP(t, f, "") }},
	{"http legacy with progress", "", false, func(t *testing.T, f *front.Front) caller {
		return openHTTP(t, f, `,"_meta":{"progressToken":"p"}`)
	}},
	{"http modern", "", true, func(t *testing.T, f *front.Front) caller {
		server := httptest.NewServer(f)
		t.Cleanup(server.Close)
		return func(want results.Structured, id int, params string) []byte {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s,%s}}`, id, params, modernMeta(want))
			_, response := post(t, server, body, map[string]string{
				"Mcp-Protocol-Version": mcptest.ModernVersion, "Mcp-Method": "tools/call", "Mcp-Name": "exec",
			})
			return response
		}
	}},
}

func modernMeta(structured results.Structured) string {
	var client string
	for name, policy := range clientPolicies {
		if policy == structured {
			client = name
		}
	}
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + mcptest.ModernVersion +
		`","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"` + client + `","version":"1"}}`
}

// openStdio opens a client over two pipes. If name is empty, the client sends no initialize request.
func openStdio(t *testing.T, f *front.Front, name string) caller {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() { // ends when the test closes inW
		done <- f.ServeStdio(context.WithoutCancel(t.Context()), inR, outW, front.StdioOptions{})
		inR.Close()
		outW.Close()
	}()
	t.Cleanup(func() {
		inW.Close()
		go io.Copy(io.Discard, outR) // ends when outW is closed
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	lines := bufio.NewReader(outR)
	call := func(id int, method, params string) []byte {
		if _, err := fmt.Fprintf(inW, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`+"\n", id, method, params); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatalf("reading an answer: %v", err)
			}
			if message := readJSON(string(line)); message == nil || message.last("method") == nil {
				return bytes.TrimSuffix(line, []byte("\n"))
			}
		}
	}
	if name != "" {
		call(0, "initialize", `"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"`+name+`","version":"1"}`)
		fmt.Fprintln(inW, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return func(_ results.Structured, id int, params string) []byte { return call(id, "tools/call", params) }
}

// openHTTP opens a legacy client over HTTP. It adds more to the params of each call.
func openHTTP(t *testing.T, f *front.Front, more string) caller {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	header, _ := post(t, server, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, nil)
	session := header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatal("no session")
	}
	return func(structured results.Structured, id int, params string) []byte {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s%s}}`, id, params, more)
		headers := map[string]string{"Mcp-Session-Id": session}
		switch structured {
		case results.StructuredNone:
			headers["Mcpx-Structured-Content"] = "never"
		case results.StructuredAlways:
			headers["Mcpx-Structured-Content"] = "always"
		}
		_, response := post(t, server, body, headers)
		return response
	}
}

// post sends one message and returns the response, which is a JSON body or the last event of a stream.
func post(t *testing.T, server *httptest.Server, body string, headers map[string]string) (http.Header, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %.600s", response.Status, err, data)
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return response.Header, data
	}
	var last []byte
	for line := range bytes.Lines(data) {
		if event, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
			last = bytes.TrimRight(event, "\r\n")
		}
	}
	return response.Header, last
}
