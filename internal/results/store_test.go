package results

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
	"mcpx/internal/mcptest"
)

// newStore is a store in memory.
func newStore() *Store {
	s := NewStore(nil)
	return &s
}

// TestStore_Bytes: the size of a kept result includes the memory for its items or lines. A result over the limit is not kept.
func TestStore_Bytes(t *testing.T) {
	mcptest.OneGoroutine(t)
	const mib = 1 << 20
	s := newStore()
	for name, tt := range map[string]struct {
		h    *result
		kept bool
	}{
		"as long as the bound": {&result{value: make(json.RawMessage, keptBytes-pageBytes)}, true},
		"longer":               {&result{value: make(json.RawMessage, keptBytes-pageBytes+1)}, false},
		"5 Mi items":           {&result{list: list{items: make([]json.RawMessage, 5*mib)}}, true},
		"6 Mi items":           {&result{list: list{items: make([]json.RawMessage, 6*mib)}}, false},
		"7 Mi lines":           {&result{units: make([]string, 7*mib)}, true},
		"and one is too long":  {&result{units: append(make([]string, 7*mib), strings.Repeat("a", 17*mib))}, false},
	} {
		if handle := s.add(tt.h); (handle != "") != tt.kept {
			t.Errorf("%s: handle %q", name, handle)
		}
	}
}

// TestStore_Heap: all kept results together use no more of the heap than allowed, whatever they consist of, and however long
// the messages were in which they arrived.
func TestStore_Heap(t *testing.T) {
	mcptest.OneGoroutine(t)
	const memory = 64 << 20
	lines := func(n, size int) string { return strings.Repeat(strings.Repeat("a", size-1)+"\n", n) }
	for name, text := range map[string]string{
		"short lines": lines(20_000, 8), "lines": lines(2_000, 100), "one line": strings.Repeat("a ", 100_000),
		"items": "[" + strings.Repeat(`{"a":1},`, 20_000) + `1]`, "quoted lines": string(wire.Encode(lines(2_000, 100))), "little": lines(30, 20),
	} {
		s := NewStore(InMemory(memory))
		p := Pages{Store: &s, Limit: 100}
		heap := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		for n := 0; n < 3*memory/4; n += len(text) {
			message := strings.Clone("around it " + strings.Repeat("b", 2*len(text)) + text) // the result is a part of this message
			if p.Keep(message[len(message)-len(text):], false) == "" {
				t.Fatalf("%s: not kept", name)
			}
			if len(text) < 1000 {
				n += 1000 // what each result needs in addition to its text
			}
		}
		if used := heap() - before; used > memory/4*105/100 || used < memory/4/2 {
			t.Errorf("%s: %d results cost %d KiB, want at most %d", name, s.Len(), used>>10, memory/4>>10)
		}
		runtime.KeepAlive(&s)
	}
}

// TestUnitsOf: each line is a unit, and a long line is split into several. If a text has too many lines, each unit has several
// lines, and a short line is never split.
func TestUnitsOf(t *testing.T) {
	tests := []struct {
		name, text string
		most       int
		want       []string
		kind       unitKind
	}{
		{"none", "", 3, []string{}, lines},
		{"lines", "a\n\nb", 3, []string{"a\n", "\n", "b"}, lines},
		{"a line that just fits", "1234567\nb\n", 3, []string{"1234567\n", "b\n"}, lines},
		{"a long line", "12345678\nb", 3, []string{"12345678", "\n", "b"}, pieces},
		{"words", "1234 5678 90\n", 3, []string{"1234 ", "5678 90\n"}, pieces},
		{"merged", "a\nb\nc\nd\ne\nf", 3, []string{"a\nb\nc\nd\n", "e\nf"}, pieces},
		{"merged with a long line", "a\nbcdefg\n\n123456789", 3, []string{"a\n", "bcdefg\n\n", "12345678", "9"}, pieces},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, kind := unitsOf(tt.text, 8, tt.most)
			if !slices.Equal(got, tt.want) || kind != tt.kind {
				t.Errorf("got %q, %v, want %q, %v", got, kind, tt.want, tt.kind)
			}
		})
	}
}

