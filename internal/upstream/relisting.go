package upstream

import (
	"maps"
	"slices"
	"time"

	"mcpx/internal/base/catalog"
)

// relisting is what a session has to list again, and whether it has listed all. It belongs to the supervising goroutine.
type relisting struct {
	// missing is why the last tools/list was not read to its end, nil if it was.
	missing error
	// whole: the catalogue that was taken over was read to its end.
	whole bool
	again *time.Timer           // after a refresh that failed, or left pages out
	kinds map[catalog.Kind]bool // that again is for
}

func newRelisting() relisting {
	r := relisting{again: time.NewTimer(relistRetry), kinds: make(map[catalog.Kind]bool)}
	r.again.Stop()
	return r
}

// taken notes that the catalogue that was read last is the one in use. Pages that were missing from it are asked for
// once more.
func (r *relisting) taken() {
	if r.whole = r.missing == nil; !r.whole {
		r.later(catalog.Tools)
	}
}

// later asks for another refresh of what is of a kind, after a pause.
func (r *relisting) later(kind catalog.Kind) {
	r.kinds[kind] = true
	r.again.Reset(relistRetry)
}

// due returns the kinds that are to be listed again now, and forgets them.
func (r *relisting) due() []catalog.Kind {
	due := slices.Collect(maps.Keys(r.kinds))
	clear(r.kinds)
	return due
}
