package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

var update = flag.Bool("update", false, "write the golden files anew")

const patience = 2 * time.Minute

// piped returns a fake server that runs in this process.
func piped(t testing.TB, name string, fake mcptest.Spec) registry.Server {
	t.Helper()
	return registry.Server{Spec: upstream.Spec{Options: transport.Options{Name: name, Type: transport.InProcess, Serve: fake.Serve(t, nil)}}}
}

// hiding is a catalog.Rules that hides each tool for which the func returns false. A nil func hides nothing.
type hiding func(server string, tool *catalog.Tool) bool

func (h hiding) See(server *catalog.Server, tool *catalog.Tool) (*catalog.Tool, string) {
	if h == nil || h(server.Name, tool) {
		return tool, ""
	}
	return nil, "a test"
}

// chained returns an executor whose messages pass through its middleware chain, without audit trail and limits.
func chained(r *registry.Registry, options Options) *Executor {
	return chainedWith(r, options, nil, nil)
}

// chainedWith is like chained, with the two middlewares that package app supplies.
func chainedWith(r *registry.Registry, options Options, admit, limit request.Middleware) *Executor {
	e := New(r, options)
	r.Use(e.Chain(admit, limit)...)
	return e
}

// observed returns a journal with these observers.
func observed(by ...func(*request.Event)) *request.Journal {
	j := &request.Journal{}
	j.Observe(by...)
	return j
}

// executing starts servers and waits until mcpx has tried to connect to each.
func executing(t testing.TB, options Options, visible func(string, *catalog.Tool) bool, servers ...registry.Server) *Executor {
	t.Helper()
	r := registry.New(servers, registry.Options{Rules: hiding(visible)})
	r.Start()
	t.Cleanup(func() { r.Close(0) })
	r.WaitTried(t.Context())
	return chained(r, options)
}

// always is the format for programs that want structuredContent with every result.
var always = results.Format{Structured: results.StructuredAlways}

func exec(t testing.TB, e *Executor, r Request) *results.Result {
	t.Helper()
	result, err := e.Exec(context.Background(), r)
	if err != nil {
		t.Fatalf("Exec: %v", err)
	}
	for _, raw := range append(result.Content, result.Structured, result.Meta) {
		if raw != nil && !json.Valid(raw) {
			t.Fatalf("no JSON: %s", raw)
		}
	}
	return result
}

func textOf(t testing.TB, block json.RawMessage) string {
	t.Helper()
	var b struct{ Text string }
	if err := json.Unmarshal(block, &b); err != nil {
		t.Fatal(err)
	}
	return b.Text
}