// TestUnitsOf_Rows: a long line is split where the rows of the list on it end, in whatever language it is written. Only a row
// that is still too long is split, between words.
func TestUnitsOf_Rows(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want []string
		kind unitKind
	}{
		{"[(1, a()), (3, 4)]\nb", 9, []string{"[(1, a()), ", "(3, 4)]\n", "b"}, rows},
		{"Rows: [{'a': x}, {'a': x}]", 9, []string{"Rows: [{'a': x}, ", "{'a': x}]"}, rows},
		{`[{"a":"},{"},{'b':"\"},{"}]`, 9, []string{`[{"a":"},{"},`, `{'b':"\"},{"}]`}, rows},
		{`[{"a":[[1],[2]]},{"b":1}]`, 9, []string{`[{"a":[[1],[2]]},`, `{"b":1}]`}, rows},
		{`[{"b":1},{"a":[[1],[2]]}]`, 9, []string{`[{"b":1},`, `{"a":[[1],[2]]}]`}, rows},
		{`{"n":[1],"r":[[1],[2],[3]]}`, 9, []string{`{"n":[1],"r":[[1],`, `[2],`, `[3]]}`}, rows},
		{"[[1],[2],[3],[4],[5],[6],[7]]", 6, []string{"[[1],[2],[3],[4],", "[5],[6],[7]]"}, pieces},
		{"[1,2,3,4,5,6,7,8,9,10]", 9, []string{"[1,2,3,4,5,6,7,8,", "9,10]"}, pieces},
		{"it's (no), (list), so there", 9, []string{"it's (no), ", "(list), so there"}, rows},
		{"]]]]]]], [[[[[[[[[[[[[[[", 9, []string{"]]]]]]], [[[[[[[[[", "[[[[[["}, pieces},
	} {
		if got, kind := unitsOf(tt.text, 18, tt.most); !slices.Equal(got, tt.want) || kind != tt.kind {
			t.Errorf("%s: got %q, %v", tt.text, got, kind)
		}
	}
}

// TestDivide_Many: an array or a text with very many parts is divided into pieces, which together are the same text.
func TestDivide_Many(t *testing.T) {
	p := Pages{Store: newStore(), Limit: 400}
	for _, tt := range []struct{ name, text, noun string }{
		{"items", "[1" + strings.Repeat(",1", maxItems-1) + "]", "items"},
		{"too many items", "[1" + strings.Repeat(",1", maxItems) + "]", "pieces"},
		{"lines", strings.Repeat("a\n", maxLines-1), "lines"},
		{"too many lines", strings.Repeat("a\n", maxLines), "pieces"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := p.divide(tt.text, tt.text, false)
			if h.noun() != tt.noun || h.part(h.all()) != tt.text {
				t.Errorf("held as %d %s of %d bytes, want %s of %d", h.count(), h.noun(), len(h.part(h.all())), tt.noun, len(tt.text))
			}
		})
	}
}

// TestCut_NotKept: if a result is too long to be kept, the line about the rest says so and names no handle.
func TestCut_NotKept(t *testing.T) {
	mcptest.OneGoroutine(t)
	p := Pages{Store: newStore(), Limit: 400}
	text := strings.Repeat("0123456 ", keptBytes/8+1)
	h := p.divide(text, text, false)
	got := p.cut(h, h.all(), p.limit(), ReadArguments{}, "")
	if !strings.HasSuffix(got, ", the line goes on, and dropped: the result is too long to be kept; ask for less, or use select]") || p.Store.Len() != 0 {
		t.Errorf("%d are kept; the text ends %q", p.Store.Len(), got[max(0, len(got)-200):])
	}
}

// TestSpan: a range of lines and the matches of a grep are paged in the same way.
func TestSpan(t *testing.T) {
	h := &result{units: []string{"a\n", "b\n", "c\n", "d\n"}}
	list := span{to: 3, list: []int{0, 2, 3}, numbered: true}
	for _, tt := range []struct {
		which span
		want  string
	}{
		{h.all(), "a\nb\nc\nd\n"}, {h.all().skip(1).first(2), "b\nc\n"}, {h.all().skip(9), ""}, {h.all().first(9), "a\nb\nc\nd\n"},
		{list, "1:a\n3:c\n4:d\n"}, {list.skip(1).first(1), "3:c\n"}, {list.skip(9), ""}, {list.skip(1).first(9), "3:c\n4:d\n"}, {span{list: []int{}}, ""},
	} {
		if got := h.part(tt.which); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.which, got, tt.want)
		}
	}
}

