package search

import "strings"

// british has British endings of words, and the American ones. A longer ending comes before one that is a part of it.
var british = []struct{ ending, american string }{
	{"isation", "ization"}, {"isations", "izations"}, {"ise", "ize"}, {"ises", "izes"}, {"ised", "ized"}, {"ising", "izing"},
	{"yse", "yze"}, {"ysed", "yzed"}, {"ysing", "yzing"}, {"our", "or"}, {"ours", "ors"}, {"oured", "ored"}, {"ouring", "oring"},
	{"ogue", "og"}, {"ogues", "ogs"},
}

// american returns a word of at least six letters with the American ending instead of a British one, so that both have the same
// stem. Words such as "promise" change too, which does no harm: the index and the query change alike.
func american(text string) string {
	if len(text) < 6 {
		return text
	}
	for _, b := range british {
		if rest, ok := strings.CutSuffix(text, b.ending); ok {
			return rest + b.american
		}
	}
	return text
}
