package search

import (
	"cmp"
	"math"
	"slices"
)

// The constants of ranking. All of them lie on plateaus: the half of the
// public tasks that they were chosen on changes by at most 0.01 between half
// and twice their value.
const (
	// wholeShare and partShare weigh the whole query against its best part.
	wholeShare, partShare = 1, 0.7
	// partTrust is how much a part counts less that matches worse than the best one.
	partTrust = 0.5
	// serverShare is what a server that fits the query adds to each of its tools.
	serverShare = 0.3
	// harmFactor lowers tools that remove or stop something, unasked.
	harmFactor = 0.75
	// crowding lowers the second, third… hit of one server.
	crowding = 0.05
)

// scored is a document and its score.
type scored struct {
	doc   uint32
	score float64
}

// idf is what a word says that df of n documents have.
func idf(n int, df float32) float32 {
	d := min(float64(df), float64(n))
	return float32(math.Log(1 + (float64(n)-d+0.5)/(d+0.5)))
}

// mass is what a document gets at most for g.
func (p *postings) mass(g group) float32 {
	df := float32(0)
	for _, a := range g.alts {
		df += a.weight * float32(len(p.of(a.term)))
	}
	if df == 0 {
		return 0
	}
	return g.weight * idf(p.docs, df)
}

// addTo adds what groups give to the score of every document. best is room for
// one number a document, all zero before and after.
func (p *postings) addTo(scores, best []float32, groups []group) {
	var touched []uint32
	for _, g := range groups {
		mass := p.mass(g)
		if mass == 0 {
			continue
		}
		touched = touched[:0]
		for _, a := range g.alts {
			for _, e := range p.of(a.term) {
				v := mass * a.weight * e.impact
				old := best[e.doc]
				if v <= old {
					continue
				}
				if old == 0 {
					touched = append(touched, e.doc)
				}
				scores[e.doc] += v - old
				best[e.doc] = v
			}
		}
		for _, d := range touched {
			best[d] = 0
		}
	}
}

// ranking is the room that one search works in.
type ranking struct {
	x        *Index
	from, to uint32
	tools    []float32
	servers  []float32
	best     []float32
}

func newRanking(x *Index, from, to uint32) *ranking {
	n := max(len(x.tools), len(x.servers))
	return &ranking{x: x, from: from, to: to, tools: make([]float32, len(x.tools)),
		servers: make([]float32, len(x.servers)), best: make([]float32, n)}
}

// score gives what one need gives to each tool in range, and the best of that.
// The slice is overwritten by the next call.
func (r *ranking) score(n *need) ([]float32, float32) {
	clear(r.tools)
	clear(r.servers)
	r.x.tool.addTo(r.tools, r.best, n.groups)
	r.x.srv.addTo(r.servers, r.best, n.groups)
	for i := range r.x.servers {
		add := serverShare * r.servers[i]
		if add == 0 {
			continue
		}
		for d := r.x.servers[i].from; d < r.x.servers[i].to; d++ {
			r.tools[d] += add
		}
	}
	s := r.tools[r.from:r.to]
	if !n.harm {
		for i := range s {
			if r.x.tools[r.from+uint32(i)].harm {
				s[i] *= harmFactor
			}
		}
	}
	return s, slices.Max(s)
}

// fuse ranks the tools in range: each gets its share of the best score for the whole
// query, and of the best score for the part that it fits best. The list is at most limit long,
// its best score 1.
func (r *ranking) fuse(whole *need, parts []need, limit int) []scored {
	total := make([]float32, r.to-r.from)
	s, top := r.score(whole)
	if top == 0 {
		return nil
	}
	for i, v := range s {
		total[i] = wholeShare * v / top
	}
	if len(parts) > 1 {
		for i, v := range r.bestPart(parts) {
			total[i] += partShare * v
		}
	}
	var list []scored
	for i, v := range total {
		if v > 0 {
			list = append(list, scored{r.from + uint32(i), float64(v)})
		}
	}
	r.spread(list)
	if len(list) > limit {
		list = slices.Clip(list[:limit])
	}
	for i := len(list) - 1; i >= 0; i-- {
		list[i].score /= list[0].score
	}
	return list
}

// bestPart gives each tool in range its share of the best score of the part
// that it fits best. Parts that nothing fits well count less.
func (r *ranking) bestPart(parts []need) []float32 {
	n := int(r.to - r.from)
	all := make([]float32, n*len(parts))
	tops := make([]float32, len(parts))
	for i := range parts {
		s, top := r.score(&parts[i])
		copy(all[i*n:], s)
		tops[i] = top
	}
	best := slices.Max(tops)
	out := make([]float32, n)
	for i, top := range tops {
		if top == 0 {
			continue
		}
		share := (1 - partTrust + partTrust*top/best) / top
		for d, v := range all[i*n : (i+1)*n] {
			out[d] = max(out[d], share*v)
		}
	}
	return out
}

// spread sorts list, and again after lowering the later hits of each server, so
// that one server with many alike tools leaves room for others.
func (r *ranking) spread(list []scored) {
	byScore := func(a, b scored) int {
		if c := cmp.Compare(b.score, a.score); c != 0 {
			return c
		}
		return cmp.Compare(a.doc, b.doc)
	}
	slices.SortFunc(list, byScore)
	seen := make([]float64, len(r.x.servers))
	for i := range list {
		at := r.x.tools[list[i].doc].server
		list[i].score /= 1 + crowding*seen[at]
		seen[at]++
	}
	slices.SortFunc(list, byScore)
}
