package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/limits"
	"mcpx/internal/jq"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/programs"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// withPrograms returns options with which callers can run programs.
func withPrograms(t testing.TB, o Options) Options {
	t.Helper()
	o.Runner = programs.New(0, nil)
	t.Cleanup(o.Runner.Close)
	o.Programs = builtin.NewPrograms(programs.Limits{}, nil)
	return o
}

// program is a request that runs a program.
func program(client *caller.Client, code string) Request {
	return Request{From: request.From{Client: client}, Server: builtin.Name, Tool: builtin.RunTool, Arguments: wire.Encode(map[string]string{"code": code})}
}

// all returns the texts of a result, joined.
func all(t testing.TB, r *results.Result) string {
	t.Helper()
	var texts []string
	for _, block := range r.Content {
		texts = append(texts, textOf(t, block))
	}
	return strings.Join(texts, "\n")
}

func remote(fake *mcptest.HTTPServer) []registry.Server {
	return []registry.Server{{Spec: upstream.Spec{Options: transport.Options{Name: "fake", Type: transport.HTTP, Remote: transport.Remote{URL: fake.URL}}}}}
}

// recorder keeps the events that ended.
type recorder struct {
	mu    sync.Mutex
	ended []request.Event
}

func (r *recorder) end(e *request.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = append(r.ended, *e)
}

