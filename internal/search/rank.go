package search

import (
	"cmp"
	"math"
	"slices"
)

// The constants of ranking. They lie on plateaus: between half and twice their
// value, recall on the half of the public tasks that they were chosen on changes
// by about 0.01.
const (
	// wholeShare and partShare weigh the whole query against its best part.
	wholeShare, partShare = 1, 0.7
	// partTrust is how much less a part counts that nothing fits as well as the
	// best one.
	partTrust = 0.8
	// serverShare is what a server that fits the query adds to each of its tools.
	serverShare = 0.3
	// harmFactor lowers tools that remove or stop something, unasked.
	harmFactor = 0.75
	// changeFactor lowers tools that change something where a need asks.
	changeFactor = 0.5
	// deprecatedFactor lowers tools that say that they are deprecated, unasked.
	deprecatedFactor = 0.3
	// served is what a part still counts after a hit that fits it wholly.
	served = 0.6
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
	for i := range s {
		t := &r.x.tools[r.from+uint32(i)]
		if t.changes && n.act == asks {
			s[i] *= changeFactor
		}
		if t.harm && !n.harm {
			s[i] *= harmFactor
		}
		if t.deprecated && !n.deprecated {
			s[i] *= deprecatedFactor
		}
	}
	return s, slices.Max(s)
}

// fuse ranks the tools in range by the whole query and by its parts. The list
// is at most limit long, its best score 1.
func (r *ranking) fuse(whole *need, parts []need, limit int) []scored {
	s, top := r.score(whole)
	if top == 0 {
		return nil
	}
	m := merge{r: r, limit: limit, whole: make([]float32, len(s))}
	for i, v := range s {
		m.whole[i] = v / top
	}
	if len(parts) > 1 {
		m.addParts(parts)
	}
	list := m.pick()
	for i := len(list) - 1; i >= 0; i-- {
		list[i].score /= list[0].score
	}
	return list
}

// merge is a choice of the best tools under several rankings.
type merge struct {
	r     *ranking
	limit int
	// whole and each of parts have for every tool in range its share of the
	// best score, for the whole query and for a part. Parts that nothing fits
	// well are lower altogether.
	whole []float32
	parts [][]float32
}

// addParts scores the parts.
func (m *merge) addParts(parts []need) {
	tops := make([]float32, len(parts))
	for i := range parts {
		s, top := m.r.score(&parts[i])
		m.parts = append(m.parts, slices.Clone(s))
		tops[i] = top
	}
	best := slices.Max(tops)
	for i, top := range tops {
		if top == 0 {
			clear(m.parts[i])
			continue
		}
		share := (1 - partTrust + partTrust*top/best) / top
		for d := range m.parts[i] {
			m.parts[i][d] *= share
		}
	}
}

// value is what the tool at i counts when the parts still weigh left, and the
// part that it fits best.
func (m *merge) value(i int, left []float32) (value float32, part int) {
	part = -1
	var best float32
	for p, s := range m.parts {
		if v := left[p] * s[i]; v > best {
			best, part = v, p
		}
	}
	return wholeShare*m.whole[i] + partShare*best, part
}

// pick takes the best tool, again and again. A part that has got a tool counts
// less from then on, so that each need gets its own.
func (m *merge) pick() []scored {
	left := make([]float32, len(m.parts))
	for p := range left {
		left[p] = 1
	}
	rest := m.candidates(left)
	var list []scored
	last := math.Inf(1)
	for len(list) < m.limit && len(rest) > 0 {
		at, top := 0, float32(-1)
		for j, c := range rest {
			v, _ := m.value(int(c.doc), left)
			if v > top {
				at, top = j, v
			}
		}
		c := rest[at]
		rest = slices.Delete(rest, at, at+1)
		if _, p := m.value(int(c.doc), left); p >= 0 {
			left[p] *= 1 - (1-served)*min(1, m.parts[p][c.doc])
		}
		last = min(last, float64(top))
		list = append(list, scored{m.r.from + c.doc, last})
	}
	return list
}

// candidates are the tools that any word finds, numbered from the start of the
// range, best first, no more than can matter. Of the same tool on several servers
// the best is one.
func (m *merge) candidates(left []float32) []scored {
	var list []scored
	for i := range m.whole {
		if v, _ := m.value(i, left); v > 0 {
			list = append(list, scored{uint32(i), float64(v)})
		}
	}
	slices.SortFunc(list, func(a, b scored) int {
		if c := cmp.Compare(b.score, a.score); c != 0 {
			return c
		}
		return cmp.Compare(a.doc, b.doc)
	})
	seen := make(map[uint32]bool, len(list))
	list = slices.DeleteFunc(list, func(c scored) bool {
		same := m.r.x.tools[m.r.from+c.doc].same
		twice := seen[same]
		seen[same] = true
		return twice
	})
	return list[:min(len(list), 4*m.limit+60)]
}
