package sanitize

import (
	"slices"
	"sort"
	"strings"
)

// DidYouMean returns text for the end of an error about an unknown name: a question with the most similar known name.
// It is empty if no known name is similar.
func DidYouMean(name string, known []string) string {
	if near := Nearest(name, known); len(near) > 0 {
		return "; did you mean " + near[0] + "?"
	}
	return ""
}

// Nearest returns up to three known names that may be meant, the best first. If some known names differ from name only in case
// and separators, it returns only these names. Otherwise it returns names that are a few letters different, that contain name or
// are contained in it, or that have the same words.
func Nearest(name string, known []string) []string {
	type scored struct {
		name string
		cost int
	}
	wanted := Bare(name)
	if wanted == "" || len(wanted) > 200 {
		return nil
	}
	var near []scored
	for _, candidate := range known {
		have := Bare(candidate)
		if len(have) > 200 {
			continue
		}
		limit := max(1, len(wanted)/3)
		switch cost := Distance(wanted, have, limit); {
		case have == wanted:
			near = append(near, scored{candidate, 0})
		case cost <= limit:
			near = append(near, scored{candidate, 1 + cost})
		case len(wanted) >= 3 && len(have) >= 3 && (strings.Contains(have, wanted) || strings.Contains(wanted, have)):
			near = append(near, scored{candidate, limit + 2})
		case sameWords(name, candidate):
			near = append(near, scored{candidate, limit + 3})
		}
	}
	sort.SliceStable(near, func(i, j int) bool { return near[i].cost < near[j].cost })
	if len(near) > 0 && near[0].cost == 0 {
		near = slices.DeleteFunc(near, func(s scored) bool { return s.cost > 0 })
	}
	names := make([]string, 0, 3)
	for _, s := range near[:min(3, len(near))] {
		names = append(names, s.name)
	}
	return names
}

// Closest returns at most n known names: those most similar to name, the most similar first. If there are not more than n, or
// name is over 200 bytes long, it returns the first n as they are.
func Closest(name string, known []string, n int) []string {
	wanted := Bare(name)
	if len(known) <= n || len(wanted) > 200 {
		return known[:min(n, len(known))]
	}
	costs := make(map[string]int, len(known))
	for _, candidate := range known {
		costs[candidate] = Distance(wanted, Bare(candidate), 200)
	}
	sorted := slices.Clone(known)
	slices.SortStableFunc(sorted, func(a, b string) int { return costs[a] - costs[b] })
	return sorted[:n]
}

// Bare returns a name in lower case without separators.
func Bare(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', '.', ' ', '/', ':':
			return -1
		}
		return r
	}, strings.ToLower(name))
}

func sameWords(a, b string) bool {
	words := func(s string) string {
		list := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
			return strings.ContainsRune("_-. /:", r)
		})
		sort.Strings(list)
		return strings.Join(list, " ")
	}
	return words(a) == words(b)
}

// Distance returns the edit distance of a and b in bytes, where swapping two neighbours is one edit. If the distance
// is over limit, or b is over 200 bytes long, it returns any number over limit.
func Distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit || len(b) > 200 {
		return limit + 1
	}
	var rows [3][201]int
	before, last, row := rows[0][:], rows[1][:], rows[2][:]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