// TestProgram: a program calls tools, and its value is a result like any other. Each of its calls has an event of its own, which
// names the number of the program's event. The program's event has the costs of each call.
func TestProgram(t *testing.T) {
	mcptest.NoLeaks(t)
	var rec recorder
	filter := jq.New(jq.Limits{}, nil)
	t.Cleanup(filter.Close)
	e := executing(t, withPrograms(t, Options{Journal: observed(rec.end), Filter: filter}), nil, piped(t, "fake", eachTool(reading)))
	got := exec(t, e, program(nil, `const all = await Promise.all(["a", "b", "c"].map(text => call("fake", "echo", {text})));
console.log("got", all.length);
try { await call("fake", "echo", {}) } catch (e) { console.log(e.code, e.message) }
try { await call("fake", "none") } catch (e) { console.log(e.code) }
try { await call("mcpx", "run", {code: "return 1"}) } catch (e) { console.log(e.code) }
return all.map(text => ({text, n: 1}))`))
	text := all(t, got)
	for _, want := range []string{"got 3\n", "VALIDATION_ERROR VALIDATION_ERROR: ", "TOOL_NOT_FOUND\nEXECUTION_ERROR\n", `[{"text":"a","n":1},{"text":"b","n":1},{"text":"c","n":1}]`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	last := rec.ended[len(rec.ended)-1]
	if len(rec.ended) != 7 || last.Tool != "run" || len(last.Costs) != 6 || last.Program != 0 {
		t.Fatalf("events %+v", rec.ended)
	}
	for _, one := range rec.ended[:6] {
		if one.Program != last.Number || one.Number == last.Number || one.Number == 0 {
			t.Errorf("the call %+v is not of the program %d", one, last.Number)
		}
	}
	if c := last.Costs[0]; c.Server != "fake" || c.Tool != "echo" || c.Outcome != request.OutcomeResult || c.Received == 0 {
		t.Errorf("cost %+v", c)
	}
	selected := exec(t, e, func() Request {
		r := program(nil, `console.log({"other": 1}); return {items: [1, 2, 3]}`)
		r.Select = ".items | length"
		return r
	}())
	if got := all(t, selected); got != "3" {
		t.Errorf("selected %q", got)
	}
}

// TestProgram_Logs: the client gets what servers log during the calls of a program, at its level.
func TestProgram_Logs(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := mcptest.Spec{}.HTTP(t)
	e := executing(t, withPrograms(t, Options{}), nil, remote(fake)...)
	var heard atomic.Int64
	r := program(&caller.Client{ID: "a"}, `return await call("fake", "notify", {method: "notifications/message", params: {level: "error", data: "x"}, mine: true})`)
	r.Sink = request.Sink{Level: "error", Log: func(json.RawMessage) { heard.Add(1) }}
	if got := exec(t, e, r); got.IsError || heard.Load() != 1 {
		t.Errorf("%d messages came: %s", heard.Load(), got.Content)
	}
	if told := fake.Log().Method("logging/setLevel"); len(told) != 1 {
		t.Errorf("the level was set %d times", len(told))
	}
}

// TestProgram_LongError: the event of a program's call has only the beginning of a long error.
func TestProgram_LongError(t *testing.T) {
	mcptest.NoLeaks(t)
	var rec recorder
	e := executing(t, withPrograms(t, Options{Journal: observed(rec.end)}), nil, piped(t, "fake", eachTool(reading)))
	e.registry.Use(append(e.Chain(nil, nil), func(next request.Handler) request.Handler {
		return func(ctx context.Context, r *request.Request) (json.RawMessage, error) {
			switch {
			case r.Program:
			case strings.Contains(string(r.Params), "refused"):
				return nil, &wire.RPCError{Code: 1, Message: strings.Repeat("ü", 2*maxSaid)}
			case strings.Contains(string(r.Params), "failed"):
				return json.RawMessage(`{"content":[{"type":"text","text":"x` + strings.Repeat("ü", 2*maxSaid) + `"}],"isError":true}`), nil
			}
			return next(ctx, r)
		}
	})...)
	got := exec(t, e, program(nil, `for (const text of ["refused", "failed"]) try { await call("fake", "echo", {text}) } catch (e) {}`))
	if len(rec.ended) != 3 {
		t.Fatalf("%d events: %s", len(rec.ended), got.Content)
	}
	for _, one := range rec.ended[:2] {
		if len(one.Said) > maxSaid || !utf8.ValidString(one.Said) || one.Said == "" {
			t.Errorf("%s: %d bytes: %.50q", one.Outcome, len(one.Said), one.Said)
		}
	}
}

// TestProgram_AtOnce: sixteen calls of a program run at the same time, and the others as soon as one of them has ended. A call
// of another client does not wait for them. So 31 calls run in two rounds.
func TestProgram_AtOnce(t *testing.T) {
	mcptest.NoLeaks(t)
	e := executing(t, withPrograms(t, Options{}), nil, piped(t, "fake", eachTool(changing)))
	var open, most atomic.Int32
	release := make(chan struct{})
	e.registry.Use(append(e.Chain(nil, nil), func(next request.Handler) request.Handler {
		return func(ctx context.Context, r *request.Request) (json.RawMessage, error) {
			if r.Program || strings.Contains(string(r.Params), "beside") {
				return next(ctx, r)
			}
			for now := open.Add(1); ; {
				if before := most.Load(); now <= before || most.CompareAndSwap(before, now) {
					break
				}
			}
			defer open.Add(-1)
			<-release
			return next(ctx, r)
		}
	})...)
	answer := make(chan string)
	go func() { // ends with the program
		answer <- all(t, exec(t, e, program(nil, `return (await Promise.all(Array.from({length: 31}, (_, i) => call("fake", "echo", {text: "" + i})))).join()`)))
	}()
	for _, round := range []int32{16, 15} {
		mcptest.WaitFor(t, fmt.Sprint(round, " calls at once"), patience, func() bool { return open.Load() == round })
		if got := said(t, exec(t, e, as("bob", Request{Server: "fake", Tool: "echo", Arguments: json.RawMessage(`{"text":"beside"}`)}))); got != "beside" {
			t.Error(got)
		}
		for range round {
			release <- struct{}{}
		}
	}
	var want []string
	for i := range 31 {
		want = append(want, fmt.Sprint(i))
	}
	if got := <-answer; got != strings.Join(want, ",") || most.Load() != 16 {
		t.Errorf("%d at once, got %s", most.Load(), got)
	}
}

// TestProgram_Long: a long result of a program is cut and kept, and another program of the same principal reads it.
func TestProgram_Long(t *testing.T) {
	mcptest.NoLeaks(t)
	e := executing(t, withPrograms(t, Options{ResultTokens: 500}), nil, piped(t, "fake", eachTool(reading)))
	alice, bob := &caller.Client{ID: "1", Principal: &caller.Principal{ID: "alice"}}, &caller.Client{ID: "2", Principal: &caller.Principal{ID: "bob"}}
	got := all(t, exec(t, e, program(alice, `await call("fake", "echo", {text: "x"}); return Array.from({length: 3000}, (_, i) => ({i, s: "item " + i}))`)))
	_, rest, _ := strings.Cut(got, `"handle":"`)
	handle, _, found := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("no handle in %s", got)
	}
	read := fmt.Sprintf(`const r = result(%q); return [r.length, r[2999].s]`, handle)
	if got := all(t, exec(t, e, program(alice, read))); got != `[3000,"item 2999"]` {
		t.Errorf("got %s", got)
	}
	if got := all(t, exec(t, e, program(bob, read))); !strings.Contains(got, "/handle: the result is unknown or has expired") {
		t.Errorf("another principal got %s", got)
	}
}

