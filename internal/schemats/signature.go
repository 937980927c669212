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
	// maxDescription is the maximum length of a tool's description, in runes.
	maxDescription = 50_000
	// maxSentence is the maximum length of the sentence that Listing writes about a tool, in runes.
	maxSentence = 100
	// maxNeeded is the maximum length of the sentence that Needed writes about a tool, in runes. It
	// may be short, since the words of a query have already found the tool.
	maxNeeded = 50
	// A listing, not counting its sentence, should have at most maxListing bytes. In a longer listing, nested objects are written
	// as "object".
	maxListing = 320
)

// rawTool returns the definition of the tool as minified JSON. Without mcpx, a model would get this text.
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

// minified returns the JSON in raw without white space, or "" if raw is not JSON. It escapes invisible characters and characters
// that end a line, so that the result can follow //.
func minified(raw json.RawMessage) string {
	compact, ok := wire.Compact(string(raw))
	if !ok || strings.IndexFunc(compact, func(c rune) bool { return c >= 0x7f }) < 0 {
		return compact
	}
	b := make([]byte, 0, len(compact))
	for _, c := range compact {
		if sanitize.Invisible(c) {
			b = appendEscape(b, c)
		} else {
			b = utf8.AppendRune(b, c)
		}
	}
	return string(b)
}

// fallback returns the name of the tool with its JSON Schema in a comment, for schemas that TypeScript does not express. It returns
// "" if a schema is not JSON. If the output schema is too long, or only wraps the result, the comment has the TypeScript type of
// the result instead of this schema.
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

// header returns the texts of the marks m, the notes and the description of the tool, as in "read-only: Lists files".
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

// wraps reports whether the result is an object whose only property is a string. Models and the
// argument select get only the string, or the JSON value that it contains.
func (s *schema) wraps() bool {
	inner := s.only()
	return inner != nil && inner.kind == tPrim && inner.text == "string"
}

// only returns the type of the only property of the result. It is nil if the result is not an
// object with exactly one property.
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

// wrapsResult reports whether the output schema describes an object that an SDK put around the real result of the tool. Such an
// object has the real result in a property named "result"; the SDK also sends the real result as text. FastMCP marks the schema
// of such an object. In the Python SDK, the title of the schema ends with "Output".
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

// asShown returns the type of a result as models and the argument select get it: without an object that only wraps a string or
// the result. A wrapped string may contain JSON; if explain is true, a comment in the type says so. resultType is nil if there
// is no output schema. unwrapped reports whether an object was left out.
func asShown(output json.RawMessage, explain bool) (resultType *schema, unwrapped bool) {
	s := load(output, "Result")
	inner := s.only()
	switch {
	case s.wraps():
		other := "JSON"
		if explain {
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

// Unwraps reports whether models see the result of a tool without the object that the output schema describes, because this object
// only wraps the result.
func Unwraps(output json.RawMessage) bool {
	_, unwrapped := asShown(output, false)
	return unwrapped
}

// shortened is the mark after a type that is not complete.
const shortened = " /* shortened; see the result */"

// brief returns the type of s on one line, without comments, followed by mark. It has as many levels as fit into limit tokens. If
// not even one level fits, brief returns some properties of the first level, or "unknown".
func (s *schema) brief(limit int, mark string, estimate func(string) int) string {
	root := s.root.body
	for i := 0; i < 100 && root.kind == tRef; i++ { // at most 100 times, since a type may refer to itself
		root = root.def.body
	}
	for _, step := range [...]struct{ levels, part int }{
		{8, 1}, {6, 1}, {5, 1}, {4, 1}, {3, 1}, {2, 1}, {1, 1}, {1, 4}, {1, 8}, {1, 16}, {1, 32}, {1, 64},
	} {
		p := &printer{plain: true, levels: step.levels, listed: 6, limit: 16 * limit / step.part}
		p.inline(root, loose)
		if text := string(p.b) + mark; (!p.over || step.part > 1) && estimate(text) <= limit {
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

// paramList returns the properties of the input as parameters, required parameters first. It
// returns false if the arguments must be written as one object.
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

// ref returns a reference to d if d is a named type, and otherwise the body of d.
func (d *def) ref() *typ {
	if d.named {
		return &typ{kind: tRef, def: d}
	}
	return d.body
}

// anyArguments is written instead of parameters if the tool has no input schema.
const anyArguments = "(/* any arguments */)"

// params writes the parameters in parentheses: on one line if they fit, else each on its own line.
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

// result writes the type of the result, unless the schema says nothing about the result.
func (p *printer) result(out *schema) {
	if p.saysNothing(out) {
		return
	}
	t := out.root.ref()
	p.tight = p.tight || p.multiline(t, lineWidth)
	p.write(": ")
	p.whole(t, lineWidth)
}

// saysNothing reports whether the type of the result is unknown, without a constraint.
func (p *printer) saysNothing(out *schema) bool {
	t := out.root.ref()
	return p.resolve(t).kind == tUnknown && len(t.notes) == 0
}

// Listing returns one line about a tool, for a list of many tools: the signature without
// constraints and named types, and the first sentence of the description. If the line is long,
// nested objects become "object".
func Listing(t Tool) string { return t.line(false) }

// Needed returns a line like [Listing], but with only the required parameters, the number of optional parameters, and a shorter
// sentence.
func Needed(t Tool) string { return t.line(true) }

// line returns the text of Listing, or if needed is true, the text of Needed.
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

// listParams writes the parameters in parentheses, and returns true. If the arguments can only be
// written as one object, it writes a colon and the type of this object, and returns false.
func (p *printer) listParams(in *schema, levels int, needed bool) (form bool) {
	list, form := p.paramList(in)
	if form && needed && in != nil {
		required := slices.DeleteFunc(slices.Clone(list), func(a prop) bool { return a.optional })
		p.inlineParams(required)
		if n := len(list) - len(required); n > 0 && !p.over {
			p.b = p.b[:len(p.b)-1] // remove the closing parenthesis
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

// listResult writes the type of the result. If form is false, the arguments are written as one object, and listResult writes the
// type of the result in a comment.
func (p *printer) listResult(out *schema, form bool) {
	at := len(p.b)
	before := ": "
	if !form {
		before = " // returns "
	}
	p.write(before)
	p.inline(out.root.body, loose)
	switch strings.TrimPrefix(string(p.b[at:]), before) {
	case "object", "unknown": // says nothing new: every structured result is an object
		p.b = p.b[:at]
	}
}
