package search

import (
	"slices"
	"strings"
	"sync"
)

func setOf(words []string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// wordSet is the set of the words of s.
func wordSet(s string) map[string]bool { return setOf(strings.Fields(s)) }

// stemSet returns a function for the set of the stems of the English words in s. The function makes the set at its first call.
func stemSet(s string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool { return setOf(stems(s)) })
}

// stopWords are words of a query that do not help to find a tool; some of them name an act, such as "which".
var stopWords = wordSet(`a an and are as at be been by can could did do does doing for from had has have how i if in into is it its
me my mine need of on or our please should so some than that the their them then there these they this those to us
use used using want was we were what when where which who whom whose why will with would you your im ive id ill dont also any make sure
just like let lets about above after again am because before being below between both but down during each few further
he her here hers him his more most no nor not off once only other out over own same she such too under until up very
via per may might must shall upon within without help give tell thanks thank hi hello know t s d ll re ve m
и в на с по для из к о от что это мне пожалуйста все`)

// asking, changing and removing are stems of words that show what a query wants to do. Those in asking stand for reading, those in
// changing for making, changing, sending, starting or buying something, and those in removing for removing or stopping something.
var (
	asking   = stemSet("list show get find search read view display fetch retrieve lookup query browse check describe count compare what which who where when many much")
	changing = stemSet(`create add insert write edit update modify change set put patch append send post publish submit reply upload save move rename
copy merge fork assign close approve reject enable turnon switchon start stop restart install deploy buy book pay invite transfer restore grant clear`)
	removing = stemSet("delete remove drop erase destroy purge wipe kill terminate revoke disable deactivate suspend uninstall unlink cancel turnoff switchoff")
)

// writing are the stems of words after which a file name means a file to write: "save report.pdf".
var writing = stemSet("save write export output store create generate draft make produce put record dump convert render report download plot draw build compose add append")

// verbs are the stems of all words in the table of acts.
var verbs = sync.OnceValue(func() map[string]bool {
	return setOf(stems(strings.Join(slices.Collect(entries(acts)), " ")))
})

// phrases are the verbs of two words in the table of acts.
var phrases = sync.OnceValue(func() map[string]bool {
	words := strings.Fields(strings.Join(slices.Collect(entries(acts)), " "))
	words = slices.DeleteFunc(words, func(w string) bool { return !strings.Contains(w, "_") })
	return setOf(stems(strings.Join(words, " ")))
})
