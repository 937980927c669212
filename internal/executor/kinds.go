package executor

import (
	"sync"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/lru"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/results"
)

// kinds remembers the kinds of the results of tools that declare no output schema. Each principal has its own, so that none learns
// from it what another calls.
type kinds struct {
	mu   sync.Mutex
	seen *lru.Map[kindOf, kindSeen]
}

type kindOf struct {
	principal  string
	server     string
	generation uint64 // of the server: a reload forgets
	tool       string
}

type kindSeen struct {
	kind  results.Kind
	times int
}

// maxKinds bounds the tools that are remembered. A tool is no longer watched after kindTimes results: reading them costs time.
const maxKinds, kindTimes = 4096, 8

func newKinds() kinds { return kinds{seen: lru.New[kindOf, kindSeen](maxKinds, nil)} }

// watch returns what to call with the kind of a result; nil if it need not be known, as for a resource.
func (k *kinds) watch(principal string, s *catalog.Server, t *catalog.Tool) func(results.Kind) {
	if t == nil || t.OutputSchema != nil || s.Name == builtin.Name {
		return nil
	}
	of := kindOf{principal, s.Name, s.Generation, t.OwnName()}
	k.mu.Lock()
	defer k.mu.Unlock()
	if seen := k.seen.Find(of); seen != nil && seen.times >= kindTimes {
		return nil
	}
	return func(kind results.Kind) {
		if kind == 0 {
			return
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		seen := k.seen.Get(of)
		seen.kind |= kind
		seen.times++
	}
}

// Seen returns what the results of a tool were so far in the calls of a client's principal, such as "text"; empty if that is not
// known, or declared by the tool.
func (e *Executor) Seen(client *caller.Client, s *catalog.Server, t *catalog.Tool) string {
	if t.OutputSchema != nil {
		return ""
	}
	e.seenKinds.mu.Lock()
	defer e.seenKinds.mu.Unlock()
	if seen := e.seenKinds.seen.Find(kindOf{client.On().Key(), s.Name, s.Generation, t.OwnName()}); seen != nil {
		return seen.kind.String()
	}
	return ""
}
