package search

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"mcpx/internal/base/pattern"
)

// These bounds of a query limit the work even if the query is hostile.
const (
	maxQuery  = 4 << 10 // bytes
	maxNeeds  = 16      // needs: parts of the query that are ranked separately
	maxGroups = 160     // groups in one need
)

// These are the weights of terms and words, where an ordinary word of the query has 1. If one of them changes to three quarters
// or four thirds of its value, the recall that TestRetrieval measures on public tasks changes by 0.02 at most.
const (
	synonymWeight = 0.3
	// halfWeight is the weight of a number, of a quoted value, of two adjacent words joined, and of words such as "file" that say
	// what a path, a web address or another [mention] is.
	halfWeight = 0.5
	// impliedWeight is the weight of a word that is not in the query, but that other words of the query imply (see hints).
	impliedWeight = 0.8
	// respelledWeight is the weight of a word that replaces a misspelled word of the query.
	respelledWeight = 0.8
	// If the query names a server, namedBonus is added to the scores of the server's tools, so that these tools come first. A score
	// of 0 stays 0. If the name of the server may also be an ordinary word of the query, maybeNamedBonus is added instead.
	namedBonus, maybeNamedBonus = 1, 0.15
	// These are the weights in scripts without spaces: of two adjacent characters, of two adjacent characters inside a word of
	// the lexicon, and of a single character.
	gramWeight      = 0.6
	knownGramWeight = 0.3
	charWeight      = 0.15
)

// group is a word, a character, or a pair of adjacent words or characters of a query, or a word that the query implies. A group
// also has their synonyms and translations. The score of a document counts only one term of a group: the one that adds most.
type group struct {
	alts   []alt
	weight float32
}

// alt is one term of a group, with its weight.
type alt struct {
	term   uint32
	weight float32
}

// need is one of the things that a query asks for. keys[i] is the text that groups[i] is for, such as a stem or two adjacent words.
// No key occurs twice.
type need struct {
	keys   []string
	groups []group
	// act is what a tool has to do for this need: for example, only read things, or remove them.
	act act
	// about is the sum of the word vectors of its words.
	about vector
	// otherScript means that some words are in a script for which there are no word vectors.
	otherScript bool
	// deprecated means that the query mentions deprecation.
	deprecated bool
	// unknownWeight is the total weight of the words that occur in no tool and in no server, not even as a synonym. Words that have
	// a translation are not included.
	unknownWeight float32
	// servers maps the number of each server that the query names to what is added to the scores of its tools.
	servers map[uint32]float32
}

// act is what a need asks for, or what a tool does: read things, create, change, send or start them, or remove or stop them.
type act uint8

