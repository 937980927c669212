package config

import "mcpx/internal/base/sanitize"

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
	bare := sanitize.Bare(key)
	alias, allowed := aliases[bare], allowedSlips(bare)
	best, bestDistance := "", allowed+1
	for _, candidate := range own {
		if candidate == alias || sanitize.Bare(candidate) == bare {
			return candidate
		}
		if d := sanitize.Distance(bare, sanitize.Bare(candidate), allowed); d < bestDistance {
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