// TestProgram_Confirmed: the user confirms each call of a program, and sees the real tool with its arguments. A call that the
// user declines throws. Without a client that can be asked, nothing is called.
func TestProgram_Confirmed(t *testing.T) {
	mcptest.NoLeaks(t)
	fake := eachTool(changing).HTTP(t)
	servers := remote(fake)
	e := confirming(t, withPrograms(t, Options{}), conf.ConfirmAll, servers...)
	var asked []string
	client := &caller.Client{ID: "1", Version: "2025-11-25", Capabilities: json.RawMessage(`{"elicitation":{}}`)}
	client.Request = func(_ context.Context, _ string, params json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
		asked = append(asked, string(params)) // without a lock: the race detector fails the test if two questions overlap
		if strings.Contains(string(params), "second") {
			return json.RawMessage(`{"action":"decline"}`), nil
		}
		return json.RawMessage(`{"action":"accept","content":{"run":true}}`), nil
	}
	code := `return (await Promise.allSettled(["first", "second", "third"].map(text => call("fake", "echo", {text})))).map(r => r.value ?? r.reason.message)`
	got := all(t, exec(t, e, program(client, code)))
	if !strings.Contains(got, `"first","EXECUTION_ERROR: the user declined the call of fake.echo; it was not made. Ask what to do instead","third"`) {
		t.Errorf("got %s", got)
	}
	if len(asked) != 3 || !strings.Contains(strings.Join(asked, ""), "Run fake.echo?") || len(fake.Log().Calls("echo")) != 2 {
		t.Errorf("asked %q, %d calls", asked, len(fake.Log().Calls("echo")))
	}
	deaf := &caller.Client{ID: "2", Version: "2025-11-25"}
	if got := all(t, exec(t, e, program(deaf, code))); strings.Count(got, "could not be asked") != 3 || len(fake.Log().Calls("echo")) != 2 {
		t.Errorf("got %s", got)
	}
	through := program(client, code)
	through.ReadOnly, asked = true, nil
	if got := all(t, exec(t, e, through)); strings.Count(got, "is not declared read-only") != 3 || len(asked) != 0 || len(fake.Log().Calls("echo")) != 2 {
		t.Errorf("through the read door: asked %q, got %s", asked, got)
	}
}

