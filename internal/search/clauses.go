package search

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/pattern"
)

// minClause is how many words of a sentence a clause must have before the next clause may begin.
const minClause = 2

// sentenceEnd matches the end of a sentence. A full stop needs white space after it, so that file names and numbers stay whole.
// The words in it are words like "then", which connect sentences in Chinese, Japanese and Korean.
var sentenceEnd = pattern.New(`[.!?:]\s|[\n;。；！？，؛؟।]|` +
	`然后|接着|随后|最后|并且|并将|并把|之后|以及|再把|再将|然後|接著|最後|それから|そして|次に|てから|그리고|그런 다음|다음에`)

// splitClauses splits a query into clauses. Each clause has one need, which is a thing that the query asks for: "list the files,
// then send a mail" has two. A query is split at the end of a sentence, at words such as "then", and at a comma or an "and"
// before a verb. A list of nouns is not split.
func splitClauses(query string) []string {
	var out []string
	for _, sentence := range sentenceEnd.Split(query, -1) {
		words := strings.Fields(sentence)
		from := 0
		for i := 1; i < len(words); i++ {
			if i-from >= minClause && startsClause(words, i) {
				out = append(out, strings.Join(words[from:i], " "))
				from = i
			}
		}
		if from < len(words) {
			out = append(out, strings.Join(words[from:], " "))
		}
	}
	return out
}

// startsClause reports whether a clause begins at words[i]. It does if this word is one such as "then", one such as "and" before a
// verb, or a verb after a comma.
func startsClause(words []string, i int) bool {
	w := folded(words[i])
	switch {
	case sequels[w]:
		return true
	case joiners[w]:
		return i+1 < len(words) && (isVerb(folded(words[i+1])) || sequels[folded(words[i+1])])
	}
	return strings.HasSuffix(words[i-1], ",") && isVerb(w)
}

// folded returns a word in lower case, without accents and punctuation.
func folded(w string) string {
	return fold(strings.Trim(w, ".,;:!?\"'()[]{}`“”‘’«»"))
}

// isVerb reports whether w is a verb in the table of acts, or a Russian or Arabic translation of one. An act is what a tool can
// do, such as read or delete.
func isVerb(w string) bool {
	if w == "" {
		return false
	}
	r, _ := utf8.DecodeRuneInString(w)
	c := scriptOf(r)
	st := stem(w, c)
	return verbs()[st] || slices.ContainsFunc(translate(st, c), func(e string) bool { return verbs()[e] })
}

var (
	// sequels are words that begin a clause, whatever word follows.
	sequels = wordSet("then afterwards finally lastly next subsequently затем потом после наконец ثم بعد")
	// joiners are words that begin a clause if a verb or one of the sequels follows.
	joiners = wordSet("and also plus и а و")
)