// TestFaults: text and structuredContent of each kind of failure are as in the golden file.
func TestFaults(t *testing.T) {
	mcptest.NoLeaks(t)
	const secret = "s3cret-s3cret"
	tools := `[{"name":"echo"},{"name":"read_text_file"},{"name":"rpc_error"},{"name":"bare"},{"name":"slow"},{"name":"crash"},{"name":"ask"},{"name":"big"},{"name":"raw"},
		{"name":"typed","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":100},"mode":{"enum":["a","b"]}},"required":["path"],"additionalProperties":false}},
		{"name":"hidden_tool"}]`
	good := piped(t, "good", mcptest.Spec{Tools: json.RawMessage(tools)})
	good.Spec.MaxMessage = 64 << 10
	modern := piped(t, "modern", mcptest.Spec{Era: mcptest.EraModern, Tools: json.RawMessage(`[{"name":"ask"},{"name":"raw"}]`)})
	off := registry.Server{Disabled: true, Spec: upstream.Spec{Options: transport.Options{Name: "off"}}}
	faulty := registry.Server{Fault: "env.TOKEN: variable TOKEN is not set", Spec: upstream.Spec{Options: transport.Options{Name: "faulty"}}}
	missing := registry.Server{Spec: upstream.Spec{Options: transport.Options{Name: "missing", Type: transport.Stdio, Launch: transport.Launch{Command: "no-such-" + secret}, Secrets: sanitize.NewSecrets([]string{secret}, nil)}}}
	empty := piped(t, "empty", mcptest.Spec{Tools: json.RawMessage(`[]`)})
	many := piped(t, "many", mcptest.Spec{Tools: json.RawMessage(`[]`), ExtraTools: 60})
	e := executing(t, Options{TypeScript: true, ExecWait: patience}, func(_ string, tool *catalog.Tool) bool { return tool.Name != "hidden_tool" },
		good, modern, off, faulty, missing, empty, many)

	tests := []struct {
		name    string
		request Request
	}{
		{"server-not-found", Request{Server: "goood", Tool: "echo"}},
		{"server-not-found-at-all", Request{Server: "x\ny\u202e", Tool: "nothing"}},
		{"server-not-found-long", Request{Server: strings.Repeat("long ", 100000), Tool: strings.Repeat("long ", 100000)}},
		{"server-of-the-tool", Request{Server: "goof", Tool: "extra_0007"}},
		{"server-of-a-tool-like-it", Request{Server: "x", Tool: "readTextFile"}},
		{"servers-of-the-tool", Request{Server: "x", Tool: "raw"}},
		{"servers-of-the-tool-one-is-near", Request{Server: "moderm", Tool: "raw"}},
		{"server-of-read-result", Request{Server: "good", Tool: "read_result"}},
		{"server-of-a-hidden-tool", Request{Server: "x", Tool: "hidden_tool"}},
		{"tool-of-another-server", Request{Server: "modern", Tool: "read_text_file"}},
		{"tool-not-found", Request{Server: "good", Tool: "readTextFile"}},
		{"tool-hidden", Request{Server: "good", Tool: "hidden_tool"}},
		{"tool-of-none", Request{Server: "empty", Tool: "echo"}},
		{"tool-of-many", Request{Server: "many", Tool: "extra_0001x"}},
		{"validation", Request{Server: "good", Tool: "typed", Arguments: json.RawMessage(`{"path":7,"limit":9007199254740993,"mode":"c","zzz":1}`)}},
		{"validation-not-an-object", Request{Server: "good", Tool: "typed", Arguments: json.RawMessage(`[1]`)}},
		{"disabled", Request{Server: "off", Tool: "echo"}},
		{"config-fault", Request{Server: "faulty", Tool: "echo"}},
		{"upstream-error", Request{Server: "good", Tool: "rpc_error"}},
		{"no-result", Request{Server: "good", Tool: "raw", Arguments: json.RawMessage(`{"result":"[1,2]"}`)}},
		{"task", Request{Server: "modern", Tool: "raw", Arguments: json.RawMessage(`{"result":"{\"resultType\":\"task\",\"task\":{}}"}`)}},
		{"answer-too-large", Request{Server: "good", Tool: "big", Arguments: json.RawMessage(`{"bytes":100000}`)}},
		{"request-too-large", Request{Server: "good", Tool: "echo", Arguments: json.RawMessage(`{"text":"` + strings.Repeat("x", 70000) + `"}`)}},
		{"lost", Request{Server: "good", Tool: "crash"}},
	}
	var got txtar.Archive
	got.Comment = []byte("What the model gets for each failure, as text and as structuredContent.\n")
	for _, tt := range tests {
		tt.request.Format = always
		result := exec(t, e, tt.request)
		if !result.IsError || len(result.Content) != 1 {
			t.Errorf("%s: %+v", tt.name, result)
			continue
		}
		tt.request.Format = results.Format{}
		if without := exec(t, e, tt.request); tt.name != "lost" && (without.Structured != nil || !bytes.Equal(without.Content[0], result.Content[0])) {
			t.Errorf("%s: without structuredContent: %s, %s", tt.name, without.Content, without.Structured)
		}
		var indented bytes.Buffer
		if err := json.Indent(&indented, result.Structured, "", "  "); err != nil {
			t.Errorf("%s: %v in %s", tt.name, err, result.Structured)
		}
		got.Files = append(got.Files,
			txtar.File{Name: tt.name + ".txt", Data: []byte(textOf(t, result.Content[0]) + "\n")},
			txtar.File{Name: tt.name + ".json", Data: append(indented.Bytes(), '\n')})
	}
	golden(t, filepath.Join("testdata", "faults.txtar"), &got)

	// This failure contains a time, so it is not in the golden file.
	result := exec(t, e, Request{Server: "missing", Tool: "echo", Format: always})
	text := textOf(t, result.Content[0])
	if !strings.HasPrefix(text, `SERVER_UNAVAILABLE: server "missing" is unavailable: starting "no-such-[secret]": executable file not found in PATH`) || strings.Contains(text+string(result.Structured), secret) {
		t.Errorf("missing: %s, %s", text, result.Structured)
	}
}

