package view

import (
	"encoding/json"
	"slices"
	"sync"

	"mcpx/internal/base/catalog"
	"mcpx/internal/describe"
	"mcpx/internal/search"
)

// texts caches the texts and the search indexes of the newest catalogues: clients may have
// different ones. Making them takes milliseconds for thousands of tools, and clients ask
// often.
type texts struct {
	mu   sync.Mutex
	made []*catalogueTexts // the one used last is the first
}

// The bounds of what is kept. There are as many catalogues as sets of rights in use, and
// more where sessions of single clients list something else; the index of a tool has 1 KB, and
// its definition as much.
const (
	maxTexts     = 256
	maxTextTools = 50_000 // of all catalogues together, but the one used last
)

// catalogueTexts are the texts of one catalogue, whatever the states of its servers.
type catalogueTexts struct {
	snap *catalog.Snapshot // under the lock of texts

	mu     sync.Mutex // held to make one: the texts of other catalogues do not wait for it
	lists  map[shown]*list
	intros map[shown]string
	index  *search.Index
	native map[Naming]*natives
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

// of are the texts of snap, and of catalogues that differ from it in the states of servers
// alone.
func (t *texts) of(snap *catalog.Snapshot) *catalogueTexts {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.IndexFunc(t.made, func(c *catalogueTexts) bool { return c.snap == snap })
	if at < 0 {
		at = slices.IndexFunc(t.made, func(c *catalogueTexts) bool { return sameCatalogue(c.snap, snap) })
	}
	var found *catalogueTexts
	if at >= 0 {
		found = t.made[at]
		copy(t.made[1:at+1], t.made[:at])
	} else {
		found = &catalogueTexts{lists: make(map[shown]*list), intros: make(map[shown]string), native: make(map[Naming]*natives)}
		t.made = slices.Insert(t.made, 0, found)
	}
	found.snap = snap // the next comparison is shorter
	t.made[0] = found
	t.bound()
	return found
}

// bound drops the texts that were not used for longest. The caller holds the lock.
func (t *texts) bound() {
	tools := 0
	for i, c := range t.made {
		if tools += c.snap.Tools(); i > 0 && (i >= maxTexts || tools > maxTextTools) {
			clear(t.made[i:])
			t.made = t.made[:i]
			return
		}
	}
}

// sameCatalogue reports whether two snapshots have the same servers and tools.
func sameCatalogue(a, b *catalog.Snapshot) bool {
	if a == b {
		return true
	}
	if len(a.Servers) != len(b.Servers) || a.Empty != b.Empty {
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
	c := t.of(snap)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists[how] == nil {
		c.lists[how] = how.list(snap)
	}
	return c.lists[how]
}

func (t *texts) instructions(snap *catalog.Snapshot, how shown) string {
	c := t.of(snap)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.intros[how] == "" {
		c.intros[how] = describe.Instructions(snap, how.budget, how.features)
	}
	return c.intros[how]
}

// natives is the list of a catalogue under the names of the tools themselves.
func (t *texts) natives(snap *catalog.Snapshot, naming Naming) *natives {
	c := t.of(snap)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.native[naming] == nil {
		c.native[naming] = newNatives(snap, naming)
	}
	return c.native[naming]
}

func (t *texts) search(snap *catalog.Snapshot) *search.Index {
	c := t.of(snap)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.index == nil {
		c.index = search.New(snap)
	}
	return c.index
}
