package config

import "strings"

// aliases are what people write for our keys that no distance finds.
var aliases = map[string]string{
	"cmd":         "command",
	"executable":  "command",
	"arg":         "args",
	"arguments":   "args",
	"environment": "env",
	"uri":         "url",
	"endpointurl": "url",
	"desc":        "description",
	"workdir":     "cwd",
}

// nearest is the one of our keys that key was probably meant to be: the same but
// for case and separators, an alias, or one or two slips of the finger away.
// Empty where there is none.
func nearest(key string, own []string) string {
	if len(key) > 64 {
		return ""
	}
	plain := squash(key)
	alias := aliases[plain]
	allowed := allowedSlips(plain)
	best, bestDistance := "", allowed+1
	for _, candidate := range own {
		if candidate == alias || squash(candidate) == plain {
			return candidate
		}
		other := squash(candidate)
		if max(len(plain)-len(other), len(other)-len(plain)) > allowed {
			continue
		}
		if d := distance(plain, other); d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// allowedSlips: short keys differ by one letter without being meant.
func allowedSlips(key string) int {
	switch {
	case len(key) < 4:
		return 0
	case len(key) < 6:
		return 1
	}
	return 2
}

func squash(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(key))
}

// distance counts the letters to add, drop, change or swap with a neighbour
// (optimal string alignment).
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
