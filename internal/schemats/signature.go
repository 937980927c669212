package schemats

import (
	"encoding/json"
	"slices"
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
	// maxNeeded is the same for a listing of what a call needs, which is found by its words anyway.
	maxNeeded = 50
	// maxListing is the length of a listing, in bytes, from which on nested objects are
	// written as "object".
	maxListing = 320
)

// rawTool is the tool as JSON, as a client gets it without mcpx.
func rawTool(t Tool) string {
	text := `{"name":` + quoted(t.Name)
	if t.Description != "" {
		text += `,"description":` + quoted(t.Description)
	}
	if t.Input != nil {
		text += `,"inputSchema":` + minified(t.Input)
	}
	if t.Output != nil {
		text += `,"outputSchema":` + minified(t.Output)
	}
	return text + "}"
}

// minified is raw without white space, empty if it is not JSON. It escapes invisible
// characters and those that end a line, so that it may follow //.
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

// fallback is a member of an interface with the JSON Schema in a comment, empty if a schema
// is not JSON. A long schema of a result is replaced by its type.
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
		shown, unwrapped := asShown(t.Output, true)
		switch {
		case o.MaxResult > 0 && estimate(out) > o.MaxResult:
			out = shown.brief(o.MaxResult, shortened, estimate)
		case unwrapped:
			out = shown.brief(max(o.MaxResult, maxOutput), "", estimate)
		}
	}
	text := propertyKey(t.Name) + " // JSON Schema: " + in
	if out != "" {
		text += "\n// result: " + out
	}
	if head := t.header(0); head != "" {
		text = comment(head) + "\n" + text
	}
	return text
}

