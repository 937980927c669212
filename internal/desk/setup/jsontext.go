package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// object is a JSON object with an order.
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

// marshal is json.Marshal without escapes for HTML.
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
	b, _ := marshal(s) // a string can always be encoded
	return b
}

// jsonText is the text of a JSON file with comments and trailing commas, and
// where its values lie in it.
type jsonText struct {
	fileText
	root hujson.Value
	// blank: there is no value in the file, at most comments.
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
		// With a value behind it, a file without one can be read.
		if _, ok := hujson.Parse([]byte(string(data) + "\nnull")); ok == nil {
			d.blank = true
			return d, nil
		}
		// The words of the error quote the file, which may hold secrets.
		place, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "hujson: "), ":")
		return nil, fmt.Errorf("%s: the file is not valid JSON", place)
	}
	if root.Value.Kind() != '{' {
		return nil, errors.New("the file must hold an object")
	}
	d.root = root
	return d, nil
}

// member is the index of the member of that name, the last one if there are
// several, as for the readers of such files; -1 if there is none.
func member(o *hujson.Object, name string) int {
	for i := len(o.Members) - 1; i >= 0; i-- {
		if o.Members[i].Name.Value.(hujson.Literal).String() == name {
			return i
		}
	}
	return -1
}

// value is the value at the end of these keys, nil if there is none.
func (d *jsonText) value(keys ...string) *hujson.Value {
	if d.blank {
		return nil
	}
	at := &d.root
	for _, key := range keys {
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return nil
		}
		i := member(o, key)
		if i < 0 {
			return nil
		}
		at = &o.Members[i].Value
	}
	return at
}

// objectAt is the object at the end of these keys, nil if there is none.
func (d *jsonText) objectAt(keys ...string) *hujson.Object {
	value := d.value(keys...)
	if value == nil {
		return nil
	}
	o, _ := value.Value.(*hujson.Object)
	return o
}

// raw is the text of a value as plain JSON.
func raw(v *hujson.Value) json.RawMessage {
	copied := v.Clone()
	copied.Standardize()
	var b bytes.Buffer
	if json.Compact(&b, copied.Pack()) != nil {
		return nil
	}
	return b.Bytes()
}

// splice is one replacement in a text.
type splice struct {
	from, to int
	text     string
}

// apply makes the replacements, which do not overlap, and reads what came of it.
func (d *jsonText) apply(splices ...splice) (*jsonText, error) {
	splices = slices.Clone(splices)
	slices.SortStableFunc(splices, func(a, b splice) int { return a.from - b.from })
	var b []byte
	at := 0
	for _, s := range splices {
		b = append(append(b, d.text[at:s.from]...), s.text...)
		at = s.to
	}
	b = append([]byte(d.mark), append(b, d.text[at:]...)...)
	edited, err := parseJSONText(b)
	if err != nil {
		return nil, fmt.Errorf("the edit would break the file: %w", err)
	}
	return edited, nil
}

// set gives the member at the end of keys a value, and makes the objects that
// lead to it where they are missing.
func (d *jsonText) set(value any, keys ...string) (*jsonText, error) {
	if d.blank {
		return d.fill(value, keys)
	}
	at := &d.root
	for i, key := range keys {
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			if at.Value.Kind() != 'n' {
				return nil, fmt.Errorf("%s is not an object", strings.Join(keys[:i], "."))
			}
			return d.replace(at, nest(value, keys[i:]))
		}
		j := member(o, key)
		if j < 0 {
			return d.insert(at, o, key, nest(value, keys[i+1:]))
		}
		at = &o.Members[j].Value
	}
	return d.replace(at, value)
}

// nest is a value inside an object for each key.
func nest(value any, keys []string) any {
	for i := len(keys) - 1; i >= 0; i-- {
		value = object{{keys[i], value}}
	}
	return value
}

// fill writes the first value of a file that has none. Comments stay above it.
func (d *jsonText) fill(value any, keys []string) (*jsonText, error) {
	lead := strings.TrimRight(string(d.text), " \t\r\n")
	if lead != "" {
		lead += d.eol()
	}
	text, err := d.render(nest(value, keys), "", "  ")
	if err != nil {
		return nil, err
	}
	return d.apply(splice{0, len(d.text), lead + text + d.eol()})
}

// render is a value as it is written into this file; on one line without a unit.
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

// layout gives each member of an object a line, and a list of plain values one
// line as long as it is short.
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

// replace writes another value in the place of one.
func (d *jsonText) replace(old *hujson.Value, value any) (*jsonText, error) {
	unit := d.unit()
	if !bytes.Contains(d.text, []byte("\n")) {
		unit = ""
	}
	text, err := d.render(value, d.indentation(old.StartOffset), unit)
	if err != nil {
		return nil, err
	}
	return d.apply(splice{old.StartOffset, old.EndOffset, text})
}

// unit is what the file indents by: as its first member is indented.
func (d *jsonText) unit() string {
	if o, ok := d.root.Value.(*hujson.Object); ok && len(o.Members) > 0 {
		if indent, broken := lead(o.Members[0].Name.BeforeExtra); broken && indent != "" {
			return indent
		}
	}
	return "  "
}

// lead is the white space between the last line break and what follows; false if
// there is no line break.
func lead(before []byte) (indent string, broken bool) {
	i := bytes.LastIndexByte(before, '\n')
	if i < 0 {
		return "", false
	}
	return string(before[i+1:]), len(bytes.Trim(before[i+1:], " \t\r")) == 0
}

