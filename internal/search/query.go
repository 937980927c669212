package search

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// What is read of a query at most, so that a hostile one costs no more than a
// long one.
const (
	maxQuery  = 4 << 10 // bytes
	maxNeeds  = 16      // parts that are ranked by themselves
	maxGroups = 160     // words of one need
)

// The weights of what stands for a word of a query, and of kinds of words.
const (
	synonymWeight = 0.45
	relatedWeight = 0.35
	pairWeight    = 0.5
	verbWeight    = 0.85
	weakWeight    = 0.5
	mentionWeight = 0.3
	numberWeight  = 0.4
	quotedShare   = 0.4
	// of characters of a script without spaces: two neighbours, two inside a
	// word that the lexicon knows, one
	gramWeight      = 0.6
	knownGramWeight = 0.3
	charWeight      = 0.15
)

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

// need is one thing that a query asks for: groups, each once, by key.
type need struct {
	keys   []string
	groups []group
	// act is the first act that it names.
	act act
	// harm is set where the need asks for something to be removed or stopped.
	harm bool
	// deprecated is set where the query speaks of what is deprecated.
	deprecated bool
}

// act is whether something is about what there is, or about changing it.
type act uint8

const (
	unknown act = iota
	asks
	changes
)

// actOf gives the act that a stem names.
func actOf(st string) act {
	switch {
	case changing()[st]:
		return changes
	case asking()[st]:
		return asks
	}
	return unknown
}

// or is a, or b where a is not known.
func (a act) or(b act) act {
	if a == unknown {
		return b
	}
	return a
}

// put adds a group once; of two with the same key the heavier one counts.
func (n *need) put(key string, g group) {
	if len(g.alts) == 0 {
		return
	}
	if at := slices.Index(n.keys, key); at >= 0 {
		n.groups[at].weight = max(n.groups[at].weight, g.weight)
		return
	}
	if len(n.groups) < maxGroups {
		n.keys = append(n.keys, key)
		n.groups = append(n.groups, g)
	}
}

// analyse reads a query: the whole of it as one need, and its clauses and the
// files that it names as parts.
func (x *Index) analyse(query string) (whole need, parts []need) {
	if len(query) > maxQuery {
		query = query[:maxQuery]
		for len(query) > 0 && !utf8.RuneStart(query[len(query)-1]) {
			query = query[:len(query)-1]
		}
	}
	for _, c := range splitClauses(query) {
		r := reader{x: x}
		r.clause(c)
		for _, p := range append([]need{r.need}, r.files...) {
			for i, key := range p.keys {
				whole.put(key, p.groups[i])
			}
			whole.harm = whole.harm || p.harm
			if len(p.groups) > 0 {
				if whole.act != changes && p.act != unknown {
					whole.act = p.act
				}
				parts = append(parts, p)
			}
		}
	}
	whole.deprecated = strings.Contains(strings.ToLower(query), "deprecat")
	for i := range parts {
		parts[i].deprecated = whole.deprecated
	}
	return whole, x.heaviest(parts)
}

// heaviest keeps the maxNeeds parts that say most, in their order.
func (x *Index) heaviest(parts []need) []need {
	if len(parts) <= maxNeeds {
		return parts
	}
	mass := make([]float32, len(parts))
	for i := range parts {
		for _, g := range parts[i].groups {
			mass[i] += x.tool.mass(g)
		}
	}
	sorted := slices.Sorted(slices.Values(mass))
	least := sorted[len(sorted)-maxNeeds]
	var kept []need
	for i := range parts {
		if mass[i] >= least && len(kept) < maxNeeds {
			kept = append(kept, parts[i])
		}
	}
	return kept
}

// reader turns the words of one clause into groups.
type reader struct {
	x     *Index
	need  need
	files []need
	// last is the word before, empty at the start and after a break.
	last string
	// writing is set while the last act that concerns a file puts something
	// into one.
	writing bool
	// share is what the words of the piece at hand count.
	share float32
	// into is set after a word such as "to" that comes before what is written.
	into bool
}

// quoted is a value that a query gives: it seldom names a tool.
var quoted = regexp.MustCompile("\"[^\"]+\"|“[^”]+”|«[^»]+»|`[^`]+`|\\B'[^']+'\\B")

// clause reads one clause.
func (r *reader) clause(c string) {
	from := 0
	for _, q := range quoted.FindAllStringIndex(c, -1) {
		r.share = 1
		r.read(c[from:q[0]])
		r.share = quotedShare
		r.read(c[q[0]:q[1]])
		from = q[1]
	}
	r.share = 1
	r.read(c[from:])
}

