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
)

// object is a JSON object that keeps the order of its members.
type object []field

type field struct {
	key   string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, f := range o {
		if i > 0 {
			b = append(b, ',')
		}
		value, err := marshal(f.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, quoted(f.key)...), ':'), value...)
	}
	return append(b, '}'), nil
}

// marshal is json.Marshal without HTML escapes.
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

// jsonText is the text of a JSON file, which may have comments and trailing commas.
// An edit changes text and parses it again. After an error, the jsonText must not be used: some
// steps of the edit may be done.
type jsonText struct {
	fileText
	root hujson.Value // has the offsets of all values in text
	// blank is true if the file has no value: it is empty, or has only comments.
	blank bool
}

func parseJSONText(data []byte) (*jsonText, error) {
	d := &jsonText{fileText: textOf(data)}
	data = d.text
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, errors.New("the file is not UTF-8")
	}
	root, err := hujson.Parse(slices.Clone(data))
	if err != nil {
		// A file that becomes valid with a value at its end has none yet.
		if _, ok := hujson.Parse([]byte(string(data) + "\nnull")); ok == nil {
			d.blank = true
			return d, nil
		}
		// Only the position: the rest of the error quotes the file, which may hold secrets.
		place, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "hujson: "), ":")
		return nil, fmt.Errorf("%s: the file is not valid JSON", place)
	}
	if root.Value.Kind() != '{' {
		return nil, errors.New("the file must hold an object")
	}
	d.root = root
	return d, nil
}

// editJSON returns the text of a JSON file after an edit.
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

// member returns the index of the member with this name, or -1. Of several it is the last
// one, as in the programs that read these files.
func member(o *hujson.Object, name string) int {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if nameOf(&o.Members[i]) == name {
			return i
		}
	}
	return -1
}

// child returns the member of an object with this name, or the element of an array at this
// index. It returns nil if there is none.
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

// value returns the value at a path of names and indexes, or nil. An edit makes it invalid.
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

// objectAt returns the object at a path, or nil.
func (d *jsonText) objectAt(keys ...string) *hujson.Object {
	value := d.value(keys...)
	if value == nil {
		return nil
	}
	o, _ := value.Value.(*hujson.Object)
	return o
}

// raw returns a value as plain JSON.
func raw(v *hujson.Value) json.RawMessage {
	copied := v.Clone()
	copied.Standardize()
	var b bytes.Buffer
	if json.Compact(&b, copied.Pack()) != nil {
		return nil
	}
	return b.Bytes()
}

// apply makes replacements that do not overlap, and parses the result.
func (d *jsonText) apply(splices ...splice) error {
	edited, err := parseJSONText(d.with(splices))
	if err != nil {
		return fmt.Errorf("the edit would break the file: %w", err)
	}
	*d = *edited
	return nil
}

// set writes a value at a path, and makes the objects on the way to it.
func (d *jsonText) set(value any, keys ...string) error {
	if d.blank { // write an object below the comments
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

// nest wraps a value in an object for each key.
func nest(value any, keys []string) any {
	for _, key := range slices.Backward(keys) {
		value = object{{key, value}}
	}
	return value
}

// render encodes a value for this file. unit is one level of indentation; if it is empty,
// the value takes one line.
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

// layout puts each member of an object on its own line, but a short array of plain values
// on one line.
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

// unit returns one level of the file's indentation: the indentation of its first member.
func (d *jsonText) unit() string {
	if o, ok := d.root.Value.(*hujson.Object); ok && len(o.Members) > 0 {
		if indent, broken := lead(o.Members[0].Name.BeforeExtra); broken && indent != "" {
			return indent
		}
	}
	return "  "
}

// lead returns the text between the last line break and a member. broken is true if there is a
// line break, and only white space after it.
func lead(before []byte) (indent string, broken bool) {
	i := bytes.LastIndexByte(before, '\n')
	if i < 0 {
		return "", false
	}
	return string(before[i+1:]), len(bytes.Trim(before[i+1:], " \t\r")) == 0
}

// indentation returns the indentation of the line with this offset.
func (d *jsonText) indentation(offset int) string {
	line := d.text[bytes.LastIndexByte(d.text[:offset], '\n')+1 : offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// insert adds the last member of object o, which is the value of v. It follows the style of the
// members before it: on a line of its own, and with a trailing comma.
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
	if !broken && !bytes.Contains(d.text[v.StartOffset:end], []byte("\n")) { // one line
		unit, gap = "", string(last.Name.BeforeExtra)
		if len(o.Members) == 1 {
			gap = string(last.Value.BeforeExtra) // the same space as after the colon
		}
		if strings.TrimSpace(gap) != "" { // a comment
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
	if last.Value.AfterExtra != nil { // a trailing comma
		return d.apply(splice{at, at, text + ","})
	}
	return d.apply(splice{last.Value.EndOffset, last.Value.EndOffset, ","}, splice{at, at, text})
}

// part is the place of a member of an object, or of an element of an array.
type part struct {
	start, end int
	after      []byte // up to the comma; nil for a last part without a comma
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

// remove removes the member or the element at a path, with its comma. Comments around it stay.
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
		from = p.start // a comment after it stays on its line
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
		cuts = []splice{{from: v.StartOffset + 1, to: v.EndOffset - 1}} // leave {} or []
	}
	err := d.apply(cuts...)
	if err != nil && from < p.start { // a line comment before it needs its line break
		cuts = slices.DeleteFunc(cuts, func(s splice) bool { return s.to == p.end })
		err = d.apply(append(cuts, splice{from: p.start, to: p.end})...)
	}
	return err
}
