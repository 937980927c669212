package search

import (
	"strings"
	"unicode/utf8"
)

// minClause is the number of words below which a clause is joined to its
// neighbour: too few to say what is needed.
const minClause = 2

// splitClauses cuts a query where one need ends and the next begins: at the end
// of a sentence, at words such as "then", and at a comma or an "and" that a verb
// follows. A list of nouns stays together.
func splitClauses(query string) []string {
	var out []string
	for sentence := range sentences(query) {
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

// sentences yields the sentences of s. A full stop counts only before white
// space, so that file names and numbers stay whole.
func sentences(s string) func(func(string) bool) {
	return func(yield func(string) bool) {
		from := 0
		for i := 0; i < len(s); {
			r, n := decode(s[i:])
			end := false
			switch r {
			case '\n', ';', '。', '；', '！', '？', '，', '、', '؛', '؟', '।':
				end = true
			case '.', '!', '?', ':':
				end = i+1 < len(s) && (s[i+1] == ' ' || s[i+1] == '\n' || s[i+1] == '\t')
			default:
				end = denseBreak(s[i:])
			}
			if end {
				if !yield(s[from:i]) {
					return
				}
				from = i
			}
			i += n
		}
		yield(s[from:])
	}
}

// denseBreak reports whether s begins with a connective of a script without spaces.
func denseBreak(s string) bool {
	if s[0] < utf8.RuneSelf {
		return false
	}
	for _, c := range denseConnectives {
		if strings.HasPrefix(s, c) {
			return true
		}
	}
	return false
}

var denseConnectives = []string{"然后", "接着", "随后", "最后", "并且", "并将", "并把", "之后", "以及", "再把", "再将", "然後", "接著", "最後", "それから", "そして", "次に", "てから", "그리고", "그런 다음", "다음에"}

// startsClause reports whether a need begins at words[i].
func startsClause(words []string, i int) bool {
	w := bare(words[i])
	if sequels[w] {
		return true
	}
	comma := strings.HasSuffix(words[i-1], ",")
	if joiners[w] {
		return i+1 < len(words) && (isVerb(bare(words[i+1])) || sequels[bare(words[i+1])] || comma && openers[bare(words[i+1])])
	}
	if joiners[bare(words[i-1])] {
		return false
	}
	return comma && (isVerb(w) || openers[w])
}

// bare is a word without punctuation, folded.
func bare(w string) string {
	return fold(strings.Trim(w, ".,;:!?\"'()[]{}`“”‘’«»"))
}

// isVerb reports whether w, in any of the known languages, is an act.
func isVerb(w string) bool {
	if verbs[stem(w, latin)] && !strings.HasSuffix(w, "ing") && !strings.HasSuffix(w, "ion") && !strings.HasSuffix(w, "ions") {
		return true
	}
	r, _ := utf8.DecodeRuneInString(w)
	for _, e := range translate(word{text: w, script: scriptOf(r)}) {
		if verbs[e] {
			return true
		}
	}
	return false
}

// verbs are the stems of acts.
var verbs = func() map[string]bool {
	m := map[string]bool{}
	for _, line := range acts {
		for _, w := range stems(line) {
			m[w] = true
		}
	}
	for _, w := range strings.Fields("new load pull past order all number total random sample memory reason thought style detail log record digest abstract brief summary overview graph chart diagram render calculator math book purchase") {
		delete(m, stem(w, latin))
	}
	for _, w := range strings.Fields("tell give make help let use put take provide include ensure determine cross") {
		m[stem(w, latin)] = true
	}
	return m
}()

var (
	// sequels begin a clause wherever they stand.
	sequels = wordSet("then afterwards finally lastly next subsequently luego despues entonces finalmente danach anschliessend dann schliesslich puis ensuite enfin depois затем потом после наконец ثم بعد")
	// joiners begin one when a verb follows.
	joiners = wordSet("and also plus und et y e и а و as")
	// openers begin one after a comma.
	openers = wordSet("i we you please what how which where who when can could is are also including")
)

// stopWords are words of a query that name no tool and no thing.
var stopWords = wordSet(`a an and are as at be been by can could did do does doing for from had has have how i if in into is it its
me my mine need of on or our please should so some than that the their them then there these they this those to us
use used using want was we were what when where which who whom whose why will with would you your im ive id ill dont also any make sure
just like let lets about above after again am because before being below between both but down during each few further
he her here hers him his more most no nor not off once only other out over own same she such too under until up very
via per may might must shall upon within without help give tell thanks thank hi hello know t s d ll re ve m
de la el los las un una unos y en con por para que del al se su mi me lo
der die das den dem ein eine einen und oder fur mit von zu im bitte mir ich du
le les des du et pour avec dans sur au aux je moi
o os as um uma e da do dos em com no na meu
и в на с по для из к о от что это мне пожалуйста все`)

func wordSet(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}
