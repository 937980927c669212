package results

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/semaphore"
	"mcpx/internal/mcptest"
)

// TestResult_GrepEnds: a grep ends when its request is canceled, and when its time is over.
func TestResult_GrepEnds(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	simple := regexp.MustCompile("no such thing")
	// Matching this expression against one megabyte of text takes half a minute.
	hard := regexp.MustCompile(`(.{0,50}){0,20}z`)
	many := &result{units: strings.SplitAfter(strings.Repeat("a\n", grepStep/10), "\n")}
	long := &result{list: list{items: []json.RawMessage{[]byte(strings.Repeat("a", 1<<20)), []byte("b")}}}
	few := &result{units: []string{"a", "b"}}
	for _, tt := range []struct {
		name     string
		h        *result
		re       *regexp.Regexp
		ctx      context.Context
		deadline time.Time
		want     error
	}{
		{"in time", many, simple, t.Context(), future, nil},
		{"too late", many, simple, t.Context(), past, errGrepTime},
		{"a long one in time", long, simple, t.Context(), future, nil},
		{"too late in a long one", long, hard, t.Context(), past, errGrepTime},
		{"nobody waits", many, simple, gone, future, context.Canceled},
		{"nobody waits for a long one", long, hard, gone, future, context.Canceled},
		{"a few are never too late", few, simple, t.Context(), past, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := tt.h.grep(newMatcher(tt.ctx, tt.re, tt.deadline), nil); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestResult_GrepEndsWithinAnItem: the matcher also checks the time while it matches one long item.
func TestResult_GrepEndsWithinAnItem(t *testing.T) {
	mcptest.OneGoroutine(t)
	long := &result{list: list{items: []json.RawMessage{[]byte(strings.Repeat("a b ", 1<<18))}}}
	began := time.Now()
	_, err := long.grep(newMatcher(t.Context(), regexp.MustCompile(`(.{0,50}){0,20}z`), began.Add(100*time.Millisecond)), nil)
	if took := time.Since(began); !errors.Is(err, errGrepTime) || took > 10*time.Second {
		t.Errorf("got %v after %v", err, took)
	}
	// Read character by character, the text has the same matches.
	for _, pattern := range []string{`(.{0,50}){0,20} b $`, `^a (.{0,50}){0,20}`, `é(.{0,50}){0,20}`} {
		text := append(append([]byte{}, long.items[0][:1<<12]...), "é a b "...)
		m := newMatcher(t.Context(), regexp.MustCompile(pattern), time.Now().Add(time.Hour))
		r := &boundedRunes{text: text, m: m}
		if !m.re.MatchReader(r) || r.err != nil {
			t.Errorf("%s does not match: %v", pattern, r.err)
		}
	}
}

// TestGrep_Fair: a grep waits for the other greps of its principal, but never for the greps of another principal.
func TestGrep_Fair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &result{units: []string{"a\n", "b\n"}}
		alice, bob := Pages{Work: semaphore.Shared(2, semaphore.Queue{}), Principal: "alice"}, Pages{Principal: "bob"}
		bob.Work = alice.Work
		grep := func(p Pages) {
			if which, err := p.wanted(t.Context(), h, ReadArguments{Grep: "b"}); err != nil || h.part(which) != "2:b\n" {
				t.Errorf("%s: %v", p.Principal, err)
			}
		}
		if err := alice.Work.Enter(t.Context(), "alice"); err != nil { // a grep of alice that never ends
			t.Fatal(err)
		}
		for range 16 {
			go grep(alice) // ends with the synctest bubble
		}
		synctest.Wait()
		grep(bob)
		if open, waiting := alice.Work.Use(); open != 1 || waiting != 16 {
			t.Errorf("%d greps are under way and %d wait, want 1 and 16", open, waiting)
		}
		alice.Work.Leave("alice")
		synctest.Wait()
		if open, waiting := alice.Work.Use(); open != 0 || waiting != 0 {
			t.Errorf("%d greps are under way and %d wait, want none", open, waiting)
		}
	})
}

// TestGrep_Yields: a grep that takes long lets greps of other principals run first, and the time for which it waits is not
// counted.
func TestGrep_Yields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		work := semaphore.New(1, semaphore.Queue{})
		ctx, cancel := context.WithCancel(t.Context())
		m, err := Pages{Work: work, Principal: "alice"}.newGrep(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			go func() { // ends with the synctest bubble
				other, err := Pages{Work: work, Principal: "bob"}.newGrep(t.Context(), "a")
				if err != nil {
					t.Error(err)
					return
				}
				<-time.After(time.Hour)
				other.end()
			}()
		}
		synctest.Wait()
		began, deadline := time.Now(), m.deadline
		if err := m.over(); err != nil || time.Since(began) != time.Hour || m.deadline != deadline.Add(time.Hour) {
			t.Errorf("%v after %v, until %v", err, time.Since(began), m.deadline.Sub(deadline))
		}
		cancel()
		if err := m.over(); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		m.end()
		<-time.After(3 * time.Hour)
		synctest.Wait()
		if open, waiting := work.Use(); open != 0 || waiting != 0 {
			t.Errorf("%d greps are under way and %d wait, want none", open, waiting)
		}
	})
}

