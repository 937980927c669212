package view

import (
	"encoding/json"
	"sync"

	"mcpx/internal/catalog"
	"mcpx/internal/describe"
	"mcpx/internal/search"
)

// texts caches the texts and the search index of the newest catalogue. Making them
// takes milliseconds for thousands of tools, and clients ask often.
type texts struct {
	mu     sync.Mutex
	snap   *catalog.Snapshot
	lists  map[shown]*list
	intros map[shown]string
	index  *search.Index
}

// shown has the settings that the texts depend on, beside the catalogue.
type shown struct {
	budget   describe.Budget
	features describe.Features
}

// list is the descriptions of both tools, and the tools of the answer to tools/list.
type list struct {
	inspect, exec string
	tools         json.RawMessage
}

func (s shown) list(snap *catalog.Snapshot) *list {
	inspect, exec := describe.Descriptions(snap, s.budget, s.features)
	return &list{inspect, exec, encodeTools(snap, inspect, exec, s.features)}
}

// use makes snap the snapshot of the cache, and empties the cache unless only states
// of servers have changed. The caller holds the lock.
func (t *texts) use(snap *catalog.Snapshot) {
	if t.snap == nil || !sameCatalogue(t.snap, snap) {
		t.lists, t.intros, t.index = make(map[shown]*list), make(map[shown]string), nil
	}
	t.snap = snap
}

// sameCatalogue reports whether two snapshots have the same servers and tools.
func sameCatalogue(a, b *catalog.Snapshot) bool {
	if a == b {
		return true
	}
	if len(a.Servers) != len(b.Servers) {
		return false
	}
	for i := range a.Servers {
		x, y := &a.Servers[i], &b.Servers[i]
		if x.Name != y.Name || x.Known != y.Known || x.Title != y.Title || x.Purpose() != y.Purpose() ||
			(x.State == catalog.Disabled) != (y.State == catalog.Disabled) || !catalog.SameTools(x.Tools, y.Tools) {
			return false
		}
	}
	return true
}

// list returns the texts for snap with some settings.
func (t *texts) list(snap *catalog.Snapshot, how shown) *list {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.use(snap)
	if t.lists[how] == nil {
		t.lists[how] = how.list(snap)
	}
	return t.lists[how]
}

func (t *texts) instructions(snap *catalog.Snapshot, how shown) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.use(snap)
	if t.intros[how] == "" {
		t.intros[how] = describe.Instructions(snap, how.budget, how.features)
	}
	return t.intros[how]
}

func (t *texts) search(snap *catalog.Snapshot) *search.Index {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.use(snap)
	if t.index == nil {
		t.index = search.New(snap)
	}
	return t.index
}
