// Package describe writes the texts by which a model finds tools: the descriptions of inspect and exec, which are in every model
// request and therefore have a budget, the instructions of mcpx, and the answers of inspect. The same snapshot and options always
// give the same bytes, except for the result types that [Options.LearnedType] adds.
package describe

import (
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/tokens"
)

// Budget limits the catalogue, which is in every model request. If the room is small, the catalogue has less detail (see ladder
// in form).
type Budget struct {
	// Tokens bounds the description of inspect together with the part of the catalogue in the description of exec, in
	// o200k_base tokens; 0 means 1200. With at most thirty tools and servers, less is allowed (see smallTokens).
	Tokens int
	// Chars bounds the description of inspect and the description of exec, each in UTF-16 units; 0 means no limit. Claude Code
	// cuts descriptions at 2048. With a limit, a catalogue that is too long for the description of inspect continues in the
	// description of exec, and the purposes of the servers may be in the instructions instead.
	Chars int
}

const (
	defaultTokens = 1200
	// smallTokens replaces defaultTokens if there are at most smallTools tools and at most as many servers, so that the whole
	// answer to tools/list stays within 672 tokens (its other parts take 400). For each ten further tools, ten times stepTokens are
	// added, which is more than ten tools need. With more than thirty tools or servers the limit is defaultTokens. If Budget.Tokens
	// is more than defaultTokens, all these limits grow in proportion.
	smallTokens, smallTools, stepTokens = 252, 10, 40

	unlimited = 1 << 30
)

// These texts explain how to use inspect. If the budget has no room for a catalogue after the whole text, the description has only
// the first sentence of the text, or only its first words.
const (
	usage      = `Inspect available MCP tools and their schemas. Before exec look the tool up. {server_name, tool_name}: its TypeScript signature; {query}: the best tools of all servers, ready to call; {server_name}: all its tools; {}: the servers and their state.`
	briefUsage = `Look a tool up before exec: {server_name, tool_name}; {query} finds tools.`
)

// Features are settings on which the descriptions depend: the descriptions must not mention what the client cannot use. The
// zero value turns nothing off.
type Features struct {
	// JSONSchema means that inspect shows JSON Schema, not TypeScript.
	JSONSchema bool
	// NoTOON and NoJS mean that the client gets no results as TOON or as JavaScript.
	NoTOON, NoJS bool
	// NoPrograms means that the client may not run programs.
	NoPrograms bool
	// ShortNames means that the arguments of the tools are named server, tool and args, not
	// server_name, tool_name and arguments.
	ShortNames bool
	// ReadDoor means that mcpx also offers the tool exec_read, which calls only tools that are declared read-only. The texts of
	// this package do not depend on it.
	ReadDoor bool
	// Brief is for clients with a tool search of their own, which leave most definitions of tools out of a request to the
	// model. With Brief, the catalogue has at most the names of tools, and the texts are short.
	Brief bool
}

var shortNames = strings.NewReplacer("server_name", "server", "tool_name", "tool", "arguments", "args")

// named returns text. If f.ShortNames is set, the short names of arguments replace the long ones.
func (f Features) named(text string) string {
	if f.ShortNames {
		return shortNames.Replace(text)
	}
	return text
}

// usage returns the text that explains inspect, for these features.
func (f Features) usage() string {
	text := usage
	if f.Brief {
		text = briefUsage
	}
	if f.JSONSchema {
		text = strings.Replace(text, "TypeScript signature", "JSON Schema", 1)
	}
	return f.named(text)
}

// If a catalogue continues in the description of exec, its first part ends with continues, and
// its second part begins with continued.
const (
	continues = "\n(more in exec)"
	continued = "\n\nMore of the tools that inspect knows:\n"
)

