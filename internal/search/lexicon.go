package search

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// synonym is a stem that stands for another one.
type synonym struct {
	stem   string
	weight float32
}

// thesaurus gives the synonyms of a stem. It is made at the first use: a
// process that never searches does not pay for it.
var thesaurus = sync.OnceValue(func() map[string][]synonym {
	m := map[string][]synonym{}
	put := func(from, to string, weight float32) {
		if from == to {
			return
		}
		list := m[from]
		at := slices.IndexFunc(list, func(s synonym) bool { return s.stem == to })
		if at >= 0 {
			list[at].weight = max(list[at].weight, weight)
			return
		}
		m[from] = append(list, synonym{to, weight})
	}
	for _, table := range [][]string{acts, things} {
		for _, line := range table {
			group := stems(line)
			for _, a := range group {
				for _, b := range group {
					put(a, b, synonymWeight)
				}
			}
		}
	}
	for _, line := range related {
		core, words, _ := strings.Cut(line, "|")
		targets := stems(core)
		for _, w := range stems(words) {
			for _, t := range targets {
				put(w, t, relatedWeight)
			}
		}
	}
	return m
})

// stems are the stems of the English words of a line; a_b is two neighbours,
// written together.
func stems(line string) []string {
	ws := strings.Fields(line)
	for i, w := range ws {
		ws[i] = stem(strings.ReplaceAll(w, "_", ""), latin)
	}
	return ws
}

// dictionary is the table foreign by its words.
type dictionary struct {
	// english has the English stems that a word may stand for. The key is
	// folded, and stemmed where its script has a stemmer.
	english map[string][]string
	// longest is the length in bytes of the longest word without spaces.
	longest int
}

// lexicon is made at the first use.
var lexicon = sync.OnceValue(func() *dictionary {
	d := &dictionary{english: make(map[string][]string, 3000)}
	for _, f := range foreign {
		english := stems(strings.ReplaceAll(f.english, ",", " "))
		for w := range strings.FieldsSeq(f.words) {
			scan(w, func(w word) {
				key := w.text
				switch w.script {
				case dense:
					d.longest = max(d.longest, len(key))
				case cyrillic, arabic:
					key = stem(key, w.script)
				}
				for _, e := range english {
					if !slices.Contains(d.english[key], e) {
						d.english[key] = append(d.english[key], e)
					}
				}
			})
		}
	}
	return d
})

// translate gives the English stems that a Russian or Arabic word may stand for;
// st is its stem.
func translate(st string, c script) []string {
	if c != cyrillic && c != arabic {
		return nil
	}
	return lexicon().english[st]
}

// found is a known word in a run without spaces, at bytes from..to of it.
type found struct {
	from, to int
	// english are the stems that it may stand for.
	english []string
}

// translateRun finds the known words in a run without spaces, the longest first.
func translateRun(run string) []found {
	d := lexicon()
	var out []found
	for i := 0; i < len(run); {
		_, step := decode(run[i:])
		for n := min(d.longest, len(run)-i); n > 0; n-- {
			if i+n < len(run) && !utf8.RuneStart(run[i+n]) {
				continue
			}
			if e, ok := d.english[run[i:i+n]]; ok {
				out = append(out, found{i, i + n, e})
				step = n
				break
			}
		}
		i += step
	}
	return out
}
