package search

import (
	"math"
	"slices"
	"strings"
)

// These are the constants of ranking. If one of them changes to three quarters or four thirds of its value, the recall that
// TestRetrieval measures on public tasks changes by 0.02 at most.
const (
	// serverShare is how much of the score of a server is added to the scores of its tools.
	serverShare = 0.3
	// nearShare is the share of a score that comes from word vectors; the rest comes from the words themselves.
	nearShare = 0.35
	// removeFactor lowers the score of tools that remove or stop something, unless the query asks for that.
	removeFactor = 0.75
	// changeFactor lowers the score of tools that change or remove something, if the query only asks for information.
	changeFactor = 0.5
	// deprecatedFactor lowers the score of deprecated tools, unless the query mentions deprecation.
	deprecatedFactor = 0.3
	// Each hit lowers the weight of the part of the query that it fits best, so that the next hits fit other parts. If the hit
	// fits that part completely, the weight is multiplied by pickedFactor; if the hit fits less well, the weight is lowered
	// less.
	pickedFactor = 0.5
	// minFit is the share of the words of a query that the best tool must have. If it has a smaller share, the hits are weak
	// (see [Hit]), unless the query has several needs.
	minFit = 0.2
	// minScore is the least score of a hit, as a share of the score of the first hit.
	minScore = 0.1
)

// scored is the number of a tool and its score.
type scored struct {
	doc   uint32
	score float64
}

// idf returns the weight of a word that occurs in df of n documents.
func idf(n int, df float32) float32 {
	d := min(float64(df), float64(n))
	return float32(math.Log(1 + (float64(n)-d+0.5)/(d+0.5)))
}

// mass returns the most that group g can add to the score of a document. The fewer documents have terms of g, the greater it is.
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

// addTo adds to the score of each document what the words of the groups are worth in it. best is a buffer with one number for
// each document; all of them are zero before and after the call.
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

// ranking is one search among the tools in range, which are those with the numbers from first to end-1. best is the buffer for
// addTo.
type ranking struct {
	x          *Index
	first, end uint32
	best       []float32
}

// score returns how well each tool in range fits one need; the best tool has 1. fit is the highest score before word vectors
// and acts are considered. If no tool has any of the words, fit and all scores are 0.
func (r *ranking) score(n *need) (s []float32, fit float32) {
	x := r.x
	tools, servers := make([]float32, len(x.tools)), make([]float32, len(x.servers))
	x.tool.addTo(tools, r.best, n.groups)
	x.srv.addTo(servers, r.best, n.groups)
	s = tools[r.first:r.end]
	for i := range s {
		s[i] += serverShare * servers[x.tools[int(r.first)+i].server]
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
		s[i] *= x.tools[int(r.first)+i].factor(n)
	}
	for i := range s {
		if at := x.tools[int(r.first)+i].server; s[i] > 0 {
			s[i] += n.servers[at]
		}
	}
	scale(s, 1/slices.Max(s))
	return s, fit
}

// factor returns a number by which the tool's score is multiplied. It is less than 1 if the tool does more than n asks for (it
// changes or removes something), or is deprecated and n does not mention deprecation.
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

// weak reports whether probably no tool does what the query asks for. There are two such cases. In the first, even the best tool
// fits the query less than minFit (see fit). In the second, the query names a server, and the best tool fits the other words of
// the query less than minFit (see onlyServer). A query with several needs is never weak, since longer queries contain words that
// only describe the situation.
func (r *ranking) weak(n *need, parts []need) bool {
	return len(parts) <= 1 && (r.fit(n) < minFit || r.onlyServer(n))
}

// onlyServer reports whether the query names a server, but its other words fit no tool. It considers only servers whose tools all
// begin with the same word, such as git_log and git_show. A query with this word fits all of them, but "git push" asks for
// something that none of them does.
func (r *ranking) onlyServer(n *need) bool {
	for at := range n.servers {
		prefix := r.x.servers[at].prefix
		if prefix == "" || !slices.Contains(n.keys, prefix) {
			continue
		}
		others := need{unknownWeight: n.unknownWeight, act: n.act, deprecated: n.deprecated}
		for i, g := range n.groups {
			if key := n.keys[i]; key != prefix && !strings.Contains(key, " ") {
				g.alts = slices.DeleteFunc(slices.Clone(g.alts), func(a alt) bool { return a.term == r.x.vocab[prefix] })
				if others.add(key, g); len(g.alts) == 0 {
					others.unknownWeight += g.weight
				}
			}
		}
		if (len(others.groups) > 0 || others.unknownWeight > 0) && r.fit(&others) < minFit {
			return true
		}
	}
	return false
}

// fit returns how well the best tool fits a need: the weight of those words of the need that the tool has, as a share of the weight
// of all its words.
func (r *ranking) fit(n *need) float32 {
	x := r.x
	most := n.unknownWeight * idf(x.tool.docs, 1)
	for i, g := range n.groups {
		if !strings.Contains(n.keys[i], " ") { // two joined words are not counted again
			most += x.tool.mass(g)
		}
	}
	_, fit := r.score(n)
	return fit / max(most, 0.01)
}

// near compares the vector of each tool in range with the vector of n. The nearer a tool is in meaning, the greater its
// nearness; 0 means that it is no nearer than an average tool. nearest is the greatest nearness. If n has no vector, or words
// in another script, nearest is 0.
func (r *ranking) near(n *need) (nearness []float32, nearest float32) {
	about := n.about
	if n.otherScript || about == (vector{}) {
		return nil, 0
	}
	about.seenFrom(&r.x.centre)
	nearness = make([]float32, r.end-r.first)
	for i := range nearness {
		nearness[i] = max(0, about.dot(&r.x.vectors[int(r.first)+i]))
	}
	return nearness, slices.Max(nearness)
}

// fuse ranks the tools in range by their scores for the whole query and for its parts. It picks the best tool again and again,
// but the same tool only once if several servers have it. Each pick lowers the weight of the part that it fits best, so that
// each need gets a tool. The list has at most limit tools, and its best score is 1.
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
			if v += most; v > best && !taken[r.x.tools[int(r.first)+i].same] {
				best, at = v, i
			}
		}
		if best == 0 || len(list) > 0 && float64(best) < minScore*list[0].score {
			break
		}
		doc := r.first + uint32(at)
		taken[r.x.tools[doc].same] = true
		list = append(list, scored{doc, float64(best)})
		if part, most := fittest(fits, at); most > 0 {
			scale(fits[part], 1-(1-pickedFactor)*most)
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		list[i].score /= list[0].score
	}
	return list
}

// scoreParts scores each part, and lowers the scores of a part that no tool fits well. It returns nil if there are fewer than
// two parts, since one part is the whole query.
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

// fittest returns the part that has the greatest score for tool i, and that score.
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
