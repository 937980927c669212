package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpx/internal/base/helper"
	"mcpx/internal/base/proc"
	"mcpx/internal/mcptest"
)

// patient are limits for tests of what filters do; they have so much time that a busy machine does not matter.
var patient = Limits{Time: 5 * time.Minute}

// watched is a runner whose helper processes the test can see.
type watched struct {
	*Runner
	mu      sync.Mutex
	started []*proc.Process // guarded by mu
}

func watch(t testing.TB, l Limits) *watched {
	t.Helper()
	w := &watched{}
	w.Runner = newRunner(l, func(s proc.Spec) (*proc.Process, error) {
		p, err := proc.Start(s, nil)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.started = append(w.started, p)
		return p, err
	})
	t.Cleanup(w.Close)
	return w
}

// all are the helpers that the runner has started.
func (w *watched) all() []*proc.Process {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.started)
}

// last is the helper that was started last: the one in use, if one filter runs at a time.
func (w *watched) last() *proc.Process {
	all := w.all()
	return all[len(all)-1]
}

// lines joins outputs for comparison.
func lines(outputs []json.RawMessage) string {
	var s []string
	for _, o := range outputs {
		s = append(s, string(o))
	}
	return strings.Join(s, "\n")
}

func TestRunner_Outputs(t *testing.T) {
	r := watch(t, patient)
	tests := []struct{ name, filter, input, want string }{
		{"identity", `.`, `{"b":1,"a":[true,false,null,"x"]}`, `{"a":[true,false,null,"x"],"b":1}`},
		{"several outputs", `.[] | .n`, `[{"n":1},{"n":"two"},{}]`, "1\n\"two\"\nnull"},
		{"none", `empty`, `1`, ``},
		{"none selected", `.[] | select(. > 5)`, `[1,2]`, ``},
		{"literals pass", `.`, `[1.10,1e2,-0,9007199254740993,1E+400,0.1000]`, `[1.10,1e2,-0,9007199254740993,1E+400,0.1000]`},
		{"literals pass in paths", `{id: .items[0].id, price: .items[0].price}`, `{"items":[{"id":123456789012345678901234567890,"price":1.10}]}`,
			`{"id":123456789012345678901234567890,"price":1.10}`},
		{"literals pass sorting", `sort | reverse`, `[9007199254740992,9007199254740993,1.50]`, `[9007199254740993,9007199254740992,1.50]`},
		{"big integers are exact", `.[0] + .[1]`, `[9007199254740993,100000000000000000000]`, `100009007199254740993`},
		{"decimals are floats", `. * 1`, `1.10`, `1.1`},
		{"division", `. / 2`, `5`, `2.5`},
		{"no escapes", `.`, `"<a href=\"x\">&\u2028é\t\u007f"`, "\"<a href=\\\"x\\\">&\u2028é\\t\\u007f\""},
		{"invalid UTF-8", `.`, "\"a\xffb\"", `"a` + "\uFFFD" + `b"`},
		{"duplicate keys", `.`, `{"a":1,"a":2}`, `{"a":2}`},
		{"keys are escaped", `.`, `{"a\"\n":1}`, `{"a\"\n":1}`},
		{"not a number", `[nan, infinite]`, `0`, `[null,1.7976931348623157e+308]`},
		{"white space around", `.a`, " \n{\"a\":1} \n", `1`},
		{"a halting def is a name", `def halt: 7; halt`, `0`, `7`},
		{"no environment", `[env, $ENV]`, `0`, `[{},{}]`},
		{"no variable", `[env.PATH, $ENV.HOME, $ENV.` + proc.RoleVar + `]`, `0`, `[null,null,null]`},
		{"time zone", `0 | localtime | mktime, (0 | strflocaltime("%H %Z"))`, `0`, "0\n\"00 UTC\""},
		{"caught", `try error("x") catch .`, `0`, `"x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := r.Run(t.Context(), "", tt.filter, []byte(tt.input))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, lines(got)); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRunner_OutputsApart checks that an append to one output leaves the next alone.
func TestRunner_OutputsApart(t *testing.T) {
	r := watch(t, patient)
	got, err := r.Run(t.Context(), "", `1, 2`, []byte(`0`))
	if err != nil {
		t.Fatal(err)
	}
	_ = append(got[0], "xxxxxxxxxxxx"...)
	if lines(got) != "1\n2" {
		t.Errorf("got %q after an append, want 1 and 2", lines(got))
	}
}

// TestCheck: Check refuses exactly the filters that Run cannot parse, with the same text.
func TestCheck(t *testing.T) {
	r := watch(t, patient)
	for _, filter := range []string{".items[}", `.a == "x`, strings.Repeat("(", maxFilter), strings.Repeat("é", maxMessage), strings.Repeat(" ", maxFilter) + "."} {
		_, want := r.Run(t.Context(), "", filter, []byte(`{}`))
		var filterErr *FilterError
		if got := Check(filter); !errors.As(got, &filterErr) || want == nil || got.Error() != want.Error() {
			t.Errorf("%.20s: got %v, want %v", filter, got, want)
		}
	}
	for _, filter := range []string{".", `.[] | {a, "b": (.c // "é")}`, "nope(1)", `error("x")`, "range(1e12)"} {
		if err := Check(filter); err != nil {
			t.Errorf("%s: %v", filter, err)
		}
	}
}

// TestCheck_Deep: the stack that Check needs does not grow with the filter, since Check runs in the process that
// all clients share.
func TestCheck_Deep(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(128 << 10)) // going beyond it ends the test binary
	for _, nest := range []struct{ open, close string }{{"(", ")"}, {"[", "]"}, {"{a:", "}"}, {`"\(`, `)"`}, {".[", "]"}, {"-", ""}, {"if 1 then ", " end"}} {
		n := (maxFilter - 1) / len(nest.open+nest.close)
		if err := Check(strings.Repeat(nest.open, n) + "1" + strings.Repeat(nest.close, n)); err != nil {
			t.Errorf("%s: %v", nest.open, err)
		}
	}
}

func TestRunner_FilterErrors(t *testing.T) {
	r := watch(t, patient)
	long := strings.Repeat("é", maxMessage)
	tests := []struct{ name, filter, input, want string }{
		{"token", `.items[}`, `{}`, "unexpected token \"}\" at character 8 of the filter, after `.items[`"},
		{"after letters", `"é" | ]`, `{}`, "unexpected token \"]\" at character 7 of the filter, after `\"é\" | `"},
		{"first", `| .a`, `{}`, `unexpected token "|" at character 1 of the filter`},
		{"end", `.items[`, `{}`, "unexpected EOF at character 8 of the filter, after `.items[`"},
		{"word", `.a then .b`, `{}`, "unexpected token \"then\" at character 4 of the filter, after `.a `"},
		{"string", `.a == "x`, `{}`, "unterminated string literal at character 9 of the filter, after `.a == \"x`"},
		{"long before", `.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | | .`, `{}`, "unexpected token \"|\" at character 42 of the filter, after `aaaaaaaaaaaaaaaaaaaaa | `"},
		{"empty", ``, `{}`, `missing query (try ".")`},
		{"function", `.a | nope(1)`, `{}`, `function not defined: nope/1`},
		{"variable", `$x`, `{}`, `variable not defined: $x`},
		{"type", `.a`, `[1]`, `expected an object but got: array ([1])`},
		{"iteration", `.a[]`, `{"a":5}`, `cannot iterate over: number (5)`},
		{"error", `error("no such thing")`, `{}`, `error: no such thing`},
		{"error object", `error({a:1})`, `{}`, `error: {"a":1}`},
		{"one line", `error("a\n\n b")`, `{}`, `error: a b`},
		{"short", `error("` + long + `")`, `{}`, "error: " + strings.Repeat("é", (maxMessage-3-7)/2) + "..."},
		{"after an output", `1, error("late")`, `{}`, `error: late`},
		{"regular expression", `test("(")`, `"x"`, "invalid regular expression \"(\": error parsing regexp: missing closing ): `(`"},
		{"input", `input`, `{}`, `input(s)/0 is not allowed`},
		{"inputs", `[inputs]`, `{}`, `input(s)/0 is not allowed`},
		{"import", `import "a" as a; .`, `{}`, `cannot load module: "a"`},
		{"import data", `import "/etc/passwd" as $a; .`, `{}`, `cannot load module: "/etc/passwd"`},
		{"include", `include "a"; .`, `{}`, `cannot load module: "a"`},
		{"modulemeta", `"a" | modulemeta`, `{}`, `cannot load module: "a"`},
		{"debug", `debug`, `{}`, `function not defined: debug/0`},
		{"debug with a message", `debug("x")`, `{}`, `function not defined: debug/1`},
		{"stderr", `stderr`, `{}`, `function not defined: stderr/0`},
		{"input_filename", `input_filename`, `{}`, `function not defined: input_filename/0`},
		{"program arguments", `$__prog_args`, `{}`, `variable not defined: $__prog_args`},
		{"halt", `1, halt`, `{}`, `halt and halt_error are not available`},
		{"halt_error", `try halt_error catch 1`, `{}`, `halt and halt_error are not available`},
		{"long filter", strings.Repeat(" ", maxFilter) + ".", `{}`, `the filter is longer than 64 KB`},
		{"deep output", `reduce range(20000) as $i (0; [.])`, `{}`, `an output is nested deeper than 10000 levels`},
		{"repetition beyond 2 GB", `"a"*5e9`, `{}`, `repeat string result too large: "a" * 5000000000`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.Run(t.Context(), "", tt.filter, []byte(tt.input))
			var filterErr *FilterError
			if !errors.As(err, &filterErr) {
				t.Fatalf("got %v, want a FilterError", err)
			}
			if filterErr.Message != tt.want {
				t.Errorf("got  %s\nwant %s", filterErr.Message, tt.want)
			}
		})
	}
	if n := len(r.all()); n != 1 {
		t.Errorf("%d helpers were started, want the one that ran all", n)
	}
}