func golden(t *testing.T, path string, got *txtar.Archive) {
	t.Helper()
	data := txtar.Format(got)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	wanted := make(map[string]string)
	for _, file := range want.Files {
		wanted[file.Name] = string(file.Data)
	}
	for _, file := range got.Files {
		if string(file.Data) != wanted[file.Name] {
			t.Errorf("%s: got:\n%s\nwant:\n%s", file.Name, file.Data, wanted[file.Name])
		}
		delete(wanted, file.Name)
	}
	for name := range wanted {
		t.Errorf("%s is in the golden file only", name)
	}
}

// TestFaultsOfTime: failures that occur only after some time, such as timeouts, come at the right time, with the right texts.
func TestFaultsOfTime(t *testing.T) {
	mcptest.NoLeaks(t)
	synctest.Test(t, func(t *testing.T) {
		slow := piped(t, "slow", mcptest.Spec{})
		slow.Spec.Timeouts.Call, slow.Spec.Concurrency.Max = 90*time.Second, 1
		r := registry.New([]registry.Server{slow, piped(t, "hangs", mcptest.Spec{NeverInit: true})}, registry.Options{})
		r.Start()
		t.Cleanup(func() { r.Close(0) })
		e := chained(r, Options{ExecWait: 7 * time.Second})
		timed := func(request Request) (string, string, time.Duration) {
			began := time.Now()
			request.Format = always
			result := exec(t, e, request)
			return textOf(t, result.Content[0]), string(result.Structured), time.Since(began)
		}
		text, data, took := timed(Request{Server: "hangs", Tool: "echo"})
		if took != 7*time.Second || text != `SERVER_UNAVAILABLE: server "hangs" is connecting; try again shortly` || !strings.Contains(data, `"state":"connecting"`) {
			t.Errorf("connecting: %s, %s after %v", text, data, took)
		}
		busy := make(chan struct{})
		go func() {
			defer close(busy)
			text, data, took := timed(Request{Server: "slow", Tool: "slow", Arguments: json.RawMessage(`{"ms":1000000}`)})
			if took != 90*time.Second || text != "TIMEOUT: no answer from slow.slow within 90 s; it was told to cancel. "+mayHaveRun || !strings.Contains(data, `"seconds":90`) {
				t.Errorf("timeout: %s, %s after %v", text, data, took)
			}
		}()
		synctest.Wait()
		ctx, cancel := context.WithCancel(context.Background())
		gone := make(chan error, 1)
		go func() {
			_, err := e.Exec(ctx, Request{Server: "slow", Tool: "echo", Arguments: json.RawMessage(`{"text":"x"}`)})
			gone <- err
		}()
		<-time.After(time.Second)
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that is gone: %v", err)
		}
		<-busy
	})
}

