package view

import (
	"bytes"
	"encoding/json"
	"time"
)

// announceAfter gathers the changes of a moment into one announcement: each costs
// a client its prompt cache. While servers are starting more is about to come, and
// the moment lasts for up to announceStarts of them.
const (
	announceAfter  = 150 * time.Millisecond
	announceStarts = 10
	// announceMost bounds the announcements of a minute: a catalogue that is never
	// the same twice, with the time in a description, is not announced each second.
	announceMost = 12
)

// OnChange implements [View].
func (v *TwoTools) OnChange(changed func()) { v.changed.Store(&changed) }

// lookAgain makes announce compare the texts.
func (v *TwoTools) lookAgain() {
	select {
	case v.look <- struct{}{}:
	default:
	}
}

// announce calls the func of OnChange when the answer to tools/list has changed. A
// change of state alone changes no text. It ends with Close.
func (v *TwoTools) announce() {
	firstSnap, firstShown := v.catalogue(nil), v.current.Load().profile("").shown
	var last json.RawMessage
	var sent []time.Time // the last announceMost of them
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
			// Not before there is something to compare: the start has better to do.
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

// pause waits; it reports false if the view is closed meanwhile.
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
