package programs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// hostile are programs that never end, need more memory than they may have, log more than is allowed, or try to get out. end is a
// part of the text with which each must end; it is empty if the end depends on the machine's speed.
var hostile = []struct{ name, code, end string }{
	{"endless loop", `for (;;) {}`, codeTime},
	{"endless loop in try", `for (;;) { try { for (;;) {} } catch (e) {} finally { for (;;) {} } }`, codeTime},
	{"endless loop after await", `await call("s", "t"); for (;;) {}`, codeTime},
	{"endless loop beside a call", `call("s", "hang"); for (;;) {}`, codeTime},
	{"endless calls in turn", `for (;;) { try { await call("s", "t") } catch (e) {} }`, codeTime},
	{"endless microtasks", `const f = () => Promise.resolve().then(f); await f()`, ""},
	{"endless microtasks that are kept", `const all = []; const f = () => { all.push(Promise.resolve().then(f)) }; f(); await new Promise(() => {})`, ""},
	{"endless awaiting", `for (;;) await null`, codeTime},
	{"never settled", `await new Promise(() => {})`, "nothing will settle"},
	{"hanging calls", `await Promise.all(Array.from({length: 100}, () => call("s", "hang")))`, codeTime},
	{"backtracking", `return /^(a+)+$/.test("a".repeat(40) + "b")`, codeTime},
	{"backtracking over long texts", `return /(x+x+)+y/.test("x".repeat(1e6))`, ""},
	{"endless sorting", `const a = Array.from({length: 1e6}, (_, i) => i); for (;;) a.sort(() => Math.random() - 0.5)`, codeTime},
	{"comparing for ever", `[3, 2, 1].sort(() => { for (;;) {} })`, codeTime},
	{"growing arrays", `const a = []; for (;;) a.push([1, 2, 3, {}])`, ""},
	{"growing objects", `const o = {}; for (let i = 0;; i++) o["k" + i] = {i}`, ""},
	{"doubled string", `let s = "ab"; for (;;) s += s`, "string too long"},
	{"kept strings", `const a = []; for (let i = 0;; i++) a.push(("x" + i).repeat(1e5))`, ""},
	{"array buffer", `return new ArrayBuffer(8e9)`, ""},
	{"array buffers", `const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))`, ""},
	{"sparse array", `const a = []; a[4294967294] = 1; return a`, ""},
	{"array of a length", `return new Array(4294967295).fill(1)`, ""},
	{"recursion", `const f = n => f(n + 1) + 1; return f(0)`, "stack overflow"},
	{"recursion in toString", `const o = {toString() { return "" + o }}; return "" + o`, "stack overflow"},
	{"recursion through a proxy", `const p = new Proxy({}, {get(t, k, r) { return r[k] }}); return p.x`, "stack overflow"},
	{"nested JSON", `return JSON.parse("[".repeat(1e6) + "]".repeat(1e6))`, ""},
	{"nested value", `let v = []; for (let i = 0; i < 1e5; i++) v = [v]; return v`, ""},
	{"split and joined", `let s = "ab".repeat(1e6); for (;;) s = s.split("").reverse().join("")`, ""},
	{"big integers", `let n = 3n; for (;;) n *= n`, ""},
	{"power", `return 2n ** 10000000000n`, ""},
	{"long value", `return "a".repeat(2e6)`, "over the limit of 1 MB"},
	{"gigabyte of lines", `const s = "a".repeat(1e6); for (let i = 0; i < 1000; i++) console.log(s); return 1`, ""},
	{"endless lines", `for (;;) console.log("a")`, codeTime},
	{"shared values", `let v = "aaaaaaaa"; for (let i = 0; i < 40; i++) v = [v, v]; return v`, ""},
	{"calls without await", `for (let i = 0; i < 1e5; i++) call("s", "t", {i}); return 1`, ""},
	{"endless calls without await", `for (;;) call("s", "t")`, ""},
	{"calls in microtasks", `const f = () => call("s", "t").then(f, f); f(); await new Promise(() => {})`, ""},
	{"calls after return", `call("s", "t").then(() => call("s", "t")); return 1`, "has already ended"},
	{"long arguments", `const s = "a".repeat(1e6); await Promise.all(Array.from({length: 100}, () => call("s", "t", {s})))`, ""},
	{"too long arguments", `await call("s", "t", {s: "a".repeat(2e6)})`, "over the limit of 1 MB"},
	{"prototypes changed", `Array.prototype.push = Object.prototype.toString = JSON.stringify = JSON.parse = Promise.prototype.then = () => { throw 1 }; ` +
		`String.prototype.startsWith = () => true; Object.defineProperty(Object.prototype, "id", {set() { throw 2 }}); return await call("s", "t", {a: 1})`, ""},
	{"promises changed", `globalThis.Promise = null; Promise = 5; return await call("s", "t", {a: 1})`, `{"a":1}`},
	{"toJSON", `Object.prototype.toJSON = function () { for (;;) {} }; return {a: 1}`, codeTime},
	{"getter", `return {get a() { for (;;) {} }}`, codeTime},
	{"thenable", `return {then() { for (;;) {} }}`, codeTime},
	{"thrown getter", `throw {get message() { for (;;) {} }, toString() { for (;;) {} }}`, codeTime},
	{"error with much", `throw new Error("a".repeat(1e7))`, CodeFailed},
	{"null thrown", `throw null`, CodeFailed},
	{"out of the function", `}); for (;;) {} (async function () {`, ""},
	{"eval", `return eval("for (;;) {}")`, codeTime},
	{"generated code", `return new Function("a".repeat(1e6) + ";".repeat(1e6))()`, CodeFailed},
	{"much code", strings.Repeat("[", 1e5), CodeFailed},
	{"weak references", `const r = new FinalizationRegistry(() => { for (;;) {} }); for (;;) r.register({}, 1)`, ""},
	{"waiting on memory", `Atomics.wait(new Int32Array(new SharedArrayBuffer(8)), 0, 0)`, CodeFailed},
	{"import", `return await import("file:///etc/passwd")`, CodeFailed},
	{"generator", `function* f() { for (;;) yield 1 } return [...f()]`, ""},
	{"references in data", `return await call("s", "t", {$result: "h", a: {$file: "/etc/passwd"}})`, `{"$result":"h","a":{"$file":"/etc/passwd"}}`},
	{"marks in data", `return await call("s", "t", {a: "mcpx-AAAAAAAAAAAAAAAAAAAAAAAAAA:1"})`, `{"a":"mcpx-AAAAAAAAAAAAAAAAAAAAAAAAAA:1"}`},
	{"names of the host", `return [typeof mcpx_send, typeof mcpx_done, typeof host]`, `["undefined","undefined","undefined"]`},
	{"constructor of the globals", `return call.constructor("return typeof process + typeof require")()`, `"undefinedundefined"`},
	{"rejections for ever", `for (;;) { try { await Promise.reject(1) } catch (e) {} }`, codeTime},
	{"rejections that are kept", `for (;;) Promise.reject({a: [1, 2, 3]})`, ""},
	{"symbols", `return {[Symbol.toPrimitive]() { for (;;) {} }} + ""`, codeTime},
}

