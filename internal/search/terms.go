package search

import (
	"strings"
	"unicode/utf8"
)

// terms assigns numbers, which are called terms, to the stems while the index is built.
type terms struct {
	x *Index
	// cache has the entries of the words that occurred before, by the text of the word.
	cache map[string]entry
	// texts contains, for each term, a word with that stem.
	texts []string
}

// entry contains the terms (numbers of stems) under which a word is indexed.
type entry struct {
	// term is the term of the word itself. It is not set for a word of a script without spaces, such as Chinese.
	term uint32
	// grams are, for a word of a script without spaces, the terms of its characters and its pairs of adjacent characters.
	grams []uint32
	// english are the English terms of a word of another language.
	english []uint32
	// act is what a tool with this word in its name does, such as removes for the word delete.
	act act
}

// id returns the number of a stem. At its first occurrence, the stem gets a new number.
func (t *terms) id(stem string) uint32 {
	if id, ok := t.x.vocab[stem]; ok {
		return id
	}
	id := uint32(len(t.texts))
	t.x.vocab[strings.Clone(stem)] = id // a clone, since a stem would keep the whole description in memory
	t.texts = append(t.texts, "")
	return id
}

// of returns the entry of a word, without splitting it into parts.
func (t *terms) of(text string, c script) entry {
	if e, ok := t.cache[text]; ok {
		return e
	}
	var e entry
	if c == dense {
		grams(text, func(_ int, g string) { e.grams = append(e.grams, t.id(g)) })
		for _, f := range translateRun(text) {
			for _, st := range f.english {
				e.english = append(e.english, t.id(st))
			}
		}
	} else {
		st := stem(text, c)
		e.term, e.act = t.id(st), actOf(st)
		for _, st := range translate(st, c) {
			e.english = append(e.english, t.id(st))
		}
	}
	t.cache[text] = e
	return e
}

// grams calls emit for each character of a word of a script without spaces, and for each pair of adjacent characters. The parameter
// at is the position of the character or pair in the word.
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