// TestStore_ItemHandle: the handle of an item can be used for at least half of keptAge after it was shown, and during that time
// the item is kept only once.
func TestStore_ItemHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := newStore(), &result{units: []string{"a\n", "b\n"}}
		add := func() string { return s.addItem(h, span{to: 1}, &result{units: []string{"a", "b"}}) }
		first := add()
		time.Sleep(keptAge/2 - time.Second)
		if again := add(); again != first || s.Len() != 1 {
			t.Errorf("%q and then %q, %d are kept", first, again, s.Len())
		}
		time.Sleep(time.Second)
		if again := add(); again == first {
			t.Error("a handle that may end soon")
		}
	})
}

// elsewhere imitates a result store in another process: Get returns a copy of each result, not the stored one.
type elsewhere struct{ state.Results[Kept] }

func (e elsewhere) Get(ctx context.Context, handle, owner string) (*Kept, error) {
	kept, err := e.Results.Get(ctx, handle, owner)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	copied := new(Kept)
	return copied, json.Unmarshal(data, copied)
}

// TestStore_Elsewhere: another process gets the same bytes when it reads a result or parts of its items. Running calls can be
// found only in their own process.
func TestStore_Elsewhere(t *testing.T) {
	mcptest.OneGoroutine(t)
	here := newStore()
	there := NewStore(elsewhere{here.kept})
	rows := strings.Repeat(`{"id":9007199254740993,"text":"a < b & \u2028 \ud83d\ude00"},`, 900)
	for name, text := range map[string]string{
		"items":            "[" + rows + "1.10]",
		"members":          `{"b":2,"a":[` + strings.TrimSuffix(rows, ",") + `],"c":"` + strings.Repeat("word ", 3000) + `"}`,
		"a list inside":    `{"total":1,"rows":[` + rows + `null]}`,
		"lines of JSON":    strings.ReplaceAll(strings.TrimSuffix(rows, ","), "},", "}\n"),
		"lines":            strings.Repeat("a line <&>\u2028\t\n", 3000),
		"lines of a value": `{"code":0,"out":"` + strings.Repeat(`line\n`, 9000) + `"}`,
		"one long line":    strings.Repeat("word ", 9000),
	} {
		p := Pages{Store: here, Principal: "alice", Limit: 400, Texts: compress.Options{TOON: true}}
		handle := p.Keep(text, false)
		q := p
		q.Store = &there
		for _, args := range []ReadArguments{{Handle: handle}, {Handle: handle, Offset: 1, Limit: 1}, {Handle: handle, Grep: "a"}} {
			want, err := p.Read(t.Context(), args)
			if err != nil {
				t.Fatal(name, err)
			}
			got, err := q.Read(t.Context(), args)
			if err != nil {
				t.Fatal(name, err)
			}
			anyHandle := regexp.MustCompile(`"r[a-z0-9]{20}"`) // separately kept items have handles of their own, which differ
			if anyHandle.ReplaceAllString(got.Text, "") != anyHandle.ReplaceAllString(want.Text, "") || string(got.Structured) != string(want.Structured) {
				t.Errorf("%s: %+v: got %.300s\nwant %.300s", name, args, got.Text, want.Text)
			}
		}
	}
	call := Pages{Store: here, Principal: "alice"}.Hold("a call")
	if _, _, err := (Pages{Store: here, Principal: "alice"}).Held(t.Context(), call); err != nil {
		t.Error(err)
	}
	result := Pages{Store: here, Principal: "alice"}.Keep("[1,2]", false)
	if _, _, err := (Pages{Store: here, Principal: "alice"}).Held(t.Context(), result); err == nil || !strings.Contains(err.Error(), "read_result reads it") {
		t.Errorf("a result is waited for: %v", err)
	}
	if held, _, err := (Pages{Store: &there, Principal: "alice"}).Held(t.Context(), call); err == nil {
		t.Errorf("another process has the call: %v", held)
	}
	for _, s := range []*Store{here, &there} {
		_, err := Pages{Store: s, Principal: "alice"}.Read(t.Context(), ReadArguments{Handle: call})
		if _, refused := errors.AsType[*RefusedError](err); !refused {
			t.Errorf("a call is read as a result: %v", err)
		}
	}
}

