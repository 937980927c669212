package upstream

import (
	"maps"
	"slices"
	"time"

	"mcpx/internal/base/catalog"
)

// relisting is what a session has to list again, and whether it has listed all tools. Only the supervising goroutine uses
// it.
type relisting struct {
	// missing is why the last tools/list was incomplete, nil if it was complete.
	missing error
	// whole means that the list of tools in use is complete.
	whole bool
	again *time.Timer           // fires when kinds are to be listed again
	kinds map[catalog.Kind]bool // the lists that failed or were incomplete
}

func newRelisting() relisting {
	r := relisting{again: time.NewTimer(relistRetry), kinds: make(map[catalog.Kind]bool)}
	r.again.Stop()
	return r
}

// taken notes that the list of tools that was read last is now in use. If it is incomplete, it is read again later.
func (r *relisting) taken() {
	if r.whole = r.missing == nil; !r.whole {
		r.later(catalog.Tools)
	}
}

// later schedules another refresh of a list.
func (r *relisting) later(kind catalog.Kind) {
	r.kinds[kind] = true
	r.again.Reset(relistRetry)
}

// due returns the kinds to list again now, and clears them.
func (r *relisting) due() []catalog.Kind {
	due := slices.Collect(maps.Keys(r.kinds))
	clear(r.kinds)
	return due
}
