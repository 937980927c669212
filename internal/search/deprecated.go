package search

import (
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/pattern"
)

var (
	// bracketed matches a deprecation mark in a title or a first sentence: "Read File (Deprecated)".
	bracketed = pattern.New(`(?i)[(\[]\W*deprecated\W*[)\]]|^\W*deprecated(?:\W*$|\s*[:.!–—]|\s+-\s)`)
	// sentence matches a deprecation mark in a description, as a sentence or at the start of one. It requires a
	// capital letter, since "deprecated: also list old ones" describes a parameter.
	sentence = pattern.New(`(?:^\W*|[\n.!?)\]*_>]\W*)(?:DEPRECATED\b|Deprecated(?:\W*$|[*_]|\s*[:.!–—]|\s+-\s|,? use\b| since\b| in fav| as of\b))` +
		`|\.\. deprecated::|(?i:\bthis (?:tool|function|method|endpoint|operation|command|api) (?:is|has been) (?:now )?deprecated\b)`)
)

// isDeprecated reports whether the definition of a tool says that the tool itself is deprecated, and not only a parameter, for
// example. lead is the first sentence of the description.
func isDeprecated(t *catalog.Tool, lead string) bool {
	description := t.Description[:min(len(t.Description), maxText)]
	switch {
	case bracketed.MatchString(t.Title[:min(len(t.Title), maxLead)]):
		return true
	case !strings.Contains(description, "eprecated") && !strings.Contains(description, "EPRECATED"):
		return false
	}
	return bracketed.MatchString(lead) || sentence.MatchString(description)
}
