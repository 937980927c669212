// Package describe writes the texts of inspect: the descriptions in every model request,
// within a budget, and the answers. It is pure: the same snapshot and options give the
// same bytes.
package describe

import (
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/tokens"
)

// Budget limits the catalogue in every model request. The descriptions of both tools are
// always within Chars, and the catalogue within Tokens; [forms] has the order in which it
// loses details.
type Budget struct {
	// Tokens is in o200k_base tokens; 0 means 1200.
	Tokens int
	// Chars bounds each description, in UTF-16 units; 0 means no limit. Claude Code cuts
	// at 2048. With a limit the catalogue continues in the description of exec, and the
	// instructions have the purposes.
	Chars int
}

const (
	defaultTokens = 1200
	// smallTokens is the part of defaultTokens for ten tools or fewer, so that the
	// whole answer to tools/list stays within 600 tokens (both tools and the envelope
	// take 328). Each further tool adds stepTokens, which is more than a tool needs:
	// from about twenty tools on only defaultTokens limits.
	smallTokens, smallTools, stepTokens = 252, 10, 40

	unlimited = 1 << 30
)

// How to use inspect. The first sentence of each is for budgets without room for more.
const (
	usage      = `Inspect available MCP tools and their schemas. Before exec look the tool up. {server_name, tool_name}: its TypeScript signature; {query}: the best tools of all servers, ready to call; {server_name}: all its tools; {}: the servers and their state.`
	briefUsage = `Look a tool up before exec: {server_name, tool_name}; {query} finds tools.`
)

// Features are the parts of mcpx that the config turns off: the descriptions must not
// mention them. The zero value turns nothing off.
type Features struct {
	// JSONSchema means that inspect shows JSON Schema, not TypeScript.
	JSONSchema bool
	// NoTOON and NoJS mean that no result has this form.
	NoTOON, NoJS bool
	// NoPrograms means that the client cannot run programs.
	NoPrograms bool
	// ShortNames means that the tools take server, tool and args.
	ShortNames bool
	// ReadDoor means that there is exec_read too.
	ReadDoor bool
	// Brief is for clients with a tool search of their own, which put only the names of
	// tools into a request. The catalogue has only names too, and the texts are short: a
	// request has at most 200 tokens more than without mcpx.
	Brief bool
}

var shortNames = strings.NewReplacer("server_name", "server", "tool_name", "tool", "arguments", "args")

// named is a text of mcpx with the configured names of the arguments.
func (f Features) named(text string) string {
	if f.ShortNames {
		return shortNames.Replace(text)
	}
	return text
}

// usage is how to use the two tools.
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

// The texts around the break if a catalogue continues in the description of exec.
const (
	continues = "\n(more in exec)"
	continued = "\n\nMore of the tools that inspect knows:\n"
)

// Descriptions are the descriptions of inspect and exec. The description of inspect explains
// the two tools in at most 400 characters, then follows the catalogue in as much detail as b
// allows. They do not depend on the connection state of servers, and leave out disabled ones.
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

// canvases are the ways to write a catalogue after an intro, in the order in which they are
// tried.
func (b Budget) canvases(limit size, forms []form, intro, exec string) []*canvas {
	var list []*canvas
	for i := range forms {
		c := &canvas{form: &forms[i], room: limit.minus(measure(intro + forms[i].head))}
		if b.Chars <= 0 {
			list = append(list, c)
			continue
		}
		first := b.Chars - units(intro+c.form.head)
		if i == 0 { // on one page, if it fits there
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

// withoutMarks is a canvas for names alone, which need no explanation above them.
func (c *canvas) withoutMarks() *canvas {
	names := *c
	names.form = &forms[0]
	names.room = c.room.plus(measure(c.form.head)).minus(measure(names.form.head))
	return &names
}

// charsPerToken is less than in any catalogue: with so many tokens for the characters, only
// the characters limit the catalogue.
const charsPerToken = 3

// compose adds the texts of a catalogue to both descriptions.
func (c *canvas) compose(intro, exec string, texts []string) (string, string) {
	inspect := intro + c.form.head + texts[0]
	if len(texts) == 1 || texts[1] == "" {
		return inspect, exec
	}
	return inspect + continues, exec + continued + texts[1]
}

// enabled are the servers that the config does not disable.
func enabled(snap *catalog.Snapshot) []*catalog.Server {
	list := make([]*catalog.Server, 0, len(snap.Servers))
	for i := range snap.Servers {
		if s := &snap.Servers[i]; s.State != catalog.Disabled {
			list = append(list, s)
		}
	}
	return list
}

// limit is b with its defaults, and fewer tokens for a catalogue of few tools. The JSON
// of the description may have 3 % more tokens.
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
	// Rounded up to ten tools, as one more tool must not change the lines of all servers.
	things = (max(tools, things) + smallTools - 1) / smallTools * smallTools
	part := smallTokens + stepTokens*(things-smallTools)
	t = min(t, part*max(t, defaultTokens)/defaultTokens)
	t -= t/200 + 1 // tokens.Ceiling adds as much to the estimate
	c := b.Chars
	if c <= 0 {
		c = unlimited
	}
	return size{tokens: t, json: t + t*3/100, chars: c}
}

// execUsage is the description of exec without a catalogue.
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

// briefExec also explains arguments, as the schema of exec does not do so then.
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

// readJS says how to read results that are JavaScript.
const readJS = " JSON may be shown as JavaScript that evaluates to it."

// size is the length of a text: its estimated o200k_base tokens, the same in the JSON of
// tools/list, and its UTF-16 units. Sizes of whole lines with their line ends add up
// exactly: no token of o200k_base crosses a line end before a line with text.
type size struct{ tokens, json, chars int }

// measure also counts the tokens that encoding/json adds: one for a line end after a
// punctuation mark, two after two of them (o200k_base joins those with a real line end),
// at most one for a quote or backslash, and four for the codes of < > &.
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
		case c&0xc0 == 0x80: // the rest of a character of several bytes
			z.chars--
		case c >= 0xf0: // a pair of UTF-16 units
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

// share is the part of z that o takes, where whole is all of it: the largest share of the
// three limits.
func (z size) share(o size) int {
	part := func(n, of int) int64 {
		if of <= 0 {
			return whole + 1
		}
		return min(int64(n)*whole/int64(of), whole+1)
	}
	return int(max(part(o.tokens, z.tokens), part(o.json, z.json), part(o.chars, z.chars)))
}

// words is the longest start of text, in whole words, that fits into limit. It is for
// budgets that are too small for the usage.
func words(text string, limit size) string {
	for text != "" && !limit.fits(measure(text)) {
		text = text[:max(strings.LastIndexByte(text, ' '), 0)]
	}
	return text
}
