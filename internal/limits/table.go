package limits

// mostKept bounds each of the two generations of a table.
const mostKept = 10_000

// table has a state for each key. It keeps the newest ones and those that are busy, so that
// callers who make up keys fill no memory; a dropped one begins anew. The zero value is
// ready, and has no busy states.
type table[K comparable, T any] struct {
	busy       func(*T) bool
	young, old map[K]*T
	most       int // of the young ones
}

// get returns the state of a key, a new one if there is none.
func (t *table[K, T]) get(key K) *T {
	one := t.find(key)
	if one == nil {
		one = new(T)
		t.keep(key, one)
	}
	return one
}

// find returns the state of a key, nil if there is none.
func (t *table[K, T]) find(key K) *T {
	one := t.young[key]
	if one == nil {
		if one = t.old[key]; one != nil {
			t.keep(key, one)
		}
	}
	return one
}

func (t *table[K, T]) keep(key K, one *T) {
	if len(t.young) >= t.most {
		t.age()
	}
	t.young[key] = one
}

// age begins a new generation. Of the old one only the busy states stay.
func (t *table[K, T]) age() {
	young := make(map[K]*T)
	for key, one := range t.old {
		if t.busy != nil && t.busy(one) {
			young[key] = one
		}
	}
	t.old, t.young = t.young, young
	t.most = max(mostKept, 2*len(young))
}
