package describe

import (
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/tokens"
)

const (
	// completeMatches is the number of tools that the answer to a query has complete.
	completeMatches = 3
	// matchTokens bounds a complete tool there, signatureTokens a signature.
	matchTokens, signatureTokens = 600, 150
)

// Match is a tool that a query found, and its server.
type Match struct {
	Server *catalog.Server
	Tool   *catalog.Tool
	// Also are the other servers that have the very same tool.
	Also []string
}

// Matches is the answer to a query. ms are the tools that it found, best first. The first
// few are complete, the others are signatures; both are grouped by server.
func Matches(ms []Match, o Options) string {
	if len(ms) == 0 {
		return o.named("No tool matches. Try other words, or inspect with a server_name.")
	}
	o = o.withDefaults()
	first := byServer(ms[:min(completeMatches, len(ms))])
	rest := byServer(ms[len(first):])
	texts, legend := completeTexts(first, o)
	var b strings.Builder
	b.WriteString(legend)
	stated := map[*catalog.Server]bool{}
	server := func(list []Match, i int) {
		s := list[i].Server
		if i > 0 && list[i-1].Server == s {
			return
		}
		b.WriteString("// " + o.named("server_name") + ": " + sanitize.Line(s.Name, 0) + "\n")
		if !stated[s] {
			b.WriteString(stateLine(s))
			stated[s] = true
		}
	}
	for i, m := range first {
		server(first, i)
		b.WriteString(texts[i] + "\n" + m.also() + "\n")
	}
	if len(rest) > 0 {
		b.WriteString("// " + o.notComplete() + ", inspect them before exec\n")
	}
	for i, m := range rest {
		server(rest, i)
		b.WriteString(brief(m.Tool, o) + "\n" + m.also())
	}
	return strings.TrimRight(b.String(), "\n")
}

// byServer is ms with the tools of each server together, otherwise in their order.
func byServer(ms []Match) []Match {
	best := map[*catalog.Server]int{}
	for i, m := range ms {
		if _, seen := best[m.Server]; !seen {
			best[m.Server] = i
		}
	}
	sorted := slices.Clone(ms)
	slices.SortStableFunc(sorted, func(a, b Match) int { return best[a.Server] - best[b.Server] })
	return sorted
}

// notComplete labels a tool on one line.
func (o Options) notComplete() string {
	if o.TypeScript {
		return "types only"
	}
	return "not complete"
}

// completeTexts are complete tools for one text, except those over matchTokens, which are
// signatures. legend is a line to put above them.
func completeTexts(ms []Match, o Options) (texts []string, legend string) {
	texts = make([]string, len(ms))
	var whole []*catalog.Tool
	var at []int
	for i, m := range ms {
		if one, _ := definitions([]*catalog.Tool{m.Tool}, o); tokens.Estimate(one[0]) > matchTokens {
			texts[i] = "// " + o.notComplete() + ", inspect it before exec\n" + brief(m.Tool, o)
			continue
		}
		whole, at = append(whole, m.Tool), append(at, i)
	}
	together, legend := definitions(whole, o)
	for i, text := range together {
		texts[at[i]] = text
	}
	return texts, legend
}

// brief is the signature of t, or of a long one as many names of its parameters as fit.
func brief(t *catalog.Tool, o Options) string {
	text := signature(t, o)
	for _, p := range []params{allParams, requiredParams, noParams} {
		if tokens.Estimate(text) <= signatureTokens {
			break
		}
		text = paramNames(t, p)
	}
	return text
}

// also is a line with the other servers of m, or empty.
func (m *Match) also() string {
	if len(m.Also) == 0 {
		return ""
	}
	return "// also on " + sanitize.Line(strings.Join(m.Also, ", "), 0) + "\n"
}
