package lru

import "testing"

// TestMap: keys that clients make up do not fill the memory, and do not push out the most recently used values or the
// busy values.
func TestMap(t *testing.T) {
	const most = 100
	m := New[int](most, func(busy *bool) bool { return *busy })
	*m.Get(-1), *m.Get(-2) = true, false
	for key := range 10 * most {
		m.Get(key)
		if m.Find(-2) == nil {
			t.Fatalf("a value in use was forgotten after %d others", key)
		}
		if n := m.Len(); n > 2*most+1 {
			t.Fatalf("%d values are kept", n)
		}
	}
	for key := 9*most + 1; key < 10*most; key++ {
		if m.Find(key) == nil {
			t.Errorf("value %d of %d was forgotten", key, 10*most)
		}
	}
	if one := m.Find(-1); one == nil || !*one {
		t.Error("a busy value was forgotten")
	}
	if m.Find(0) != nil {
		t.Error("the first value is kept")
	}
}

// TestMap_Zero: a Map that New has not made keeps as many values as Usual says, and may be read while it is empty.
func TestMap_Zero(t *testing.T) {
	var m Map[int, bool]
	if m.Delete(1); m.Find(1) != nil || m.Len() != 0 {
		t.Error("an empty Map has values")
	}
	for key := range 5 * Usual {
		m.Get(key)
	}
	for key := 4 * Usual; key < 5*Usual; key++ {
		if m.Find(key) == nil {
			t.Errorf("value %d was forgotten", key)
		}
	}
	if n := m.Len(); n > 2*Usual {
		t.Errorf("%d values are kept", n)
	}
}

// TestMap_Put: Put replaces an earlier value, even a busy one. After Delete the value is gone.
func TestMap_Put(t *testing.T) {
	m := New[string](2, func(busy *bool) bool { return *busy })
	before, after := true, false
	m.Put("a", &before)
	m.Get("b")
	m.Get("c") // "a" is now in the map old
	m.Put("a", &after)
	for _, key := range []string{"d", "e"} {
		m.Get(key)
		if got := m.Find("a"); got != &after {
			t.Fatalf("after %s: %p, want %p", key, got, &after)
		}
	}
	m.Delete("a")
	if m.Find("a") != nil {
		t.Error("a deleted value is there")
	}
}
