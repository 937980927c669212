package programs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpx/internal/base/proc"
	"mcpx/internal/mcptest"
)

// patient are limits for tests of what programs do; they have so much time that a busy machine does not matter.
var patient = Limits{Time: 5 * time.Minute}

// watched is a runner whose helper processes the test can see.
type watched struct {
	*Runner
	mu      sync.Mutex
	started []*proc.Process // guarded by mu
}

func watch(t testing.TB) *watched {
	t.Helper()
	w := &watched{}
	w.Runner = newRunner(0, func(s proc.Spec) (*proc.Process, error) {
		p, err := proc.Start(s, nil)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.started = append(w.started, p)
		return p, err
	})
	t.Cleanup(w.Close)
	return w
}

// echo answers a call with its arguments. The tool fail fails, and the tool hang waits for the end.
var echo = Host{
	Call: func(ctx context.Context, c Call) (json.RawMessage, string, *Failure) {
		switch c.Tool {
		case "fail":
			return nil, "VALIDATION_ERROR", &Failure{"VALIDATION_ERROR", "VALIDATION_ERROR: /a: is missing"}
		case "hang":
			<-ctx.Done()
			return nil, "CANCELLED", &Failure{CodeFailed, "cancelled"}
		}
		return c.Arguments, "RESULT", nil
	},
	Result: func(_ context.Context, handle string) (json.RawMessage, *Failure) {
		if handle == "none" {
			return nil, &Failure{"VALIDATION_ERROR", "VALIDATION_ERROR: /handle: is unknown or has expired"}
		}
		return json.RawMessage(`{"handle":"` + handle + `","n":12345678901234567890}`), nil
	},
}

// shown is an outcome as one text.
func shown(out *Outcome, err error) string {
	if err != nil {
		return "error " + err.Error()
	}
	text := out.Logs
	switch {
	case out.Failure != nil:
		text += out.Failure.Code + ": " + out.Failure.Message
	case out.Value == nil:
		text += "undefined"
	default:
		text += string(out.Value)
	}
	return text
}

func run(t *testing.T, r *Runner, l Limits, code string) string {
	t.Helper()
	return shown(r.Run(t.Context(), "", Program{Code: code, Limits: l}, echo))
}