// TestResult_Grep: an item matches in the form that the model sees, or in the form that the server sent, and a string also by its
// content. In units of several lines, ^ and $ match at each line.
func TestResult_Grep(t *testing.T) {
	items := &result{list: list{items: []json.RawMessage{[]byte(`{"a": 1}`), []byte(`{"a":1}`), []byte(`"a\/b"`), []byte(`"é"`)}, open: "[", close: "]"}}
	members := &result{list: list{items: []json.RawMessage{[]byte(`"a":"b"`), []byte(`"b":"c"`)}, open: "{", close: "}"}}
	pieces := &result{units: []string{"a\nb\n", "ab\n", "b\n"}, kind: pieces}
	several := &result{units: []string{"a\r\n", "ab\n", "\n", "b"}}
	for _, tt := range []struct {
		h          *result
		grep, want string
	}{
		{items, `"a":1`, `[{"a": 1},{"a":1}]`},
		{items, `"a": 1`, `[{"a": 1}]`},
		{items, `a/b`, `["a\/b"]`},
		{items, `^"é"$`, `["é"]`},
		{items, `^é$`, `["é"]`},
		{items, `^a/b$`, `["a\/b"]`},
		{members, `b":"c`, `{"b":"c"}`},
		{members, `^b|b$`, `{}`},
		{pieces, `^b$`, "1:a\nb\n3:b\n"},
		{several, `^a$`, "1:a\r\n"},
		{several, `b$`, "2:ab\n4:b"},
		{several, `^$`, "3:\n"},
	} {
		which, err := Pages{}.wanted(t.Context(), tt.h, ReadArguments{Grep: tt.grep})
		if got := tt.h.part(which); got != tt.want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", tt.grep, got, err, tt.want)
		}
	}
}

// TestParseArguments: whole numbers may be written with a point or an exponent. The reason for a refusal contains no Go type
// names.
func TestParseArguments(t *testing.T) {
	const offset, limit = "/offset: must be a whole number, 0 or more", "/limit: must be a whole number, 1 or more"
	for _, tt := range []struct {
		in        string
		want      ReadArguments
		violation string
	}{
		{`{"handle":"r","select":".a","grep":"b"}`, ReadArguments{Handle: "r", Select: ".a", Grep: "b"}, ""},
		{`{"offset":3,"limit":4}`, ReadArguments{Offset: 3, Limit: 4}, ""},
		{`{"offset":1.0,"limit":1e2}`, ReadArguments{Offset: 1, Limit: 100}, ""},
		{`{"offset":0.0}`, ReadArguments{}, ""},
		{`{"offset":1.5}`, ReadArguments{}, offset},
		{`{"offset":-1}`, ReadArguments{}, offset},
		{`{"offset":1e30,"limit":9007199254740993}`, ReadArguments{Offset: maxNumber, Limit: maxNumber}, ""},
		{`{"limit":1e999}`, ReadArguments{Limit: maxNumber}, ""},
		{`{"offset":"1"}`, ReadArguments{}, offset},
		{`{"limit":-1e999}`, ReadArguments{}, limit},
		{`{"limit":0}`, ReadArguments{}, limit},
		{`{"limit":0.0}`, ReadArguments{}, limit},
		{`{"handle":7}`, ReadArguments{}, "/: handle, select and grep must be strings"},
	} {
		got, violation := ParseArguments(json.RawMessage(tt.in))
		if violation != tt.violation || (violation == "" && got != tt.want) {
			t.Errorf("%s: got %+v, %q, want %+v, %q", tt.in, got, violation, tt.want, tt.violation)
		}
	}
}

// TestOffsets: consecutive numbers become a range, and after maxOffsets ranges the list ends.
func TestOffsets(t *testing.T) {
	var odd []int
	for n := range maxOffsets + 1 {
		odd = append(odd, 2*n+1)
	}
	for want, which := range map[string]span{
		"":            {list: []int{}},
		"7":           {from: 7, to: 8},
		"7-9":         {from: 7, to: 10},
		"3-5, 9":      {list: []int{3, 4, 5, 9}, to: 4},
		"4-5, 9, 11":  {list: []int{3, 4, 5, 9, 11}, from: 1, to: 5},
		"1, 3-4, 6-7": {list: []int{1, 3, 4, 6, 7, 8}, to: 5},
	} {
		if got := offsets(which); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := offsets(span{list: odd, to: len(odd)}); !strings.HasSuffix(got, ", 59, …") {
		t.Errorf("got %q", got)
	}
}