// Descriptions returns the descriptions of the tools inspect and exec. The description of inspect explains the tool in at most
// 400 characters; then follows the catalogue in as much detail as b allows. If b.Chars is set, the catalogue may continue in
// the description of exec. The descriptions do not depend on whether servers are connected, and leave out servers that the
// config disables.
func Descriptions(snap *catalog.Snapshot, b Budget, f Features) (inspect, exec string) {
	servers, usage, exec := enabled(snap), f.usage(), execUsage(f)
	limit := b.limit(servers)
	if len(servers) == 0 {
		return words(usage+"\n\n"+nothing(snap), limit), exec
	}
	for _, intro := range []string{usage, usage[:strings.IndexByte(usage, '.')+1]} {
		list := b.canvases(limit, f.forms(), intro, exec)
		for _, c := range list {
			if texts, ok := c.fill(servers); ok {
				return c.compose(intro, exec, texts)
			}
		}
		c := list[len(list)-1].withoutMarks()
		if texts, named := c.nameRows(servers); named > 0 {
			return c.compose(intro, exec, texts)
		}
	}
	return words(usage, limit), exec
}

// canvases returns the ways to write a catalogue in these forms, in the order in which they are tried. intro is the text before the
// catalogue, in the description of inspect. exec is the description of the tool exec. limit is the maximum size of intro and the
// whole catalogue together. If b.Chars is set, the catalogue may continue at the end of the description of exec.
func (b Budget) canvases(limit size, forms []form, intro, exec string) []*canvas {
	var list []*canvas
	for i := range forms {
		c := &canvas{form: &forms[i], room: limit.minus(measure(intro + forms[i].head))}
		if b.Chars <= 0 {
			list = append(list, c)
			continue
		}
		first := b.Chars - units(intro+c.form.head)
		if i == 0 { // the first form is tried on one page before two pages
			one := *c
			one.pages, one.room.chars = []int{first}, first
			list = append(list, &one)
		}
		c.pages = []int{first - units(continues), max(b.Chars-units(exec+continued), 0)}
		c.room = c.room.minus(measure(continues)).minus(measure(continued))
		c.room.chars = c.pages[0] + c.pages[1]
		if spare := c.room.tokens - c.room.chars/charsPerToken; i > 0 && spare >= purposesTokens {
			c.room.tokens, c.room.json, c.noPurposes = c.room.tokens-purposesTokens, c.room.json-purposesTokens, true
		}
		list = append(list, c)
	}
	return list
}

// withoutMarks returns a canvas for a catalogue that has only the names of servers. Such a catalogue needs no explanation above it,
// so there is more room for the names.
func (c *canvas) withoutMarks() *canvas {
	names := *c
	names.form = &forms[0]
	names.room = c.room.plus(measure(c.form.head)).minus(measure(names.form.head))
	return &names
}

// A token of a catalogue has more than charsPerToken characters on average, at least in English. So a catalogue of n characters
// mostly takes fewer than n/charsPerToken tokens.
const charsPerToken = 3

// compose returns the descriptions of inspect and exec with the texts of a catalogue added.
func (c *canvas) compose(intro, exec string, texts []string) (string, string) {
	inspect := intro + c.form.head + texts[0]
	if len(texts) == 1 || texts[1] == "" {
		return inspect, exec
	}
	return inspect + continues, exec + continued + texts[1]
}

// enabled returns the servers that the config does not disable.
func enabled(snap *catalog.Snapshot) []*catalog.Server {
	list := make([]*catalog.Server, 0, len(snap.Servers))
	for i := range snap.Servers {
		if s := &snap.Servers[i]; s.State != catalog.Disabled {
			list = append(list, s)
		}
	}
	return list
}

// limit returns how large the description of inspect and the catalogue may be: as large as b says or, where b says nothing, as the
// defaults say. If there are few servers and tools, it allows fewer tokens. The description as a JSON string may have 3 % more
// tokens than the description itself.
func (b Budget) limit(servers []*catalog.Server) size {
	t := min(b.Tokens, unlimited)
	if t <= 0 {
		t = defaultTokens
	}
	things := max(len(servers), 1)
	tools := 0
	for _, s := range servers {
		tools += len(s.Tools)
	}
	// The number of tools is rounded up to a multiple of ten, since one more tool should not
	// change the lines of all servers.
	things = (max(tools, things) + smallTools - 1) / smallTools * smallTools
	part := smallTokens + stepTokens*(things-smallTools)
	t = min(t, part*max(t, defaultTokens)/defaultTokens)
	t -= t/200 + 1 // the safety margin that tokens.Ceiling adds to an estimate
	c := b.Chars
	if c <= 0 {
		c = unlimited
	}
	return size{tokens: t, json: t + t*3/100, chars: c}
}

