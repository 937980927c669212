// Package search ranks the tools of a catalogue for a query: by words, stems and
// synonyms, by a small lexicon of other scripts and by word vectors. A query may have
// several needs. Search uses no network and runs no model.
package search

import (
	"slices"

	"mcpx/internal/base/catalog"
)

// Hit is one tool that a query found.
type Hit struct {
	// Server and Tool are the names as the catalogue has them.
	Server, Tool string
	// Score orders the hits of one query; the best hit has 1. Scores of different queries cannot be compared.
	Score float64
	// Also has the names of the other servers that have exactly the same tool, in the order of the catalogue. It is empty if
	// Options.Server limits the search.
	Also []string
	// Weak means that even the best hit has little of what the query asks for, so that probably no tool fits. It
	// is the same for all hits of a query.
	Weak bool
}

// Options narrow a search.
type Options struct {
	// Server limits the search to one server; empty means all.
	Server string
	// Limit bounds the number of hits; 0 means 10.
	Limit int
}

// defaultLimit is the limit if the options set none.
const defaultLimit = 10

// Index finds tools in one snapshot. It is immutable and safe for concurrent use. It keeps the names of servers and tools in
// memory, but not the rest of the snapshot.
type Index struct {
	tools   []toolRef
	servers []serverRef
	// named maps the name of each server, in lower case and without accents, to its index in servers.
	named map[string]uint32
	// tool and srv say in which tools and in which servers each word occurs.
	tool, srv postings
	// vocab maps each stem to its term, which is a number.
	vocab map[string]uint32
	// spelled has what a misspelled word may mean, by the first letter: the stems of vocab, and one word for each stem.
	spelled ['z' + 1 - 'a'][]string
	// vectors says for each tool, as a unit vector, how its meaning differs from centre, the mean of all tools.
	vectors []vector
	centre  vector
}

// toolRef is a tool. Its index in Index.tools is also the number of its document in the postings.
type toolRef struct {
	name   string
	server uint32
	// act is what the tool does, as its name says. If the tool has the annotation readOnlyHint, act agrees with it: with true it is
	// asks, and with false it is changes or removes.
	act act
	// deprecated means that the definition of the tool says that the tool is deprecated.
	deprecated bool
	// Tools with the same definition form a linked list: same is the number of the first tool in it, next the
	// number of the next tool. The last tool has its own number as next.
	same, next uint32
}

// serverRef is a server. Its tools have the numbers from first to end-1.
type serverRef struct {
	name       string
	first, end uint32
	// prefix is the stem of the word with which the names of all tools of the server begin, as git in git_log and git_show. It
	// is empty if there is no such word, or if the server has fewer than minPrefixed tools.
	prefix string
}

// New indexes the tools of snap. It only reads the snapshot.
func New(snap *catalog.Snapshot) *Index {
	b := newBuilder(snap.Tools())
	for i := range snap.Servers {
		b.addServer(&snap.Servers[i])
	}
	return b.finish()
}

// Search returns the best tools for query, best first. Equal scores keep the catalogue's order, so that the same query gives the
// same list in every process. Search returns nil if Options.Server is unknown. It also returns nil if neither the tools searched
// nor their servers have any word of the query, or a synonym of such a word.
func (x *Index) Search(query string, o Options) []Hit {
	limit := o.Limit
	if limit <= 0 {
		limit = defaultLimit
	}
	first, end := uint32(0), uint32(len(x.tools))
	if o.Server != "" {
		at := slices.IndexFunc(x.servers, func(s serverRef) bool { return s.name == o.Server })
		if at < 0 {
			return nil
		}
		first, end = x.servers[at].first, x.servers[at].end
	}
	if first == end {
		return nil
	}
	whole, parts := x.analyse(query)
	r := ranking{x: x, first: first, end: end, best: make([]float32, max(len(x.tools), len(x.servers)))}
	ranked := r.fuse(&whole, parts, limit)
	if len(ranked) == 0 {
		return nil
	}
	weak := r.weak(&whole, parts)
	hits := make([]Hit, len(ranked))
	for i, r := range ranked {
		t := &x.tools[r.doc]
		hits[i] = Hit{Server: x.servers[t.server].name, Tool: t.name, Score: r.score, Weak: weak}
		for d := t.same; ; d = x.tools[d].next {
			if other := x.tools[d].server; other != t.server && first <= d && d < end {
				hits[i].Also = append(hits[i].Also, x.servers[other].name)
			}
			if x.tools[d].next == d {
				break
			}
		}
	}
	return hits
}
