package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"mcpx/internal/base/wire"
	"mcpx/internal/desk/config"
)

// object is a JSON object that keeps the order of its members.
type object []field

type field struct {
	key   string
	value any
}

// MarshalJSON encodes the object with its members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for _, f := range o {
		value, err := marshal(f.value)
		if err != nil {
			return nil, err
		}
		b = wire.AppendMember(b, quoted(f.key), value)
	}
	return append(b, '}'), nil
}

// marshal encodes a value as JSON, and does not escape the characters <, > and &.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func quoted(s string) []byte {
	b, _ := marshal(s) // encoding a string cannot fail
	return b
}

// maxDepth is how deeply objects and arrays may be nested in a client's file. hujson recurses for each level, so that a file with
// millions of levels would overflow the stack.
const maxDepth = 10_000

// jsonText is the text of a JSON file, which may have comments and trailing commas. Each edit changes the text and parses it again.
// After an error, the jsonText must not be used, because the edit may be incomplete.
type jsonText struct {
	fileText
	root hujson.Value // the parsed text; each value has its offsets
	// blank is true if the file has no value: it is empty, or has only comments.
	blank bool
}

func parseJSONText(data []byte) (*jsonText, error) {
	d := &jsonText{fileText: textOf(data)}
	data = d.text
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, errors.New("the file is not UTF-8")
	}
	if err := config.CheckDepth(data, maxDepth); err != nil {
		return nil, err
	}
	root, err := hujson.Parse(slices.Clone(data))
	if err != nil { // hujson requires a line break after a // comment, even at the end of the file
		if ended, ok := hujson.Parse([]byte(string(data) + "\n")); ok == nil {
			root, err = ended, nil
		}
	}
	if err != nil {
		// A text that becomes valid if a value is appended has no value itself.
		if _, ok := hujson.Parse([]byte(string(data) + "\nnull")); ok == nil {
			d.blank = true
			return d, nil
		}
		// Only the position is kept: the rest of hujson's error may quote the file.
		place, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "hujson: "), ":")
		return nil, &syntaxError{place}
	}
	if root.Value.Kind() != '{' {
		return nil, errors.New("the file must hold an object")
	}
	d.root = root
	return d, nil
}

// syntaxError says where a text is not valid JSON. It quotes nothing of the text, which may contain secrets.
type syntaxError struct{ place string }

func (e *syntaxError) Error() string { return e.place + ": the file is not valid JSON" }

// editJSON parses a JSON file, calls edit, and returns the new text.
func editJSON(data []byte, edit func(*jsonText) error) ([]byte, error) {
	d, err := parseJSONText(data)
	if err == nil {
		err = edit(d)
	}
	if err != nil {
		return nil, err
	}
	return d.data(), nil
}

func nameOf(m *hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

// member returns the index of the member with this name, or -1. If several members have the name, it returns the last one, because
// clients use the last one.
func member(o *hujson.Object, name string) int {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if nameOf(&o.Members[i]) == name {
			return i
		}
	}
	return -1
}

// child returns the value of the member called key if v is an object, or the element with the index key if v is an array. It returns
// nil if there is none.
func child(v *hujson.Value, key string) *hujson.Value {
	switch composite := v.Value.(type) {
	case *hujson.Object:
		if i := member(composite, key); i >= 0 {
			return &composite.Members[i].Value
		}
	case *hujson.Array:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(composite.Elements) {
			return &composite.Elements[i]
		}
	}
	return nil
}

// value returns the value at a path, or nil if there is none. Each key of the path is the name of a member or the index of an array
// element. The pointer must not be used after an edit.
func (d *jsonText) value(keys ...string) *hujson.Value {
	if d.blank {
		return nil
	}
	at := &d.root
	for _, key := range keys {
		if at = child(at, key); at == nil {
			return nil
		}
	}
	return at
}

// objectAt returns the object at a path, or nil if there is no object.
func (d *jsonText) objectAt(keys ...string) *hujson.Object {
	value := d.value(keys...)
	if value == nil {
		return nil
	}
	o, _ := value.Value.(*hujson.Object)
	return o
}

// raw returns a value as plain JSON, without comments and trailing commas.
func raw(v *hujson.Value) json.RawMessage {
	copied := v.Clone()
	copied.Standardize()
	var b bytes.Buffer
	if json.Compact(&b, copied.Pack()) != nil {
		return nil
	}
	return b.Bytes()
}