// indentation is that of the line in which the offset lies.
func (d *jsonText) indentation(offset int) string {
	line := d.text[bytes.LastIndexByte(d.text[:offset], '\n')+1 : offset]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// insert adds a last member to an object: with a line of its own where the other
// members have one, and with a comma behind it where the last one had that.
func (d *jsonText) insert(v *hujson.Value, o *hujson.Object, key string, value any) (*jsonText, error) {
	end := v.EndOffset - 1 // of the closing brace
	if len(o.Members) == 0 {
		outer := d.indentation(v.StartOffset)
		inner := strings.TrimRight(string(o.AfterExtra), " \t\r\n")
		text, err := d.render(value, outer+d.unit(), d.unit())
		if err != nil {
			return nil, err
		}
		text = inner + d.eol() + outer + d.unit() + string(quoted(key)) + ": " + text + d.eol() + outer
		return d.apply(splice{v.StartOffset + 1, end, text})
	}
	last := &o.Members[len(o.Members)-1]
	tail := d.text[last.Value.EndOffset:end]
	at := end - (len(tail) - len(bytes.TrimRight(tail, " \t\r\n")))
	comma := last.Value.AfterExtra != nil
	indent, broken := lead(last.Name.BeforeExtra)
	unit, gap := d.unit(), d.eol()+indent
	if !broken && !bytes.Contains(d.text[v.StartOffset:end], []byte("\n")) {
		unit, gap = "", string(last.Name.BeforeExtra)
		if len(o.Members) == 1 {
			gap = string(last.Value.BeforeExtra) // as behind the colon
		}
		if strings.TrimSpace(gap) != "" { // a comment
			gap = " "
		}
	} else if !broken {
		indent = d.indentation(v.StartOffset) + unit
		gap = d.eol() + indent
	}
	text, err := d.render(value, indent, unit)
	if err != nil {
		return nil, err
	}
	colon := ": "
	if unit == "" && len(last.Value.BeforeExtra) == 0 {
		colon = ":"
	}
	text = gap + string(quoted(key)) + colon + text
	if comma {
		return d.apply(splice{at, at, text + ","})
	}
	return d.apply(splice{last.Value.EndOffset, last.Value.EndOffset, ","}, splice{at, at, text})
}

// remove takes the member at the end of keys out, with the comma that parts it
// from the others. Comments around it stay.
func (d *jsonText) remove(keys ...string) (*jsonText, error) {
	parent := d.value(keys[:len(keys)-1]...)
	if parent == nil {
		return nil, fmt.Errorf("%s is not there", strings.Join(keys, "."))
	}
	if o, ok := parent.Value.(*hujson.Object); ok {
		if i := member(o, keys[len(keys)-1]); i >= 0 {
			return d.removeMember(parent, i)
		}
	}
	return nil, fmt.Errorf("%s is not there", strings.Join(keys, "."))
}

// removeMember takes the member at index i out of an object.
func (d *jsonText) removeMember(parent *hujson.Value, i int) (*jsonText, error) {
	var parts []part
	for _, m := range parent.Value.(*hujson.Object).Members {
		parts = append(parts, part{m.Name.StartOffset, m.Value.EndOffset, m.Value.AfterExtra})
	}
	return d.cut(parent, parts, i)
}

// removeItem takes the element at index i out of an array.
func (d *jsonText) removeItem(i int, keys ...string) (*jsonText, error) {
	list := d.value(keys...)
	var parts []part
	for _, e := range list.Value.(*hujson.Array).Elements {
		parts = append(parts, part{e.StartOffset, e.EndOffset, e.AfterExtra})
	}
	return d.cut(list, parts, i)
}

// part is where a member of an object or an element of an array lies.
type part struct {
	start, end int
	after      []byte // up to its comma; nil for a last one without a comma
}

func (d *jsonText) cut(v *hujson.Value, parts []part, i int) (*jsonText, error) {
	p := parts[i]
	from := len(bytes.TrimRight(d.text[:p.start], " \t\r\n"))
	line, _, _ := bytes.Cut(d.text[p.end:v.EndOffset-1], []byte("\n"))
	if bytes.Contains(line, []byte("//")) || bytes.Contains(line, []byte("/*")) {
		from = p.start // the comment behind it keeps its line
	}
	cuts := []splice{{from: from, to: p.end}}
	comma := func(p part) splice { return splice{from: p.end + len(p.after), to: p.end + len(p.after) + 1} }
	switch {
	case i < len(parts)-1 || p.after != nil:
		cuts = append(cuts, comma(p))
	case i > 0:
		cuts = append(cuts, comma(parts[i-1]))
	}
	if len(parts) == 1 && len(bytes.TrimSpace(d.text[v.StartOffset+1:p.start])) == 0 {
		// The last one: {} is left, unless a comment is.
		rest := d.text[p.end : v.EndOffset-1]
		if len(bytes.Trim(rest, ", \t\r\n")) == 0 {
			cuts = []splice{{from: v.StartOffset + 1, to: v.EndOffset - 1}}
		}
	}
	edited, err := d.apply(cuts...)
	if err != nil && from < p.start {
		// A line comment before it needs its line break.
		cuts[0].from = p.start
		return d.apply(cuts...)
	}
	return edited, err
}
