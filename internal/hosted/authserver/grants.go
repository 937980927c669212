package authserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"mcpx/internal/base/atomicfile"
)

// maxGrants bounds what is kept, about 1 MB on the disk.
const maxGrants = 10_000

// grants are the logins whose codes were used. A grant is one login of one client: its code has
// the number 0, and each refresh token that follows the next number. Only the newest may be
// used, once: an older one was stolen, or its successor was (RFC 9700, section 4.14.2).
//
// They are written to a file at each use. A number beyond the one that is kept is valid too, as
// after a failed write, or where another process has used a newer token: only this server can
// have sealed it.
type grants struct {
	path string // empty: they are not kept
	log  *slog.Logger

	writing sync.Mutex // held to write the file
	mu      sync.Mutex
	all     map[string]grant
}

type grant struct {
	// Next is the lowest number that may be used.
	Next int `json:"next"`
	// Until is when the last token of the grant ends, in Unix seconds.
	Until int64 `json:"until"`
	// Ended: none of its tokens is valid any more.
	Ended bool `json:"ended,omitempty"`

	// stands ends when the grant does, by revoke. It is nil until a request comes with a token of
	// the grant.
	stands context.Context
	revoke context.CancelFunc
}

// end ends the grant, and the requests that came with its tokens.
func (one *grant) end() {
	one.Ended = true
	if one.revoke != nil {
		one.revoke()
	}
}

// openGrants reads the file of the grants that are sealed with the key of that id.
func openGrants(folder, id string, log *slog.Logger) (*grants, error) {
	g := &grants{log: log, all: map[string]grant{}}
	if folder == "" {
		return g, nil
	}
	g.path = filepath.Join(folder, "front-"+id+".json")
	data, err := os.ReadFile(g.path)
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &g.all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading which logins were used: %w; without %s tokens that were used up count once more", err, g.path)
	}
	return g, nil
}

// use uses up the token with this number. It reports false if that was used before, and
// ends the grant then.
func (g *grants) use(id string, number int, until time.Time) (fresh bool) {
	g.change(id, until, func(one *grant) {
		if fresh = !one.Ended && number >= one.Next; fresh {
			one.Next = number + 1
		} else {
			one.end()
		}
	})
	return fresh
}

// end ends a grant.
func (g *grants) end(id string, until time.Time) { g.change(id, until, (*grant).end) }

// change changes a grant, which need not be one that is kept, and writes the file.
func (g *grants) change(id string, until time.Time, change func(*grant)) {
	g.mu.Lock()
	one, known := g.all[id]
	change(&one)
	one.Until = max(one.Until, until.Unix())
	if !known {
		g.makeRoom()
	}
	g.all[id] = one
	g.mu.Unlock()
	g.write()
}

// take adds what other grants know of the logins.
func (g *grants) take(other *grants) {
	other.mu.Lock()
	all := maps.Clone(other.all)
	other.mu.Unlock()
	for id, one := range all {
		if g.knows(id, one) {
			continue
		}
		g.change(id, time.Unix(one.Until, 0), func(own *grant) {
			if own.Next = max(own.Next, one.Next); one.Ended {
				own.end()
			}
		})
	}
}

// knows reports whether nothing is new in a grant that is kept elsewhere.
func (g *grants) knows(id string, other grant) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	own, known := g.all[id]
	return known && own.Next >= other.Next && own.Until >= other.Until && (own.Ended || !other.Ended)
}

// stands returns a context that ends when the tokens of a grant are no longer valid, at the
// latest with server; nil if they are not valid now.
func (g *grants) stands(id string, server context.Context) context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	one, known := g.all[id]
	switch {
	case one.Ended:
		return nil
	case !known: // another process may know it
		return server
	case one.stands == nil:
		one.stands, one.revoke = context.WithCancel(server)
		g.all[id] = one
	}
	return one.stands
}

// makeRoom forgets the grants that are over and, where there are too many, the one that
// ends first: its tokens count on, but a second use of one is not noticed.
func (g *grants) makeRoom() {
	if len(g.all) < maxGrants {
		return
	}
	now, first := time.Now().Unix(), ""
	forget := func(id string) {
		if revoke := g.all[id].revoke; revoke != nil {
			revoke()
		}
		delete(g.all, id)
	}
	for id, one := range g.all {
		switch {
		case one.Until < now:
			forget(id)
		case first == "", one.Ended != g.all[first].Ended && !one.Ended, one.Ended == g.all[first].Ended && one.Until < g.all[first].Until:
			first = id
		}
	}
	if len(g.all) >= maxGrants {
		g.log.Warn("too many logins: the second use of an old token is not noticed any more", "logins", maxGrants)
		forget(first)
	}
}

// write writes the file. Of calls that wait for their turn the first writes the changes of all.
func (g *grants) write() {
	if g.path == "" {
		return
	}
	g.writing.Lock()
	defer g.writing.Unlock()
	g.mu.Lock()
	data, err := json.Marshal(g.all)
	g.mu.Unlock()
	if err == nil {
		err = atomicfile.Write(g.path, data, 0o600)
	}
	if err != nil {
		g.log.Error("which logins were used is not kept: after a restart a token counts once more", "file", g.path, "error", err)
	}
}