// TestRunner_Hostile: each program ends as it must, at the latest some time after its limit, and the next program works. After
// Close no helper is left.
func TestRunner_Hostile(t *testing.T) {
	all := hostile
	if mcptest.Race { // the runner's goroutines do the same for each program
		all = mcptest.Part(t, hostile, 10)
	}
	// On an idle machine all end within 1.2 times the limit and 200 ms. A busy one is slower, but not without bound.
	const limit, generous = 500 * time.Millisecond, time.Minute
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := watch(t)
			if got := run(t, r.Runner, patient, "return 1"); got != "1" {
				t.Fatal(got)
			}
			began := time.Now()
			out, err := r.Run(t.Context(), "", Program{Code: tt.code, Timeout: limit}, echo)
			took, got := time.Since(began), shown(out, err)
			t.Logf("%4d ms  %.200s", took.Milliseconds(), got)
			// On a slow machine, the time may be over before anything else happens. The race detector makes frames so large that
			// they need the memory before the stack is full.
			ended := strings.Contains(got, tt.end) || strings.Contains(got, codeTime) || mcptest.Race && strings.Contains(got, "MB of memory")
			if err != nil || !ended {
				t.Errorf("got %.300s (%v), want %q", got, err, tt.end)
			}
			if took > generous {
				t.Errorf("it took %v, with a limit of %v", took, limit)
			}
			if len(out.Made) > 200 {
				t.Errorf("%d calls", len(out.Made))
			}
			if got := run(t, r.Runner, patient, "return 2"); got != "2" {
				t.Errorf("the next program: %s", got)
			}
			r.Close()
			for _, p := range r.started { // each helper has ended
				<-p.Done()
			}
		})
	}
}

// TestRunner_Beside: while one principal runs hostile programs, the programs of another run.
func TestRunner_Beside(t *testing.T) {
	mcptest.Parallel(t)
	r := watch(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan struct{})
	running := 0
	for _, code := range []string{"for (;;) {}", `const a = []; for (;;) a.push({})`, `for (;;) console.log("aaaa")`, `for (;;) await call("s", "t").catch(() => 0)`} {
		running++
		go func() {
			_, _ = r.Run(ctx, "greedy", Program{Code: code, Limits: patient}, echo)
			ended <- struct{}{}
		}()
	}
	for i := range 5 {
		if got := shown(r.Run(t.Context(), "other", Program{Code: fmt.Sprintf("return (await call('s', 't', {i: %d})).i", i), Limits: patient}, echo)); got != fmt.Sprint(i) {
			t.Errorf("got %s", got)
		}
	}
	cancel()
	for range running {
		<-ended
	}
}

// TestRunning_Untrusted: a helper that a program has taken over cannot make more calls than allowed, or calls that are no JSON.
func TestRunning_Untrusted(t *testing.T) {
	made := 0
	d := &running{host: Host{Call: func(context.Context, Call) (json.RawMessage, string, *Failure) {
		made++
		return []byte("1"), "RESULT", nil
	}},
		limits: Limits{Calls: 3}.WithDefaults(), over: func() {}}
	for range 10 {
		d.reply(t.Context(), []byte(`c{"server":"s","tool":"t","args":{},"made":1000000}`))
	}
	for _, request := range []string{"", "x", "c", `c{"server":5}`, `c{"server":"s","args":{]}`} {
		if code, _ := decodeReply(d.reply(t.Context(), []byte(request))); code == "" {
			t.Errorf("%q is accepted", request)
		}
	}
	if made != 3 || d.total != 3 || len(d.calls()) != 3 {
		t.Errorf("%d calls, %d in all", made, d.total)
	}
}
