package search

import (
	"strings"
	"sync"
)

// wordSet is the set of the words of s.
func wordSet(s string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(s) {
		m[w] = true
	}
	return m
}

// stemSet is the set of the stems of English words, made at the first use.
func stemSet(s string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		m := map[string]bool{}
		for _, st := range stems(s) {
			m[st] = true
		}
		return m
	})
}

// stopWords are words of a query that name no tool and no thing.
var stopWords = wordSet(`a an and are as at be been by can could did do does doing for from had has have how i if in into is it its
me my mine need of on or our please should so some than that the their them then there these they this those to us
use used using want was we were what when where which who whom whose why will with would you your im ive id ill dont also any make sure
just like let lets about above after again am because before being below between both but down during each few further
he her here hers him his more most no nor not off once only other out over own same she such too under until up very
via per may might must shall upon within without help give tell thanks thank hi hello know t s d ll re ve m
и в на с по для из к о от что это мне пожалуйста все`)

// weakStems are words that say how something shall be done, not what. They are
// rare in catalogues and would weigh much.
var weakStems = stemSet(`able accurate across actual additional adequate advanced ahead almost already alternative always amazing another appropriate
approximate around aspect attention available average based basic beautiful best better big brief briefly broad careful carefully case certain clear
clearly close common complete completely comprehensive concise concrete consider considering consistent convenient correct correctly
critical cross daily deep deeply depth desired detail detailed different direct directly discussion during easy easily effective efficient eight either emerging enough
ensure entire especially essential estimated exact exactly example excellent existing expected extensive extra fast favorite few final
fine five focus follow following four friendly full fully further general good great half happy hard heavy high higher highlight
highly hour idea ideal immediate important improve include included including increase individual initial inside insight instead interested interesting internal involve
just keep kind know large last later lead least less likely limited little long look lot low lower main major many maybe mean
meaningful minor minute modern moment month motivation much multiple natural nearly necessary need needed next nice nine normal numerous obvious official okay old
overall particular people perfect perfectly perhaps personal point possible possibly potential potentially practical precise
prefer preferred pretty previous primary prior probably proper properly purpose quick quickly quite rather ready real really reason reasonable recently recommended
regarding regular related relevant reliable remaining required respective respectively right rough roughly round safe say second see seem separate serious seven several short side
significant similar simple simply single six size small smart some soon special specific standard step still strong structure structured suitable sure
ten thing think thorough thoroughly those three together total towards trouble true try two type typical understand unique upcoming useful usual valid valuable various
way week whole wide wonder work working world worth year yet`)

// harmful are acts that a tool is hardly wanted for unless the query names one.
var harmful = stemSet("delete remove drop erase destroy purge wipe kill terminate revoke disable deactivate suspend uninstall unlink cancel")

// asking and changing are acts of which the first in a need, or in the name of a
// tool, says whether it is about what there is or about changing it.
var (
	asking   = stemSet("list show get find search read view display fetch retrieve lookup query browse check describe count compare what which who where when many much")
	changing = stemSet(`create add insert write edit update modify change set put patch append send post publish submit reply upload save move rename
copy merge fork assign close cancel approve reject enable disable start stop restart install deploy buy book pay invite transfer restore grant
delete remove drop erase destroy purge wipe clear kill terminate revoke deactivate suspend uninstall unlink`)
)

// writes and reads are words before the name of a file that say whether it is
// to be written or read.
var (
	writes = stemSet("save write export output store create generate draft make produce put record dump convert render report download plot draw build compose add append")
	reads  = stemSet("read open load parse analyze extract inspect get show view find search compare check merge describe import list count")
)

// verbs are the stems of acts: the tables', without those that are mostly
// nouns or adjectives, and some that only people say.
var verbs = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for _, line := range acts {
		for _, st := range stems(line) {
			m[st] = true
		}
	}
	for _, st := range stems(`new load pull past order all number total random sample memory reason thought style detail log record digest abstract
brief summary overview graph chart diagram render calculator math book purchase`) {
		delete(m, st)
	}
	for _, st := range stems("tell give make help let use put take provide include ensure determine cross") {
		m[st] = true
	}
	return m
})