func TestRunner_Programs(t *testing.T) {
	mcptest.Parallel(t)
	r := watch(t)
	for _, tt := range []struct{ name, code, want string }{
		{"value", `return {a: [1, "x", null, 1.5]}`, `{"a":[1,"x",null,1.5]}`},
		{"string", `return "a\nb"`, `"a\nb"`},
		{"no value", `const a = 1`, `undefined`},
		{"null", `return null`, `null`},
		{"not a number", `return NaN`, `null`},
		{"function", `return () => 1`, `undefined`},
		{"comment at the end", `return 1 // one`, `1`},
		{"console", `console.log("a", 1, {b: 2n ** 64n}, [1], undefined, null, new Error("e")); console.error("x"); return 3`,
			"a 1 {\"b\":18446744073709551616} [1] undefined null Error: e\nx\n3"},
		{"too many lines", `console.log("a\n".repeat(9999) + "a"); console.log("b"); console.log("c\nd\ne")`,
			strings.Repeat("a\n", 10_000) + "[4 more lines]\nundefined"},
		{"call", `return await call("s", "t", {a: 1})`, `{"a":1}`},
		{"call without arguments", `return await call("s", "t")`, `{}`},
		{"big integers", `const v = await call("s", "t", {a: 12345678901234567890n, b: 9007199254740992, c: -9007199254740993n, d: "123"})
return [typeof v.a, typeof v.b, v, v.a + 1n]`,
			`["bigint","number",{"a":12345678901234567890,"b":9007199254740992,"c":-9007199254740993,"d":"123"},12345678901234567891]`},
		{"JSON.parse of a result", `const v = JSON.parse(await call("s", "t", {a: [1]})); return [v.a, JSON.parse("[1]", (k, n) => k ? n + 1 : n), JSON.parse(new String("2")), JSON.parse(null)]`,
			`[[1],[2],2,null]`},
		{"JSON.parse of no JSON", `return JSON.parse(undefined)`, "EXECUTION_ERROR: SyntaxError: unexpected token: 'undefined'\nat line 1, column 18: return JSON.parse(undefined)"},
		{"parallel", `return (await Promise.all([1,2,3].map(n => call("s", "t", {n})))).map(v => v.n)`, `[1,2,3]`},
		{"failed call", `try { await call("s", "fail") } catch (e) { return [e instanceof Error, e.code, e.message] }`,
			`[true,"VALIDATION_ERROR","VALIDATION_ERROR: /a: is missing"]`},
		{"failed call not caught", "const a = 1\n  await call(\"s\", \"fail\")", "EXECUTION_ERROR: Error: VALIDATION_ERROR: /a: is missing\nat line 2, column 13: await call(\"s\", \"fail\")"},
		{"result", `return result("h1")`, `{"handle":"h1","n":12345678901234567890}`},
		{"unknown result", `try { result("none") } catch (e) { return [e.code, e.message] }`,
			`["VALIDATION_ERROR","VALIDATION_ERROR: /handle: is unknown or has expired"]`},
		{"thrown", "const a = 1;\nfunction f(x) {\n  return x.y.z;\n}\nreturn f({})", "EXECUTION_ERROR: TypeError: cannot read property 'z' of undefined\nat line 3, column 13: return x.y.z;"},
		{"thrown value", `throw {a: 1}`, `EXECUTION_ERROR: {"a":1}`},
		{"thrown null", `throw null`, `EXECUTION_ERROR: the program needs more than 64 MB of memory, so handle less at once, unless it threw null itself`},
		{"null rejected", `Promise.reject(null)`, `EXECUTION_ERROR: the program needs more than 64 MB of memory, so handle less at once, unless it threw null itself`},
		{"thrown undefined", `throw undefined`, `EXECUTION_ERROR: undefined`},
		{"thrown number", `throw NaN`, `EXECUTION_ERROR: NaN`},
		{"thrown text null", `throw "null"`, `EXECUTION_ERROR: null`},
		{"thrown empty text", `throw ""`, `EXECUTION_ERROR: ""`},
		{"memory of others", `throw new Error("disk: out of memory")`, "EXECUTION_ERROR: Error: disk: out of memory\nat line 1, column 16: throw new Error(\"disk: out of memory\")"},
		{"memory of the engine", `return "a".repeat(1e9)`, `EXECUTION_ERROR: the program needs more than 64 MB of memory; handle less at once`},
		{"syntax", "const a = 1;\nconst b = ;", "EXECUTION_ERROR: SyntaxError: unexpected token in expression: ';'\nat line 2, column 11: const b = ;"},
		{"syntax, not closed", "if (1) {\n  return 2", "EXECUTION_ERROR: SyntaxError: the program ends within an expression, bracket, quote or comment, or closes a bracket too many\nat line 2: return 2"},
		{"syntax, an operand is missing", "return 1 +", "EXECUTION_ERROR: SyntaxError: the program ends within an expression, bracket, quote or comment, or closes a bracket too many\nat line 1: return 1 +"},
		{"syntax, another fault that shows at the end", "const a", "EXECUTION_ERROR: SyntaxError: missing initializer for const variable\nat line 1: const a"},
		{"syntax, break at the end", "for (;;) {}\nbreak", "EXECUTION_ERROR: SyntaxError: break must be inside loop or switch\nat line 2: break"},
		{"syntax, closed too often", "return 1}", "EXECUTION_ERROR: SyntaxError: the program ends within an expression, bracket, quote or comment, or closes a bracket too many\nat line 1: return 1}"},
		{"unhandled rejection", "async function f() {\n  null.x\n}\nf();\nreturn 1", "EXECUTION_ERROR: TypeError: cannot read property 'x' of null\nat line 2, column 7: null.x"},
		{"unhandled rejection of a call", "call(\"s\", \"fail\"); return 1", "EXECUTION_ERROR: Error: VALIDATION_ERROR: /a: is missing\nat line 1, column 5: call(\"s\", \"fail\"); return 1"},
		{"rejection handled later", `const p = call("s", "fail"); await call("s", "t"); await call("s", "t"); try { await p } catch (e) { return "ok" }`, `"ok"`},
		{"call not awaited", `call("s", "t"); return 1`, `1`},
		{"call not awaited in the value", `return {a: [1, 2].map(n => call("s", "t", {n}))}`,
			"EXECUTION_ERROR: TypeError: a promise is not a value; await it, and several with await Promise.all(list)"},
		{"call not awaited in arguments", `const a = call("s", "t"); return await call("s", "t", {a})`,
			"EXECUTION_ERROR: TypeError: a promise is not a value; await it, and several with await Promise.all(list)\nat line 1, column 44: const a = call(\"s\", \"t\"); return await call(\"s\", \"t\", {a})"},
		{"call not awaited and logged", `console.log(call("s", "t")); return 1`, "[object Promise]\n1"},
		{"calls after return", `[1].forEach(async () => { await call("s", "t"); await call("s", "t") }); return 1`,
			"EXECUTION_ERROR: Error: the program has already ended; await what makes calls before you return\nat line 1, column 59: [1].forEach(async () => { await call(\"s\", \"t\"); await call(\"s\", \"t\") }); return 1"},
		{"stuck", `await new Promise(() => {})`, "EXECUTION_ERROR: the program awaits a promise that nothing will settle: no call is open"},
		{"circular", `const a = {}; a.a = a; return a`, `EXECUTION_ERROR: TypeError: circular reference`},
		{"not a call", `await call("s")`, "EXECUTION_ERROR: TypeError: call(server, tool, args): server and tool must be strings\nat line 1, column 11: await call(\"s\")"},
		{"no surroundings", `return [typeof require, typeof process, typeof fetch, typeof std, typeof os, typeof performance, typeof setTimeout, typeof print]`,
			`["undefined","undefined","undefined","undefined","undefined","undefined","undefined","undefined"]`},
		{"host functions", `return Object.getOwnPropertyNames(globalThis).filter(n => n.startsWith("mcpx"))`, `[]`},
		{"no clock finer than a millisecond", `return [Date.now() % 1, new Date().getTimezoneOffset()]`, `[0,0]`},
		{"modules", `try { await import("/etc/passwd") } catch (e) { return "none" }`, `"none"`},
		{"too many calls", `let n = 0; for (let i = 0; i < 300; i++) { try { await call("s", "t") } catch (e) { n++ } } return n`, `100`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := run(t, r.Runner, patient, tt.code); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestRunner_AtOnce: calls are made at the same time up to the limit, and progress says how many have ended.
func TestRunner_AtOnce(t *testing.T) {
	mcptest.Parallel(t)
	r := watch(t)
	var (
		open, most atomic.Int32
		full       = make(chan struct{})
		said       []string
	)
	host := Host{
		Call: func(context.Context, Call) (json.RawMessage, string, *Failure) {
			n := open.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			if n == 16 {
				close(full)
			}
			<-full
			return json.RawMessage(`1`), "RESULT", nil
		},
		Progress: func(done, total int) {
			open.Add(-1)
			said = append(said, fmt.Sprintf("%d of %d", done, total)) // the calls of Progress follow each other
		},
	}
	host.Call = onceFull(host.Call, full)
	out, err := r.Run(t.Context(), "", Program{Code: `return (await Promise.all(Array.from({length: 31}, (_, i) => call("s", "t", {i})))).length`, Limits: patient}, host)
	if got := shown(out, err); got != "31" || len(out.Made) != 31 || out.Made[30].Outcome != "RESULT" {
		t.Errorf("got %s, %v", got, out)
	}
	if most.Load() > 16 || len(said) != 31 || said[0] != "1 of 31" || said[30] != "31 of 31" {
		t.Errorf("%d calls at once, progress %v", most.Load(), said)
	}
}

// onceFull passes calls on until full is closed; later calls end at once.
func onceFull(call func(context.Context, Call) (json.RawMessage, string, *Failure), full chan struct{}) func(context.Context, Call) (json.RawMessage, string, *Failure) {
	return func(ctx context.Context, c Call) (json.RawMessage, string, *Failure) {
		select {
		case <-full:
			return json.RawMessage(`1`), "RESULT", nil
		default:
			return call(ctx, c)
		}
	}
}

// TestRunner_CutShort: when the time is over, the outcome has what was logged and the calls with their outcomes.
func TestRunner_CutShort(t *testing.T) {
	mcptest.Parallel(t)
	r := watch(t)
	out, err := r.Run(t.Context(), "", Program{
		Code:    "console.log('begun'); await call('s', 't'); try { await call('s', 'fail') } catch (e) {}\nawait Promise.all([call('s', 'hang'), call('s', 'hang')])",
		Timeout: 2 * time.Second, // enough for all calls to begin, also on a busy machine
	}, echo)
	if got, want := shown(out, err), "begun\nTIMEOUT: the program took longer than 2 s and was ended"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := Summary(out.Made), "s.t RESULT; s.fail VALIDATION_ERROR; s.hang ×2 CANCELLED"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestRunner_Cancel: when the client cancels, all calls end, and the helper with them.
func TestRunner_Cancel(t *testing.T) {
	mcptest.Parallel(t)
	r := watch(t)
	ctx, cancel := context.WithCancel(t.Context())
	var open atomic.Int32
	host := Host{Call: func(ctx context.Context, _ Call) (json.RawMessage, string, *Failure) {
		if open.Add(1) == 16 {
			cancel()
		}
		<-ctx.Done()
		open.Add(-1)
		return nil, "CANCELLED", &Failure{CodeFailed, "cancelled"}
	}}
	_, err := r.Run(ctx, "", Program{Code: `await Promise.all(Array.from({length: 40}, () => call("s", "t")))`, Limits: patient}, host)
	if err != context.Canceled || open.Load() != 0 {
		t.Errorf("got %v, %d calls still open", err, open.Load())
	}
	<-r.started[0].Done()
}

// TestRunner_Hold: while a call waits for the user, the time of the program stands still, but the engine may not run longer.
func TestRunner_Hold(t *testing.T) {
	mcptest.Parallel(t)
	r := watch(t)
	over := make(chan struct{})
	host := Host{Call: func(ctx context.Context, c Call) (json.RawMessage, string, *Failure) {
		release := c.Hold()
		defer release()
		select {
		case <-ctx.Done():
		case <-over:
		}
		return json.RawMessage(`1`), "RESULT", nil
	}}
	time.AfterFunc(3*time.Second, func() { close(over) })
	out, err := r.Run(t.Context(), "", Program{Code: `return await call("s", "t")`, Timeout: 2 * time.Second}, host)
	if got := shown(out, err); got != "1" {
		t.Errorf("got %s", got)
	}
	over = make(chan struct{})
	out, err = r.Run(t.Context(), "", Program{Code: `call("s", "t"); await null; for (let n = 0;;) n++`, Timeout: 300 * time.Millisecond}, host)
	if got := shown(out, err); !strings.HasPrefix(got, "TIMEOUT: ") {
		t.Errorf("got %s", got)
	}
}

// TestRunner_Fair: however many programs one principal runs, there are helpers for the programs of another.
func TestRunner_Fair(t *testing.T) {
	mcptest.Parallel(t)
	r := watch(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 12 {
		running.Go(func() { _, _ = r.Run(ctx, "greedy", Program{Code: `await call("s", "hang")`, Limits: patient}, echo) })
	}
	for range 3 {
		if got := shown(r.Run(t.Context(), "other", Program{Code: `return 1`, Limits: patient}, echo)); got != "1" {
			t.Errorf("got %s", got)
		}
	}
	cancel()
	running.Wait()
	if n := len(r.started); n > helpers {
		t.Errorf("%d helpers were started", n)
	}
}

func TestSummary(t *testing.T) {
	made := slices.Repeat([]Made{{Server: "a", Tool: "b", Outcome: "RESULT"}}, 3)
	if got := Summary(append(made, Made{Server: "c", Tool: "d", Outcome: "TIMEOUT"})); got != "a.b ×3 RESULT; c.d TIMEOUT" {
		t.Error(got)
	}
}

// TestRunner_TooManyCalls: the error of a call over the limit says how many have ended and what to do, and a program that catches it
// returns what it has.
func TestRunner_TooManyCalls(t *testing.T) {
	w := watch(t)
	out, err := w.Run(t.Context(), "", Program{Limits: Limits{Calls: 3}, Code: `
const got = [];
try {
  for (;;) got.push(await call("s", "echo", {n: got.length}));
} catch (e) {
  return [got.length, e.code, e.message];
}`}, echo)
	const want = `[3,"EXECUTION_ERROR","a program may make 3 calls, of which 3 have ended; this one was not made. ` +
		`Catch this error and return what you have, and do the rest in another program, or with each of exec"]`
	if err != nil || string(out.Value) != want {
		t.Errorf("%s, %v, %+v", out.Value, err, out.Failure)
	}
}
