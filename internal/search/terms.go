package search

import (
	"strings"
	"unicode/utf8"
)

// terms gives words their numbers while the index is built.
type terms struct {
	x *Index
	// cache keeps what is known of words already seen, by text.
	cache map[string]entry
	// texts has for each term a word that it is the stem of.
	texts []string
}

// entry is what a word of a document stands for.
type entry struct {
	// own is the term of the word itself; only a run without spaces has none.
	own uint32
	// more are the terms of the characters of a run without spaces.
	more []uint32
	// foreign are the English terms of a word of another language.
	foreign []uint32
	// act is what it does.
	act act
}

// id gives a stem its number.
func (t *terms) id(stem string) uint32 {
	if id, ok := t.x.vocab[stem]; ok {
		return id
	}
	id := uint32(len(t.texts))
	t.x.vocab[strings.Clone(stem)] = id // a stem is often a piece of a whole description
	t.texts = append(t.texts, "")
	return id
}

// of gives the terms of a word of a document, taken as one piece.
func (t *terms) of(text string, c script) entry {
	if e, ok := t.cache[text]; ok {
		return e
	}
	var e entry
	if c == dense {
		grams(text, func(_ int, g string) { e.more = append(e.more, t.id(g)) })
		for _, f := range translateRun(text) {
			for _, st := range f.english {
				e.foreign = append(e.foreign, t.id(st))
			}
		}
	} else {
		st := stem(text, c)
		e.own, e.act = t.id(st), actOf(st)
		for _, st := range translate(st, c) {
			e.foreign = append(e.foreign, t.id(st))
		}
	}
	t.cache[text] = e
	return e
}

// grams calls emit for the characters of a run without spaces, and for each
// two neighbours, with their place in it.
func grams(run string, emit func(at int, gram string)) {
	prev := -1
	for i, r := range run {
		end := i + utf8.RuneLen(r)
		if prev >= 0 {
			emit(prev, run[prev:end])
		}
		emit(i, run[i:end])
		prev = i
	}
}