// execUsage returns the description of exec without a catalogue.
func execUsage(f Features) string {
	if f.Brief {
		return f.named(briefExec(f))
	}
	form, toon := "TypeScript", " Results may be TOON, a compact table: `rows[2]{a,b}:`, then one line of values per row."
	if f.JSONSchema {
		form = "JSON Schema"
	}
	if f.NoTOON {
		toon = ""
	}
	if !f.NoJS {
		toon += readJS
	}
	if !f.NoPrograms {
		toon += programs
	}
	return f.named("Call a tool that inspect lists, with arguments as its " + form + " says. " +
		"Several calls of one tool: each, a list of arguments. select, such as `.items[] | {id, name}`, returns only what you need." + toon)
}

// briefExec returns the description of exec for [Features.Brief]. It also explains the
// arguments, since the input schema of exec then does not.
func briefExec(f Features) string {
	text := "Call a tool. select is a jq filter, grep a regex for lines, each a list of arguments for several calls."
	if !f.NoTOON {
		text += " Tables may be TOON: `[2]{a,b}:`, then rows."
	}
	if !f.NoJS {
		text += readJS
	}
	if !f.NoPrograms {
		text += programs
	}
	return text
}

// programs says how to run a program.
const programs = " Loops and joins: server mcpx, tool run {code}, JavaScript with `await call(server, tool, args)`."

// readJS explains results that are written as JavaScript.
const readJS = " JSON may be shown as JavaScript that evaluates to it."

// size is the length of a text. The field tokens is its estimated number of o200k_base tokens, json is the estimated number for
// the text as a JSON string in the answer to tools/list, and chars is the number of UTF-16 units. The size of several lines of
// a catalogue is exactly the sum of their sizes, if each line includes its line end: no token of o200k_base has both a line end
// and text of the next line.
type size struct{ tokens, json, chars int }

// measure returns the size of s. The field json may be greater than the field tokens, because some characters need more tokens in
// a JSON string. A line end needs up to one more token after a punctuation mark, and up to two more after two punctuation marks:
// o200k_base has tokens in which a real line end follows such marks, but none for the escape sequence `\n`. A quote or backslash
// needs at most one more token. Each of < > & needs four more for its escape sequence.
func measure(s string) size {
	z := size{tokens: tokens.Estimate(s), chars: len(s)}
	z.json = z.tokens
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\n':
			for j := i - 1; j >= i-2 && (j < 0 || !alphanumeric(s[j])); j-- {
				z.json++
			}
		case c == '"', c == '\\':
			z.json++
		case c == '<', c == '>', c == '&':
			z.json += 4
		case c&0xc0 == 0x80: // not the first byte of a UTF-8 character
			z.chars--
		case c >= 0xf0: // a character of two UTF-16 units
			z.chars++
		}
	}
	return z
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func (z size) minus(o size) size {
	return size{z.tokens - o.tokens, z.json - o.json, z.chars - o.chars}
}

func (z size) plus(o size) size {
	return size{z.tokens + o.tokens, z.json + o.json, z.chars + o.chars}
}

func (z size) fits(o size) bool {
	return o.tokens <= z.tokens && o.json <= z.json && o.chars <= z.chars
}

// share returns the share of the limits z that a text of size o takes. It compares tokens, json and chars with their limits, and
// returns the largest of the three shares. If this share is the whole limit, the result is the constant whole. If the limit is
// exceeded, the result is greater.
func (z size) share(o size) int {
	part := func(n, of int) int64 {
		if of <= 0 {
			return whole + 1
		}
		return min(int64(n)*whole/int64(of), whole+1)
	}
	return int(max(part(o.tokens, z.tokens), part(o.json, z.json), part(o.chars, z.chars)))
}

// words returns the longest beginning of text, in whole words, that fits into limit. It cuts only if the budget is very small.
func words(text string, limit size) string {
	for text != "" && !limit.fits(measure(text)) {
		text = text[:max(strings.LastIndexByte(text, ' '), 0)]
	}
	return text
}
