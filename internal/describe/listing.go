package describe

import (
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/schemats"
	"mcpx/internal/tokens"
)

const (
	// The answer about one server whose tools cannot all be shown complete has at most listingOver times Options.ListingTokens
	// tokens, by default 6,000. It is longer only if even the names of the tools take more.
	listingOver = 2
	// One token of the complete form of a tool describes at most bytesPerToken bytes of the description and schema of the tool.
	// So if the tools have more bytes than the limit in tokens times bytesPerToken, they are too large, and their tokens need
	// not be estimated.
	bytesPerToken = 40
)

// all returns the complete definitions of all tools of s. It returns false if they have more tokens than o.ListingTokens, or so
// many bytes that this is certain.
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

// listing returns all tools of s in as much detail as fits into limit tokens, and explains how to get the complete
// definitions.
func listing(s *catalog.Server, o Options, limit int) string {
	more := o.named(` inspect with tool_name, several as "a,b"`)
	lines := func(head string, line func(t *catalog.Tool) string) (string, bool) {
		var b strings.Builder
		b.WriteString("// " + head + "\n")
		left := limit - tokens.Estimate(b.String())
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
	if n := tokens.Estimate(flat); n <= limit || n <= tokens.Estimate(grouped) {
		return flat
	}
	return grouped
}

// paramNames returns a line with the name of a tool and the names of the parameters that p selects.
func paramNames(t *catalog.Tool, p params) string {
	var b strings.Builder
	b.WriteString(sanitize.Line(t.Name, 0))
	if p != noParams {
		writeParams(&b, schemats.Params(t.InputSchema), p)
	}
	return b.String()
}