// TestValue_String: of a text that is a JSON string, a reference gets what a filter gets: the JSON in it, or the string, and not
// the string with its quotes in another string. The text remains as it is.
func TestValue_String(t *testing.T) {
	store := NewStore(nil)
	p := Pages{Store: &store, Limit: 400}
	for text, want := range map[string]string{
		`"one\ntwo"`:                    `"one\ntwo"`,
		`"one two"`:                     `"one two"`,
		`"[{\"a\":1},\n{\"a\":2}]"`:     "[{\"a\":1},\n{\"a\":2}]",
		`one "two"`:                     `"one \"two\""`,
		`"one\u0041\n` + "\u2028" + `"`: `"one\u0041\n` + "\u2028" + `"`,
	} {
		handle := p.Keep(text, false)
		value, err := p.Value(t.Context(), handle, "", false)
		if err != nil || string(value) != want {
			t.Errorf("%s: %v, %s, want %s", text, err, value, want)
		}
		if data, err := p.Data(t.Context(), handle, ""); err != nil || want[0] == '"' && string(data) != text {
			t.Errorf("%s: %v, saved as %s", text, err, data)
		}
	}
}

// TestRead_Total: each page of a list says how many items the whole list has, also a later one.
func TestRead_Total(t *testing.T) {
	store := NewStore(nil)
	p := Pages{Store: &store, Limit: 400}
	handle := p.Keep("["+strings.Repeat(`{"a":1,"b":"some words"},`, 999)+"null]", false)
	for _, offset := range []int{0, 10, 500} {
		page, err := p.Read(t.Context(), ReadArguments{Handle: handle, Offset: offset})
		if err != nil || !strings.Contains(page.Text, " of 1000 items left: ") {
			t.Errorf("offset %d: %v, %s", offset, err, page.Text)
		}
	}
}

// TestStore_Away: if the store cannot be reached at the moment, a handle is not reported as unknown.
func TestStore_Away(t *testing.T) {
	s := NewStore(away{newStore().kept})
	_, err := Pages{Store: &s}.Read(t.Context(), ReadArguments{Handle: "r"})
	if !errors.Is(err, state.ErrAway) {
		t.Errorf("got %v", err)
	}
}

type away struct{ state.Results[Kept] }

func (away) Get(context.Context, string, string) (*Kept, error) { return nil, state.ErrAway }

// TestOrigin: a principal can read a result, and everything kept from it, only as long as it may call the tool that the result
// comes from, also if another process reads it.
func TestOrigin(t *testing.T) {
	origin := Origin{Server: "s", Tool: "list"}
	may := map[string]bool{"s.list": true}
	store := NewStore(nil)
	pages := func(of Origin) Pages {
		return Pages{Store: &store, Limit: 200, Origin: of, Readable: func(_ context.Context, of Origin) bool { return may[of.Server+"."+of.Tool] }}
	}
	long := strings.Repeat("abc def ", 500)
	handle := pages(origin).Keep(`["`+long+`",["`+long+`"],3]`, false)
	handles := map[string]bool{handle: true}
	for _, args := range []ReadArguments{{Handle: handle}, {Handle: handle, Offset: 1}} {
		page, err := pages(Origin{}).Read(t.Context(), args)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`r[a-z0-9]{20}`).FindAllString(page.Text, -1) {
			handles[found] = true
		}
	}
	call := pages(origin).Hold("a call")
	readable := func() (n int) {
		for one := range handles {
			if _, err := pages(Origin{}).Read(t.Context(), ReadArguments{Handle: one}); err == nil {
				n++
			} else if err.Error() != "/handle: "+gone {
				t.Error(err)
			}
		}
		if _, of, err := pages(Origin{}).Held(t.Context(), call); err == nil && of == origin {
			n++
		}
		return n
	}
	if n := readable(); n != len(handles)+1 || len(handles) < 3 {
		t.Errorf("%d of %d handles", n, len(handles))
	}
	may = map[string]bool{"s.other": true, ".": true}
	if n := readable(); n != 0 {
		t.Errorf("%d handles after the right was taken away", n)
	}
	kept, err := store.kept.Get(t.Context(), handle, "")
	if err != nil {
		t.Fatal(err)
	}
	data, err := kept.MarshalJSON()
	var there Kept
	if err != nil || there.UnmarshalJSON(data) != nil || there.result.origin != origin {
		t.Errorf("in another process: %v, %+v", err, there.result)
	}
}
