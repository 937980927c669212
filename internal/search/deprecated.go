package search

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"mcpx/internal/catalog"
)

var (
	// bracketed is the mark in a title or a first sentence: "Read File (Deprecated)".
	bracketed = regexp.MustCompile(`(?i)[(\[]\W*deprecated\W*[)\]]|^\W*deprecated(?:\W*$|\s*[:.!–—]|\s+-\s)`)
	// sentence is the mark in a description, as a sentence or the start of one. A
	// capital is asked for: "deprecated: also list old ones" is a parameter's.
	sentence = regexp.MustCompile(`(?:^\W*|[\n.!?)\]*_>]\W*)(?:DEPRECATED\b|Deprecated(?:\W*$|[*_]|\s*[:.!–—]|\s+-\s|,? use\b| since\b| in fav| as of\b))` +
		`|\.\. deprecated::|(?i:\bthis (?:tool|function|method|endpoint|operation|command|api) (?:is|has been) (?:now )?deprecated\b)`)
)

// isDeprecated reports whether a tool says of itself that it is deprecated; that
// it is about what is deprecated does not count. lead is its first sentence.
func isDeprecated(t *catalog.Tool, lead string) bool {
	description := t.Description[:min(len(t.Description), maxText)]
	switch {
	case bracketed.MatchString(t.Title[:min(len(t.Title), maxLead)]), bytes.Contains(t.Annotations, []byte("eprecated")) && annotated(t.Annotations):
		return true
	case !strings.Contains(description, "eprecated") && !strings.Contains(description, "EPRECATED"):
		return false
	}
	return bracketed.MatchString(lead) || sentence.MatchString(description)
}

// annotated reports whether annotations have a member for it that says yes.
func annotated(annotations json.RawMessage) bool {
	var members struct {
		Deprecated, DeprecatedHint any
		Title                      string
	}
	if json.Unmarshal(annotations, &members) != nil {
		return false
	}
	says := func(v any) bool {
		text, _ := v.(string)
		return v == true || text != ""
	}
	return says(members.Deprecated) || says(members.DeprecatedHint) || bracketed.MatchString(members.Title)
}
