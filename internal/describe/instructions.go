package describe

import (
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/tokens"
)

const (
	// instructionChars is the maximum length of the instructions, in UTF-16 units. Claude Code cuts instructions at 2,048.
	instructionChars = 2000
	// firstLineChars is the maximum length of the first line of the instructions, in UTF-16 units.
	// Codex shows the model only this line until the model searches for tools.
	firstLineChars = 250
	// purposesTokens is how many tokens the purposes of servers (a line for each server that says what it is for) may take in the
	// instructions. If the tool descriptions have no room for purposes, the instructions have them. The room for the catalogue in
	// the descriptions is then smaller by as many tokens, so that all texts together stay within [Budget.Tokens].
	purposesTokens = 400
)

// Instructions returns the instructions that mcpx sends to its client, at most 2,000 characters. If there are no servers and
// snap.Empty is set, it returns snap.Empty, which explains why there are none. The first line names servers and explains how to
// find a tool. Unless f.Brief is set, the second line tells the model to look a tool up before a call. What follows depends on the
// client. If the client does not cut descriptions (b.Chars is 0), the names of the other servers follow, since the client may show
// no descriptions until the model searches for tools. If the client cuts descriptions, the names or purposes for which the
// descriptions have no room follow. What follows is shortened to the room that is left.
//
// A client reads the instructions only once, perhaps before the tools of a server are known. So the instructions have only what
// does not depend on the tools: purposes of servers, and names for which the descriptions have no room.
func Instructions(snap *catalog.Snapshot, b Budget, f Features) string {
	servers := enabled(snap)
	if len(servers) == 0 && snap.Empty != "" {
		return snap.Empty
	}
	text, named := firstLine(servers)
	if !f.Brief { // with Brief, the description of inspect says this
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

// unknown reports whether the tools of s are not known yet, but may become known before the client lists tools. If the server gave
// no list of tools in an earlier run of mcpx (Tried), it is not expected to give one in time.
func unknown(s *catalog.Server) bool { return !s.Known && !s.Tried }

// firstLine returns a line that names servers and explains how to find a tool, within firstLineChars. It names the first servers of
// the list, and the result named is their number.
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

// others returns a line with as many names of servers as fit into room, which is in UTF-16 units. The result is empty if not
// even one name fits.
func others(servers []*catalog.Server, room int) string {
	line := func(n int) string { return "\nAlso: " + nameRow(servers, n, " more") }
	n := mostOf(len(servers), func(n int) bool { return units(line(n)) <= room })
	if n == 0 {
		return ""
	}
	return line(n)
}

// mostOf returns n if fits(n) is true. Otherwise it tries 1, 2, 3 and so on, and returns the last number before the first that does
// not fit. It tries n first, because a text with all n names may fit though a text with n-1 names does not: the shorter list is
// followed by the number of names that are left out.
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

// unnamed returns the servers whose names may not fit into the tool descriptions of mcpx. The tools may not be known yet, so it
// assumes for each server a line with the name and "(1000+)", a large number of tools. If all these lines fit, it returns nil.
// Otherwise it returns the servers that nameRows does not name.
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

// purposes returns one line for each server that has a purpose. The purposes are shortened until all lines fit into room. If
// even the shortest lines do not fit, only the servers with the most tools have a line.
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

// fewWords is the shortest length, in runes, to which purposes are cut so that more of them fit into the instructions.
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
