package state

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// MaxRecord is the length of the longest value in [Records], in bytes.
const MaxRecord = 64 << 10

// ErrLarge is the error for a value that is longer than MaxRecord, or for which Records has no room.
var ErrLarge = errors.New("too large to be kept: at most 64 KiB, and less while the store is nearly full")

// Records is a store of values under keys. The Sessions of [NewStored] keep everything in it. The Sessions of [NewSealed] keep in it only
// what the id of a session cannot contain: changes, the end of a session, and data that is too large for an id. A key has only the
// characters a-z, A-Z, 0-9, '.', '-' and '_', and does not begin or end with '.'. Values must not be written to, neither those given nor
// those returned. Safe for concurrent use.
//
// If the implementation uses a network, each process has a copy of all values, which is at most two seconds old. An implementation may
// bound the number and the size of the values, and remove some before their time.
type Records interface {
	// Get returns the value from the copy that this process has, without waiting. The error is ErrUnknown, or ErrAway
	// if this process has no copy yet.
	Get(key string) (value []byte, err error)
	// Change calls change with the newest value of a key, or with nil if there is none. It keeps the value that change
	// returns, until the time that change returns. If another process changes the value meanwhile, change is called
	// again. Get in this process returns the new value as soon as Change has returned. If change returns an error,
	// Change keeps nothing and returns that error. Other errors are ErrAway and ErrLarge.
	Change(ctx context.Context, key string, change func(old []byte) (value []byte, until time.Time, err error)) error
}

// records implement [Records] in memory.
type records struct {
	limit, maxBytes int
	mu              sync.RWMutex
	byKey           map[string]record
	bytes           int // total length of all keys and values
}

type record struct {
	value []byte
	until time.Time
}

// NewRecords returns Records in memory with at most limit values, and at most maxBytes bytes of keys and values together. If
// there are too many values, it removes a hundredth of them: the shortest, and of equally long values those that expire first. The
// shortest values say that a session has ended, so a client that opens and ends sessions for ever cannot push out the sessions of
// others. If there are too many bytes, it removes the largest values, so a client that sends much cannot push out the small values
// of others.
func NewRecords(limit, maxBytes int) Records {
	return &records{limit: limit, maxBytes: maxBytes, byKey: make(map[string]record)}
}

// Get returns the value of a key, unless the value has expired.
func (r *records) Get(key string) ([]byte, error) {
	r.mu.RLock()
	one, ok := r.byKey[key]
	r.mu.RUnlock()
	if !ok || !time.Now().Before(one.until) {
		return nil, ErrUnknown
	}
	return one.value, nil
}

// Change replaces the value of a key by the value that change returns.
func (r *records) Change(_ context.Context, key string, change func(old []byte) ([]byte, time.Time, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, ok := r.byKey[key]
	if ok && !time.Now().Before(old.until) {
		r.remove(key)
		old.value = nil
	}
	value, until, err := change(old.value)
	if err == nil && len(value) > MaxRecord {
		err = ErrLarge
	}
	if err != nil {
		return err
	}
	r.remove(key)
	if len(r.byKey) >= r.limit || r.bytes+len(key)+len(value) > r.maxBytes {
		r.makeRoom(len(key) + len(value))
	}
	r.byKey[key] = record{value, until}
	r.bytes += len(key) + len(value)
	return nil
}

// remove removes a value, if there is one. The caller holds the lock.
func (r *records) remove(key string) {
	if one, ok := r.byKey[key]; ok {
		r.bytes -= len(key) + len(one.value)
		delete(r.byKey, key)
	}
}

// makeRoom removes the expired values. If there is still no room for a value of the given size, it removes further values: until a
// hundredth of limit is free, or a quarter of maxBytes. That is more than the value needs, so that makeRoom is seldom called. The
// caller holds the lock.
func (r *records) makeRoom(size int) {
	now, keys := time.Now(), make([]string, 0, len(r.byKey))
	for key, one := range r.byKey {
		if now.Before(one.until) {
			keys = append(keys, key)
		} else {
			r.remove(key)
		}
	}
	if r.bytes+size > r.maxBytes {
		slices.SortFunc(keys, func(a, b string) int { return cmp.Compare(len(r.byKey[b].value), len(r.byKey[a].value)) })
		for len(keys) > 0 && r.bytes+size > r.maxBytes/4*3 {
			r.remove(keys[0])
			keys = keys[1:]
		}
	}
	if len(keys) < r.limit {
		return
	}
	slices.SortFunc(keys, func(a, b string) int {
		one, other := r.byKey[a], r.byKey[b]
		return cmp.Or(cmp.Compare(len(one.value), len(other.value)), one.until.Compare(other.until))
	})
	for _, key := range keys[:len(keys)-r.limit*99/100] {
		r.remove(key)
	}
}