func TestRunner_Input(t *testing.T) {
	r := watch(t, patient)
	tests := []struct{ name, input, want string }{
		{"empty", ``, `it is empty`},
		{"cut", `{"a":`, `unexpected EOF`},
		{"prose", `hello`, `invalid character 'h' looking for beginning of value`},
		{"two values", `1 2`, `something follows the value at byte 3`},
		{"rest", `{} }`, `something follows the value at byte 3`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.Run(t.Context(), "", `.`, []byte(tt.input))
			if want := "decoding the input of the filter: " + tt.want; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestRunner_Concurrent(t *testing.T) {
	r := watch(t, patient)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 10 {
				want := fmt.Sprint(i*1000 + j)
				got, err := r.Run(t.Context(), "", ".["+fmt.Sprint(j)+"] + "+fmt.Sprint(i*1000), []byte(`[0,1,2,3,4,5,6,7,8,9]`))
				if err != nil || lines(got) != want {
					t.Errorf("got %q, %v, want %s", lines(got), err, want)
				}
			}
		})
	}
	wg.Wait()
	if n := len(r.all()); n < 1 || n > 2 {
		t.Errorf("%d helpers were started, want 1 or 2", n)
	}
}

// endless is a filter that runs until something stops it.
const endless = `def f: f; f`

