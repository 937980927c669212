package describe

import (
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/tokens"
)

const (
	// instructionChars bounds instructions, which clients cut, in UTF-16 units.
	instructionChars = 2000
	// firstLineChars bounds their first line. Codex shows the model only this line until
	// the model searches for tools.
	firstLineChars = 250
	// purposesTokens is the part of a token budget for purposes in the instructions.
	purposesTokens = 400
)

// Instructions are the instructions of mcpx itself, at most 2,000 characters. The first line
// names servers and explains how to find a tool. Then a client that shows long descriptions
// gets the other names, as it may show no descriptions before a search. A client that cuts
// descriptions gets the names and purposes for which the descriptions have no room.
//
// The descriptions do not rely on the instructions, which a client reads only once, perhaps
// before the tools of a server are known.
func Instructions(snap *catalog.Snapshot, b Budget, f Features) string {
	servers := enabled(snap)
	if len(servers) == 0 && snap.Empty != "" {
		return snap.Empty
	}
	text, named := firstLine(servers)
	if !f.Brief { // the brief description of inspect says it
		text += "\n" + f.named("Before exec look the tool up: inspect {server_name, tool_name}.")
	}
	room := instructionChars - units(text) - len("\n")
	if b.Chars <= 0 {
		return text + others(servers[named:], room)
	}
	room = min(room, b.Chars-units(text)-len("\n"))
	list := b.canvases(b.limit(servers), f.forms(), f.usage(), execUsage(f))
	for _, c := range list[:len(list)-1] {
		if _, ok := c.start(servers); ok && !slices.ContainsFunc(servers, unknown) {
			return text
		}
	}
	c := list[len(list)-1]
	if unnamed := c.unnamed(servers); len(unnamed) > 0 {
		return text + others(unnamed, room)
	}
	if !c.noPurposes {
		return text
	}
	if list := purposes(servers, size{purposesTokens, unlimited, room}); list != "" {
		return text + "\n" + list
	}
	return text
}

// unknown reports whether mcpx has not yet tried to connect to s, so that its purpose may
// still become known before the client lists tools.
func unknown(s *catalog.Server) bool { return !s.Known && !s.Tried }

// firstLine names servers and says how to find a tool, within firstLineChars. named is the
// number of servers with a name in it.
func firstLine(servers []*catalog.Server) (text string, named int) {
	line := func(n int) string {
		what := "MCP servers"
		if n > 0 {
			what = nameRow(servers, n, " more servers")
		}
		return "Gateway to " + what + ": inspect {query} finds their tools, exec calls them."
	}
	named = mostOf(len(servers), func(n int) bool { return units(line(n)) <= firstLineChars })
	return line(named), named
}

// others is a line with as many further names as there is room for, or empty.
func others(servers []*catalog.Server, room int) string {
	line := func(n int) string { return "\nAlso: " + nameRow(servers, n, " more") }
	n := mostOf(len(servers), func(n int) bool { return units(line(n)) <= room })
	if n == 0 {
		return ""
	}
	return line(n)
}

// mostOf is the largest number up to n that fits. All n may fit though n-1 do not, as the
// text then does not mention the others.
func mostOf(n int, fits func(n int) bool) int {
	if fits(n) {
		return n
	}
	most := 0
	for most < n && fits(most+1) {
		most++
	}
	return most
}

// unnamed are the servers whose names are not in the descriptions. There are none if each
// name fits with the largest number of tools.
func (c *canvas) unnamed(servers []*catalog.Server) []*catalog.Server {
	p, cost := packer{left: slices.Clone(c.pages)}, 0
	for _, s := range servers {
		line := sanitize.Line(s.Name, 0) + " (1000+)"
		if cost += tokens.Estimate(line + "\n"); cost > c.room.tokens || !p.add(line, false) {
			_, named := c.withoutMarks().nameRows(servers)
			return servers[named:]
		}
	}
	return nil
}

// purposes has a line with the purpose of each server, shortened until all fit into room. If
// they do not, it has the shortest form for the servers with the most tools.
func purposes(servers []*catalog.Server, room size) string {
	for _, most := range []int{maxPurpose, 200, 120, fewWords} {
		if text := purposeLines(servers, most); room.fits(measure(text)) {
			return text
		}
	}
	sorted := slices.Clone(servers)
	slices.SortStableFunc(sorted, func(a, b *catalog.Server) int { return floor(len(b.Tools)) - floor(len(a.Tools)) })
	shown := map[*catalog.Server]bool{}
	for _, s := range sorted {
		line := measure(purposeLines([]*catalog.Server{s}, fewWords) + "\n")
		if !room.fits(line) {
			break
		}
		room, shown[s] = room.minus(line), true
	}
	return purposeLines(slices.DeleteFunc(slices.Clone(servers), func(s *catalog.Server) bool { return !shown[s] }), fewWords)
}

// fewWords is the length of a short purpose, in runes.
const fewWords = 60

func purposeLines(servers []*catalog.Server, most int) string {
	var list []string
	for _, s := range servers {
		if p := purpose(s, most); p != "" {
			list = append(list, sanitize.Line(s.Name, 0)+" - "+p)
		}
	}
	return strings.Join(list, "\n")
}
