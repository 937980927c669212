package search

import "strings"

// british has British endings of words, and the American ones.
var british = []struct{ ending, american string }{
	{"isation", "ization"}, {"isations", "izations"}, {"ise", "ize"}, {"ises", "izes"}, {"ised", "ized"}, {"ising", "izing"},
	{"yse", "yze"}, {"ysed", "yzed"}, {"ysing", "yzing"}, {"our", "or"}, {"ours", "ors"}, {"oured", "ored"}, {"ouring", "oring"},
	{"ogue", "og"}, {"ogues", "ogs"},
}

// shortForms maps short forms of words to the long ones. They mean exactly the same, while a synonym only means something similar.
var shortForms = map[string]string{
	"repo": "repository", "dir": "directory", "db": "database", "env": "environment", "k8s": "kubernetes", "msg": "message",
	"config": "configuration", "org": "organization", "img": "image", "info": "information", "repos": "repository",
	"dirs": "directory", "dbs": "database", "envs": "environment", "configs": "configuration", "orgs": "organization",
}

// american returns a word with the American ending instead of a British one, so that both have the same stem. Words such as
// "promise" change too, which does no harm: the index and the query change alike. At least three letters must be before the
// ending, so that all forms of a short word such as "raise" or "tour" stay.
func american(text string) string {
	for _, b := range british {
		if rest, ok := strings.CutSuffix(text, b.ending); ok && len(rest) >= 3 {
			return rest + b.american
		}
	}
	return text
}

// A misspelled word is only replaced by a word of at least minSpelled letters, since too many short words differ by one letter. If
// one letter replaces another, as in meyer and meter, the word must have at least minReplaced letters.
const minSpelled, minReplaced = 5, 7

// addSpelled sets x.spelled. texts has a word for each stem of the vocabulary.
func (x *Index) addSpelled(texts []string) {
	add := func(w string) {
		if len(w) >= minSpelled && isLetters(w) {
			x.spelled[w[0]-'a'] = append(x.spelled[w[0]-'a'], w)
		}
	}
	for st, id := range x.vocab {
		add(st)
		if texts[id] != st {
			add(strings.Clone(texts[id])) // a clone, since a part of a description would keep the whole one in memory
		}
	}
}

// respell returns what a misspelled word means, as a word and its stem, or "" and "" if the word is not misspelled or its meaning
// is not found. A word is misspelled if no tool has it, it has no synonyms, and the English vocabulary of the word vectors lacks
// it. The word that is meant begins with the same letter, and differs by one edit from text, or from st, the stem of text. If
// several words qualify, respell returns the one that most tools have.
func (x *Index) respell(text, st string) (meant, meantStem string) {
	_, known := x.vocab[st]
	if known || len(st) < minSpelled-1 || !isLetters(text) || thesaurus()[st] != nil {
		return "", ""
	}
	if _, english := pieces()[text]; english {
		return "", ""
	}
	most := -1
	for _, w := range x.spelled[text[0]-'a'] {
		if !oneEdit(text, w) && (len(w) < len(st) || !oneEdit(st, w)) {
			continue
		}
		id, isStem := x.vocab[w]
		wordStem := w
		if !isStem {
			wordStem = stem(w, latin)
			id = x.vocab[wordStem]
		}
		if tools := len(x.tool.of(id)); tools > most || tools == most && w < meant {
			most, meant, meantStem = tools, w, wordStem
		}
	}
	return meant, meantStem
}

func isLetters(s string) bool { return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == "" }

// oneEdit reports whether a becomes b if one letter is added, removed or replaced, or if two adjacent letters are swapped. To
// replace a letter, the words must have at least minReplaced letters.
func oneEdit(a, b string) bool {
	letters := len(a)
	if len(a)-len(b) > 1 || len(b)-len(a) > 1 {
		return false
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	switch {
	case len(a) == 1 && len(b) == 1:
		return letters >= minReplaced
	case len(a) == 2 && len(b) == 2:
		return a[0] == b[1] && a[1] == b[0]
	}
	return len(a)+len(b) <= 1
}
