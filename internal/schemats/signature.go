package schemats

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
)

const (
	// maxDescription bounds the description of a tool, in runes.
	maxDescription = 50_000
	// maxSentence bounds the first sentence in a listing, in runes.
	maxSentence = 100
	// maxListing is how long the types of a listing get before nested objects are
	// written as "object", in bytes.
	maxListing = 320
)

// rawTool is what a client would have got without mcpx.
func rawTool(t Tool) string {
	var b []byte
	b = append(b, `{"name":`...)
	b = appendQuoted(b, t.Name)
	if t.Description != "" {
		b = append(b, `,"description":`...)
		b = appendQuoted(b, t.Description)
	}
	for _, s := range [...]struct {
		key string
		raw json.RawMessage
	}{{"inputSchema", t.Input}, {"outputSchema", t.Output}} {
		if s.raw != nil {
			b = append(b, `,"`...)
			b = append(b, s.key...)
			b = append(b, `":`...)
			b = append(b, minified(s.raw)...)
		}
	}
	return string(append(b, '}'))
}

// minified is raw without white space, safe behind //: characters that end a
// line in TypeScript or cannot be seen are escaped. "" for invalid JSON.
func minified(raw json.RawMessage) string {
	compact, ok := wire.Compact(string(raw))
	if !ok || strings.IndexFunc(compact, func(c rune) bool { return c >= 0x7f }) < 0 {
		return compact
	}
	b := make([]byte, 0, len(compact))
	for _, c := range compact {
		if sanitize.Invisible(c) || c == '\u2028' || c == '\u2029' {
			b = appendEscape(b, c)
		} else {
			b = utf8.AppendRune(b, c)
		}
	}
	return string(b)
}

// fallback is name and description with the schema as it is, written so that it
// is still a valid member; "" where the schema cannot be given. Of a long result
// it has the types.
func (t Tool) fallback(o Options, estimate func(string) int) string {
	in, out := "", ""
	if t.Input != nil {
		if in = minified(t.Input); in == "" {
			return ""
		}
	}
	if t.Output != nil {
		if out = minified(t.Output); out == "" {
			return ""
		}
		if o.MaxResult > 0 && estimate(out) > o.MaxResult {
			out = load(t.Output, "Result").orJSON().brief(o.MaxResult, shortened, estimate)
		} else if load(t.Output, "Result").wraps() {
			out += " | JSON"
		}
	}
	text := propertyKey(t.Name) + "(args) // JSON Schema: " + in
	if out != "" {
		text += "\n// result: " + out
	}
	if head := t.header(o, 0); head != "" {
		text = comment(head) + "\n" + text
	}
	return text
}

// header is the description behind the notes, as "read-only: Lists files".
func (t Tool) header(o Options, m marks) string {
	text := ""
	if o.Descriptions {
		text = sanitize.Cut(prose(t.Description), maxDescription, false)
	}
	notes := append(m.notes(), t.Notes...)
	if len(notes) == 0 {
		return text
	}
	label := sanitize.Line(strings.Join(notes, ", "), 0)
	if text == "" {
		return label
	}
	return label + ": " + text
}

// wraps says that the result is an object around one string. The text of the result is
// that string, which may be JSON: that is what the model sees, and select filters.
func (s *schema) wraps() bool {
	if s == nil || s.root.named {
		return false
	}
	t := (&printer{}).resolve(s.root.body)
	if t.kind != tObject || len(t.props) != 1 || t.rest != nil || t.keys != nil {
		return false
	}
	inner := t.props[0].t
	return inner.kind == tPrim && inner.text == "string"
}

// orJSON is s, or, of one that wraps a string, s and JSON as its alternative. s may be nil.
func (s *schema) orJSON() *schema {
	if !s.wraps() {
		return s
	}
	root := *s.root
	root.body = &typ{kind: tUnion, members: []*typ{root.body, {kind: tPrim, text: "JSON"}}}
	return &schema{s.converter, &root}
}

// shortened says that a type is not all there is.
const shortened = " /* shortened; see the result */"

// brief is the type of s on one line, without names and notes: as many levels
// of it as have at most that many tokens, else as many properties. It ends with mark.
func (s *schema) brief(most int, mark string, estimate func(string) int) string {
	root := s.root.body
	for i := 0; i < 100 && root.kind == tRef; i++ { // also where it refers to itself
		root = root.def.body
	}
	for _, step := range [...]struct{ levels, part int }{
		{8, 1}, {6, 1}, {5, 1}, {4, 1}, {3, 1}, {2, 1}, {1, 1}, {1, 4}, {1, 8}, {1, 16}, {1, 32}, {1, 64},
	} {
		p := &printer{plain: true, levels: step.levels, listed: 6, limit: 16 * most / step.part}
		p.inline(root, loose)
		if text := string(p.b) + mark; (!p.over || step.part > 1) && estimate(text) <= most {
			return text
		}
	}
	return "unknown" + mark
}

