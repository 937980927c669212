package view

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
)

// announceAfter is a pause that gathers changes into one announcement: each
// announcement costs a client its prompt cache. While servers are starting, more
// changes will follow, and up to announceStarts pauses become one.
const (
	announceAfter  = 150 * time.Millisecond
	announceStarts = 10
	// announceMost bounds the announcements of a minute: some catalogues change all
	// the time, for example with the time of day in a description.
	announceMost = 12
)

// announcements tell the clients of a view that its lists have changed: one goroutine
// that of the tools, another the rest, so that neither delays the other.
type announcements struct {
	lookAtTools, lookAtItems chan struct{} // each holds one signal: a list may have changed

	mu       sync.Mutex
	watchers map[*watcher]struct{} // from Attach

	stop     chan struct{}
	stopOnce sync.Once
	loops    sync.WaitGroup
}

// watcher is a client that listens: all that see everything are one, and each principal is another. What it sees is compared by
// itself. Two goroutines compare, one the tools and one the items.
type watcher struct {
	client *caller.Client
	as     Attachment
	tools  func(others bool) []catalog.Kind
	items  func() []catalog.Kind
}

// audience is a copy of the present watchers.
func (a *announcements) audience() []*watcher {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.watchers))
}

// add adds a watcher until the caller calls stop.
func (a *announcements) add(w *watcher) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watchers == nil {
		a.watchers = make(map[*watcher]struct{})
	}
	a.watchers[w] = struct{}{}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.watchers, w)
	}
}

// tell calls the func of a watcher for some kinds.
func (w *watcher) tell(kinds []catalog.Kind) (told bool) {
	for _, kind := range kinds {
		w.as.Changed(kind)
	}
	return len(kinds) > 0
}

// lookAgain makes the goroutines of announce compare the lists.
func (a *announcements) lookAgain() {
	for _, look := range []chan struct{}{a.lookAtTools, a.lookAtItems} {
		select {
		case look <- struct{}{}:
		default:
		}
	}
}

// announce calls tell after each look. tell tells the clients what has changed since its
// last call, and reports whether it has told any. starting reports that more changes will
// follow soon. announce ends with Close.
func (a *announcements) announce(look <-chan struct{}, tell func() bool, starting func() bool) {
	var sent []time.Time // of the last announceMost announcements
	for {
		select {
		case <-look:
		case <-a.stop:
			return
		}
		if len(sent) == announceMost && !a.pause(time.Minute-time.Since(sent[0])) {
			return
		}
		for moments := 0; moments == 0 || (moments < announceStarts && starting()); moments++ {
			if !a.pause(announceAfter) {
				return
			}
		}
		if tell() {
			sent = append(sent, time.Now())
			sent = sent[max(0, len(sent)-announceMost):]
		}
	}
}

// pause waits for d. It reports false if the view is closed meanwhile.
func (a *announcements) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.stop:
		return false
	}
}

// toolsSince finds out whether the tools have changed since its last call. shown returns a
// func that makes the present answer to tools/list, which does not depend on the state of
// the servers. others says that clients for which that is not made get another one than
// before.
func toolsSince(shown func() (list func() json.RawMessage)) func(others bool) []catalog.Kind {
	first := shown()
	var last json.RawMessage
	return func(others bool) []catalog.Kind {
		if last == nil {
			last = first() // made at the first comparison, to keep the start of mcpx fast
		}
		tools := shown()()
		same := bytes.Equal(tools, last)
		if last = tools; same && !others {
			return nil
		}
		return []catalog.Kind{catalog.Tools}
	}
}

// itemsSince finds out which kinds of items have changed since its last call. listed are the servers whose items of a kind the clients
// are shown.
func itemsSince(listed func(kind catalog.Kind) []*catalog.Server) func() []catalog.Kind {
	last := make(map[catalog.Kind][]*catalog.Server)
	since := func() (kinds []catalog.Kind) {
		for _, kind := range catalog.ItemKinds {
			now := listed(kind)
			if !slices.EqualFunc(last[kind], now, func(a, b *catalog.Server) bool {
				return a.Name == b.Name && catalog.EqualItems(a.Items.Of(kind), b.Items.Of(kind))
			}) {
				kinds = append(kinds, kind)
			}
			last[kind] = now
		}
		return kinds
	}
	since() // from here on
	return since
}
