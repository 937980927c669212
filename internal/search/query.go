package search

import (
	"math"
	"strings"
)

// maxQuery is the number of bytes of a query that are read.
const maxQuery = 4 << 10

// maxNeeds is the number of parts of a query that are ranked by themselves.
const maxNeeds = 10

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
	seen   map[string]int
	// harm is set where the need asks for something to be removed or stopped.
	harm bool
}

// put adds a group once; of two with the same key the heavier stays.
func (n *need) put(key string, g group) {
	if len(g.alts) == 0 {
		return
	}
	if at, ok := n.seen[key]; ok {
		n.groups[at].weight = max(n.groups[at].weight, g.weight)
		return
	}
	if n.seen == nil {
		n.seen = map[string]int{}
	}
	n.seen[key] = len(n.groups)
	n.groups = append(n.groups, g)
}

// analyse reads a query: the whole of it as one need, and its clauses, and the
// files it names, as needs of their own where there are several.
func (x *Index) analyse(query string) (whole need, parts []need) {
	if len(query) > maxQuery {
		query = query[:maxQuery]
	}
	for _, c := range splitClauses(query) {
		r := reader{x: x}
		r.clause(c)
		parts = append(parts, r.need)
		parts = append(parts, r.files...)
	}
	kept := parts[:0]
	for _, p := range parts {
		for i, key := range p.keys() {
			whole.put(key, p.groups[i])
		}
		whole.harm = whole.harm || p.harm
		if len(p.groups) > 0 {
			kept = append(kept, p)
		}
	}
	if len(kept) > maxNeeds {
		kept = kept[:maxNeeds]
	}
	return whole, kept
}

// keys are the keys of the groups, in their order.
func (n *need) keys() []string {
	keys := make([]string, len(n.groups))
	for key, at := range n.seen {
		keys[at] = key
	}
	return keys
}

// reader turns the words of one clause into groups.
type reader struct {
	x     *Index
	need  need
	files []need
	// last is the word before, nil at the start and after a break.
	last *[2]string
	// act is what the words so far want with a file: a stem of writes or reads.
	writing, acting bool
}

func (r *reader) clause(c string) {
	for w := range strings.FieldsSeq(c) {
		if m, ok := recognise(w); ok {
			r.mention(m)
			continue
		}
		scan(w, r.word)
	}
}

// mention adds what is known by its form.
func (r *reader) mention(m mention) {
	r.last = nil
	scan(m.text, r.word)
	r.last = nil
	for _, st := range stems(m.words) {
		r.need.put(st, r.x.expand(st, tune.mention))
	}
	if !m.path {
		return
	}
	act := "read"
	if r.writing {
		act = "write"
	}
	var f need
	words := append([]string{act}, stems(m.words)...)
	for i, st := range words {
		w := float32(1)
		if i > 1 {
			w = 0.6
		}
		f.put(st, r.x.expand(st, w))
	}
	f.put(act+" "+words[1], r.x.pairGroup(act, act, words[1], words[1]))
	r.files = append(r.files, f)
}

func (r *reader) word(w word) {
	if w.script == dense {
		r.last = nil
		r.dense(w)
		return
	}
	if w.parts != nil {
		if _, ok := r.x.vocab[stem(w.text, w.script)]; !ok {
			for _, p := range w.parts {
				r.plain(p, w.script)
			}
			return
		}
	}
	tr := translate(w)
	if len(tr) == 0 {
		r.plain(w.text, w.script)
		return
	}
	r.last = nil
	g := r.x.expand(stem(w.text, w.script), 1)
	for _, e := range tr {
		r.noteAct(e)
		r.need.harm = r.need.harm || harmful[e]
		g.alts = append(g.alts, r.x.expand(e, 1).alts...)
	}
	r.need.put(w.text, g)
}

func (r *reader) noteAct(st string) {
	if writes[st] {
		r.writing = true
	} else if reads[st] && st != "of" && st != "from" {
		r.writing = false
	}
}

// plain adds a word of a script with spaces, and the pair it makes with the word before.
func (r *reader) plain(text string, c script) {
	st := stem(text, c)
	r.noteAct(st)
	if stopWords[text] {
		return
	}
	g := r.x.expand(st, 1)
	if verbs[st] {
		g.weight = tune.verb
	}
	if weakWords[st] {
		g.weight = tune.weak
	}
	if harmful[st] {
		r.need.harm = true
	}
	r.need.put(st, g)
	if r.last != nil {
		a := *r.last
		r.need.put(a[0]+" "+st, r.x.pairGroup(a[0], a[1], st, text))
	}
	r.last = &[2]string{st, text}
}

// dense makes the groups of a run without spaces: a translated word is a group, and
// each two neighbouring characters are one.
func (r *reader) dense(w word) {
	for _, e := range translate(w) {
		r.noteAct(e)
		if harmful[e] {
			r.need.harm = true
		}
		g := r.x.expand(e, 1)
		if verbs[e] {
			g.weight = tune.verb
		}
		r.need.put(e, g)
	}
	grams(w.text, func(gram string) {
		weight := float32(0.6)
		if _, n := decode(gram); n == len(gram) {
			weight = 0.15
		}
		if id, ok := r.x.vocab[gram]; ok {
			r.need.put(gram, group{alts: []alt{{id, 1}}, weight: weight})
		}
	})
}

// expand gives the terms that stand for a stem, itself first.
func (x *Index) expand(st string, weight float32) group {
	g := group{weight: weight}
	if id, ok := x.termOf(st); ok {
		g.alts = append(g.alts, alt{id, 1})
	}
	for _, s := range thesaurus[st] {
		if id, ok := x.termOf(s.stem); ok {
			w := tune.syn
			if s.weight < sameWeight {
				w = tune.rel
			}
			g.alts = append(g.alts, alt{id, w})
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

// harmful are acts that a tool is hardly wanted for unless they are named.
var harmful = stemSet("delete remove drop erase destroy purge wipe kill terminate revoke disable deactivate suspend uninstall unlink cancel")
