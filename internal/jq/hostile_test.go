package jq

import (
	"errors"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// hostile are filters that need more memory or time than any machine has, produce more output than allowed, or fail. what is
// the outcome that a filter must have; checkOutcome says which others may take its place.
var hostile = []struct{ name, filter, input, what string }{
	{"repetition", `"a"*2e9`, `0`, "memory"},
	{"repetitions", `reduce range(60) as $i ("aaaaaaaaaaaaaaaa"; . + .)`, `0`, "memory"},
	{"repeat kept", `[limit(1e9; repeat(1))]`, `0`, ""},
	{"range", `range(1e12)`, `0`, "output"},
	{"range to nothing", `range(1e12) | empty`, `0`, "time"},
	{"range kept", `[range(1e9)]`, `0`, ""},
	{"tail recursion", `def f: f; f`, `0`, "time"},
	{"recursion", `def f: 1 + f; f`, `0`, ""},
	{"recursive generator", `def f: (f, f); f`, `0`, ""},
	{"recurse", `[recurse(.)]`, `0`, ""},
	{"nesting", `reduce range(1e9) as $i (0; [.])`, `0`, ""},
	{"deep comparison", `reduce range(3e5) as $i (0; [.]) | . == .`, `0`, ""},
	{"deep tojson", `last(range(1e9) as $i | 1) | tojson`, `0`, "time"},
	{"tojson", `reduce range(40) as $i ("aaaaaaaa"; [.,.]) | tojson`, `0`, "memory"},
	{"shared output", `reduce range(40) as $i ("aaaaaaaa"; [.,.])`, `0`, "output"},
	{"far index", `.[5e8] = 1`, `[]`, "memory"},
	{"far indices", `reduce range(100) as $i ([]; .[5e7 + $i] = 1)`, `0`, "memory"},
	{"base64", `until(false; @base64)`, `"aaaaaaaaaaaaaaaa"`, ""},
	{"escapes", `until(false; tojson)`, `"\"\\"`, ""},
	{"regular expression", `test("(((a{1,30}){1,30}){1,30}b)")`, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"`, "filter"},
	{"slow regular expression", `("a"*1e6) as $s | [range(1e6) | . as $i | $s | test("(a?){500}b")]`, `0`, ""},
	{"many regular expressions", `range(1e9) | tostring as $r | "x" | test("(a?){300}" + $r) | empty`, `0`, ""},
	{"combinations", `[range(40)] | [combinations(20)] | length`, `0`, ""},
	{"big number", `last(limit(64; . as $x | 10 | recurse(. * .)))`, `0`, ""},
	{"powers", `reduce range(64) as $i (12345678901234567890; . * .)`, `0`, ""},
	{"digits", `reduce range(25) as $i (3; . * .)`, `0`, "output"},
	{"walks", `def f: walk([., .]) | f; f`, `[1]`, ""},
	{"many outputs", `[range(9)] | [., ., ., ., ., ., .] | combinations`, `0`, "output"},
	{"outputs of nothing", `range(2e6) | ""`, `0`, "output"},
	{"split", `("ab"*1e8) / ""`, `0`, "memory"},
	{"explode", `("ab"*5e7) | explode | implode`, `0`, "memory"},
	{"output", `"a"*9e6`, `0`, "output"},
	{"escaped output", `"\u0001"*2e6`, `0`, "output"},
	{"nested query", strings.Repeat("[", 30000) + strings.Repeat("]", 30000), `0`, "filter"},
	{"nested parentheses", strings.Repeat("(", 30000) + "1" + strings.Repeat(")", 30000), `0`, "any"},
	{"long pipe", strings.Repeat(".[]?|", 13000) + "1", `[1]`, "any"},
	{"sequence", strings.Repeat("(.,.)|", 40) + "1", `0`, "output"},
	{"getpath", `getpath([range(1e9)])`, `{}`, ""},
	{"input deep", `.`, strings.Repeat("[", 1e6) + strings.Repeat("]", 1e6), "input"},
	{"error with much", `error([range(1e6)])`, `0`, "any"},
	{"date", `strftime("%s"*1e8)`, `0`, ""},
}

// outcome returns a name for the kind of an error.
func outcome(err error) string {
	var filterErr *FilterError
	var limitErr *LimitError
	switch {
	case err == nil:
		return "none"
	case errors.As(err, &limitErr):
		return limitErr.What
	case errors.As(err, &filterErr):
		return "filter"
	case strings.HasPrefix(err.Error(), "decoding the input"):
		return "input"
	}
	return "other: " + err.Error()
}

func TestRunner_Hostile(t *testing.T) {
	filters := hostile
	if mcptest.Race { // the runner's goroutines do the same for each filter
		filters = mcptest.Part(t, hostile, 10)
	}
	for _, tt := range filters {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := watch(t, Limits{Time: 250 * time.Millisecond})
			warm(t, r.Runner)
			h := r.last()
			start := time.Now()
			_, err := r.Run(t.Context(), "", tt.filter, []byte(tt.input))
			took, got := time.Since(start), outcome(err)
			t.Logf("%-7s %5d ms", got, took.Milliseconds())
			checkOutcome(t, tt.what, got, err)
			mcptest.CheckHelperMemory(t, peak(t, h, got))
			warm(t, r.Runner) // the next filter works again
		})
	}
}

func checkOutcome(t *testing.T, want, got string, err error) {
	t.Helper()
	ok := false
	switch want {
	case "any":
		ok = !strings.HasPrefix(got, "other")
	case "": // depends on which limit is reached first on this machine
		ok = got == "time" || got == "memory"
	default:
		// A slow machine runs out of time before anything else.
		ok = got == want || got == "time"
	}
	if !ok {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestRunner_Memory: with plenty of time, the guard that watches the memory of a helper (see package helper) stops a filter
// before the machine runs out of memory, in whatever way the filter uses memory. The filters run one at a time, since a guard
// that gets no processor comes too late.
func TestRunner_Memory(t *testing.T) {
	mcptest.OneGoroutine(t)
	r := watch(t, patient)
	for _, filter := range []string{
		`"a"*2e9`,
		`[range(1e9)]`,
		`[limit(1e9; repeat("a" * 1e5))]`,
		`reduce range(60) as $i ("aaaaaaaaaaaaaaaa"; . + .)`,
		`def f: 1 + f; f`,
		`reduce range(1e9) as $i ([]; . + ["a" * 1e6])`,
		`.[5e8] = 1`,
		`reduce range(1e6) as $i (0; [.]) | tojson`, // the stack
	} {
		t.Run(filter, func(t *testing.T) {
			warm(t, r.Runner)
			h := r.last()
			_, err := r.Run(t.Context(), "", filter, []byte(`[]`))
			if got := outcome(err); got != "memory" {
				t.Fatalf("got %v, want a limit on memory", err)
			}
			mcptest.CheckHelperMemory(t, peak(t, h, "memory"))
		})
	}
}

// TestRunner_Trim checks that a helper process returns the memory that a filter needed to the operating system.
func TestRunner_Trim(t *testing.T) {
	mcptest.OneGoroutine(t) // the race detector keeps memory of its own
	r := watch(t, patient)
	if _, err := r.Run(t.Context(), "", `[range(1e6)] | length`, []byte(`0`)); err != nil {
		t.Fatal(err)
	}
	warm(t, r.Runner) // after this filter the helper has released memory
	if size := resident(t, r.last()); size > 64<<20 {
		t.Errorf("an idle helper has %d MB", size>>20)
	}
}