// TestProgram_Limits: each call of a program counts towards the limits of its caller. The program itself does not count towards the
// limit of concurrent calls, so a caller that may make only one call at a time can run a program.
func TestProgram_Limits(t *testing.T) {
	mcptest.NoLeaks(t)
	l := limits.New(conf.Limits{Principal: conf.Quota{ConcurrentCalls: 1, CallsPerMinute: 4}})
	r := registry.New([]registry.Server{piped(t, "s", eachTool(reading))}, registry.Options{SessionLimit: l.ServerSession})
	r.Start()
	t.Cleanup(func() { r.Close(0) })
	r.WaitTried(t.Context())
	e := chainedWith(r, withPrograms(t, Options{}), nil, l.Limit)
	alice, bob := &caller.Client{ID: "1", Principal: &caller.Principal{ID: "alice"}}, &caller.Client{ID: "2", Principal: &caller.Principal{ID: "bob"}}
	code := `const all = []; for (const text of ["a", "b", "c", "d", "e"]) { try { all.push(await call("s", "echo", {text})) } catch (e) { all.push(e.code) } } return all`
	want := `["a","b","c","RATE_LIMITED","RATE_LIMITED"]` // of the 4 calls in a minute, one is the call of the program itself
	if got := all(t, exec(t, e, program(alice, code))); got != want {
		t.Errorf("got %s", got)
	}
	if got := all(t, exec(t, e, program(bob, code))); got != want {
		t.Errorf("another principal got %s", got)
	}
}

// TestProgram_Rights: the tool run is hidden from callers whose rights deny mcpx.run, and from everybody if programs are turned
// off. Calls of a program have the rights of its caller.
func TestProgram_Rights(t *testing.T) {
	mcptest.NoLeaks(t)
	servers := []registry.Server{piped(t, "fake", eachTool(reading)), piped(t, "other", eachTool(reading))}
	options := withPrograms(t, Options{})
	e := executing(t, options, nil, servers...)
	rights := policy.NewRights([]conf.Right{
		{Principals: []string{"alice"}, Servers: []string{"fake"}},
		{Principals: []string{"bob"}, Deny: []string{"mcpx.run"}},
		{Principals: []string{"bob"}},
	}, nil)
	e.registry.Apply(servers, registry.Options{Rules: &policy.Rules{Rights: rights}}, nil)
	as := func(name string) *caller.Client {
		return &caller.Client{ID: name, Principal: &caller.Principal{ID: name, Name: name}}
	}
	code := `const all = []; for (const s of ["fake", "other"]) { try { all.push(await call(s, "echo", {text: s})) } catch (e) { all.push(e.code) } } return all`
	if got := all(t, exec(t, e, program(as("alice"), code))); got != `["fake","SERVER_NOT_FOUND"]` {
		t.Errorf("alice got %s", got)
	}
	if got := exec(t, e, program(as("bob"), code)); got.Code != results.CodeToolNotFound || e.Programs(as("bob"), nil) || !e.Programs(as("alice"), nil) {
		t.Errorf("bob got %s", got.Content)
	}
	elsewhere := program(as("bob"), code)
	elsewhere.Server = "fake"
	if got := all(t, exec(t, e, elsewhere)); strings.Contains(got, builtin.Name) {
		t.Errorf("bob, on another server: %s", got)
	}
	off := executing(t, Options{}, nil, servers[0])
	if got := exec(t, off, program(nil, code)); got.Code != results.CodeToolNotFound || !strings.HasSuffix(all(t, got), `no tool "run" on server "mcpx". Did you mean wait_result?`) {
		t.Errorf("without programs: %s", got.Content)
	}
}

