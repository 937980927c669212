package describe

import (
	"slices"
	"strings"
	"unicode"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/pattern"
	"mcpx/internal/base/sanitize"
)

// maxRead is how many bytes of a server's instructions are searched for its purpose, from the
// beginning.
const maxRead = 4000

// purpose returns what a server is for, in at most max runes: its description in the config, or else the sentences of its
// instructions that are not orders to the model, or else a heading of the instructions, or else its title. The result is empty if
// this text only repeats the name of the server.
func purpose(server *catalog.Server, max int) string {
	p := sanitize.Line(strings.TrimLeft(server.Description, "# \r\n"), max)
	if p == "" {
		p = said(server.Instructions, server.Name, max)
	}
	if p == "" {
		p = sanitize.Line(server.Title, max)
	}
	if repeats(p, server.Name, serverWords) {
		return ""
	}
	// A scope, as in @someone/git-server, is not what the server git is for. Without it nothing may be left that means anything.
	if _, own, scoped := strings.Cut(p, "/"); scoped && !strings.Contains(p, " ") &&
		repeats(own, server.Name, serverWords) && !repeats(own, "", serverWords) {
		return ""
	}
	return p
}

// said returns the sentences of instructions that describe what the server is for, or a heading
// if there are none.
func said(instructions, name string, max int) string {
	var list []string
	heading, runes, begun := "", 0, false
	for _, s := range sentences(instructions[:min(len(instructions), maxRead)]) {
		title := strings.HasPrefix(s, "#")
		if title && begun {
			break // text under later headings is rules, examples and so on
		}
		begun = begun || !title
		s = withoutNoise(sanitize.Line(strings.TrimLeft(s, "# "), 0))
		switch {
		case s == "" || order.MatchString(s) || repeats(s, name, serverWords):
		case title && heading == "":
			heading = s
		case !title:
			list = append(list, s)
			runes += len([]rune(s)) + 1
		}
		if runes > max {
			break
		}
	}
	if len(list) == 0 {
		return sanitize.Line(heading, max)
	}
	return sanitize.Line(strings.Join(list, " "), max)
}

// sentences splits a text into sentences: after full stops, and before and after headings and empty lines. It leaves out
// details: from a line that begins with - or * to the next empty line or heading, and the unfinished sentence before that line.
func sentences(text string) []string {
	var list []string
	var b strings.Builder
	end := func() {
		if b.Len() > 0 {
			list = append(list, b.String())
			b.Reset()
		}
	}
	item := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		heading := strings.HasPrefix(line, "#")
		if strings.HasPrefix(line, "-") || strings.HasPrefix(line, "*") {
			item = true
			b.Reset()
		}
		if line == "" || heading {
			item = false
			end()
		}
		if item {
			continue
		}
		for _, part := range strings.SplitAfter(line, ". ") {
			b.WriteString(part)
			if strings.HasSuffix(part, ". ") {
				end()
			}
		}
		if heading || strings.HasSuffix(line, ".") {
			end()
		} else if b.Len() > 0 {
			b.WriteByte(' ')
		}
	}
	end()
	return list
}

var (
	// order matches a sentence that seems to say what the model should do, or to be about the instructions themselves.
	order = pattern.New(`(?i)^(?:always|never|do not|don['’]t|you must|you should|you are|use|call|make sure|ensure|remember|note|important|critical|warning|caution|before|after|when|whenever|if|ask|please|avoid|prefer|follow|first,|then|audience|these instructions|tool descriptions)\b|\b(?:must|should|these instructions)\b`)

	// noise matches the beginning of a sentence if it says nothing, as in "This is an MCP server
	// that".
	noise = pattern.New(`(?i)^(?:` +
		`(?:this is )?(?:an? |the )?(?:(?:official|powerful|simple|minimal|basic|comprehensive|lightweight|[a-z]+-based) )?` +
		`(?:mcp|model ?context ?protocol)(?: \(mcp\)| \(model context protocol\))? server (?:implementation )?` +
		`(?:(?:that|which)(?: provides)?|for|to|providing|exposing)|` +
		`use this (?:(?:mcp )?server|tool|function|endpoint)(?: to| for)|` +
		`this (?:(?:mcp )?server|tool|endpoint|function|method|operation)(?: (?:allows|lets|enables|helps) (?:you|users)| (?:is|can be) used)?(?: to)?|` +
		`an? (?:(?:\pL+) )?tool (?:that|which|for|to)|tools? (?:that|for|to)|` +
		`(?:allows|lets|enables) (?:you|users)(?: to)?|used to` +
		`) `)
)

// withoutNoise returns s without the beginning that noise matches, unless nothing else is left. If the rest begins with a small
// letter from a to z, this letter becomes a capital.
func withoutNoise(s string) string {
	at := noise.FindStringIndex(s)
	if at == nil || at[1] >= len(s) {
		return s
	}
	rest := s[at[1]:]
	if rest[0] >= 'a' && rest[0] <= 'z' {
		return strings.ToUpper(rest[:1]) + rest[1:]
	}
	return rest
}

// withoutHeading returns the description of a tool without a heading in its first line that only repeats the name of the tool.
func withoutHeading(description, name string) string {
	heading, rest, more := strings.Cut(strings.TrimSpace(description), "\n")
	if more && strings.HasPrefix(heading, "#") && repeats(heading, name, toolWords) {
		return rest
	}
	return description
}

// serverWords are words that say nothing in the title, description or instructions of a server, and toolWords are words that
// say nothing in the description of a tool.
var (
	serverWords = strings.Fields("this mcp server secure the a an for api notes instructions overview guide agents usage")
	toolWords   = strings.Fields("a an the all of in on for to by from with and or new existing given specified specific single its this tool using")
)

// repeats reports whether text says no more than name. This is so if each word of text is in name or is one of the fillers, which
// are words that say nothing. In the comparison with name, an "s" at the end of a word is ignored. With the list serverWords,
// "secure-filesystem-server" repeats the name filesystem.
func repeats(text, name string, fillers []string) bool {
	other := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	known := strings.FieldsFunc(strings.ToLower(name), other)
	for i := range known {
		known[i] = strings.TrimSuffix(known[i], "s")
	}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), other) {
		if !slices.Contains(fillers, word) && !slices.Contains(known, strings.TrimSuffix(word, "s")) {
			return false
		}
	}
	return true
}
