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
	mu    sync.Mutex
	snap  *catalog.Snapshot
	byKey map[describe.Budget]string
	intro string
	index *search.Index
}

// on makes the cache one of snap. The caller holds the lock.
func (t *texts) on(snap *catalog.Snapshot) {
	if t.snap != snap {
		t.snap, t.byKey, t.intro, t.index = snap, make(map[describe.Budget]string), "", nil
	}
}

func (t *texts) inspect(snap *catalog.Snapshot, budget describe.Budget) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on(snap)
	text, ok := t.byKey[budget]
	if !ok {
		text = describe.Inspect(snap, budget)
		t.byKey[budget] = text
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