// TestContentIsKept: the client gets the JSON that the server sent, with the members in their order.
func TestContentIsKept(t *testing.T) {
	mcptest.NoLeaks(t)
	e := executing(t, Options{TOON: true}, nil, piped(t, "one", mcptest.Spec{}))
	result := exec(t, e, Request{Server: "one", Tool: "content", Format: always})
	var want struct {
		Content           []json.RawMessage
		StructuredContent json.RawMessage
		Meta              json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal([]byte(mcptest.ContentResult), &want); err != nil {
		t.Fatal(err)
	}
	if len(result.Content) != len(want.Content) {
		t.Fatalf("%d blocks, want %d", len(result.Content), len(want.Content))
	}
	for i := range want.Content {
		// The last known block is indented JSON, which mcpx minifies.
		if strings.Contains(string(want.Content[i]), `1.10, 9007199254740993`) {
			if got := textOf(t, result.Content[i]); got != `{"a":1,"b":[1.10,9007199254740993]}` {
				t.Errorf("block %d: %s", i, got)
			}
			continue
		}
		if !bytes.Equal(result.Content[i], want.Content[i]) {
			t.Errorf("block %d: got %s, want %s", i, result.Content[i], want.Content[i])
		}
	}
	if !bytes.Equal(result.Structured, want.StructuredContent) {
		t.Errorf("structuredContent: got %s", result.Structured)
	}
	if got, want := string(result.Meta), `{"example.com/trace":"abc","n":9007199254740993,"mcpx/result":{"futureField":{"keep":"me","n":1.0}}}`; got != want {
		t.Errorf("_meta: got %s, want %s", got, want)
	}
}

func TestShape(t *testing.T) {
	mcptest.NoLeaks(t)
	table := mcptest.TableText(20)
	quoted := func(text string) string { return string(wire.Encode(text)) }
	one := func(text string) string { return `{"content":[{"type":"text","text":` + quoted(text) + `}]}` }
	tests := []struct {
		name, tool, arguments string
		result                string // as the server sends it
		structured            results.Structured
		// want are the texts of the blocks. A block that is not a text is given as raw JSON.
		want           []string
		wantStructured string
		isError        bool
	}{
		{name: "prose", result: one("Hello  {\"a\": 1} world"), want: []string{"Hello  {\"a\": 1} world"}, structured: results.StructuredAlways},
		{name: "a scalar", result: one(" 42 "), want: []string{" 42 "}, structured: results.StructuredAlways},
		{name: "an object", result: one("{\n \"n\": 9007199254740993,\n \"r\": 1.10\n}"), want: []string{`{"n":9007199254740993,"r":1.10}`}, structured: results.StructuredAlways, wantStructured: `{"n":9007199254740993,"r":1.10}`},
		{name: "an array", result: one("[1, 2]"), want: []string{`[1,2]`}, structured: results.StructuredAlways, wantStructured: `{"result":[1,2]}`},
		{name: "a table", result: one(table), want: []string{"TOON"}, structured: results.StructuredAlways, wantStructured: `{"result":` + minified(t, table) + `}`},
		{name: "a table for a client that takes no structuredContent", result: one(table), want: []string{"TOON"}},
		{name: "a table for a client that takes the upstream's own", result: one(table), structured: results.StructuredOwn, want: []string{"TOON"}},
		{name: "two blocks", result: `{"content":[{"type":"text","text":"[1, 2]"},{"type":"text","text":"{ }"}]}`, want: []string{`[1,2]`, `{}`}, structured: results.StructuredAlways},
		{name: "a file", tool: "read_text_file", result: one("{\n  \"a\": 1\n}"), want: []string{"{\n  \"a\": 1\n}"}, structured: results.StructuredAlways, wantStructured: `{"a":1}`},
		{name: "an argument that names a JSON file", arguments: `{"path":"/x/package-lock.json"}`, result: one("{ }"), want: []string{"{ }"}},
		{name: "an error of the tool", result: `{"content":[{"type":"text","text":"{ \"a\": 1 }"}],"isError":true}`, want: []string{`{ "a": 1 }`}, isError: true, structured: results.StructuredAlways},
		{name: "structured only", result: `{"structuredContent":{"b":1.10,"a":2}}`, want: nil, structured: results.StructuredAlways, wantStructured: `{"b":1.10,"a":2}`},
		{name: "structured only, for a client without", result: `{"structuredContent":{"b":1.10,"a":2}}`, want: []string{`{"b":1.10,"a":2}`}},
		{name: "structured only, for a client that takes it", structured: results.StructuredOwn, result: `{"structuredContent":{"b":1.10,"a":2}}`, want: nil, wantStructured: `{"b":1.10,"a":2}`},
		{name: "structured only, for a client that shows both", structured: results.StructuredOnce, result: `{"structuredContent":{"b":1.10,"a":2}}`, want: nil, wantStructured: `{"b":1.10,"a":2}`},
		{name: "a table of its own, for a client that shows both", structured: results.StructuredOnce, result: `{"structuredContent":` + table + `}`, want: []string{"TOON"}},
		{name: "said twice, for a client that shows both", structured: results.StructuredOnce, result: `{"content":[{"type":"text","text":"{\"a\": 2}"}],"structuredContent":{"a":2}}`, want: []string{`{"a":2}`}},
		{name: "more than the text, for a client that shows both", structured: results.StructuredOnce, result: `{"content":[{"type":"text","text":"Two."}],"structuredContent":{"a":2}}`, want: []string{"Two."}, wantStructured: `{"a":2}`},
		{name: "both, for a client that takes it", structured: results.StructuredOwn, result: `{"content":[{"type":"text","text":"[1, 2]"}],"structuredContent":{"a":2}}`, want: []string{`[1,2]`}, wantStructured: `{"a":2}`},
		{name: "the same in a wrapper", result: `{"content":[{"type":"text","text":"[1, 2]"}],"structuredContent":{"result":[1,2]}}`, want: []string{`[1,2]`}},
		{name: "the same number in a wrapper", result: `{"content":[{"type":"text","text":"5"}],"structuredContent":{"result":5}}`, want: []string{`5`}},
		{name: "not the same in a wrapper", result: `{"content":[{"type":"text","text":"[1, 2]"}],"structuredContent":{"result":[1,2,3]}}`, want: []string{`[1,2]`, "\n" + `{"result":[1,2,3]}`}},
		{name: "a wrapper with more", result: `{"content":[{"type":"text","text":"[1, 2]"}],"structuredContent":{"result":[1,2],"next":3}}`, want: []string{`[1,2]`, "\n" + `{"result":[1,2],"next":3}`}},
		{name: "items as blocks", result: `{"content":[{"type":"text","text":"{ \"a\": 1 }"},{"type":"text","text":"x"}],"structuredContent":{"result":[{"a":1},"x"]}}`, want: []string{`{"a":1}`, `x`}},
		{name: "too few items as blocks", result: `{"content":[{"type":"text","text":"1"},{"type":"text","text":"x"}],"structuredContent":{"result":[1,"x","y"]}}`, want: []string{`1`, `x`, "\nresult[3]: 1,x,y"}},
		{name: "too many blocks", result: `{"content":[{"type":"text","text":"1"},{"type":"text","text":"x"},{"type":"text","text":"y"}],"structuredContent":{"result":[1,"x"]}}`, want: []string{`1`, `x`, `y`, "\nresult[2]: 1,x"}},
		{name: "items in another order", result: `{"content":[{"type":"text","text":"x"},{"type":"text","text":"1"}],"structuredContent":{"result":[1,"x"]}}`, want: []string{`x`, `1`, "\nresult[2]: 1,x"}},
		{name: "one item as a block", result: `{"content":[{"type":"text","text":"x"}],"structuredContent":{"result":["x"]}}`, want: []string{`x`, "\nresult[1]: x"}},
		{name: "the same as JSON", result: `{"content":[{"type":"text","text":"{ \"a\":2, \"b\":1.10 }"}],"structuredContent":{"b":1.10,"a":2}}`, want: []string{`{"a":2,"b":1.10}`}},
		{name: "the same as the one string", result: `{"content":[{"type":"text","text":"done"}],"structuredContent":{"result":"done"}}`, want: []string{`done`}},
		{name: "the same within prose", result: `{"content":[{"type":"text","text":"Two found:\n{ \"a\": 2 }"}],"structuredContent":{"a":2}}`, want: []string{"Two found:\n{ \"a\": 2 }"}},
		{name: "less within prose", result: `{"content":[{"type":"text","text":"Two found:\n{\"a\":2}"}],"structuredContent":{"a":2,"b":3}}`, want: []string{"Two found:\n{\"a\":2}", "\n" + `{"a":2,"b":3}`}},
		{name: "the same within prose, in a wrapper", result: `{"content":[{"type":"text","text":"Two found:\n{\"a\":2}"}],"structuredContent":{"b":{"a":2}}}`, want: []string{"Two found:\n{\"a\":2}", "\n" + `{"b":{"a":2}}`}},
		{name: "the same as Python prints it", result: `{"content":[{"type":"text","text":"{'a': None}"}],"structuredContent":{"a":null}}`, want: []string{`{'a': None}`}},
		{name: "the same as JSON Lines, in a wrapper", result: `{"content":[{"type":"text","text":"{\"a\":1}\n{\"a\":2}"}],"structuredContent":{"result":[{"a":1},{"a":2}]}}`, want: []string{"{\"a\":1}\n{\"a\":2}"}},
		{name: "the same in a JSON string", result: `{"content":[{"type":"text","text":"\"{\\\"a\\\":2}\""}],"structuredContent":{"a":2}}`, want: []string{`"{\"a\":2}"`}},
		{name: "not the same", result: `{"content":[{"type":"text","text":"1 found"}],"structuredContent":{"a":2}}`, want: []string{`1 found`, "\n" + `{"a":2}`}},
		{name: "a number that differs beyond 2^53", result: `{"content":[{"type":"text","text":"{\"a\":9007199254740992}"}],"structuredContent":{"a":9007199254740993}}`, want: []string{`{"a":9007199254740992}`, "\n" + `{"a":9007199254740993}`}},
		{name: "unknown kinds", result: `{"content":[{"type":"hologram","text":"[1, 2]"},{"text":"[1, 2]"},7,null,"x",{"type":"text","text":5}]}`, want: []string{`{"type":"hologram","text":"[1, 2]"}`, `{"text":"[1, 2]"}`, `7`, `null`, `"x"`, `{"type":"text","text":5}`}, structured: results.StructuredAlways},
		{name: "other members of a block", result: `{"content":[{"annotations":{"priority":0.90},"text":"[1, 2]","type":"text","x":true}]}`, want: []string{`{"annotations":{"priority":0.90},"text":"[1,2]","type":"text","x":true}`}},
		{name: "empty", result: `{}`, want: nil, structured: results.StructuredAlways},
		{name: "content null", result: `{"content":null}`, want: nil, structured: results.StructuredAlways},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tool := tt.tool
			if tool == "" {
				tool = "anything"
			}
			fake := mcptest.Spec{Tools: json.RawMessage(`[{"name":"` + tool + `"}]`), Results: map[string]json.RawMessage{tool: json.RawMessage(tt.result)}}
			e := executing(t, Options{TOON: true}, nil, piped(t, "one", fake))
			got := exec(t, e, Request{Server: "one", Tool: tool, Arguments: json.RawMessage(tt.arguments), Format: results.Format{Structured: tt.structured}})
			if got.IsError != tt.isError || got.Content == nil {
				t.Errorf("isError is %t, content %v", got.IsError, got.Content)
			}
			if string(got.Structured) != tt.wantStructured {
				t.Errorf("structuredContent: got %s, want %s", got.Structured, tt.wantStructured)
			}
			if len(got.Content) != len(tt.want) {
				t.Fatalf("got %s, want %q", got.Content, tt.want)
			}
			for i, want := range tt.want {
				switch {
				case want == "TOON":
					text := textOf(t, got.Content[i])
					if len(text)*2 > len(table) || !strings.HasPrefix(text, "[20]{id,name,price,active}:") {
						t.Errorf("no table: %s", text)
					}
				case string(got.Content[i]) != want && string(got.Content[i]) != `{"type":"text","text":`+quoted(want)+`}`:
					t.Errorf("block %d: got %s, want %s", i, got.Content[i], want)
				}
			}
		})
	}
}

