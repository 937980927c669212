package executor

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// kept are the handles that can still be read.
func kept(s *store, handles []string) (list []int) {
	for i, handle := range handles {
		if _, ok := s.get(handle, ""); ok {
			list = append(list, i)
		}
	}
	return list
}

func inMemory(s *store) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}

// What is kept is bounded in all: the oldest results make room, and one that is
// longer than the bound is the only one.
func TestStore_Bytes(t *testing.T) {
	const mib = 1 << 20
	s := &store{}
	defer func() { s.timer.Stop() }()
	var handles []string
	put := func(size int, want ...int) {
		t.Helper()
		handles = append(handles, s.put(&held{value: make(json.RawMessage, size)}))
		if got := fmt.Sprint(kept(s, handles)); got != fmt.Sprint(want) {
			t.Errorf("after %d results: kept %s, want %v", len(handles), got, want)
		}
		sum := 0
		for _, h := range s.byID {
			sum += h.size
		}
		if s.bytes != sum || len(s.order) != len(s.byID) || (s.bytes > heldBytes && len(s.byID) > 1) {
			t.Errorf("%d bytes in %d results, %d in order; counted %d", sum, len(s.byID), len(s.order), s.bytes)
		}
	}
	put(50*mib, 0)
	put(50*mib, 0, 1)
	put(28*mib, 0, 1, 2) // just full
	put(1, 1, 2, 3)
	put(101*mib, 3, 4)
	put(200*mib, 5)
	put(1, 6)
	// Parts count, and what they cost beside their text.
	items := make([]json.RawMessage, 6*mib)
	for i := range items {
		items[i] = json.RawMessage("1")
	}
	handles = append(handles, s.put(&held{items: items}))
	if got := kept(s, handles); len(got) != 1 {
		t.Errorf("kept %v beside an array of %d items", got, len(items))
	}
}

// What is old is forgotten, also when nothing new comes.
func TestStore_Age(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		a := s.put(&held{value: json.RawMessage(`[1]`)})
		time.Sleep(heldAge / 2)
		b := s.put(&held{value: json.RawMessage(`[2]`)})
		time.Sleep(heldAge/2 - time.Second)
		if got := kept(s, []string{a, b}); len(got) != 2 {
			t.Errorf("kept %v before their time", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := kept(s, []string{a, b}); len(got) != 1 || got[0] != 1 || inMemory(s) != 1 {
			t.Errorf("kept %v, %d in memory", got, inMemory(s))
		}
		time.Sleep(heldAge)
		synctest.Wait()
		s.mu.Lock()
		if len(s.byID) != 0 || len(s.order) != 0 || s.bytes != 0 || s.timer != nil {
			t.Errorf("%d results of %d bytes are left", len(s.byID), s.bytes)
		}
		s.mu.Unlock()
		c := s.put(&held{value: json.RawMessage(`[3]`)})
		time.Sleep(heldAge)
		synctest.Wait()
		if inMemory(s) != 0 {
			t.Errorf("%s is still there", c)
		}
	})
}

// A result is its principal's.
func TestStore_Principal(t *testing.T) {
	s := &store{}
	handle := s.put(&held{principal: "a"})
	defer s.timer.Stop()
	if _, ok := s.get(handle, "b"); ok {
		t.Error("another principal reads it")
	}
	if _, ok := s.get(handle, "a"); !ok {
		t.Error("its own principal does not")
	}
}

// The first glob that matches counts, then the server's time.
func TestToolTimeout(t *testing.T) {
	o := ServerOptions{CallTimeout: time.Minute, ToolTimeouts: []ToolTimeout{{"export_all", time.Hour}, {"export_*", 10 * time.Minute}, {"*/b", time.Second}}}
	for tool, want := range map[string]time.Duration{
		"export_all": time.Hour, "export_one": 10 * time.Minute, "read": time.Minute, "a/b": time.Second,
	} {
		if got := o.timeout(tool); got != want {
			t.Errorf("%s: %v, want %v", tool, got, want)
		}
	}
	if got := (ServerOptions{}).timeout("x"); got != 0 {
		t.Errorf("without any: %v", got)
	}
}
