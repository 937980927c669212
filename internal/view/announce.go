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

// announceAfter is how long mcpx waits after a change, so that it can announce several changes together. Each announcement
// invalidates the prompt cache of a client. While servers are starting, more changes will follow, so the wait is repeated up to
// announceStarts times.
const (
	announceAfter  = 150 * time.Millisecond
	announceStarts = 10
	// maxAnnouncements is the maximum number of announcements per minute. Some catalogues change all the time, for example with
	// the time of day in a description.
	maxAnnouncements = 12
)

// announcements notify the clients of a view when its lists have changed. One goroutine watches the tools, another one the
// resources and prompts, so that neither delays the other.
type announcements struct {
	lookAtTools, lookAtItems chan struct{} // buffers of one; a value means that a list may have changed

	mu       sync.Mutex
	watchers map[*watcher]struct{} // added by Attach

	stop     chan struct{}
	stopOnce sync.Once
	loops    sync.WaitGroup
}

// watcher is a client that listens for changes. Each listening client with a principal has a watcher of its own. All
// clients without a principal see the same lists, so one watcher stands for all clients without a principal. One goroutine
// compares the tools that the client sees now with the tools that it saw before; another one does the same for resources
// and prompts.
type watcher struct {
	client *caller.Client
	as     Attachment
	tools  func(others bool) []catalog.Kind
	items  func() []catalog.Kind
}

// audience returns the present watchers.
func (a *announcements) audience() []*watcher {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(a.watchers))
}

// add adds a watcher; stop removes it.
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

// tell notifies a watcher about each of the kinds, and reports whether there was any kind.
func (w *watcher) tell(kinds []catalog.Kind) (told bool) {
	for _, kind := range kinds {
		w.as.Changed(kind)
	}
	return len(kinds) > 0
}

// lookAgain wakes up the two goroutines that run announce.
func (a *announcements) lookAgain() {
	for _, look := range []chan struct{}{a.lookAtTools, a.lookAtItems} {
		select {
		case look <- struct{}{}:
		default:
		}
	}
}

// announce calls tell when the channel look says that a list may have changed. tell notifies the clients of what has changed
// since its last call, and reports whether it has notified any. starting reports whether more changes will follow soon;
// announce then waits longer before it calls tell. announce returns on Close.
func (a *announcements) announce(look <-chan struct{}, tell func() bool, starting func() bool) {
	var sent []time.Time // the times of the last announcements, at most maxAnnouncements
	for {
		select {
		case <-look:
		case <-a.stop:
			return
		}
		if len(sent) == maxAnnouncements && !a.pause(time.Minute-time.Since(sent[0])) {
			return
		}
		for moments := 0; moments == 0 || (moments < announceStarts && starting()); moments++ {
			if !a.pause(announceAfter) {
				return
			}
		}
		if tell() {
			sent = append(sent, time.Now())
			sent = sent[max(0, len(sent)-maxAnnouncements):]
		}
	}
}

// pause waits for d. It returns false if the view is closed meanwhile.
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

// toolsSince returns a func that compares the present answer to tools/list with the answer at the previous call of the func. The
// func returns the kind catalog.Tools if the answers differ, otherwise nil. If others is true, the answers to clients may have
// changed in a way that this comparison does not show, so the func returns the kind in any case. answer returns a func that makes
// the present answer, which does not depend on the states of the servers.
func toolsSince(answer func() (list func() json.RawMessage)) func(others bool) []catalog.Kind {
	first := answer()
	var last json.RawMessage
	return func(others bool) []catalog.Kind {
		if last == nil {
			last = first() // made only now, so that mcpx starts quickly
		}
		tools := answer()()
		same := bytes.Equal(tools, last)
		if last = tools; same && !others {
			return nil
		}
		return []catalog.Kind{catalog.Tools}
	}
}

// itemsSince returns a func that says which kinds of items (resources, prompts) have changed since the previous call of the
// func. The parameter listed returns the servers whose items of a kind are shown.
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
	since() // stores the state for the first comparison
	return since
}
