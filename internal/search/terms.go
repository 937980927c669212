package search

import "unicode/utf8"

// terms gives words their numbers while the index is built.
type terms struct {
	x *Index
	n uint32
	// cache keeps the numbers of words already seen, by text.
	cache map[string][]uint32
}

// id gives a stem its number.
func (t *terms) id(stem string) uint32 {
	if id, ok := t.x.vocab[stem]; ok {
		return id
	}
	id := t.n
	t.x.vocab[stem] = id
	t.n++
	return id
}

// pair gives two neighbouring words their number.
func (t *terms) pair(a, b uint32) uint32 {
	key := uint64(a)<<32 | uint64(b)
	if id, ok := t.x.bigrams[key]; ok {
		return id
	}
	id := t.n
	t.x.bigrams[key] = id
	t.n++
	return id
}

// ofDocument gives the numbers of all terms that stand for a word of a
// document, the word's own stem first.
func (t *terms) ofDocument(w word) []uint32 {
	if w.parts == nil {
		if ids, ok := t.cache[w.text]; ok {
			return ids
		}
	}
	var ids []uint32
	if w.script == dense {
		grams(w.text, func(g string) { ids = append(ids, t.id(g)) })
	} else {
		ids = append(ids, t.id(stem(w.text, w.script)))
		for _, p := range w.parts {
			ids = append(ids, t.id(stem(p, w.script)))
		}
	}
	for _, e := range translate(w) {
		ids = append(ids, t.id(e))
	}
	if w.parts == nil {
		t.cache[w.text] = ids
	}
	return ids
}

// grams calls emit for the characters of a run without spaces, and for each
// two neighbours.
func grams(run string, emit func(string)) {
	prev := -1
	for i, r := range run {
		end := i + utf8.RuneLen(r)
		if prev >= 0 {
			emit(run[prev:end])
		}
		emit(run[i:end])
		prev = i
	}
}
