package state

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"mcpx/internal/base/atomicfile"
)

// once implements [Once] in memory. If path is set, it also writes a file, so that its state survives restarts.
type once struct {
	most int
	path string // empty if there is no file
	log  *slog.Logger

	writing sync.Mutex // held while the file is written
	mu      sync.Mutex
	names   map[string]thing
}

// thing is the state of one name.
type thing struct {
	// Next is the lowest number that was not used.
	Next int `json:"next"`
	// Until is the time after which the name may be forgotten, in Unix seconds.
	Until int64 `json:"until"`
	// Ended means that no number may be used any more.
	Ended bool `json:"ended,omitempty"`

	standing []standing
}

// standing is a context that Standing returned. Further calls of Standing with the same parent context (from) return
// it too.
type standing struct {
	from, ctx context.Context
	end       context.CancelFunc
}

func (one *thing) end() {
	one.Ended = true
	one.release()
}

func (one *thing) release() {
	for _, s := range one.standing {
		s.end()
	}
	one.standing = nil
}

// NewOnce returns a Once in memory. most is how many names it remembers.
func NewOnce(most int, log *slog.Logger) Once {
	return &once{most: most, log: log, names: make(map[string]thing)}
}

// OpenOnce is [NewOnce] with a file, which is read at the start and written at each change. If writing fails, the
// error is logged; a used number may then be used again after a restart.
func OpenOnce(path string, most int, log *slog.Logger) (Once, error) {
	o := &once{most: most, path: path, log: log, names: make(map[string]thing)}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &o.names)
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}

// Redeem implements [Once].
func (o *once) Redeem(_ context.Context, name string, number int, until time.Time) (fresh bool, err error) {
	o.change(name, until, func(one *thing) {
		if fresh = !one.Ended && number >= one.Next; fresh {
			one.Next = number + 1
		} else {
			one.end()
		}
	})
	return fresh, nil
}

// End implements [Once].
func (o *once) End(_ context.Context, name string, until time.Time) error {
	o.change(name, until, (*thing).end)
	return nil
}

// change applies change to the state of a name, and writes the file.
func (o *once) change(name string, until time.Time, change func(*thing)) {
	o.mu.Lock()
	one, known := o.names[name]
	change(&one)
	one.Until = max(one.Until, until.Unix())
	if !known {
		o.makeRoom()
	}
	o.names[name] = one
	o.mu.Unlock()
	o.write()
}

// Standing implements [Once].
func (o *once) Standing(ctx context.Context, name string) context.Context {
	o.mu.Lock()
	defer o.mu.Unlock()
	one, known := o.names[name]
	switch {
	case one.Ended:
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

// makeRoom forgets expired names and, if there are still too many, the name that expires first, ended names last. The
// contexts of a forgotten name are canceled, as End could not cancel them any more. The caller holds the lock.
func (o *once) makeRoom() {
	if len(o.names) < o.most {
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
		case one.Until < now:
			forget(name)
		case first == "", !one.Ended && before.Ended, one.Ended == before.Ended && one.Until < before.Until:
			first = name
		}
	}
	if len(o.names) >= o.most {
		o.log.Warn("too many used tokens to remember: a second use of the oldest is not noticed any more", "most", o.most, "file", o.path)
		forget(first)
	}
}

// write writes the file. Concurrent callers write one after the other, each the newest state.
func (o *once) write() {
	if o.path == "" {
		return
	}
	o.writing.Lock()
	defer o.writing.Unlock()
	o.mu.Lock()
	data, err := json.Marshal(o.names)
	o.mu.Unlock()
	if err == nil {
		err = atomicfile.Write(o.path, data, 0o600)
	}
	if err != nil {
		o.log.Error("cannot save used tokens: after a restart they could be used again", "file", o.path, "error", err)
	}
}
