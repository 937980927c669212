package search

import (
	"cmp"
	"slices"
)

// tuning are the constants of ranking.
type tuning struct {
	pair   float32
	server float32
	whole  float32
	same   float32
	rrf    float32
}

var tune = tuning{pair: 0.4, server: 0.5, whole: 1, same: 0.9, rrf: 0}

// ranked is a document and its score.
type rankedDoc struct {
	doc   uint32
	score float64
}

// scores adds what groups give to every document of p.
func (p *postings) scores(groups []group, out []float32) {
	best := make([]float32, len(out))
	var touched []uint32
	for _, g := range groups {
		df := float32(0)
		for _, a := range g.alts {
			df += a.weight * float32(len(p.of(a.term)))
		}
		if df == 0 {
			continue
		}
		w := g.weight * idf(p.docs, df)
		touched = touched[:0]
		for _, a := range g.alts {
			for _, e := range p.of(a.term) {
				v := w * a.weight * e.impact
				if v > best[e.doc] {
					if best[e.doc] == 0 {
						touched = append(touched, e.doc)
					}
					out[e.doc] += v - best[e.doc]
					best[e.doc] = v
				}
			}
		}
		for _, d := range touched {
			best[d] = 0
		}
	}
}

// score ranks the documents from..to by one need.
func (x *Index) score(n need, from, to uint32) []float32 {
	tools := make([]float32, len(x.tools))
	x.tool.scores(n.groups, tools)
	if tune.server > 0 {
		servers := make([]float32, len(x.servers))
		x.srv.scores(n.groups, servers)
		for i := range x.servers {
			if servers[i] == 0 {
				continue
			}
			for d := x.servers[i].from; d < x.servers[i].to; d++ {
				tools[d] += tune.server * servers[i]
			}
		}
	}
	return tools[from:to]
}

// fuse merges the rankings of all needs into one list of at most limit.
func (x *Index) fuse(needs []need, from, to uint32, limit int) []rankedDoc {
	total := make([]float32, to-from)
	for i, n := range needs {
		s := x.score(n, from, to)
		top := slices.Max(s)
		if top == 0 {
			continue
		}
		for d := range s {
			v := s[d] / top
			if i == 0 {
				total[d] += tune.whole * v
			} else {
				total[d] = max(total[d], tune.whole*0+v)
			}
		}
	}
	var list []rankedDoc
	for d, v := range total {
		if v > 0 {
			list = append(list, rankedDoc{from + uint32(d), float64(v)})
		}
	}
	slices.SortStableFunc(list, func(a, b rankedDoc) int { return cmp.Compare(b.score, a.score) })
	if len(list) > limit {
		list = list[:limit]
	}
	return list
}
