package describe

import (
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/schemats"
	"mcpx/internal/tokens"
)

const (
	// CompleteMatches is the number of tools that the answer to a query has complete.
	CompleteMatches = 3
	// matchTokens bounds a complete tool there, and allMatchTokens those after the first with it; signatureTokens a signature.
	matchTokens, allMatchTokens, signatureTokens = 500, 250, 100
	// matchDescription bounds the description of a parameter there, in characters.
	matchDescription = 150
)

// Match is a tool that a query found, and its server.
type Match struct {
	Server *catalog.Server
	Tool   *catalog.Tool
	// Also are the other servers that have the very same tool.
	Also []string
}

// Matches is the answer to a query. ms are the tools that it found, best first. The first
// few are complete, the others are signatures with the parameters that a call needs, and of
// more only the names stand at the end; all are grouped by server.
func Matches(ms, more []Match, o Options) string {
	if len(ms) == 0 {
		return o.named("No tool matches. Try other words, or inspect with a server_name.")
	}
	o = o.withDefaults()
	first := byServer(ms[:min(CompleteMatches, len(ms))])
	texts, legend := completeTexts(first, o)
	w := matchWriter{o: o, stated: map[*catalog.Server]bool{}}
	w.b.WriteString(legend)
	w.complete(first, texts)
	w.listed(byServer(ms[len(first):]), func(t *catalog.Tool) string { return brief(t, o) })
	if len(more) > 0 {
		w.b.WriteString("// more, names only:\n" + nameLines(more))
	}
	return w.text()
}

// Nearest is the answer to a query that no tool fits: the names of the nearest.
func Nearest(query string, ms []Match) string {
	return "// Nothing fits " + strconv.Quote(sanitize.Line(query, maxQuoted)) + " well. The nearest, names only:\n" + strings.TrimRight(nameLines(ms), "\n")
}

// maxQuoted bounds a query in an answer, in runes.
const maxQuoted = 200

// nameLines has the names of tools, a line for each server.
func nameLines(ms []Match) string {
	var b strings.Builder
	ms = byServer(ms)
	for i, m := range ms {
		switch {
		case i > 0 && ms[i-1].Server == m.Server:
			b.WriteString(", ")
		case i > 0:
			b.WriteByte('\n')
			fallthrough
		default:
			b.WriteString(sanitize.Line(m.Server.Name, 0) + ": ")
		}
		b.WriteString(sanitize.Line(m.Tool.Name, maxNamed))
	}
	return b.String() + "\n"
}

// maxNamed bounds a name in a line of names, in runes.
const maxNamed = 100

// Named is the answer to a query that lists names of tools: all of them, and nothing else.
// One tool is complete. Of several, as many as fit into o.ListingTokens are, the shortest
// first; the others are signatures, or names if there are too many. missing are names that
// no tool has.
func Named(ms []Match, missing []string, o Options) string {
	o = o.withDefaults()
	ms = byServer(ms)
	sizes := make([]int, len(ms))
	order := make([]int, len(ms))
	for i, m := range ms {
		one, _ := definitions([]*catalog.Tool{m.Tool}, o)
		sizes[i], order[i] = tokens.Estimate(one[0]), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	whole := map[int]bool{}
	left := o.ListingTokens
	for _, i := range order {
		if left -= sizes[i]; left >= 0 || len(ms) == 1 {
			whole[i] = true
		}
	}
	var first, rest []Match
	var tools []*catalog.Tool
	for i, m := range ms {
		if whole[i] {
			first, tools = append(first, m), append(tools, m.Tool)
		} else {
			rest = append(rest, m)
		}
	}
	texts, legend := definitions(tools, o)
	w := matchWriter{o: o, stated: map[*catalog.Server]bool{}}
	w.b.WriteString(legend)
	w.complete(first, texts)
	left = o.ListingTokens
	w.listed(rest, func(t *catalog.Tool) string {
		text := brief(t, o)
		if left -= tokens.Estimate(text); left < 0 {
			return paramNames(t, noParams)
		}
		return text
	})
	if len(missing) > 0 {
		quoted := make([]string, min(len(missing), maxMissing))
		for i := range quoted {
			quoted[i] = strconv.Quote(sanitize.Line(missing[i], maxMissingName))
		}
		more := ""
		if n := len(missing) - len(quoted); n > 0 {
			more = " and " + strconv.Itoa(n) + " more"
		}
		w.b.WriteString("\n// no tool is named " + strings.Join(quoted, ", ") + more)
	}
	return w.text()
}

// The bounds of the names that no tool has: their number, and the runes of each.
const maxMissing, maxMissingName = 20, 60

// matchWriter writes the answer to a query.
type matchWriter struct {
	b strings.Builder
	o Options
	// stated are the servers whose state is already in the text.
	stated map[*catalog.Server]bool
}

// server writes the line above the tools of a server.
func (w *matchWriter) server(list []Match, i int) {
	s := list[i].Server
	if i > 0 && list[i-1].Server == s {
		return
	}
	w.b.WriteString("// " + w.o.named("server_name") + ": " + sanitize.Line(s.Name, 0) + "\n")
	if !w.stated[s] {
		w.b.WriteString(stateLine(s))
		w.stated[s] = true
	}
}

// complete writes tools with their texts.
func (w *matchWriter) complete(list []Match, texts []string) {
	for i, m := range list {
		w.server(list, i)
		w.b.WriteString(texts[i] + "\n" + m.also() + "\n")
	}
}

// listed writes tools as lines.
func (w *matchWriter) listed(list []Match, line func(t *catalog.Tool) string) {
	if len(list) > 0 {
		w.b.WriteString("// " + w.o.notComplete() + ", inspect them before exec\n")
	}
	for i, m := range list {
		w.server(list, i)
		w.b.WriteString(line(m.Tool) + "\n" + m.also())
	}
}

func (w *matchWriter) text() string { return strings.TrimRight(w.b.String(), "\n") }

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

// completeTexts are complete tools for one text, except those over matchTokens or allMatchTokens, which are
// signatures. legend is a line to put above them.
func completeTexts(ms []Match, o Options) (texts []string, legend string) {
	texts = make([]string, len(ms))
	var whole []*catalog.Tool
	var at []int
	sum := 0
	for i, m := range ms {
		one, _ := definitions([]*catalog.Tool{m.Tool}, o)
		size := tokens.Estimate(one[0])
		if sum += size; size > matchTokens || o.TypeScript && sum > allMatchTokens && sum > size {
			sum -= size
			texts[i] = "// " + o.notComplete() + ", inspect it before exec\n" + brief(m.Tool, o)
			continue
		}
		whole, at = append(whole, m.Tool), append(at, i)
	}
	o.MaxDescription = min(o.MaxDescription, matchDescription)
	together, legend := definitions(whole, o)
	for i, text := range together {
		texts[at[i]] = text
	}
	return texts, legend
}

// brief is the signature of t, or of a long one as many names of its parameters as fit.
func brief(t *catalog.Tool, o Options) string {
	text := signature(t, o)
	if o.TypeScript {
		text = schemats.Needed(render(t))
	}
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
