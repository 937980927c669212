package search

import (
	"math"
	"slices"
)

// The constants of ranking. Between three quarters and four thirds of each, recall
// on the public tasks changes by 0.02 at most.
const (
	// serverShare is what a server that fits the query adds to each of its tools.
	serverShare = 0.3
	// nearShare is what nearness of meaning counts, and words the rest.
	nearShare = 0.35
	// removeFactor lowers tools that remove or stop something, unasked.
	removeFactor = 0.75
	// changeFactor lowers tools that change something where a need asks.
	changeFactor = 0.5
	// deprecatedFactor lowers tools that say that they are deprecated, unasked.
	deprecatedFactor = 0.3
	// served is what a part still counts after a hit that fits it wholly.
	served = 0.5
	// least is the share of the first hit's score below which nothing is a hit.
	least = 0.1
)

// scored is a document and its score.
type scored struct {
	doc   uint32
	score float64
}

// idf is how much a word says that df of n documents have.
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

// ranking is the room that one search works in: tools from..to, and one number for
// each document, zero between uses.
type ranking struct {
	x        *Index
	from, to uint32
	best     []float32
}

// score gives how well each tool in range fits one need, 1 for the best, and what
// words give to that which they fit best: with 0 nothing fits.
func (r *ranking) score(n *need) (s []float32, fit float32) {
	x := r.x
	tools, servers := make([]float32, len(x.tools)), make([]float32, len(x.servers))
	x.tool.addTo(tools, r.best, n.groups)
	x.srv.addTo(servers, r.best, n.groups)
	s = tools[r.from:r.to]
	for i := range s {
		s[i] += serverShare * servers[x.tools[int(r.from)+i].server]
	}
	if fit = slices.Max(s); fit == 0 {
		return s, 0
	}
	near, nearest := r.near(n)
	for i := range s {
		s[i] /= fit
		if nearest > 0 {
			s[i] = (1-nearShare)*s[i] + nearShare*near[i]/nearest
		}
		s[i] *= x.tools[int(r.from)+i].factor(n)
	}
	scale(s, 1/slices.Max(s))
	return s, fit
}

// factor is less than 1 for a tool that n hardly wants, by what the tool does.
func (t *toolRef) factor(n *need) float32 {
	f := float32(1)
	if t.act >= changes && n.act == asks {
		f = changeFactor
	} else if t.act == removes && n.act != removes {
		f = removeFactor
	}
	if t.deprecated && !n.deprecated {
		f *= deprecatedFactor
	}
	return f
}

// near gives how near each tool in range is to what n is about, 0 for what is no
// nearer than the centre of all, and the most of that: 0 where vectors say nothing.
func (r *ranking) near(n *need) (near []float32, nearest float32) {
	about := n.about
	if n.other || about == (vector{}) {
		return nil, 0
	}
	about.seenFrom(&r.x.centre)
	near = make([]float32, r.to-r.from)
	for i := range near {
		near[i] = max(0, about.dot(&r.x.vectors[int(r.from)+i]))
	}
	return near, slices.Max(near)
}

// fuse ranks the tools in range by the whole query and by its parts. It takes the
// best tool, again and again, the same tool of several servers once. A part that has
// got a tool counts less from then on, so that each need gets its own. The list is
// at most limit long, its best score 1.
func (r *ranking) fuse(whole *need, parts []need, limit int) []scored {
	base, fit := r.score(whole)
	if fit == 0 {
		return nil
	}
	fits := r.scoreParts(parts)
	taken := map[uint32]bool{}
	var list []scored
	for len(list) < limit {
		best, at := float32(0), 0
		for i, v := range base {
			_, most := fittest(fits, i)
			if v += most; v > best && !taken[r.x.tools[int(r.from)+i].same] {
				best, at = v, i
			}
		}
		if best == 0 || len(list) > 0 && float64(best) < least*list[0].score {
			break
		}
		doc := r.from + uint32(at)
		taken[r.x.tools[doc].same] = true
		list = append(list, scored{doc, float64(best)})
		if part, most := fittest(fits, at); most > 0 {
			scale(fits[part], 1-(1-served)*most)
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		list[i].score /= list[0].score
	}
	return list
}

// scoreParts scores each part, those lower altogether that nothing fits well. One
// part alone is the whole.
func (r *ranking) scoreParts(parts []need) [][]float32 {
	if len(parts) < 2 {
		return nil
	}
	scores, fits := make([][]float32, len(parts)), make([]float32, len(parts))
	for i := range parts {
		scores[i], fits[i] = r.score(&parts[i])
	}
	if best := slices.Max(fits); best > 0 {
		for i := range scores {
			scale(scores[i], fits[i]/best)
		}
	}
	return scores
}

// fittest gives which of scores is the greatest at i, and that one.
func fittest(scores [][]float32, i int) (at int, most float32) {
	for p := range scores {
		if scores[p][i] > most {
			at, most = p, scores[p][i]
		}
	}
	return at, most
}

func scale(s []float32, by float32) {
	for i := range s {
		s[i] *= by
	}
}