func minified(t testing.TB, text string) string {
	t.Helper()
	out, ok := wire.Compact(text)
	if !ok {
		t.Fatal("no JSON")
	}
	return string(out)
}

// TestArguments: arguments are checked before anything is sent. Obvious mistakes are corrected. If the schema cannot be used,
// the arguments are sent unchecked.
func TestArguments(t *testing.T) {
	mcptest.NoLeaks(t)
	e := executing(t, Options{Servers: map[string]ServerOptions{"lax": {Unchecked: true}}}, nil,
		piped(t, "one", mcptest.Spec{OddTools: true}), piped(t, "lax", mcptest.Spec{}))
	tests := []struct{ server, tool, arguments, want string }{
		{"one", "add", `{"a":9007199254740993,"b":1}`, `{"sum":9007199254740994}`},
		{"one", "add", `"{\"a\":1,\"b\":2}"`, `{"sum":3}`},
		{"one", "add", `{"a":1}`, "VALIDATION_ERROR"},
		{"lax", "add", `{"a":1,"b":1,"c":"not in the schema"}`, `{"sum":2}`},
		{"one", "odd_properties_list", `{"x":1.10}`, `{"x":1.10}`},
		{"one", "odd_remote_ref", `{"x":1}`, `{"x":1}`},
		{"one", "odd_regex", `{"p":"no digit"}`, "VALIDATION_ERROR"},
		{"one", "odd_recursive", `{"tree":"{\"children\":[]}"}`, `{"tree":{"children":[]}}`},
		{"one", "odd_no_schema", ``, `{}`},
		{"one", "odd name/with.signs é", `{"x":1}`, `{"x":1}`},
		{"one", "odd_type_array", `{"id":1e400}`, `{"id":1e400}`},
		{"one", "odd_any_of", `{"a":null}`, `{"a":null}`},
		{"one", "odd_any_of", `{"c":1}`, "VALIDATION_ERROR"},
	}
	for _, tt := range tests {
		result := exec(t, e, Request{Server: tt.server, Tool: tt.tool, Arguments: json.RawMessage(tt.arguments)})
		if got := textOf(t, result.Content[0]); got != tt.want && !(strings.HasPrefix(got, tt.want) && result.IsError) {
			t.Errorf("%s.%s(%s): got %s, want %s", tt.server, tt.tool, tt.arguments, got, tt.want)
		}
	}
}

