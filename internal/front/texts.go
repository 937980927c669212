package front

import (
	"sync"

	"mcpx/internal/catalog"
	"mcpx/internal/describe"
	"mcpx/internal/search"
)

// texts keeps what was written for the newest snapshot: making it costs
// milliseconds for thousands of tools, and clients ask for it often.
type texts struct {
	mu     sync.Mutex
	snap   *catalog.Snapshot
	byView map[view]string
	intro  string
	index  *search.Index
}

// on makes the cache one of snap. The caller holds the lock. Texts and index
// depend on the catalogue alone: a snapshot in which only states have changed
// keeps them.
func (t *texts) on(snap *catalog.Snapshot) {
	if t.snap == nil || !sameCatalogue(t.snap, snap) {
		t.byView, t.intro, t.index = make(map[view]string), "", nil
	}
	t.snap = snap
}

// sameCatalogue reports whether two snapshots have the same servers and tools.
// Lists of tools are never changed, so that one slice is one list.
func sameCatalogue(a, b *catalog.Snapshot) bool {
	if a == b {
		return true
	}
	if len(a.Servers) != len(b.Servers) {
		return false
	}
	for i := range a.Servers {
		x, y := &a.Servers[i], &b.Servers[i]
		if x.Name != y.Name || x.Known != y.Known || x.Title != y.Title || x.Purpose() != y.Purpose() || len(x.Tools) != len(y.Tools) {
			return false
		}
		if (x.State == catalog.Disabled) != (y.State == catalog.Disabled) {
			return false
		}
		if len(x.Tools) > 0 && &x.Tools[0] != &y.Tools[0] {
			return false
		}
	}
	return true
}

// view is what the description of inspect depends on beside the catalogue.
type view struct {
	budget   describe.Budget
	features describe.Features
}

func (v view) inspect(snap *catalog.Snapshot) string {
	return describe.Inspect(snap, v.budget, v.features)
}

func (t *texts) inspect(snap *catalog.Snapshot, v view) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on(snap)
	text, ok := t.byView[v]
	if !ok {
		text = v.inspect(snap)
		t.byView[v] = text
	}
	return text
}

func (t *texts) instructions(snap *catalog.Snapshot) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on(snap)
	if t.intro == "" {
		t.intro = describe.Instructions(snap)
	}
	return t.intro
}

func (t *texts) search(snap *catalog.Snapshot) *search.Index {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on(snap)
	if t.index == nil {
		t.index = search.New(snap)
	}
	return t.index
}
