package search

import (
	"cmp"
	"slices"
)

// tuning are the constants of ranking.
type tuning struct {
	pair, server, whole, part, same, mention, verb, syn, rel, conf, cover float32
}

var tune = tuning{pair: 0.4, server: 0.5, whole: 1, part: 1, same: 0, mention: 0.3, verb: 0.7, syn: 0.6, rel: 0.35, conf: 0.5, cover: 0}

// ranked is a document and its score.
type rankedDoc struct {
	doc   uint32
	score float64
}

// scores adds what groups give to every document of p.
func (p *postings) scores(groups []group, out []float32) (ideal float32) {
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
		ideal += w
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
	return ideal
}

// score ranks the documents from..to by one need.
func (x *Index) score(n need, from, to uint32) ([]float32, float32) {
	tools := make([]float32, len(x.tools))
	ideal := x.tool.scores(n.groups, tools)
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
	return tools[from:to], ideal
}

// fuse merges the rankings of all needs into one list of at most limit.
func (x *Index) fuse(whole need, parts []need, from, to uint32, limit int) []rankedDoc {
	total, _ := x.score(whole, from, to)
	if top := slices.Max(total); top > 0 {
		for d := range total {
			total[d] *= tune.whole / top
		}
	}
	if len(parts) > 1 {
		var all [][]float32
		var best float32
		for _, n := range parts {
			s, _ := x.score(n, from, to)
			all = append(all, s)
			best = max(best, slices.Max(s))
		}
		bonus := make([]float32, len(total))
		for _, s := range all {
			top := slices.Max(s)
			if top == 0 {
				continue
			}
			conf := (1 - tune.conf) + tune.conf*top/best
			for d := range s {
				bonus[d] = max(bonus[d], tune.part*conf*s[d]/top)
			}
		}
		for d := range total {
			total[d] += bonus[d]
		}
	}
	var list []rankedDoc
	for d, v := range total {
		if v > 0 {
			list = append(list, rankedDoc{from + uint32(d), float64(v)})
		}
	}
	slices.SortStableFunc(list, func(a, b rankedDoc) int { return cmp.Compare(b.score, a.score) })
	if tune.same > 0 {
		list = x.spread(list, limit)
	}
	if len(list) > limit {
		list = list[:limit]
	}
	return list
}

// spread lowers the later hits of one server.
func (x *Index) spread(list []rankedDoc, limit int) []rankedDoc {
	n := map[uint32]float64{}
	for i := range list {
		s := x.tools[list[i].doc].server
		list[i].score /= 1 + float64(tune.same)*n[s]
		n[s]++
	}
	slices.SortStableFunc(list, func(a, b rankedDoc) int { return cmp.Compare(b.score, a.score) })
	return list
}