// TestArguments_Notes: the tool gets the arguments that the caller meant. _meta of the result says what was changed, and a text
// block names an argument that the tool does not declare.
func TestArguments_Notes(t *testing.T) {
	mcptest.NoLeaks(t)
	e := executing(t, Options{}, nil, piped(t, "git", mcptest.Spec{
		Tools: json.RawMessage(`[{"name":"log","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"max_count":{"type":"integer"}}}}]`),
	}))
	for _, tt := range []struct{ arguments, got, meta, note string }{
		{`{"path":"5","max_count":5}`, `{"path":"5","max_count":5}`, ``, ``},
		{`{"path":null,"max_count":"5"}`, `{"max_count":5}`, `{"mcpx/arguments":{"converted":["/max_count"],"left_out":["/path"]}}`, ``},
		{`{"max_cuont":5}`, `{"max_cuont":5}`, ``, "\nmcpx: log declares no argument max_cuont; did you mean max_count?"},
		{`{"n":5}`, `{"n":5}`, ``, "\nmcpx: log declares no argument n, only max_count, path"},
	} {
		r := exec(t, e, Request{Server: "git", Tool: "log", Arguments: json.RawMessage(tt.arguments)})
		note := ""
		if len(r.Content) > 1 {
			note = textOf(t, r.Content[1])
		}
		if got := textOf(t, r.Content[0]); r.IsError || got != tt.got || note != tt.note || string(r.Meta) != tt.meta {
			t.Errorf("%s: got %s, _meta %s, note %q", tt.arguments, got, r.Meta, note)
		}
	}
}

