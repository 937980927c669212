package describe

import (
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/schemats"
	"mcpx/internal/tokens"
)

const (
	// listingOver times ListingTokens bounds the answer about one server: 6,000
	// tokens by default. The names alone may exceed it.
	listingOver = 2
	// bytesPerToken bounds the bytes of a definition for each token of the complete
	// tool. It rules out large lists without an estimate.
	bytesPerToken = 40
)

// all has all tools complete. It is false if that is over the limit.
func all(s *catalog.Server, o Options) (string, bool) {
	ts := s.Tools
	list := make([]*catalog.Tool, len(ts))
	bytes := 0
	for i := range ts {
		list[i] = &ts[i]
		bytes += len(ts[i].Description) + len(ts[i].InputSchema)
	}
	if bytes > bytesPerToken*o.ListingTokens {
		return "", false
	}
	texts, legend := definitions(list, o)
	text := legend + strings.Join(texts, "\n\n")
	return text, tokens.Estimate(text) <= o.ListingTokens
}

// listing has all tools of s in as much detail as fits into most tokens, and a hint how to
// get more.
func listing(s *catalog.Server, o Options, most int) string {
	more := o.named(` inspect with tool_name, several as "a,b"`)
	lines := func(head string, line func(t *catalog.Tool) string) (string, bool) {
		var b strings.Builder
		b.WriteString("// " + head + "\n")
		left := most - tokens.Estimate(b.String())
		for i := range s.Tools {
			text := line(&s.Tools[i]) + "\n"
			if left -= tokens.Estimate(text); left < 0 {
				return "", false
			}
			b.WriteString(text)
		}
		return strings.TrimSuffix(b.String(), "\n"), true
	}
	head := "Types only"
	if !o.TypeScript {
		head = "Not complete"
	}
	if text, ok := lines(head+". Before exec"+more+".", func(t *catalog.Tool) string { return signature(t, o) }); ok {
		return text
	}
	line := func(t *catalog.Tool) string { return paramNames(t, allParams) }
	if text, ok := lines("Parameter names only. Before exec"+more+", or with query.", line); ok {
		return text
	}
	names := (&source{server: s}).toolNames()
	head = "// " + count(len(s.Tools)) + ", names only"
	flat := head + ". For more" + more + ", or with query.\n" + strings.Join(names, ", ")
	grouped := head + ": a_{b, c} is a_b and a_c. For more" + more + ", or with query.\n" + byPrefix(names)
	if n := tokens.Estimate(flat); n <= most || n <= tokens.Estimate(grouped) {
		return flat
	}
	return grouped
}

// paramNames is a line with a tool and the names of its parameters.
func paramNames(t *catalog.Tool, p params) string {
	var b strings.Builder
	b.WriteString(sanitize.Line(t.Name, 0))
	if p != noParams {
		writeParams(&b, schemats.Params(t.InputSchema), p)
	}
	return b.String()
}
