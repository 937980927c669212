package state

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"
)

// once implements [Once] in memory.
type once struct {
	limit int
	log   *slog.Logger

	mu    sync.Mutex
	names map[string]int64 // the used names, and after which time each may be forgotten, in Unix seconds
}

// NewOnce returns a Once in memory. limit is how many names it remembers.
func NewOnce(limit int, log *slog.Logger) Once {
	return &once{limit: limit, log: log, names: make(map[string]int64)}
}

// Redeem uses up a name.
func (o *once) Redeem(_ context.Context, name string, until time.Time) (fresh bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, used := o.names[name]
	if !used {
		o.makeRoom()
	}
	o.names[name] = max(known, until.Unix())
	return !used, nil
}

// makeRoom forgets expired names. If there are still too many names, it also forgets the one that expires first. The caller holds
// the lock.
func (o *once) makeRoom() {
	if len(o.names) < o.limit {
		return
	}
	now, first, earliest := time.Now().Unix(), "", int64(math.MaxInt64)
	for name, until := range o.names {
		switch {
		case until < now:
			delete(o.names, name)
		case until < earliest:
			first, earliest = name, until
		}
	}
	if len(o.names) >= o.limit {
		o.log.Warn("too many used tokens to remember: a second use of the oldest is not noticed any more", "most", o.limit)
		delete(o.names, first)
	}
}
