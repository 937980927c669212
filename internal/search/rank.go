package search

import (
	"cmp"
	"math"
	"slices"
)

// tuning are the constants of ranking.
type tuning struct {
	pair, server, whole, part, same, mention, verb, syn, rel, conf, cover, weak, harm, twin, idfcap, pathverb float32
}

var tune = tuning{pair: 0.5, server: 0.4, whole: 1, part: 0.7, same: 0.05, mention: 0.3, verb: 0.85, syn: 0.45, rel: 0.4, conf: 0.5, cover: 0, weak: 0.4, harm: 0.75, twin: 1, idfcap: 0}

// ranked is a document and its score.
type rankedDoc struct {
	doc   uint32
	score float64
}

// scores adds what groups give to every document of p.
func (p *postings) scores(groups []group, out []float32) {
	best := make([]float32, len(out))
	var touched []uint32
	cover := make([]float32, len(out))
	var ideal float32
	for _, g := range groups {
		df, capped := float32(0), float32(math.MaxFloat32)
		for _, a := range g.alts {
			n := float32(len(p.of(a.term)))
			df += a.weight * n
			if a.weight == 1 && n > 0 {
				capped = min(capped, idf(p.docs, n))
			}
		}
		if df == 0 {
			continue
		}
		w := g.weight * idf(p.docs, df)
		ideal += w
		touched = touched[:0]
		for _, a := range g.alts {
			list := p.of(a.term)
			wa := w * a.weight
			if tune.idfcap > 0 {
				wa = g.weight * min(capped, idf(p.docs, float32(len(list)))) * a.weight
			}
			for _, e := range list {
				v := wa * e.impact
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
			cover[d] += w
		}
	}
	if tune.cover > 0 {
		for d := range out {
			if out[d] > 0 {
				out[d] *= (1 - tune.cover) + tune.cover*cover[d]/ideal
			}
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
	if tune.harm != 1 && !n.harm {
		for d := range tools {
			if x.tools[d].harm {
				tools[d] *= tune.harm
			}
		}
	}
	return tools[from:to]
}

// fuse merges the rankings of all needs into one list of at most limit.
func (x *Index) fuse(whole need, parts []need, from, to uint32, limit int) []rankedDoc {
	total := x.score(whole, from, to)
	if top := slices.Max(total); top > 0 {
		for d := range total {
			total[d] *= tune.whole / top
		}
	}
	if len(parts) > 1 {
		var all [][]float32
		var best float32
		for _, n := range parts {
			s := x.score(n, from, to)
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
	if tune.same > 0 || tune.twin < 1 {
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
	names := map[string]bool{}
	for i := range list {
		t := &x.tools[list[i].doc]
		list[i].score /= 1 + float64(tune.same)*n[t.server]
		n[t.server]++
		if names[t.name] {
			list[i].score *= float64(tune.twin)
		}
		names[t.name] = true
	}
	slices.SortStableFunc(list, func(a, b rankedDoc) int { return cmp.Compare(b.score, a.score) })
	return list
}
