package search

import (
	_ "embed"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// These are the word tables. The beginning of each file explains its format.
var (
	//go:embed acts.txt
	acts string
	//go:embed things.txt
	things string
	//go:embed related.txt
	related string
	//go:embed translations.txt
	translations string
)

// entries returns the lines of a table without comments and empty lines.
func entries(table string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(table) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' && !yield(line) {
				return
			}
		}
	}
}

// thesaurus contains the synonyms of each stem. It is made at the first use, since some processes never search.
var thesaurus = sync.OnceValue(func() map[string][]string {
	m := map[string][]string{}
	link := func(from, to []string) {
		for _, f := range from {
			for _, t := range to {
				if f != t && !slices.Contains(m[f], t) {
					m[f] = append(m[f], t)
				}
			}
		}
	}
	for _, table := range [...]string{acts, things} {
		for line := range entries(table) {
			group := stems(line)
			link(group, group)
		}
	}
	for line := range entries(related) {
		core, words, _ := strings.Cut(line, "|")
		link(stems(words), stems(core))
	}
	return m
})

// stems returns the stems of the English words in a line of a table. A table writes two adjacent words as a_b; stems joins
// them.
func stems(line string) []string {
	ws := strings.Fields(line)
	for i, w := range ws {
		ws[i] = stem(strings.ReplaceAll(w, "_", ""), latin)
	}
	return ws
}

// dictionary finds the English words for a foreign word.
type dictionary struct {
	// english maps a folded foreign word (in Cyrillic and Arabic: its stem) to English stems.
	english map[string][]string
	// longest is the length in bytes of the longest known word in a script without spaces, such as Chinese.
	longest int
}

// lexicon returns the dictionary, which is made at the first use.
var lexicon = sync.OnceValue(func() *dictionary {
	d := &dictionary{english: make(map[string][]string, 3000)}
	for line := range entries(translations) {
		left, words, _ := strings.Cut(line, " = ")
		english := stems(strings.ReplaceAll(left, ",", " "))
		for w := range strings.FieldsSeq(words) {
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

// translate returns the English stems for the stem of a Russian or Arabic word. It returns nil if the word is unknown or in any
// other script.
func translate(st string, c script) []string {
	if c != cyrillic && c != arabic {
		return nil
	}
	return lexicon().english[st]
}

// found is a word of the dictionary within a run, which is a text of a script without spaces, such as Chinese: run[from:to] is
// the word.
type found struct {
	from, to int
	// english are the stems of the English words that translate the word.
	english []string
}

// translateRun finds the words of the dictionary in a run. If several begin at the same character, it takes the longest.
func translateRun(run string) []found {
	d := lexicon()
	var out []found
	for i := 0; i < len(run); {
		_, step := utf8.DecodeRuneInString(run[i:])
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
