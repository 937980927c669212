package search

import "strings"

// synonym is a stem that stands for another one, or two stems with a space between.
type synonym struct {
	stem   string
	weight float32
}

const (
	sameWeight    = 0.6
	relatedWeight = 0.35
)

// thesaurus gives the synonyms of a stem.
var thesaurus = buildThesaurus()

func buildThesaurus() map[string][]synonym {
	m := map[string][]synonym{}
	put := func(from, to string, w float32) {
		if from == to {
			return
		}
		for i := range m[from] {
			if m[from][i].stem == to {
				m[from][i].weight = max(m[from][i].weight, w)
				return
			}
		}
		m[from] = append(m[from], synonym{to, w})
	}
	for _, line := range synonyms {
		ws := stems(line)
		for _, a := range ws {
			for _, b := range ws {
				put(a, b, sameWeight)
			}
		}
	}
	for _, line := range related {
		core, words, _ := strings.Cut(line, "|")
		for _, w := range stems(words) {
			for _, c := range stems(core) {
				put(w, c, relatedWeight)
			}
		}
	}
	return m
}

// stems are the stems of the words of a table's line; a_b is two stems.
func stems(line string) []string {
	ws := strings.Fields(line)
	for i, w := range ws {
		ps := strings.Split(w, "_")
		for j := range ps {
			ps[j] = stem(ps[j], latin)
		}
		ws[i] = strings.Join(ps, " ")
	}
	return ws
}