// read reads a piece of a clause.
func (r *reader) read(c string) {
	for field := range strings.FieldsSeq(c) {
		for _, w := range splitDense(field) {
			if m, ok := recognise(w); ok {
				r.mention(m)
				continue
			}
			scan(w, r.word)
		}
	}
}

// splitDense cuts a field where a script without spaces meets ASCII, so that a
// path or an address in a Chinese sentence stands alone.
func splitDense(field string) []string {
	var out []string
	from, was := 0, false
	for i, c := range field {
		is := c >= 0x2E80
		if i > 0 && is != was {
			out = append(out, field[from:i])
			from = i
		}
		was = is
	}
	return append(out, field[from:])
}

// mention adds what is known by its form. A file is a need of its own: to read
// it, or to write it.
func (r *reader) mention(m mention) {
	r.last = ""
	scan(m.text, r.word)
	r.last = ""
	kinds := stems(m.words)
	for _, st := range kinds {
		r.need.put(st, r.x.expand(st, mentionWeight))
	}
	if !m.path {
		return
	}
	act := "read"
	if r.writing || r.into {
		act = "write"
	}
	f := need{act: actOf(act)}
	f.put(act, r.x.expand(act, 1))
	for i, st := range kinds {
		weight := float32(1)
		if i > 0 {
			weight = 0.6
		}
		f.put(st, r.x.expand(st, weight))
	}
	f.put(act+" "+kinds[0], r.x.expand(stem(act+kinds[0], latin), pairWeight))
	r.files = append(r.files, f)
}

// word adds a word of any script.
func (r *reader) word(w word) {
	if w.script == dense {
		r.last = ""
		r.dense(w)
		return
	}
	st := stem(w.text, w.script)
	if _, known := r.x.vocab[st]; w.parts != nil && !known {
		for _, p := range w.parts {
			r.plain(p, stem(p, w.script))
		}
		return
	}
	english := translate(st, w.script)
	if len(english) == 0 {
		r.plain(w.text, st)
		return
	}
	r.last = ""
	r.senses(w.text, append([]string{st}, english...))
}

// senses adds a word that may stand for any of several stems.
func (r *reader) senses(key string, stems []string) {
	g := group{weight: 1}
	for _, st := range stems {
		r.note(st)
		if verbs()[st] {
			g.weight = verbWeight
		}
		g.alts = append(g.alts, r.x.expand(st, 1).alts...)
	}
	r.need.put(key, g)
}

// note takes in what a word says about files and about harm.
func (r *reader) note(st string) {
	switch {
	case writes()[st]:
		r.writing = true
	case reads()[st]:
		r.writing = false
	}
	r.need.harm = r.need.harm || harmful()[st]
	r.need.act = r.need.act.or(actOf(st))
}

// plain adds a word of a script with spaces, and the pair it makes with the
// word before.
func (r *reader) plain(text, st string) {
	r.note(st)
	if stopWords[text] {
		r.into = text == "to" || text == "into"
		return
	}
	r.into = false
	weight := float32(1)
	switch {
	case text[0] <= '9' && strings.Trim(text, "0123456789") == "":
		weight = numberWeight
	case weakStems()[st]:
		weight = weakWeight
	case verbs()[st]:
		weight = verbWeight
	}
	r.need.put(st, r.x.expand(st, weight*r.share))
	if r.last != "" {
		r.need.put(r.last+" "+st, r.x.expand(stem(r.last+text, latin), pairWeight*r.share))
	}
	r.last = text
}

// dense adds the words that are known in a run without spaces, its characters
// and its pairs of characters. A pair inside a known word says less: the word
// has been added.
func (r *reader) dense(w word) {
	known := translateRun(w.text)
	for _, f := range known {
		r.senses(f.english[0], f.english)
	}
	grams(w.text, func(at int, gram string) {
		for len(known) > 0 && known[0].to <= at {
			known = known[1:]
		}
		weight := float32(gramWeight)
		if _, n := decode(gram); n == len(gram) {
			weight = charWeight
		} else if len(known) > 0 && known[0].from <= at && at+len(gram) <= known[0].to {
			weight = knownGramWeight
		}
		if id, ok := r.x.vocab[gram]; ok {
			r.need.put(gram, group{alts: []alt{{id, 1}}, weight: weight})
		}
	})
}

// expand gives the terms that stand for a stem, itself first.
func (x *Index) expand(st string, weight float32) group {
	g := group{weight: weight}
	if id, ok := x.vocab[st]; ok {
		g.alts = append(g.alts, alt{id, 1})
	}
	g.alts = x.appendSynonyms(g.alts, st)
	return g
}

func (x *Index) appendSynonyms(alts []alt, st string) []alt {
	for _, s := range thesaurus()[st] {
		if id, ok := x.vocab[s.stem]; ok {
			alts = append(alts, alt{id, s.weight})
		}
	}
	return alts
}