// TestRunner_Interrupted: the end of the context, or Close, ends a running filter, with different errors.
func TestRunner_Interrupted(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(*watched, context.CancelFunc)
		want error
	}{
		{"cancel", func(_ *watched, cancel context.CancelFunc) { cancel() }, context.Canceled},
		{"close", func(w *watched, _ context.CancelFunc) { w.Close() }, helper.ErrClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := watch(t, Limits{Time: time.Hour})
			warm(t, r.Runner)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			spin := make(chan error)
			go func() {
				_, err := r.Run(ctx, "", endless, []byte(`0`))
				spin <- err
			}()
			tt.end(r, cancel)
			if err := <-spin; !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if _, err := r.Run(ctx, "", `.`, []byte(`0`)); !errors.Is(err, tt.want) {
				t.Errorf("afterwards: got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestRunner_LittleMemory: with the little memory of a small container, a filter can still handle a result of half a megabyte.
func TestRunner_LittleMemory(t *testing.T) {
	r := watch(t, Limits{Time: patient.Time, Memory: 64 << 20})
	input := "[" + strings.Repeat(`{"a":1,"b":"some text"},`, 20_000) + `0]`
	got, err := r.Run(t.Context(), "", `length`, []byte(input))
	if err != nil && !mcptest.Race || err == nil && lines(got) != "20001" {
		t.Errorf("got %s, %v", lines(got), err)
	}
}

// TestRunner_NoHelper: if no helper can be started, the error says what failed.
func TestRunner_NoHelper(t *testing.T) {
	r := newRunner(patient, func(proc.Spec) (*proc.Process, error) { return nil, errors.New("no memory for it") })
	defer r.Close()
	_, err := r.Run(t.Context(), "", `.`, []byte(`0`))
	if want := "running the filter: starting the jq helper: no memory for it"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// warm checks that the runner works: it runs a simple filter, for which the runner starts a helper if it has none. On a busy
// machine the filter may exceed its time limit, so warm tries again for up to a minute.
func warm(t testing.TB, r *Runner) {
	t.Helper()
	got, err := r.Run(context.Background(), "", `.a`, []byte(`{"a":42}`))
	for end := time.Now().Add(time.Minute); outcome(err) == "time" && time.Now().Before(end); {
		got, err = r.Run(context.Background(), "", `.a`, []byte(`{"a":42}`))
	}
	if err != nil || lines(got) != "42" {
		t.Fatalf("a plain filter gives %q, %v, want 42", lines(got), err)
	}
}

func BenchmarkRunner_Warm(b *testing.B) {
	for _, kb := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("%dKB", kb), func(b *testing.B) {
			r := watch(b, patient)
			input := records(kb << 10)
			b.SetBytes(int64(len(input)))
			for b.Loop() {
				if _, err := r.Run(b.Context(), "", `[.items[] | select(.state == "open") | {number, title, user: .user.login}]`, input); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRunner_Cold(b *testing.B) {
	for b.Loop() {
		r := New(patient, nil)
		warm(b, r)
		r.Close()
	}
}

// records is JSON as an issue tracker sends it, of about n bytes.
func records(n int) []byte {
	var s strings.Builder
	s.WriteString(`{"items":[`)
	for i := 0; s.Len() < n; i++ {
		if i > 0 {
			s.WriteByte(',')
		}
		state := "open"
		if i%3 == 0 {
			state = "closed"
		}
		fmt.Fprintf(&s, `{"number":%d,"title":"issue number %d about something","state":%q,"user":{"login":"user%d","id":%d,"site_admin":false},"labels":["bug","p%d"],"score":1.50,"closed_at":null}`,
			i, i, state, i%7, i*7919, i%4)
	}
	s.WriteString(`]}`)
	return []byte(s.String())
}

func FuzzRunner(f *testing.F) {
	for _, seed := range []string{
		`.`, `.a[0]?`, `.[] | select(.a > 1)`, `reduce .[] as $x (0; . + $x)`, `def f: f; f`, `"\(.a)"`,
		`.. | numbers`, `limit(3; repeat(1))`, `@base64 "x\(.)"`, `path(..)`, `. as [$a, {b: $c}] ?// $a | $a`,
		`to_entries | group_by(.key)`, `try error catch .`, `$__loc__`, `label $f | break $f`, `.a |= 1`,
		`input`, `halt`, `ltrimstr("a")`, `getpath(["a","b"])`, `[splits("a";"g")]`, `strptime("%Y")`, `.[1:3] = [1]`,
	} {
		f.Add(seed, `{"a":[1,{"b":2.50}],"c":"x"}`)
	}
	r := watch(f, Limits{Time: 200 * time.Millisecond, Memory: 64 << 20, Output: 64 << 10})
	f.Fuzz(func(t *testing.T, filter, input string) {
		outputs, err := r.Run(t.Context(), "", filter, []byte(input))
		var filterErr *FilterError
		var limitErr *LimitError
		switch {
		case errors.As(err, &filterErr):
			if strings.Contains(filterErr.Message, "broke the interpreter") || len(filterErr.Message) > maxMessage+1 {
				t.Fatalf("filter %q: %v", filter, err)
			}
		case errors.As(err, &limitErr):
		case err != nil && json.Valid([]byte(input)):
			t.Fatalf("filter %q on %q: %v", filter, input, err)
		}
		for _, o := range outputs {
			if !json.Valid(o) {
				t.Fatalf("filter %q gives %q", filter, o)
			}
		}
	})
}