func joinHead(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " (" + b + ")"
}

// paramList gives the properties as parameters, required ones first; false where
// the arguments must be one object.
func (p *printer) paramList(root *def) ([]prop, bool) {
	t := p.resolve(root.body)
	if root.named || t.kind != tObject || t.keys != nil {
		return nil, false
	}
	if t.rest != nil && !(p.plain && len(t.props) > 0) {
		return nil, false
	}
	list := make([]prop, 0, len(t.props))
	for _, optional := range [...]bool{false, true} {
		for _, q := range t.props {
			if q.optional == optional {
				if !identifier(q.key) || reservedParams[q.key] {
					return nil, false
				}
				list = append(list, q)
			}
		}
	}
	return list, true
}

// params writes the parameters in parentheses.
func (p *printer) params(root *def, list []prop, form bool) {
	at := len(p.b)
	if !form {
		t := root.body
		if root.named {
			t = &typ{kind: tRef, def: root}
		}
		p.write("(args: ")
		p.whole(t, lineWidth-(len(p.b)-at))
		p.write(")")
		return
	}
	q := *p
	q.limit, q.trial, q.tight = max(lineWidth, at+20), true, false
	q.inlineParams(list)
	if !q.over {
		p.b, p.tight = q.b, false
		return
	}
	p.b = q.b[:at]
	p.write("(\n")
	for i := range list {
		if p.over {
			p.write(indent, "// cut: ", strconv.Itoa(len(list)-i), " more\n")
			break
		}
		end := ","
		if i == len(list)-1 {
			end = ""
		}
		p.line(indent, list[i].key+p.mark(list[i].optional), list[i].t, 1, end)
		p.write("\n")
	}
	p.write(")")
}

func (p *printer) inlineParams(list []prop) {
	p.write("(")
	for i := range list {
		if p.over && !p.plain {
			return
		}
		if i > 0 {
			p.write(", ")
		}
		if p.over {
			p.write("/* ", strconv.Itoa(len(list)-i), " more */")
			break
		}
		p.write(list[i].key, p.mark(list[i].optional))
		p.inline(list[i].t, loose)
		p.comment(list[i].t)
	}
	p.write(")")
}

// result writes the return type, if there is an output schema that says anything.
func (p *printer) result(out *schema) {
	if out == nil {
		return
	}
	t := out.root.body
	if out.root.named {
		t = &typ{kind: tRef, def: out.root}
	}
	if p.resolve(t).kind == tUnknown && noteText(t.notes, true) == "" {
		return
	}
	p.tight = p.tight || p.multiline(t, lineWidth)
	p.write(": ")
	p.whole(t, lineWidth)
}

// Listing is one line for a list of many tools: types only, no constraints, and
// the first sentence of the description. Nothing is named; where nesting makes
// it long, inner objects are written as "object".
func Listing(t Tool) string {
	in, out := load(t.Input, "Args"), load(t.Output, "Result").orJSON()
	text := ""
	for _, step := range [...]struct{ levels, listed int }{{4, maxListed}, {2, 12}, {1, 6}, {0, 6}} {
		p := &printer{plain: true, levels: step.levels, listed: step.listed, limit: maxListing * 4}
		p.write(propertyKey(t.Name))
		p.listParams(in, step.levels)
		if out != nil {
			p.levels = min(step.levels, 1)
			p.listResult(out)
		}
		if text = string(p.b); len(text) <= maxListing {
			break
		}
	}
	if s := firstSentence(t.Description, maxSentence); s != "" {
		text += " // " + s
	}
	return text
}

func (p *printer) listParams(in *schema, levels int) {
	if in == nil {
		p.write("(args?: object)")
		return
	}
	list, form := p.paramList(in.root)
	if form {
		p.inlineParams(list)
		return
	}
	p.levels = levels + 1
	p.write("(args: ")
	p.inline(in.root.body, loose)
	p.write(")")
}

func (p *printer) listResult(out *schema) {
	at := len(p.b)
	p.write(": ")
	p.inline(out.root.body, loose)
	switch string(p.b[at:]) {
	case ": object", ": unknown":
		// Every structured result is an object: that says nothing.
		p.b = p.b[:at]
	}
}
