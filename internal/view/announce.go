package view

import (
	"bytes"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"
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

// announcements tell the clients of a view that its list of tools has changed.
type announcements struct {
	look    chan struct{}          // holds one signal: the list may have changed
	changed atomic.Pointer[func()] // from OnChange, nil before

	stop     chan struct{}
	stopOnce sync.Once
	loops    sync.WaitGroup
}

// OnChange implements [View].
func (a *announcements) OnChange(changed func()) { a.changed.Store(&changed) }

// lookAgain makes the goroutine announce compare the lists.
func (a *announcements) lookAgain() {
	select {
	case a.look <- struct{}{}:
	default:
	}
}

// announce calls the func of OnChange when the answer to tools/list has changed. The
// answer does not depend on the state of the servers. shown returns a func that makes
// the present answer. others says that clients for which it is not made get another one
// than before, and starting that more changes will follow soon. announce ends with
// Close.
func (a *announcements) announce(shown func() (list func() json.RawMessage), others *atomic.Bool, starting func() bool) {
	first := shown()
	var last json.RawMessage
	var sent []time.Time // of the last announceMost announcements
	for {
		select {
		case <-a.look:
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
		if last == nil {
			last = first() // made at the first comparison, to keep the start of mcpx fast
		}
		tools := shown()()
		if !others.Swap(false) && bytes.Equal(tools, last) {
			continue
		}
		last = tools
		sent = append(sent, time.Now())
		sent = sent[max(0, len(sent)-announceMost):]
		if changed := a.changed.Load(); changed != nil {
			(*changed)()
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
