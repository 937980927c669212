package view

import (
	"bytes"
	"encoding/json"
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

// OnChange implements [View].
func (v *TwoTools) OnChange(changed func()) { v.changed.Store(&changed) }

// lookAgain makes the goroutine announce compare the texts.
func (v *TwoTools) lookAgain() {
	select {
	case v.look <- struct{}{}:
	default:
	}
}

// announce calls the func of OnChange when the answer to tools/list has changed. The
// answer does not depend on the state of the servers. It ends with Close.
func (v *TwoTools) announce() {
	firstSnap, firstShown := v.catalogue(nil), v.current.Load().profile("").shown
	var last json.RawMessage
	var sent []time.Time // of the last announceMost announcements
	for {
		select {
		case <-v.look:
		case <-v.stop:
			return
		}
		if len(sent) == announceMost && !v.pause(time.Minute-time.Since(sent[0])) {
			return
		}
		for moments := 0; moments == 0 || (moments < announceStarts && starting(v.catalogue(nil))); moments++ {
			if !v.pause(announceAfter) {
				return
			}
		}
		if last == nil {
			// Made at the first comparison, to keep the start of mcpx fast.
			last = firstShown.list(firstSnap).tools
		}
		tools := v.texts.list(v.catalogue(nil), v.current.Load().profile("").shown).tools
		if !v.newRules.Swap(false) && bytes.Equal(tools, last) {
			continue
		}
		last = tools
		sent = append(sent, time.Now())
		sent = sent[max(0, len(sent)-announceMost):]
		if changed := v.changed.Load(); changed != nil {
			(*changed)()
		}
	}
}

// pause waits for d. It reports false if the view is closed meanwhile.
func (v *TwoTools) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-v.stop:
		return false
	}
}
