// Package lru keeps the most recently used values, in a bounded number. It is for caches, and for values whose keys
// clients can make up.
package lru

import (
	"cmp"
	"iter"
)

// Map has a value for each key. It keeps at least as many values as its size says, those that were used last, and drops older
// values from time to time. It has at most twice as many values as its size says. If many values are busy (see [New]), it may have
// more, but at most about four times as many as are busy. The zero value is ready to use: its size is Usual, and no value is busy.
// A Map is not safe for concurrent use.
type Map[K comparable, V any] struct {
	size       int
	busy       func(*V) bool
	young, old map[K]*V
	room       int // how many values young may have before it becomes old
}

// Usual is the size of a Map that was not made by New.
const Usual = 1000

// New returns a Map that keeps the values that were used last: at least as many as size says. It also keeps all values for which
// busy returns true. busy may be nil.
func New[K comparable, V any](size int, busy func(*V) bool) *Map[K, V] {
	return &Map[K, V]{size: size, busy: busy}
}

// Get returns the value of a key. If there is none, it adds a zero value.
func (m *Map[K, V]) Get(key K) *V {
	one := m.Find(key)
	if one == nil {
		one = new(V)
		m.Put(key, one)
	}
	return one
}

// Find returns the value of a key, or nil if there is none.
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

// Delete removes a key and its value.
func (m *Map[K, V]) Delete(key K) {
	delete(m.young, key)
	delete(m.old, key)
}

// Len returns the number of values.
func (m *Map[K, V]) Len() int { return len(m.young) + len(m.old) }

// All returns all values, in no order. It does not mark them as used.
func (m *Map[K, V]) All() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for _, part := range []map[K]*V{m.young, m.old} {
			for key, one := range part {
				if !yield(key, one) {
					return
				}
			}
		}
	}
}

// age drops the values in old, except the busy ones, which it moves to a new map young. The map that was young becomes old.
func (m *Map[K, V]) age() {
	young := make(map[K]*V)
	for key, one := range m.old {
		if m.busy != nil && m.busy(one) {
			young[key] = one
		}
	}
	m.old, m.young = m.young, young
	m.room = max(cmp.Or(m.size, Usual), 2*len(young))
}
