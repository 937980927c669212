package search

import "strings"

// splitClauses cuts a query where one need ends and the next begins.
func splitClauses(query string) []string {
	var out []string
	for _, s := range strings.FieldsFunc(query, func(r rune) bool {
		return strings.ContainsRune("\n;!?。；！？", r)
	}) {
		for _, s := range strings.Split(s, ". ") {
			for _, s := range strings.Split(s, ", ") {
				for _, s := range strings.Split(s, " and ") {
					for _, s := range strings.Split(s, " then ") {
						if strings.TrimSpace(s) != "" {
							out = append(out, s)
						}
					}
				}
			}
		}
	}
	return out
}

// stopWords are words of a query that name no tool and no thing.
var stopWords = wordSet(`a an and are as at be been by can could did do does doing for from had has have how i if in into is it its
me my mine need of on or our please should so some than that the their them then there these they this those to us
use used using want was we were what when where which who whom whose why will with would you your im dont also any make sure
just like let lets about above after again am because before being below between both but down during each few further
he her here hers him his more most no nor not off once only other out over own same she such too under until up very
via per may might must shall upon within without`)

func wordSet(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}
