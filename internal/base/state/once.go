package state

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// once implements [Once] in memory.
type once struct {
	limit int
	log   *slog.Logger

	mu    sync.Mutex
	names map[string]thing
}

// thing is what is remembered about one name.
type thing struct {
	next  int   // the lowest number that may still be used; all lower numbers are used up
	until int64 // the time after which the name may be forgotten, in Unix seconds
	ended bool  // a number was used twice: no number may be used any more
}

// NewOnce returns a Once in memory. limit is how many names it remembers.
func NewOnce(limit int, log *slog.Logger) Once {
	return &once{limit: limit, log: log, names: make(map[string]thing)}
}

// Redeem uses up a number of a name, and ends the name if the number was used before.
func (o *once) Redeem(_ context.Context, name string, number int, until time.Time) (fresh bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	one, known := o.names[name]
	if fresh = !one.ended && number >= one.next; fresh {
		one.next = number + 1
	} else {
		one.ended = true
	}
	one.until = max(one.until, until.Unix())
	if !known {
		o.makeRoom()
	}
	o.names[name] = one
	return fresh, nil
}

// makeRoom forgets expired names. If there are still too many names, it also forgets one name: of the names that have not ended,
// the name that expires first. If all names have ended, it forgets the name that expires first of all. The caller holds the
// lock.
func (o *once) makeRoom() {
	if len(o.names) < o.limit {
		return
	}
	now, first := time.Now().Unix(), ""
	for name, one := range o.names {
		switch before := o.names[first]; {
		case one.until < now:
			delete(o.names, name)
		case first == "", !one.ended && before.ended, one.ended == before.ended && one.until < before.until:
			first = name
		}
	}
	if len(o.names) >= o.limit {
		o.log.Warn("too many used tokens to remember: a second use of the oldest is not noticed any more", "most", o.limit)
		delete(o.names, first)
	}
}