// apply makes replacements, and parses the result. The replacements must not overlap.
func (d *jsonText) apply(splices ...splice) error {
	edited, err := parseJSONText(d.spliced(splices))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	*d = *edited
	return nil
}

// set writes a value at a path, and creates missing objects on the path. A null on the path counts as missing; any other value
// that is neither an object nor an array is an error.
func (d *jsonText) set(value any, keys ...string) error {
	if d.blank { // the file has comments at most: write an object after them
		lead := strings.TrimRight(string(d.text), " \t\r\n")
		if lead != "" {
			lead += d.eol()
		}
		if err := d.apply(splice{0, len(d.text), lead + "{}" + d.eol()}); err != nil {
			return err
		}
	}
	at := &d.root
	for i, key := range keys {
		next := child(at, key)
		if o, ok := at.Value.(*hujson.Object); ok && next == nil {
			return d.insert(at, o, key, nest(value, keys[i+1:]))
		}
		if next == nil && at.Value.Kind() == 'n' {
			return d.replace(at, nest(value, keys[i:]))
		}
		if next == nil {
			return fmt.Errorf("%s is not an object", strings.Join(keys[:i], "."))
		}
		at = next
	}
	return d.replace(at, value)
}

// nest wraps a value in nested objects, one for each key.
func nest(value any, keys []string) any {
	for _, key := range slices.Backward(keys) {
		value = object{{key, value}}
	}
	return value
}

// render encodes a value in the style of this file. indent is the indentation of the line on which the value begins; unit is one level
// of indentation. If unit is empty, the value is written on one line.
func (d *jsonText) render(value any, indent, unit string) (string, error) {
	b, err := marshal(value)
	if err != nil || unit == "" {
		return string(b), err
	}
	v, err := hujson.Parse(b)
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(layout(v, indent, unit), "\n", d.eol()), nil
}

// layout writes each member of an object on its own line. It writes a short array of strings, numbers or booleans on one
// line.
func layout(v hujson.Value, indent, unit string) string {
	const short = 100
	brackets := "{}"
	var parts []string
	switch composite := v.Value.(type) {
	case *hujson.Object:
		for _, m := range composite.Members {
			parts = append(parts, m.Name.String()+": "+layout(m.Value, indent+unit, unit))
		}
	case *hujson.Array:
		brackets = "[]"
		plain := true
		for _, e := range composite.Elements {
			_, literal := e.Value.(hujson.Literal)
			plain = plain && literal
			parts = append(parts, layout(e, indent+unit, unit))
		}
		if line := strings.Join(parts, ", "); plain && len(line) <= short {
			return "[" + line + "]"
		}
	default:
		return v.String()
	}
	if len(parts) == 0 {
		return brackets
	}
	gap := "\n" + indent + unit
	return brackets[:1] + gap + strings.Join(parts, ","+gap) + "\n" + indent + brackets[1:]
}

func (d *jsonText) replace(old *hujson.Value, value any) error {
	unit := d.unit()
	if !bytes.Contains(d.text, []byte("\n")) {
		unit = ""
	}
	text, err := d.render(value, d.indentation(old.StartOffset), unit)
	if err != nil {
		return err
	}
	return d.apply(splice{old.StartOffset, old.EndOffset, text})
}

// unit returns one level of the file's indentation: the indentation of the first member, or two spaces if that member has none.
func (d *jsonText) unit() string {
	if o, ok := d.root.Value.(*hujson.Object); ok && len(o.Members) > 0 {
		if indent, broken := lead(o.Members[0].Name.BeforeExtra); broken && indent != "" {
			return indent
		}
	}
	return "  "
}

// lead looks at text, which is in front of a member. indent is the part of text after its last line break. broken is true if
// text has a line break and only white space after it, so that the member begins a line.
func lead(text []byte) (indent string, broken bool) {
	i := bytes.LastIndexByte(text, '\n')
	if i < 0 {
		return "", false
	}
	return string(text[i+1:]), len(bytes.Trim(text[i+1:], " \t\r")) == 0
}