// TestProgram_Defaults: the default of a stored program's parameter reaches the program as it was written, as an argument does.
func TestProgram_Defaults(t *testing.T) {
	folder := t.TempDir()
	code := "/**\n * Does.\n * @param {integer} [n=9007199254740993]\n * @param {any} [o={\"__proto__\": [1]}]\n */\nreturn [n, o]"
	if err := os.WriteFile(filepath.Join(folder, "does.js"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	options := withPrograms(t, Options{})
	stored, _ := programs.ReadFolder(folder, true, nil)
	options.Programs = builtin.NewPrograms(programs.Limits{}, stored)
	e := executing(t, options, nil, piped(t, "fake", eachTool(reading)))
	for sent, want := range map[string]string{
		"":           `[9007199254740993,{"__proto__":[1]}]`,
		`{"n":1}`:    `[1,{"__proto__":[1]}]`,
		`{"o":null}`: `[9007199254740993,null]`,
	} {
		got := exec(t, e, Request{Server: "mcpx", Tool: "does", Arguments: json.RawMessage(sent)})
		if text := all(t, got); text != want {
			t.Errorf("%s: %s, want %s", sent, text, want)
		}
	}
}

// TestProgram_Disabled: disabled_tools, and the disabled tools of a view, hide the tool run and stored programs, also in the
// guesses at a wrong name.
func TestProgram_Disabled(t *testing.T) {
	mcptest.NoLeaks(t)
	servers := []registry.Server{piped(t, "fake", eachTool(reading))}
	options := withPrograms(t, Options{})
	options.Programs = builtin.NewPrograms(programs.Limits{}, []*programs.Stored{{Name: "payroll", Schema: `{"type":"object"}`, Code: "return 1"}})
	e := executing(t, options, nil, servers...)
	of := func(globs ...string) *policy.Rules { return &policy.Rules{Disabled: globs} }
	for _, test := range []struct {
		config, view *policy.Rules
		run, payroll string // the results of calls of the tool run and of the stored program payroll, or their error codes
	}{
		{nil, nil, "1", "1"},
		{of("mcpx.run"), nil, results.CodeToolNotFound, "1"},
		{of("fake.x", "mcpx.pay*"), nil, "1", results.CodeToolNotFound},
		{nil, of("mcpx.*"), results.CodeToolNotFound, results.CodeToolNotFound},
	} {
		e.registry.Apply(servers, registry.Options{Rules: cmp.Or(test.config, of())}, nil)
		scope := &policy.Scope{Rules: test.view}
		for tool, want := range map[string]string{builtin.RunTool: test.run, "payroll": test.payroll} {
			r := program(nil, "return 1")
			if r.Tool, r.Scope = tool, scope; tool == "payroll" {
				r.Arguments = nil
			}
			got := exec(t, e, r)
			if cmp.Or(got.Code, all(t, got)) != want {
				t.Errorf("%+v: %s: %s", test, tool, all(t, got))
			}
			r.Server = "fake"
			if got := all(t, exec(t, e, r)); strings.Contains(got, "Server mcpx has") != (want == "1") {
				t.Errorf("%+v: fake.%s: %s", test, tool, got)
			}
		}
		if e.Programs(nil, scope) != (test.run == "1") || (e.Reader(nil, scope, e.Catalogue(nil)) != nil) != (test.payroll == "1") {
			t.Errorf("%+v: the catalogue has something else", test)
		}
	}
}

// TestProgram_Cancelled: when the client cancels, all calls of the program are cancelled, and recorded as such.
func TestProgram_Cancelled(t *testing.T) {
	mcptest.NoLeaks(t)
	var rec recorder
	spec := eachTool(reading)
	spec.HangTools = []string{"echo"}
	fake := spec.HTTP(t)
	e := executing(t, withPrograms(t, Options{Journal: observed(rec.end)}), nil, remote(fake)...)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := e.Exec(ctx, program(nil, `await Promise.all([1, 2, 3].map(n => call("fake", "echo", {text: "x"})))`))
		ended <- err
	}()
	mcptest.WaitFor(t, "three calls", patience, func() bool { return len(fake.Log().Calls("echo")) == 3 })
	cancel()
	if err := <-ended; err == nil {
		t.Error("no error")
	}
	if len(rec.ended) != 4 {
		t.Fatalf("%d events", len(rec.ended))
	}
	for _, one := range rec.ended {
		if !one.Cancelled() {
			t.Errorf("recorded %+v", one)
		}
	}
}

// TestProgram_NoReturn: if a program shows nothing, the answer says that it should return something, and which calls it has made.
func TestProgram_NoReturn(t *testing.T) {
	mcptest.NoLeaks(t)
	e := executing(t, withPrograms(t, Options{}), nil, piped(t, "fake", eachTool(reading)))
	const hint = "undefined\n[nothing was returned or logged: code is the body of a function, so end it with return, and await each call; calls made: fake.echo RESULT]"
	const silent = "undefined\n[nothing was returned or logged: code is the body of a function, so end it with return, and await each call; no calls were made]"
	for code, want := range map[string]string{
		`const r = await call("fake", "echo", {text: "a"}); r`:                            hint,
		`(async () => { const r = await call("fake", "echo", {text: "a"}); return r })()`: hint,
		`return call("fake", "echo", {text: "a"}).length`:                                 hint,
		`await call("fake", "echo", {text: "a"}); console.log("done")`:                    "done\nundefined",
		`const a = 1`: silent,
		`async () => { return await call("fake", "echo", {text: "a"}) }`: silent,
		`await call("fake", "echo", {text: "a"}); return null`:           "null",
	} {
		got := strings.ReplaceAll(all(t, exec(t, e, program(nil, code))), "\n\n", "\n")
		got = strings.Replace(got, programs.Unfinished, "RESULT", 1) // a call that is not awaited may end with its program
		if got != want {
			t.Errorf("%s: got %q", code, got)
		}
	}
}

// TestProgram_WrongShape: if a program reads a result in a way that does not fit it, the failure shows the shape of the last result.
func TestProgram_WrongShape(t *testing.T) {
	mcptest.NoLeaks(t)
	e := executing(t, withPrograms(t, Options{}), nil, piped(t, "fake", mcptest.Spec{
		Tools:   json.RawMessage(`[{"name":"list"},{"name":"text"}]`),
		Results: map[string]json.RawMessage{"list": json.RawMessage(`{"content":[],"structuredContent":{"projects":[{"id":1,"key":"WEB"}]}}`), "text": json.RawMessage(`{"content":[{"type":"text","text":"3 files"}]}`)},
	}))
	for _, tt := range []struct{ code, want string }{
		{`return (await call("fake", "list")).items.map(x => x.id)`, "(x => x.id)\nThe last result, of fake.list: {projects: [1 of {id: number, key: string}]}\nCalls made: fake.list RESULT"},
		{`await call("fake", "list"); return JSON.parse(await call("fake", "text"))`, "\nThe last result, of fake.text: string\nCalls made: "},
		{`await call("fake", "list"); return result("r")`, "\nCalls made: fake.list RESULT"},
		{`return null.x`, "return null.x"},
	} {
		got := exec(t, e, program(nil, tt.code))
		if text := all(t, got); !got.IsError || !strings.Contains(text, tt.want) || strings.Contains(text, "The last") != strings.Contains(tt.want, "The last") {
			t.Errorf("%s: got %s", tt.code, text)
		}
	}
}

// TestProgram_CutShort: the failure of a program says which calls were made, with their outcomes.
func TestProgram_CutShort(t *testing.T) {
	mcptest.NoLeaks(t)
	e := executing(t, withPrograms(t, Options{}), nil, piped(t, "fake", eachTool(reading)))
	var said []string
	r := program(nil, "await call('fake', 'echo', {text: 'a'}); console.log('half');\nawait call('fake', 'echo', {})")
	r.Sink.Progress = func(params json.RawMessage) { said = append(said, wire.MemberText(params, "message")) }
	got := exec(t, e, r)
	text := all(t, got)
	if !got.IsError || !strings.HasPrefix(text, "half\nEXECUTION_ERROR: Error: VALIDATION_ERROR: ") || !strings.Contains(text, "at line 2, column 11: await call('fake', 'echo', {})") ||
		!strings.HasSuffix(text, "Calls made: fake.echo RESULT; fake.echo VALIDATION_ERROR") {
		t.Errorf("got %s", text)
	}
	if fmt.Sprint(said) != "[1 of 1 calls 2 of 2 calls]" {
		t.Errorf("progress %q", said)
	}
}
