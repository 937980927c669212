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
	next     int   // the lowest number that may still be used; all lower numbers are used up
	until    int64 // the time after which the name may be forgotten, in Unix seconds
	ended    bool  // no number may be used any more
	standing []standing
}

// standing is a context that Standing returned. Further calls of Standing with the same parent context (from) return
// the same context.
type standing struct {
	from, ctx context.Context
	end       context.CancelFunc
}

func (one *thing) end() {
	one.ended = true
	one.release()
}

func (one *thing) release() {
	for _, s := range one.standing {
		s.end()
	}
	one.standing = nil
}

// NewOnce returns a Once in memory. limit is how many names it remembers.
func NewOnce(limit int, log *slog.Logger) Once {
	return &once{limit: limit, log: log, names: make(map[string]thing)}
}

// Redeem uses up a number of a name, and ends the name if the number was used before.
func (o *once) Redeem(_ context.Context, name string, number int, until time.Time) (fresh bool, err error) {
	o.change(name, until, func(one *thing) {
		if fresh = !one.ended && number >= one.next; fresh {
			one.next = number + 1
		} else {
			one.end()
		}
	})
	return fresh, nil
}

// End ends a name, so that no number of the name is fresh any more.
func (o *once) End(_ context.Context, name string, until time.Time) error {
	o.change(name, until, (*thing).end)
	return nil
}

// change calls the func change with what is remembered about a name, and remembers the result. until is when the name may be forgotten.
func (o *once) change(name string, until time.Time, change func(*thing)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	one, known := o.names[name]
	change(&one)
	one.until = max(one.until, until.Unix())
	if !known {
		o.makeRoom()
	}
	o.names[name] = one
}

// Standing returns a context that ends when ctx ends or when the name ends.
func (o *once) Standing(ctx context.Context, name string) context.Context {
	o.mu.Lock()
	defer o.mu.Unlock()
	one, known := o.names[name]
	switch {
	case one.ended:
		return nil
	case !known: // an unknown name must use no memory
		return ctx
	}
	lasting := one.standing[:0:0]
	for _, s := range one.standing {
		if s.from.Done() == ctx.Done() {
			return s.ctx
		}
		if s.from.Err() == nil {
			lasting = append(lasting, s)
		}
	}
	made, end := context.WithCancel(ctx)
	one.standing = append(lasting, standing{ctx, made, end})
	o.names[name] = one
	return made
}

// makeRoom forgets expired names. If there are still too many names, it also forgets one name: of the names that have not ended,
// the name that expires first. If all names have ended, it forgets the name that expires first of all. It cancels the contexts of
// the names that it forgets, since End could not cancel them any more. The caller holds the lock.
func (o *once) makeRoom() {
	if len(o.names) < o.limit {
		return
	}
	now, first := time.Now().Unix(), ""
	forget := func(name string) {
		one := o.names[name]
		one.release()
		delete(o.names, name)
	}
	for name, one := range o.names {
		switch before := o.names[first]; {
		case one.until < now:
			forget(name)
		case first == "", !one.ended && before.ended, one.ended == before.ended && one.until < before.until:
			first = name
		}
	}
	if len(o.names) >= o.limit {
		o.log.Warn("too many used tokens to remember: a second use of the oldest is not noticed any more", "most", o.limit)
		forget(first)
	}
}
