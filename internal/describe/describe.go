// Package describe writes the texts of inspect: the descriptions in every model request,
// within a budget, and the answers. It is pure: the same snapshot and options give the
// same bytes.
package describe

import (
	"strings"

	"mcpx/internal/catalog"
	"mcpx/internal/tokens"
)

// Budget limits the description of the tool inspect. A description is always within both
// limits; the table ladder has the order in which it loses details.
type Budget struct {
	// Tokens is in o200k_base tokens; 0 means 2000.
	Tokens int
	// Chars is in UTF-16 units; 0 means no limit. Claude Code cuts at 2048.
	Chars int
}

const (
	defaultTokens = 2000
	// smallTokens is the part of defaultTokens for ten tools or fewer, so that the
	// whole answer to tools/list stays within 600 tokens (both tools and the envelope
	// take 314). Each further tool adds stepTokens, which is more than a tool needs:
	// from about twenty tools on only defaultTokens limits.
	smallTokens, smallTools, stepTokens = 266, 10, 40
	// instructionChars bounds instructions, which clients cut, in UTF-16 units.
	instructionChars = 2000

	unlimited = 1 << 30
)

const usage = `Inspect available MCP tools and their schemas. Before exec look the tool up: {server_name, tool_name} gives its exact TypeScript signature, {server_name} all tools of a server, {query} the best tools of all servers, {} the state of the servers.`

// Features are the parts of mcpx that the config turns off: the descriptions must not
// mention them. The zero value turns nothing off.
type Features struct {
	// JSONSchema means that inspect shows JSON Schema, not TypeScript.
	JSONSchema bool
	// NoTOON means that no result is TOON.
	NoTOON bool
	// ShortNames means that the tools take server, tool and args.
	ShortNames bool
	// ReadDoor means that there is exec_read too.
	ReadDoor bool
}

var shortNames = strings.NewReplacer("server_name", "server", "tool_name", "tool", "arguments", "args")

// named is a text of mcpx with the names of arguments that the tools take.
func (f Features) named(text string) string {
	if f.ShortNames {
		return shortNames.Replace(text)
	}
	return text
}

// usage is how to use the two tools.
func (f Features) usage() string {
	if f.JSONSchema {
		return f.named(strings.Replace(usage, "TypeScript signature", "JSON Schema", 1))
	}
	return f.named(usage)
}

const catalogueHead = "\n\nAvailable tools:\n"

// Inspect is the description of the tool inspect: the use of the two tools in at most 400
// characters, then the catalogue in as much detail as b allows. It does not depend on
// the state of the servers: their comings and goings do not change it.
func Inspect(snap *catalog.Snapshot, b Budget, f Features) string {
	limit, usage := b.limit(snap), f.usage()
	if len(snap.Servers) == 0 {
		return words(usage+"\n\nNo servers are configured.", limit)
	}
	for _, head := range []string{usage, usage[:strings.IndexByte(usage, '.')+1]} {
		room := limit.minus(measure(head + catalogueHead))
		if list := catalogue(snap, room); list != "" {
			return head + catalogueHead + list
		}
	}
	return words(usage, limit)
}

// limit is b with its defaults, and fewer tokens for a catalogue of few tools. The JSON
// of the description may have 4 % more tokens.
func (b Budget) limit(snap *catalog.Snapshot) size {
	t := min(b.Tokens, unlimited)
	if t <= 0 {
		t = defaultTokens
	}
	// In steps of ten tools: one more tool must not change the lines of all servers.
	things := (max(snap.Tools(), len(snap.Servers), 1) + smallTools - 1) / smallTools * smallTools
	part := smallTokens + stepTokens*(things-smallTools)
	t = min(t, part*max(t, defaultTokens)/defaultTokens)
	t -= t/200 + 1 // tokens.Ceiling adds as much to the estimate
	c := b.Chars
	if c <= 0 {
		c = unlimited
	}
	return size{tokens: t, json: t + t/25, chars: c}
}

// Exec is the description of the tool exec.
func Exec(f Features) string {
	form, toon := "TypeScript", " Results may be TOON, a compact table: `rows[2]{a,b}:`, then one line of values per row."
	if f.JSONSchema {
		form = "JSON Schema"
	}
	if f.NoTOON {
		toon = ""
	}
	return f.named("Call a tool that inspect lists, with arguments as its " + form + " says. " +
		"select, such as `.items[] | {id, name}`, returns only what you need." + toon)
}

const instructionsUsage = "Two tools reach all servers behind this one. inspect says what there is: look a tool up with {server_name, tool_name} or find one with {query}. " +
	"exec calls it: {server_name, tool_name, arguments, select?}."

// Instructions are the instructions of mcpx itself: the use of the two tools in at most
// 400 characters, then the names of the servers; at most 2,000 characters in all.
func Instructions(snap *catalog.Snapshot, f Features) string {
	head := f.named(instructionsUsage)
	if len(snap.Servers) == 0 {
		return head
	}
	head += "\n\nServers: "
	room := size{tokens: unlimited, json: unlimited, chars: instructionChars}.minus(measure(head))
	return head + nameList(snap, room)
}

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

// share is the part of z that o takes, where whole is all of it. Of the three limits the
// fullest counts.
func (z size) share(o size) int {
	part := func(n, of int) int64 {
		if of <= 0 {
			return whole + 1
		}
		return min(int64(n)*whole/int64(of), whole+1)
	}
	return int(max(part(o.tokens, z.tokens), part(o.json, z.json), part(o.chars, z.chars)))
}

// words is the longest start of text, in whole words, that fits into limit: for
// budgets too small even for the usage.
func words(text string, limit size) string {
	for text != "" && !limit.fits(measure(text)) {
		text = text[:max(strings.LastIndexByte(text, ' '), 0)]
	}
	return text
}
