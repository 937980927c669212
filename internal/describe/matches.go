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
	// CompleteMatches is how many tools the answer of [Matches] shows complete, if they are short enough.
	CompleteMatches = 3
	// A tool is short enough to be shown complete, with its description and all parameters, if this takes at most matchTokens
	// tokens, or firstTokens for the best tool. The best tool may be longer because a long one is mostly the right one: of 28 best
	// tools that took more than matchTokens, 25 were right. In TypeScript, a second or third tool is shown complete only if all
	// complete tools together take at most allMatchTokens. Other tools are shown by a signature of at most signatureTokens, or by
	// less (see brief).
	firstTokens, matchTokens, allMatchTokens, signatureTokens = 1200, 500, 250, 100
	// matchDescription is the maximum length of a parameter's description in the answer of [Matches], in characters, if it
	// shows several complete tools as TypeScript.
	matchDescription = 150
)

// Match is a tool that a query found, and its server.
type Match struct {
	Server *catalog.Server
	Tool   *catalog.Tool
	// Also has the names of the other servers that have the same tool.
	Also []string
}

// Matches returns the answer to a query. ms are the tools that the query found, best first. The first [CompleteMatches] tools
// are shown complete if they are short enough, all others as signatures after them. further has more tools, of which only the names are
// listed, at the end. The tools in each of the three parts are grouped by server.
func Matches(ms, further []Match, o Options) string {
	if len(ms) == 0 {
		return o.named("No tool matches. Try other words, or inspect with a server_name.")
	}
	o = o.withDefaults()
	first, rest, texts, legend := completeTexts(ms, o)
	w := matchWriter{o: o, stated: map[*catalog.Server]bool{}}
	w.b.WriteString(legend)
	w.complete(first, texts)
	w.listed(byServer(rest), func(t *catalog.Tool) string { return brief(t, o) })
	if len(further) > 0 {
		w.b.WriteString("// more, names only:\n" + nameLines(further))
	}
	return w.text()
}

// Nearest returns the answer to a query that no tool matches well. It has the names of the
// tools ms, which match best.
func Nearest(query string, ms []Match) string {
	return "// Nothing fits " + strconv.Quote(sanitize.Line(query, maxQuoted)) + " well. The nearest, names only:\n" + strings.TrimRight(nameLines(ms), "\n")
}

// maxQuoted is the maximum length of a query that an answer quotes, in runes; a longer query is cut.
const maxQuoted = 200

// nameLines returns the names of tools, one line for each server.
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

// maxNamed is the maximum length of a tool's name in nameLines, in runes.
const maxNamed = 100

// Named returns the answer to a query that is a list of tool names. It has these tools and no others. The shortest tools are
// shown complete, as many as fit into o.ListingTokens, but at least one. The others are shown as signatures, or as names if the
// signatures are too long. missing are the names in the query that no tool has.
func Named(ms []Match, missing []string, o Options) string {
	o = o.withDefaults()
	return namedWithin(ms, missing, o, o.ListingTokens)
}

// namedWithin is [Named] with a limit of its own for the complete tools.
func namedWithin(ms []Match, missing []string, o Options, limit int) string {
	ms = byServer(ms)
	sizes := make([]int, len(ms))
	order := make([]int, len(ms))
	for i, m := range ms {
		one, _ := definitions([]*catalog.Tool{m.Tool}, o)
		sizes[i], order[i] = tokens.Estimate(one[0]), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return sizes[a] - sizes[b] })
	whole := map[int]bool{}
	left := limit
	for _, i := range order {
		if left -= sizes[i]; left >= 0 || len(whole) == 0 {
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

// Of the names that no tool has, at most maxMissing are written, each with at most
// maxMissingName runes.
const maxMissing, maxMissingName = 20, 60

// matchWriter writes the answer to a query.
type matchWriter struct {
	b strings.Builder
	o Options
	// stated has the servers whose state is already in the text.
	stated map[*catalog.Server]bool
}

// server writes the line with the name of a server if list[i] is the first of its tools. The
// server's state follows if it is not in the text yet.
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

// complete writes the complete tools in list; texts has their definitions.
func (w *matchWriter) complete(list []Match, texts []string) {
	for i, m := range list {
		w.server(list, i)
		w.b.WriteString(texts[i] + "\n" + m.also() + "\n")
	}
}

// listed writes each tool as the line that the function line returns.
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

// byServer returns ms with the tools of each server next to each other. The servers are in the
// order of their first tools in ms.
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

// notComplete returns the label for tools that are not shown complete.
func (o Options) notComplete() string {
	if o.TypeScript {
		return "types only"
	}
	return "not complete"
}

// completeTexts returns which of the tools ms are shown complete, with their definitions: of the first [CompleteMatches] those for
// which the limits (see matchTokens) have room. rest has the others. If the best tool is too long, its text is its signature, and it
// still comes first. legend is a line to write above the texts, or empty.
func completeTexts(ms []Match, o Options) (first, rest []Match, texts []string, legend string) {
	var whole []*catalog.Tool
	sum := 0
	for i, m := range byServer(ms[:min(CompleteMatches, len(ms))]) {
		one, _ := definitions([]*catalog.Tool{m.Tool}, o)
		size, limit := tokens.Estimate(one[0]), matchTokens
		if i == 0 {
			limit = firstTokens
		}
		switch {
		case size <= limit && (!o.TypeScript || sum == 0 || sum+size <= allMatchTokens):
			sum += size
			first, whole = append(first, m), append(whole, m.Tool)
		case i == 0:
			first, texts = append(first, m), append(texts, "// "+o.notComplete()+", inspect it before exec\n"+brief(m.Tool, o))
		default:
			rest = append(rest, m)
		}
	}
	o.MaxDescription = min(o.MaxDescription, matchDescription)
	together, legend := definitions(whole, o)
	return first, append(rest, ms[min(CompleteMatches, len(ms)):]...), append(texts, together...), legend
}

// brief returns the signature of t, which in TypeScript has only the required parameters. If the signature has more than
// signatureTokens, brief returns the name of t with the names of all parameters. If that is too long as well, only the required
// parameters follow the name, or no parameters. The name itself may be longer than signatureTokens.
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

// also returns a line with the other servers that have the tool m, or "" if there are none.
func (m *Match) also() string {
	if len(m.Also) == 0 {
		return ""
	}
	return "// also on " + sanitize.Line(strings.Join(m.Also, ", "), 0) + "\n"
}
