package view

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/describe"
	"mcpx/internal/request"
	"mcpx/internal/search"
)

// texts caches the texts and the search indexes of the most recently used catalogues; different clients may have different
// catalogues. Making the texts takes milliseconds for thousands of tools, and clients ask for them often.
type texts struct {
	mu   sync.Mutex
	made []*catalogueTexts // the most recently used first
}

// The limits of the cache. There is one catalogue for each set of rights in use, and more if servers list other tools in the
// sessions of single clients. The search index and the definition take about 1 KB per tool each.
const (
	maxTexts     = 256
	maxTextTools = 50_000 // of all catalogues together; the most recently used one alone may have more
	// textsIdle is how long the texts of a catalogue stay after their last use, if the texts of other catalogues are in use.
	// Without it, catalogues from before a reload would stay until one of the other limits is reached.
	textsIdle = 10 * time.Minute
)

// catalogueTexts are the texts of one catalogue. They show which servers are disabled, but no other states of servers.
type catalogueTexts struct {
	snap *catalog.Snapshot // guarded by texts.mu
	used time.Time         // guarded by texts.mu

	mu     sync.Mutex // held while a text is created; creating texts of other catalogues does not wait
	lists  map[shown]*list
	intros map[shown]string
	index  *search.Index
	native map[Naming]*natives
	direct []request.Saving // what the method direct returns; nil until it is needed
}

// shown has the settings on which the texts for a client depend. The texts also depend on the catalogue.
type shown struct {
	budget   describe.Budget
	features describe.Features
	saves    bool // exec can also create files
}

// list has the descriptions of inspect and exec, and the array for tools/list.
type list struct {
	inspect, exec string
	tools         json.RawMessage
}

func (s shown) list(snap *catalog.Snapshot) *list {
	inspect, exec := describe.Descriptions(snap, s.budget, s.features)
	return &list{inspect, exec, encodeTools(snap, inspect, exec, s)}
}

// forCatalogue returns the texts of snap. Catalogues that differ only in the states of servers share their texts.
func (t *texts) forCatalogue(snap *catalog.Snapshot) *catalogueTexts {
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
	found.snap, found.used = snap, time.Now() // the snap makes the next comparison faster
	t.made[0] = found
	t.bound()
	return found
}

// bound removes the least recently used texts if there are too many, or if they were not used for textsIdle. The caller holds the
// lock.
func (t *texts) bound() {
	tools := 0
	for i, c := range t.made {
		if tools += c.snap.Tools(); i > 0 && (i >= maxTexts || tools > maxTextTools || t.made[0].used.Sub(c.used) > textsIdle) {
			clear(t.made[i:])
			t.made = t.made[:i]
			return
		}
	}
}

// sameCatalogue reports whether two snapshots have the same texts. They may differ in the states of the servers, but not in
// which servers are disabled.
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

// once returns m[key]. If the key is missing, once first stores the result of make under the key.
func once[K comparable, V any](mu *sync.Mutex, m map[K]V, key K, make func() V) V {
	mu.Lock()
	defer mu.Unlock()
	value, ok := m[key]
	if !ok {
		value = make()
		m[key] = value
	}
	return value
}

// list returns the descriptions for snap with these settings. It makes them only if they are not in the cache.
func (t *texts) list(snap *catalog.Snapshot, how shown) *list {
	c := t.forCatalogue(snap)
	return once(&c.mu, c.lists, how, func() *list { return how.list(snap) })
}

func (t *texts) instructions(snap *catalog.Snapshot, how shown) string {
	c := t.forCatalogue(snap)
	return once(&c.mu, c.intros, how, func() string { return describe.Instructions(snap, how.budget, how.features) })
}

// natives returns the list that shows a catalogue's tools themselves.
func (t *texts) natives(snap *catalog.Snapshot, naming Naming) *natives {
	c := t.forCatalogue(snap)
	return once(&c.mu, c.native, naming, func() *natives { return newNatives(snap, naming) })
}

func (t *texts) search(snap *catalog.Snapshot) *search.Index {
	c := t.forCatalogue(snap)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.index == nil {
		c.index = search.New(snap)
	}
	return c.index
}
