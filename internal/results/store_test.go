package results

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// kept are the handles that can still be read.
func kept(s *Store, handles []string) (list []int) {
	for i, handle := range handles {
		if _, ok := s.get(handle, ""); ok {
			list = append(list, i)
		}
	}
	return list
}

func inMemory(s *Store) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// What is kept is bounded in all: the oldest results make room, and one that is
// longer than the bound is not kept.
func TestStore_Bytes(t *testing.T) {
	const mib = 1 << 20
	s := &Store{}
	defer func() { s.timer.Stop() }()
	var handles []string
	put := func(size int, want ...int) {
		t.Helper()
		handle := s.add(&result{value: make(json.RawMessage, size)})
		if (handle == "") != (size > keptBytes) {
			t.Errorf("%d bytes: handle %q", size, handle)
		}
		handles = append(handles, handle)
		if got := fmt.Sprint(kept(s, handles)); got != fmt.Sprint(want) {
			t.Errorf("after %d results: kept %s, want %v", len(handles), got, want)
		}
		sum := 0
		for _, h := range s.byID {
			sum += h.size
		}
		if s.bytes != sum || len(s.order) != len(s.byID) || s.bytes > keptBytes {
			t.Errorf("%d bytes in %d results, %d in order; counted %d", sum, len(s.byID), len(s.order), s.bytes)
		}
	}
	put(50*mib, 0)
	put(50*mib, 0, 1)
	put(28*mib, 0, 1, 2) // just full
	put(1, 1, 2, 3)
	put(101*mib, 3, 4)
	put(200*mib, 3, 4)
	put(128*mib+1, 3, 4)
	put(128*mib, 7)
	put(1, 8)
	// Parts cost something beside their text.
	if s.add(&result{list: list{items: make([]json.RawMessage, 6*mib)}}) != "" {
		t.Error("6 Mi items are kept")
	}
	handles = append(handles, s.add(&result{list: list{items: make([]json.RawMessage, 5*mib)}}))
	put(8*mib-1, 8, 9, 10)
	put(2, 10, 11)
}

// Lines are units, long ones several; over the bound for lines, units are
// several lines, and never parts of one that is short.
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

// A long line is cut where the rows of the list on it end, whatever language it is in,
// and only what is longer then between words.
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

// Of an array or a text of very many parts the pieces are its text.
func TestDivide_Many(t *testing.T) {
	p := Pages{Store: new(Store), Limit: 400}
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

// The note of what is not kept says so, and names no handle.
func TestCut_NotKept(t *testing.T) {
	p := Pages{Store: new(Store), Limit: 400}
	text := strings.Repeat("0123456 ", keptBytes/8+1)
	h := p.divide(text, text, false)
	got := p.cut(h, h.all(), p.limit(), ReadArguments{}, "")
	if !strings.HasSuffix(got, ", the line goes on, and dropped: the result is too long to be kept; ask for less, or use select]") || len(p.Store.byID) != 0 {
		t.Errorf("%d are kept; the text ends %q", len(p.Store.byID), got[max(0, len(got)-200):])
	}
}

// A grep that makes a list, and a range, are paged the same.
func TestSpan(t *testing.T) {
	h := &result{units: []string{"a\n", "b\n", "c\n", "d\n"}}
	list := span{to: 3, list: []int{0, 2, 3}}
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

// What is old is forgotten, also when nothing new comes.
func TestStore_Age(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Store{}
		a := s.add(&result{value: json.RawMessage(`[1]`)})
		<-time.After(keptAge / 2)
		b := s.add(&result{value: json.RawMessage(`[2]`)})
		<-time.After(keptAge/2 - time.Second)
		if got := kept(s, []string{a, b}); len(got) != 2 {
			t.Errorf("kept %v before their time", got)
		}
		<-time.After(time.Second)
		synctest.Wait()
		if got := kept(s, []string{a, b}); len(got) != 1 || got[0] != 1 || inMemory(s) != 1 {
			t.Errorf("kept %v, %d in memory", got, inMemory(s))
		}
		<-time.After(keptAge)
		synctest.Wait()
		s.mu.Lock()
		if len(s.byID) != 0 || len(s.order) != 0 || s.bytes != 0 || s.timer != nil {
			t.Errorf("%d results of %d bytes are left", len(s.byID), s.bytes)
		}
		s.mu.Unlock()
		c := s.add(&result{value: json.RawMessage(`[3]`)})
		<-time.After(keptAge)
		synctest.Wait()
		if inMemory(s) != 0 {
			t.Errorf("%s is still there", c)
		}
	})
}

// A result is its principal's.
func TestStore_Principal(t *testing.T) {
	s := &Store{}
	handle := s.add(&result{principal: "a"})
	defer s.timer.Stop()
	if _, ok := s.get(handle, "b"); ok {
		t.Error("another principal reads it")
	}
	if _, ok := s.get(handle, "a"); !ok {
		t.Error("its own principal does not")
	}
}

// TestStore_Principals: one principal does not push out the results of another that has
// less.
func TestStore_Principals(t *testing.T) {
	const mib = 1 << 20
	s := &Store{}
	defer func() { s.timer.Stop() }()
	put := func(principal string, size int) string {
		return s.add(&result{principal: principal, value: make(json.RawMessage, size)})
	}
	hers, call := put("alice", 10*mib), s.Hold("alice", "a call")
	var his []string
	for range 20 {
		his = append(his, put("bob", 20*mib))
	}
	s.Grow(call, mib)
	if _, ok := s.get(hers, "alice"); !ok {
		t.Error("the result of alice is gone")
	}
	if _, ok := s.Held(call, "alice"); !ok {
		t.Error("the call of alice is gone")
	}
	for i, handle := range his {
		if _, ok := s.get(handle, "bob"); ok != (i >= 15) {
			t.Errorf("his %dth is there: %t", i, ok)
		}
	}
	if s.bytes != 111*mib || s.of["alice"] != 11*mib || s.of["bob"] != 100*mib {
		t.Errorf("%d bytes, %v", s.bytes, s.of)
	}
	// Who then has most makes room.
	if fresh := put("alice", 100*mib); fresh == "" {
		t.Error("no handle")
	}
	if _, ok := s.get(hers, "alice"); ok || s.bytes > keptBytes {
		t.Errorf("her oldest result is still there, of %d bytes", s.bytes)
	}
}