// indentation returns the indentation of the line that contains this offset.
func (d *jsonText) indentation(offset int) string {
	line := d.text[bytes.LastIndexByte(d.text[:offset], '\n')+1 : offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// insert adds a member at the end of the object o, which is the value of v. If o has members and is on one line, the new member goes on
// that line too. Otherwise the new member gets a line of its own. If the last member of o has a trailing comma, the new member also
// gets one.
func (d *jsonText) insert(v *hujson.Value, o *hujson.Object, key string, value any) error {
	end := v.EndOffset - 1 // the offset of the closing brace
	if len(o.Members) == 0 {
		outer := d.indentation(v.StartOffset)
		inner := strings.TrimRight(string(o.AfterExtra), " \t\r\n")
		text, err := d.render(value, outer+d.unit(), d.unit())
		if err != nil {
			return err
		}
		text = inner + d.eol() + outer + d.unit() + string(quoted(key)) + ": " + text + d.eol() + outer
		return d.apply(splice{v.StartOffset + 1, end, text})
	}
	last := &o.Members[len(o.Members)-1]
	at := len(bytes.TrimRight(d.text[:end], " \t\r\n"))
	indent, broken := lead(last.Name.BeforeExtra)
	unit, gap, colon := d.unit(), d.eol()+indent, ": "
	if !broken && !bytes.Contains(d.text[v.StartOffset:end], []byte("\n")) { // the object is on one line
		unit, gap = "", string(last.Name.BeforeExtra)
		if len(o.Members) == 1 {
			gap = string(last.Value.BeforeExtra) // use the same space as after the colon
		}
		if strings.TrimSpace(gap) != "" { // the gap contains a comment, which must not be repeated
			gap = " "
		}
		if len(last.Value.BeforeExtra) == 0 {
			colon = ":"
		}
	} else if !broken {
		indent = d.indentation(v.StartOffset) + unit
		gap = d.eol() + indent
	}
	text, err := d.render(value, indent, unit)
	if err != nil {
		return err
	}
	text = gap + string(quoted(key)) + colon + text
	if last.Value.AfterExtra != nil { // the last member has a trailing comma
		return d.apply(splice{at, at, text + ","})
	}
	return d.apply(splice{last.Value.EndOffset, last.Value.EndOffset, ","}, splice{at, at, text})
}

// part says where in the text a member of an object or an element of an array is.
type part struct {
	start, end int
	after      []byte // the bytes between the value and its comma; nil if it is the last part and has no comma
}

func partsOf(v *hujson.Value) (parts []part) {
	switch composite := v.Value.(type) {
	case *hujson.Object:
		for _, m := range composite.Members {
			parts = append(parts, part{m.Name.StartOffset, m.Value.EndOffset, m.Value.AfterExtra})
		}
	case *hujson.Array:
		for _, e := range composite.Elements {
			parts = append(parts, part{e.StartOffset, e.EndOffset, e.AfterExtra})
		}
	}
	return parts
}

// remove removes the member or element at a path, and its comma. Comments before and after it stay.
func (d *jsonText) remove(keys ...string) error {
	v, old := d.value(keys[:len(keys)-1]...), d.value(keys...)
	if old == nil {
		return fmt.Errorf("%s is not there", strings.Join(keys, "."))
	}
	parts := partsOf(v)
	i := slices.IndexFunc(parts, func(p part) bool { return p.end == old.EndOffset })
	p := parts[i]
	from := len(bytes.TrimRight(d.text[:p.start], " \t\r\n"))
	line, _, _ := bytes.Cut(d.text[p.end:v.EndOffset-1], []byte("\n"))
	if bytes.Contains(line, []byte("//")) || bytes.Contains(line, []byte("/*")) {
		from = p.start // keep the line break before the value, so that the comment after it has a line of its own
	}
	cuts := []splice{{from: from, to: p.end}}
	comma := func(p part) splice { return splice{from: p.end + len(p.after), to: p.end + len(p.after) + 1} }
	switch {
	case i < len(parts)-1 || p.after != nil:
		cuts = append(cuts, comma(p))
	case i > 0:
		cuts = append(cuts, comma(parts[i-1]))
	}
	inside := func(from, to int) string { return strings.Trim(string(d.text[from:to]), ", \t\r\n") }
	if len(parts) == 1 && inside(v.StartOffset+1, p.start) == "" && inside(p.end, v.EndOffset-1) == "" {
		cuts = []splice{{from: v.StartOffset + 1, to: v.EndOffset - 1}} // nothing is left between the brackets: make it {} or []
	}
	err := d.apply(cuts...)
	if err != nil && from < p.start { // the line break before the value ends a // comment, and must stay
		cuts = slices.DeleteFunc(cuts, func(s splice) bool { return s.to == p.end })
		err = d.apply(append(cuts, splice{from: p.start, to: p.end})...)
	}
	return err
}