const (
	unknown act = iota
	asks        // it only reads
	changes     // it makes, changes, sends, starts or buys something
	removes     // it removes or stops something
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

// then returns the act of two words together, where a is the act of the first word, and b the act of the second. The first word
// decides, unless its act is unknown or the second word removes something.
func (a act) then(b act) act {
	if a == unknown || b == removes {
		return b
	}
	return a
}

// add adds a group. If there is a group with the same key already, the greater weight of the two is kept. An empty group, and
// one beyond maxGroups, is dropped.
func (n *need) add(key string, g group) {
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

// analyse reads a query. whole is the query as a single need. parts has one need for each clause with a known word, and one for
// each file or folder that the query names, but at most maxNeeds.
func (x *Index) analyse(query string) (whole need, parts []need) {
	query = cut(query, maxQuery)
	whole.servers = make(map[uint32]float32)
	for _, c := range splitClauses(query) {
		r := reader{x: x}
		r.clause(c)
		for _, p := range append([]need{r.need}, r.files...) {
			for i, key := range p.keys {
				whole.add(key, p.groups[i])
			}
			whole.otherScript = whole.otherScript || p.otherScript
			whole.about.plus(&p.about, 1)
			whole.unknownWeight += p.unknownWeight
			for at, bonus := range p.servers {
				whole.servers[at] = max(whole.servers[at], bonus)
			}
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
	// last is the previous word, with which the next word forms a pair. It is empty at the beginning, after a mention, after a word
	// that was translated, and after a word of a script without spaces.
	last string
	// writing is set after a word such as "save", which means that a file is written.
	writing bool
	// weight is the weight of the words that are being read: 1, but less inside quotes.
	weight float32
	// afterTo is set directly after "to" or "into": a file that is named next will be written.
	afterTo bool
}

// quoted matches a quoted value, which seldom names a tool.
var quoted = pattern.New("\"[^\"]+\"|“[^”]+”|«[^»]+»|`[^`]+`|\\B'[^']+'\\B")

// clause adds the words of one clause, with less weight for quoted values.
func (r *reader) clause(c string) {
	from := 0
	for _, q := range quoted.FindAllStringIndex(c, -1) {
		r.weight = 1
		r.read(c[from:q[0]])
		r.weight = halfWeight
		r.read(c[q[0]:q[1]])
		from = q[1]
	}
	r.weight = 1
	r.read(c[from:])
	r.hint()
	r.named(c)
}

// hints has words of a clause that imply other words. For example, a query about a web page needs a tool that fetches a URL, and a
// query about the rows of a table needs a tool that runs SQL. If all words before the bar are in the clause, the words after it are
// added.
var hints = sync.OnceValue(func() (list [][2][]string) {
	for _, line := range []string{"web page | url fetch", "webpage | url fetch", "website | url fetch", "row table | query sql"} {
		words, implied, _ := strings.Cut(line, "|")
		list = append(list, [2][]string{stems(words), stems(implied)})
	}
	return list
})

// hint adds what the words of the clause imply.
func (r *reader) hint() {
	for _, h := range hints() {
		if !slices.ContainsFunc(h[0], func(st string) bool { return !slices.Contains(r.need.keys, st) }) {
			for _, st := range h[1] {
				r.need.add(st, r.x.expand(st, impliedWeight))
			}
		}
	}
}

// named finds the names of servers in a clause, and sets need.servers. A name means the server if it is the only word of the
// clause, if the word before it is one such as "with", or if the word after it is "server". Any other name may be an ordinary word,
// and is ignored if it is a verb or a stop word.
func (r *reader) named(c string) {
	words := strings.Fields(c)
	for i, w := range words {
		w = folded(w)
		at, ok := r.x.named[w]
		if !ok {
			continue
		}
		meant := len(words) == 1 || i > 0 && naming[folded(words[i-1])] || i+1 < len(words) && folded(words[i+1]) == "server"
		if !meant && (isVerb(w) || stopWords[w]) {
			continue
		}
		if r.need.servers == nil {
			r.need.servers = map[uint32]float32{}
		}
		r.need.servers[at] = maybeNamedBonus
		if meant {
			r.need.servers[at] = namedBonus
		}
	}
}

// naming are words that may precede the name of a server.
var naming = wordSet("with using via on in from by through server")

// read reads a part of a clause: a quoted value, or the text between quoted values.
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

// splitDense splits a field between Chinese, Japanese or Korean characters (all from U+2E80 on) and others, so that a path or
// an address in a Chinese sentence is a field of its own.
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

// mention adds the words of a mention (a path, address or expression). A file or folder is also added as a need of its own: to
// read it, or to write it.
func (r *reader) mention(m mention) {
	r.last = ""
	scan(m.text, r.word)
	r.last = ""
	kinds := stems(m.words)
	for _, st := range kinds {
		r.need.add(st, r.x.expand(st, halfWeight))
	}
	if !m.path {
		return
	}
	act := "read"
	if r.writing || r.afterTo {
		act = "write"
	}
	f := need{act: actOf(act)}
	f.add(act, r.x.expand(act, 1))
	for w := range strings.FieldsSeq(act + " " + m.words) {
		f.about.word(w, 1)
	}
	for i, st := range kinds {
		weight := float32(1)
		if i > 0 {
			weight = halfWeight
		}
		f.add(st, r.x.expand(st, weight))
	}
	f.add(act+" "+kinds[0], r.x.expand(stem(act+kinds[0], latin), halfWeight))
	r.files = append(r.files, f)
}

// word adds a word of any script.
func (r *reader) word(w word) {
	r.need.otherScript = r.need.otherScript || w.script != latin && w.script != number
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

// senses adds a word as one group with several stems: the stems of its translations and, except for scripts without spaces, the
// stem of the word itself.
func (r *reader) senses(key string, stems []string) {
	g := group{weight: 1}
	for _, st := range stems {
		r.noteAct(st)
		g.alts = append(g.alts, r.x.expand(st, 1).alts...)
	}
	r.need.add(key, g)
}

// noteAct updates the act of the need with one stem. It also records whether the stem means that a file is written.
func (r *reader) noteAct(st string) {
	r.writing = r.writing || writing()[st]
	r.need.act = r.need.act.then(actOf(st))
}

// plain adds a word of a script with spaces, and its pair with the previous word. Of a stop word it only notes the act, and
// whether a file to write may follow. Outside quotes, a misspelled word is replaced by the one that is meant.
func (r *reader) plain(text, st string) {
	weight := r.weight
	if meant, meantStem := r.x.respell(text, st); meant != "" && weight == 1 {
		text, st, weight = meant, meantStem, respelledWeight
	}
	r.noteAct(st)
	if stopWords[text] {
		r.afterTo = text == "to" || text == "into"
		r.particle(text)
		return
	}
	r.afterTo = false
	if strings.Trim(text, "0123456789") == "" {
		weight *= halfWeight
	}
	r.need.about.word(text, weight)
	g := r.x.expand(st, weight)
	r.need.add(st, g)
	if len(g.alts) == 0 {
		r.need.unknownWeight += weight
	}
	if r.last != "" {
		r.need.add(r.last+" "+st, r.x.expand(stem(r.last+text, latin), halfWeight*r.weight))
	}
	r.last = text
}

// particle adds the verb that the previous word and a stop word are together, such as "turn off".
func (r *reader) particle(text string) {
	if r.last == "" {
		return
	}
	if st := stem(r.last+text, latin); phrases()[st] {
		r.noteAct(st)
		r.need.add(r.last+" "+text, r.x.expand(st, r.weight))
	}
}

// dense adds a word of a script without spaces, such as Chinese: the words of the dictionary in it, its characters, and its
// pairs of adjacent characters. A pair inside a word of the dictionary has less weight, since the word itself is added too.
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
		if utf8.RuneCountInString(gram) == 1 {
			weight = charWeight
		} else if len(known) > 0 && known[0].from <= at && at+len(gram) <= known[0].to {
			weight = knownGramWeight
		}
		if id, ok := r.x.vocab[gram]; ok {
			r.need.add(gram, group{alts: []alt{{id, 1}}, weight: weight})
		}
	})
}

// expand returns the group of a stem: the stem's own term first, then its synonyms, as far as they are in the index.
func (x *Index) expand(st string, weight float32) group {
	g := group{weight: weight}
	if id, ok := x.vocab[st]; ok {
		g.alts = append(g.alts, alt{id, 1})
	}
	for _, s := range thesaurus()[st] {
		if id, ok := x.vocab[s]; ok {
			g.alts = append(g.alts, alt{id, synonymWeight})
		}
	}
	return g
}