// header has the notes and the description, as in "read-only: Lists files".
func (t Tool) header(m marks) string {
	text := sanitize.Cut(prose(t.Description), maxDescription, false)
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

// wraps reports whether the result is an object around one string. Models and select get
// the string without the object, and it may be JSON.
func (s *schema) wraps() bool {
	inner := s.only()
	return inner != nil && inner.kind == tPrim && inner.text == "string"
}

// only is the type of the only property of the result, nil if it is no such object.
func (s *schema) only() *typ {
	if s == nil || s.root.named {
		return nil
	}
	t := (&printer{}).resolve(s.root.body)
	if t.kind != tObject || len(t.props) != 1 || t.rest != nil || t.keys != nil {
		return nil
	}
	return t.props[0].t
}

// wrapsResult reports whether an SDK wraps the result of a tool, which it also sends as
// text, into an object: FastMCP marks that, and the Python SDK names the property and the
// type by one pattern.
func wrapsResult(output json.RawMessage) bool {
	var s struct {
		Marked     bool                       `json:"x-fastmcp-wrap-result"`
		Title      string                     `json:"title"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(output, &s) != nil || s.Properties["result"] == nil {
		return false
	}
	return s.Marked || strings.HasSuffix(s.Title, "Output")
}

// asShown is the type of a result as models see it and select gets it: without an object
// that only wraps a text or the result. A wrapped string may be JSON; with says, that is
// said. It is nil for no output schema; unwrapped means that the object was left out.
func asShown(output json.RawMessage, says bool) (shown *schema, unwrapped bool) {
	s := load(output, "Result")
	inner := s.only()
	switch {
	case s.wraps():
		other := "JSON"
		if says {
			other = "JSON /* if the text is JSON */"
		}
		inner = &typ{kind: tUnion, members: []*typ{inner, {kind: tPrim, text: other}}}
	case inner == nil || !wrapsResult(output):
		return s, false
	}
	root := *s.root
	root.body = inner
	return &schema{&root, s.lossy}, true
}

// Unwraps reports whether the shown type of a tool's result is not the type of the whole: the object that wraps it is left out,
// or there is no output schema.
func Unwraps(output json.RawMessage) bool {
	if len(output) == 0 {
		return true
	}
	_, unwrapped := asShown(output, false)
	return unwrapped
}

// shortened marks an incomplete type.
const shortened = " /* shortened; see the result */"

// brief is the type of s on one line without comments, then mark: as many levels as fit
// into most tokens, or of one level as many properties as fit.
func (s *schema) brief(most int, mark string, estimate func(string) int) string {
	root := s.root.body
	for i := 0; i < 100 && root.kind == tRef; i++ { // bounded, as it may refer to itself
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

// paramList has the properties as parameters, required ones first. It is false if the
// arguments must be written as one object.
func (p *printer) paramList(in *schema) ([]prop, bool) {
	if in == nil {
		return nil, true
	}
	t := p.resolve(in.root.body)
	if in.root.named || t.kind != tObject || t.keys != nil {
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

// ref is a reference to a named definition, else the body.
func (d *def) ref() *typ {
	if d.named {
		return &typ{kind: tRef, def: d}
	}
	return d.body
}

// anyArguments are the parameters of a tool without an input schema.
const anyArguments = "(/* any arguments */)"

// params writes the parameters in parentheses.
func (p *printer) params(list []prop) {
	at := len(p.b)
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
		p.line(list[i].key+p.mark(list[i].optional), list[i].t, 1, end)
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

// result writes the return type, unless nothing is known of it.
func (p *printer) result(out *schema) {
	if p.saysNothing(out) {
		return
	}
	t := out.root.ref()
	p.tight = p.tight || p.multiline(t, lineWidth)
	p.write(": ")
	p.whole(t, lineWidth)
}

// saysNothing reports whether nothing is known of a result.
func (p *printer) saysNothing(out *schema) bool {
	t := out.root.ref()
	return p.resolve(t).kind == tUnknown && len(t.notes) == 0
}

// Listing is one line for a list of many tools: the signature without constraints and named
// types, and the first sentence of the description. If it is long, inner objects become
// "object".
func Listing(t Tool) string { return t.line(false) }

// Needed is [Listing] with the required parameters and the number of the optional ones.
func Needed(t Tool) string { return t.line(true) }

// line is one line for a list; with needed, the optional parameters are only counted.
func (t Tool) line(needed bool) string {
	in := load(t.Input, "Args")
	out, _ := asShown(t.Output, false)
	text := ""
	for _, step := range [...]struct{ levels, listed int }{{4, maxListed}, {2, 12}, {1, 6}, {0, 6}} {
		p := &printer{plain: true, levels: step.levels, listed: step.listed, limit: maxListing * 4}
		p.write(propertyKey(t.Name))
		form := p.listParams(in, step.levels, needed)
		if out != nil {
			p.levels = min(step.levels, 1)
			p.listResult(out, form)
		}
		if text = string(p.b); len(text) <= maxListing {
			break
		}
	}
	most := maxSentence
	if needed {
		most = maxNeeded
	}
	if s := firstSentence(t.Description, most); s != "" {
		if text += " // "; strings.Contains(text, " // returns ") {
			text = strings.TrimSuffix(text, " // ") + ". "
		}
		text += s
	}
	return text
}

// listParams writes the parameters. If they cannot be written as such it writes the object, as a property of its type: form is false.
func (p *printer) listParams(in *schema, levels int, needed bool) (form bool) {
	list, form := p.paramList(in)
	if form && needed && in != nil {
		required := slices.DeleteFunc(slices.Clone(list), func(a prop) bool { return a.optional })
		p.inlineParams(required)
		if n := len(list) - len(required); n > 0 && !p.over {
			p.b = p.b[:len(p.b)-1] // the bracket
			if len(required) > 0 {
				p.write(" ")
			}
			p.write("/* …", strconv.Itoa(n), " optional */)")
		}
		return true
	}
	switch {
	case in == nil:
		p.write(anyArguments)
	case form:
		p.inlineParams(list)
	default:
		p.levels = levels + 1
		p.write(": ")
		p.inline(in.root.body, loose)
	}
	return form
}

// listResult writes the type of the result; behind an object, in a comment.
func (p *printer) listResult(out *schema, form bool) {
	at := len(p.b)
	before := ": "
	if !form {
		before = " // returns "
	}
	p.write(before)
	p.inline(out.root.body, loose)
	switch strings.TrimPrefix(string(p.b[at:]), before) {
	case "object", "unknown": // no news, as every structured result is an object
		p.b = p.b[:at]
	}
}
