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

// The weights of what is less than a word of the query itself. Between three
// quarters and four thirds of each, recall on the public tasks changes by 0.02 at
// most.
const (
	// standIn is what a synonym counts.
	standIn = 0.3
	// half is what a number, a quoted value, two neighbours written together and
	// the kind of what is named count.
	half = 0.5
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
	// act is the act that it names.
	act act
	// about says in numbers what it is about.
	about vector
	// other is set where words are of a script that vectors do not know.
	other bool
	// deprecated is set where the query speaks of what is deprecated.
	deprecated bool
}

// act is what a need or a tool does to what there is.
type act uint8

const (
	unknown act = iota
	asks
	changes
	removes
)

// actOf gives the act that a stem names.
func actOf(st string) act {
	switch {
	case removing()[st]:
		return removes
	case changing()[st]:
		return changes
	case asking()[st]:
		return asks
	}
	return unknown
}

// then is the act of what does a and then b: the first says it, but for one that
// removes something.
func (a act) then(b act) act {
	if a == unknown || b == removes {
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
			whole.other = whole.other || p.other
			whole.about.plus(&p.about, 1)
			if len(p.groups) > 0 {
				whole.act = max(whole.act, p.act)
				parts = append(parts, p)
			}
		}
	}
	whole.deprecated = strings.Contains(strings.ToLower(query), "deprecat")
	for i := range parts {
		parts[i].deprecated = whole.deprecated
	}
	return whole, parts[:min(len(parts), maxNeeds)]
}

// reader turns the words of one clause into groups.
type reader struct {
	x     *Index
	need  need
	files []need
	// last is the word before, empty at the start and after a break.
	last string
	// writing is set after an act that puts something into a file.
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
		r.share = half
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
		r.need.put(st, r.x.expand(st, half))
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
	for w := range strings.FieldsSeq(act + " " + m.words) {
		f.about.word(w, 1)
	}
	for i, st := range kinds {
		weight := float32(1)
		if i > 0 {
			weight = half
		}
		f.put(st, r.x.expand(st, weight))
	}
	f.put(act+" "+kinds[0], r.x.expand(stem(act+kinds[0], latin), half))
	r.files = append(r.files, f)
}

// word adds a word of any script.
func (r *reader) word(w word) {
	r.need.other = r.need.other || w.script != latin && w.script != number
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
		g.alts = append(g.alts, r.x.expand(st, 1).alts...)
	}
	r.need.put(key, g)
}

// note takes in what a word says about what is done, and with files.
func (r *reader) note(st string) {
	r.writing = r.writing || writing()[st]
	r.need.act = r.need.act.then(actOf(st))
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
	weight := r.share
	if strings.Trim(text, "0123456789") == "" {
		weight *= half
	}
	r.need.about.word(text, weight)
	r.need.put(st, r.x.expand(st, weight))
	if r.last != "" {
		r.need.put(r.last+" "+st, r.x.expand(stem(r.last+text, latin), half*r.share))
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
	for _, s := range thesaurus()[st] {
		if id, ok := x.vocab[s]; ok {
			g.alts = append(g.alts, alt{id, standIn})
		}
	}
	return g
}
