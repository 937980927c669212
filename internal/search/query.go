package search

import (
	"math"
	"strings"
)

// maxQuery is the number of bytes of a query that are read.
const maxQuery = 4 << 10

// maxNeeds is the number of parts of a query that are ranked by themselves.
const maxNeeds = 8

// group is one word of a query with everything that may stand for it. A
// document scores the best of its terms, once.
type group struct {
	alts   []alt
	weight float32
}

// alt is a term that stands for a word, and how well.
type alt struct {
	term   uint32
	weight float32
}

// need is one thing that a query asks for.
type need struct {
	groups []group
	weight float32
}

// analyse reads a query: the first need is the whole of it, the others are its
// clauses where there are several.
func (x *Index) analyse(query string) []need {
	if len(query) > maxQuery {
		query = query[:maxQuery]
	}
	clauses := splitClauses(query)
	whole := need{weight: 1}
	seen := map[string]bool{}
	var parts []need
	for _, c := range clauses {
		n := need{weight: 1}
		x.groups(c, func(key string, g group) {
			n.groups = append(n.groups, g)
			if !seen[key] {
				seen[key] = true
				whole.groups = append(whole.groups, g)
			}
		})
		if len(n.groups) > 0 {
			parts = append(parts, n)
		}
	}
	needs := []need{whole}
	if len(parts) > 1 {
		if len(parts) > maxNeeds {
			parts = parts[:maxNeeds]
		}
		needs = append(needs, parts...)
	}
	return needs
}

// groups calls emit for each word of a clause that the index knows, and for each two
// neighbours that it knows as a pair.
func (x *Index) groups(clause string, emit func(key string, g group)) {
	var last []string // stem and text of the word before
	one := func(text string, c script) {
		st := stem(text, c)
		if stopWords[text] {
			return
		}
		if g := x.expand(st, 1); len(g.alts) > 0 {
			emit(st, g)
		}
		if last != nil {
			if g := x.pairGroup(last[0], last[1], st, text); len(g.alts) > 0 {
				emit(last[0]+" "+st, g)
			}
		}
		last = []string{st, text}
	}
	scan(clause, func(w word) {
		if w.script == dense {
			last = nil
			x.denseGroups(w, emit)
			return
		}
		if w.parts != nil {
			if _, ok := x.vocab[stem(w.text, w.script)]; !ok {
				for _, p := range w.parts {
					one(p, w.script)
				}
				return
			}
		}
		if tr := translate(w); len(tr) > 0 {
			g := x.expand(stem(w.text, w.script), 1)
			for _, e := range tr {
				g.alts = append(g.alts, x.expand(e, 1).alts...)
			}
			if len(g.alts) > 0 {
				emit(w.text, g)
			}
			last = nil
			return
		}
		one(w.text, w.script)
	})
}

// denseGroups makes the groups of a run without spaces: a translated word is a group, and
// each two neighbouring characters are one.
func (x *Index) denseGroups(w word, emit func(key string, g group)) {
	for _, e := range translate(w) {
		if g := x.expand(e, 1); len(g.alts) > 0 {
			emit(e, g)
		}
	}
	single := true
	grams(w.text, func(gram string) {
		weight := float32(0.15)
		if len([]rune(gram)) > 1 {
			weight, single = 0.7, false
		}
		if id, ok := x.vocab[gram]; ok {
			emit(gram, group{alts: []alt{{id, 1}}, weight: weight})
		}
	})
	_ = single
}

// expand gives the terms that stand for a stem, itself first.
func (x *Index) expand(st string, weight float32) group {
	g := group{weight: weight}
	if id, ok := x.vocab[st]; ok {
		g.alts = append(g.alts, alt{id, 1})
	}
	for _, s := range thesaurus[st] {
		if id, ok := x.termOf(s.stem); ok {
			g.alts = append(g.alts, alt{id, s.weight})
		}
	}
	return g
}

// termOf finds the term of a stem, or of two stems with a space between.
func (x *Index) termOf(s string) (uint32, bool) {
	a, b, two := strings.Cut(s, " ")
	if !two {
		id, ok := x.vocab[s]
		return id, ok
	}
	return x.pairID(a, b)
}

func (x *Index) pairID(a, b string) (uint32, bool) {
	ia, ok := x.vocab[a]
	if !ok {
		return 0, false
	}
	ib, ok := x.vocab[b]
	if !ok {
		return 0, false
	}
	id, ok := x.bigrams[uint64(ia)<<32|uint64(ib)]
	return id, ok
}

// pairGroup is the group of two neighbouring words: as neighbours, written
// together, or with a name of their own.
func (x *Index) pairGroup(a, aText, b, bText string) group {
	g := group{weight: tune.pair}
	if id, ok := x.pairID(a, b); ok {
		g.alts = append(g.alts, alt{id, 1})
	}
	if id, ok := x.vocab[stem(aText+bText, latin)]; ok {
		g.alts = append(g.alts, alt{id, 1})
		g.weight = 1
	}
	for _, s := range thesaurus[a+" "+b] {
		if id, ok := x.termOf(s.stem); ok {
			g.alts = append(g.alts, alt{id, s.weight})
			g.weight = 1
		}
	}
	return g
}

// idf is how much a word that df of n documents have says.
func idf(n int, df float32) float32 {
	if df > float32(n) {
		df = float32(n)
	}
	return float32(math.Log(1 + (float64(n)-float64(df)+0.5)/(float64(df)+0.5)))
}
