// Package lru keeps the most recently used values within a bound, as a cache or for keys that clients can make up.
package lru

// Map has a value for each key. It keeps at least the most recently used values, as many as most says, and at most
// twice as many plus the busy ones. It is not safe for concurrent use.
type Map[K comparable, V any] struct {
	most       int
	busy       func(*V) bool
	young, old map[K]*V
	room       int // for young ones
}

// New makes a map. Values for which busy returns true are kept even if not used recently; busy may be nil.
func New[K comparable, V any](most int, busy func(*V) bool) *Map[K, V] {
	return &Map[K, V]{most: most, busy: busy}
}

// Get returns the value of a key, and adds a zero value if there is none.
func (m *Map[K, V]) Get(key K) *V {
	one := m.Find(key)
	if one == nil {
		one = new(V)
		m.Put(key, one)
	}
	return one
}

// Find returns the value of a key; nil if there is none.
func (m *Map[K, V]) Find(key K) *V {
	one := m.young[key]
	if one == nil {
		if one = m.old[key]; one != nil {
			m.Put(key, one)
		}
	}
	return one
}

// Put sets the value of a key.
func (m *Map[K, V]) Put(key K, one *V) {
	if len(m.young) >= m.room {
		m.age()
	}
	delete(m.old, key)
	m.young[key] = one
}

// Delete forgets a key.
func (m *Map[K, V]) Delete(key K) {
	delete(m.young, key)
	delete(m.old, key)
}

// Len returns the number of values.
func (m *Map[K, V]) Len() int { return len(m.young) + len(m.old) }

// age begins a new generation and drops the values of the old one that are not busy.
func (m *Map[K, V]) age() {
	young := make(map[K]*V)
	for key, one := range m.old {
		if m.busy != nil && m.busy(one) {
			young[key] = one
		}
	}
	m.old, m.young = m.young, young
	m.room = max(m.most, 2*len(young))
}