// TestConcurrentCalls: with many concurrent calls, each caller gets the result of its own call.
func TestConcurrentCalls(t *testing.T) {
	mcptest.NoLeaks(t)
	e := executing(t, Options{TOON: true}, nil, piped(t, "one", mcptest.Spec{}), piped(t, "two", mcptest.Spec{Era: mcptest.EraModern}))
	done := make(chan struct{})
	for i := range 64 {
		go func() {
			defer func() { done <- struct{}{} }()
			server := []string{"one", "two"}[i%2]
			want := fmt.Sprintf("%s %d", server, i)
			result, err := e.Exec(context.Background(), Request{Server: server, Tool: "echo", Arguments: json.RawMessage(`{"text":"` + want + `"}`)})
			if err != nil || len(result.Content) != 1 || !strings.Contains(string(result.Content[0]), `"`+want+`"`) {
				t.Errorf("%s: got %v, %v", want, result, err)
			}
		}()
	}
	for range 64 {
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatal("a call does not end")
		}
	}
}

// TestResultsAreNotChecked: mcpx does not validate a result against the outputSchema. The caller gets what the tool sent, also
// if the tool reports a failure.
func TestResultsAreNotChecked(t *testing.T) {
	mcptest.NoLeaks(t)
	e := executing(t, Options{TypeScript: true}, nil, piped(t, "fake", mcptest.Spec{Tools: json.RawMessage(
		`[{"name":"raw","outputSchema":{"type":"object","properties":{"value":{"type":"string"}},"required":["value"],"additionalProperties":false}}]`)}))
	const text = `{"type":"text","text":"Workflow is not available"}`
	for _, sent := range []string{
		`{"isError":true,"content":[` + text + `]}`,
		`{"isError":true,"content":[` + text + `],"structuredContent":{"reason":7}}`,
		`{"isError":true,"content":[],"structuredContent":{"reason":7}}`,
		`{"content":[` + text + `]}`,
		`{"content":[` + text + `],"structuredContent":{"value":7}}`,
		`{"content":[` + text + `],"structuredContent":["value"]}`,
	} {
		var want struct {
			IsError           bool
			Content           []json.RawMessage
			StructuredContent json.RawMessage
		}
		if err := json.Unmarshal([]byte(sent), &want); err != nil {
			t.Fatal(err)
		}
		quoted, err := json.Marshal(sent)
		if err != nil {
			t.Fatal(err)
		}
		got := exec(t, e, Request{Server: "fake", Tool: "raw", Arguments: json.RawMessage(`{"result":` + string(quoted) + `}`), Format: always})
		same := slices.EqualFunc(got.Content, want.Content, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
		if got.IsError != want.IsError || !same || !bytes.Equal(got.Structured, want.StructuredContent) {
			t.Errorf("%s: got %v %s %s", sent, got.IsError, got.Content, got.Structured)
		}
	}
}
