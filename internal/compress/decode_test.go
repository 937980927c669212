package compress

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// decoder is a strict decoder of TOON 4 for the tests. It returns JSON in which numbers are written as in the TOON and members
// have the same order, which the reference decoder (in JavaScript) loses. It shares no code with the encoder.
type decoder struct {
	lines []toonLine
}

type toonLine struct {
	depth int
	text  string
}

var (
	headerRE  = regexp.MustCompile(`^\[(0|[1-9]\d*)(:?)\]$`)
	numberRE  = regexp.MustCompile(`^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$`)
	bareKeyRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)
)

// decodeTOON decodes a TOON text to JSON.
func decodeTOON(text string) (string, error) {
	if text == "" {
		return "{}", nil
	}
	d := new(decoder)
	for raw := range strings.SplitSeq(text, "\n") {
		content := strings.TrimLeft(raw, " ")
		indent := len(raw) - len(content)
		if strings.HasPrefix(content, "#") {
			continue
		}
		if content == "" || indent%2 == 1 || content[0] == '\t' || strings.HasSuffix(raw, " ") {
			return "", fmt.Errorf("malformed line %q", raw)
		}
		d.lines = append(d.lines, toonLine{indent / 2, content})
	}
	var out strings.Builder
	err := d.root(&out)
	if err == nil && len(d.lines) > 0 {
		err = fmt.Errorf("line %q is left over", d.lines[0].text)
	}
	return out.String(), err
}

func (d *decoder) root(out *strings.Builder) error {
	if len(d.lines) == 0 {
		return errors.New("no lines")
	}
	if first := d.lines[0].text; first[0] == '[' {
		if d.lines[0].depth != 0 {
			return errors.New("first line is indented")
		}
		d.lines = d.lines[1:]
		if first == "[]" {
			out.WriteString("[]")
			return nil
		}
		return d.array(out, first, 0, true)
	}
	return d.object(out, 0, nil)
}

// object reads the members at this depth. first is the line with the first member if that line was already read, or nil.
func (d *decoder) object(out *strings.Builder, depth int, first *toonLine) error {
	out.WriteByte('{')
	seen := map[string]bool{}
	for {
		var line toonLine
		switch {
		case first != nil:
			line, first = *first, nil
		case len(d.lines) > 0 && d.lines[0].depth == depth:
			line, d.lines = d.lines[0], d.lines[1:]
		case len(d.lines) > 0 && d.lines[0].depth > depth:
			return fmt.Errorf("line %q is indented too far", d.lines[0].text)
		default:
			out.WriteByte('}')
			return nil
		}
		key, rest, err := cutKey(line.text)
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("key %s twice", key)
		}
		if len(seen) > 0 {
			out.WriteByte(',')
		}
		seen[key] = true
		out.WriteString(key + ":")
		if err := d.member(out, rest, depth); err != nil {
			return err
		}
	}
}

// member reads what is written after a key.
func (d *decoder) member(out *strings.Builder, rest string, depth int) error {
	switch {
	case rest[0] == '[':
		return d.array(out, rest, depth, true)
	case rest == ":":
		return d.object(out, depth+1, nil)
	case rest == ": []":
		out.WriteString("[]")
		return nil
	case strings.HasPrefix(rest, ": "):
		return scalarCell(out, rest[2:])
	}
	return fmt.Errorf("malformed member %q", rest)
}

// array reads an array, beginning with its header. fields says whether the array may be a table.
func (d *decoder) array(out *strings.Builder, text string, depth int, fields bool) error {
	end := strings.IndexByte(text, ']') + 1
	m := headerRE.FindStringSubmatch(text[:end])
	if m == nil {
		return fmt.Errorf("malformed header %q", text)
	}
	count, err := strconv.Atoi(m[1])
	if err != nil {
		return err
	}
	rest := text[end:]
	if strings.HasPrefix(rest, "{") {
		columns, rest, err := cutFields(rest)
		if err != nil || rest != ":" || !fields {
			return fmt.Errorf("malformed table header %q: %v", text, err)
		}
		return d.table(out, columns, count, depth+1, m[2] == ":")
	}
	switch {
	case m[2] == ":":
		return fmt.Errorf("keyed header without columns %q", text)
	case rest == ":":
		return d.list(out, count, depth+1)
	case !strings.HasPrefix(rest, ": "):
		return fmt.Errorf("malformed header %q", text)
	}
	cells := splitCells(rest[2:])
	if len(cells) != count {
		return fmt.Errorf("%d items, header says %d", len(cells), count)
	}
	out.WriteByte('[')
	for i, c := range cells {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := scalarCell(out, c); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	return nil
}

func (d *decoder) list(out *strings.Builder, count, depth int) error {
	out.WriteByte('[')
	for i := range count {
		if len(d.lines) == 0 || d.lines[0].depth != depth || d.lines[0].text[0] != '-' {
			return fmt.Errorf("item %d of %d is missing", i, count)
		}
		line := d.lines[0].text
		d.lines = d.lines[1:]
		if i > 0 {
			out.WriteByte(',')
		}
		if err := d.item(out, line, depth); err != nil {
			return err
		}
	}
	out.WriteByte(']')
	return nil
}

func (d *decoder) item(out *strings.Builder, line string, depth int) error {
	if line == "-" {
		out.WriteString("{}")
		return nil
	}
	text, ok := strings.CutPrefix(line, "- ")
	if !ok {
		return fmt.Errorf("malformed item %q", line)
	}
	if text[0] == '[' {
		return d.array(out, text, depth, false)
	}
	if unquotedIndex(text, ':') >= 0 {
		return d.object(out, depth+1, &toonLine{depth + 1, text})
	}
	return scalarCell(out, text)
}

// toonField is a column of a table, or a group of columns if it has fields.
type toonField struct {
	key    string
	fields []toonField
}

func (d *decoder) table(out *strings.Builder, columns []toonField, count, depth int, keyed bool) error {
	out.WriteByte("[{"[b2i(keyed)])
	for i := range count {
		if len(d.lines) == 0 || d.lines[0].depth != depth {
			return fmt.Errorf("row %d of %d is missing", i, count)
		}
		line := d.lines[0].text
		d.lines = d.lines[1:]
		if i > 0 {
			out.WriteByte(',')
		}
		if keyed {
			key, rest, err := cutKey(line)
			if err != nil || !strings.HasPrefix(rest, ": ") {
				return fmt.Errorf("malformed row %q: %v", line, err)
			}
			out.WriteString(key + ":")
			line = rest[2:]
		}
		cells := splitCells(line)
		if err := rowObject(out, columns, &cells); err != nil {
			return err
		}
		if len(cells) > 0 {
			return fmt.Errorf("too many cells in %q", line)
		}
	}
	out.WriteByte("]}"[b2i(keyed)])
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func rowObject(out *strings.Builder, columns []toonField, cells *[]string) error {
	out.WriteByte('{')
	for i, c := range columns {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(c.key + ":")
		if c.fields != nil {
			if err := rowObject(out, c.fields, cells); err != nil {
				return err
			}
			continue
		}
		if len(*cells) == 0 {
			return errors.New("too few cells")
		}
		if err := scalarCell(out, (*cells)[0]); err != nil {
			return err
		}
		*cells = (*cells)[1:]
	}
	out.WriteByte('}')
	return nil
}

// cutFields reads a list of fields such as {a,b{c,d}} at the beginning of text.
func cutFields(text string) (fields []toonField, rest string, err error) {
	text = text[1:]
	for {
		var f toonField
		end := strings.IndexAny(text, ",{}")
		if strings.HasPrefix(text, `"`) {
			end = quotedEnd(text)
		}
		if end < 0 || end >= len(text) {
			return nil, "", errors.New("columns have no end")
		}
		if f.key, err = keyJSON(text[:end]); err != nil {
			return nil, "", err
		}
		text = text[end:]
		if text[0] == '{' {
			if f.fields, text, err = cutFields(text); err != nil {
				return nil, "", err
			}
		}
		fields = append(fields, f)
		if text == "" {
			return nil, "", errors.New("columns have no end")
		}
		c := text[0]
		text = text[1:]
		switch c {
		case '}':
			return fields, text, nil
		case ',':
		default:
			return nil, "", fmt.Errorf("unexpected %q in columns", c)
		}
	}
}

// cutKey returns the key at the beginning of a line as JSON, and the rest of the line, which begins with a colon or a header.
func cutKey(line string) (key, rest string, err error) {
	end := strings.IndexAny(line, ":[")
	if strings.HasPrefix(line, `"`) {
		end = quotedEnd(line)
	}
	if end < 0 || end >= len(line) || line[end] != ':' && line[end] != '[' {
		return "", "", fmt.Errorf("no key in %q", line)
	}
	key, err = keyJSON(line[:end])
	return key, line[end:], err
}

func keyJSON(s string) (string, error) {
	if strings.HasPrefix(s, `"`) {
		return stringJSON(s)
	}
	if !bareKeyRE.MatchString(s) {
		return "", fmt.Errorf("malformed key %q", s)
	}
	return `"` + s + `"`, nil
}

// quotedEnd returns the index after the quoted string at the beginning of s.
func quotedEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

func unquotedIndex(s string, c byte) int {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			n := quotedEnd(s[i:])
			if n < 0 {
				return -1
			}
			i += n - 1
		case s[i] == c:
			return i
		}
	}
	return -1
}

func splitCells(s string) []string {
	var cells []string
	for {
		i := unquotedIndex(s, ',')
		if i < 0 {
			return append(cells, s)
		}
		cells = append(cells, s[:i])
		s = s[i+1:]
	}
}

// scalarCell writes one cell as JSON.
func scalarCell(out *strings.Builder, s string) error {
	switch {
	case s == "" || s != strings.Trim(s, " "):
		return fmt.Errorf("malformed cell %q", s)
	case s[0] == '"':
		text, err := stringJSON(s)
		out.WriteString(text)
		return err
	case s == "null" || s == "true" || s == "false":
		out.WriteString(s)
		return nil
	case numberRE.MatchString(s):
		if _, err := strconv.ParseFloat(s, 64); err == nil {
			out.WriteString(s)
			return nil
		}
	}
	if s[0] == '-' || s[0] == '#' || strings.ContainsAny(s, "\":\\[]{}\x00\x01\x1f\t\r") {
		return fmt.Errorf("cell %q should be quoted", s)
	}
	text, err := json.Marshal(s)
	out.Write(text)
	return err
}

// stringJSON converts a quoted TOON string to a JSON string. The escapes of TOON are a subset of the escapes of JSON.
func stringJSON(s string) (string, error) {
	if quotedEnd(s) != len(s) {
		return "", fmt.Errorf("malformed string %q", s)
	}
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '\\' {
			i++
			if !strings.ContainsRune(`\"nrtu`, rune(s[i])) {
				return "", fmt.Errorf("unknown escape in %q", s)
			}
		}
	}
	var text string
	if err := json.Unmarshal([]byte(s), &text); err != nil {
		return "", err
	}
	out, err := json.Marshal(text)
	return string(out), err
}

func TestDecodeTOON_RefusesWhatIsWrong(t *testing.T) {
	for _, text := range []string{
		"a", "a:b", "a: 1\na: 2", "a:  1", " a: 1", "a:\n    b: 1", "a[2]: 1", "a[1]{b}:\n  1,2", "a[2]{b}:\n  1",
		"a[1]{b}:\n  x:y", "a[1]:\n  - [1]{b}:\n    1", "a: \"x", "a: -x", "[1:]: 1", "a: 1\n\nb: 2", "a: \"\\x\"",
		"a[2]:\n  - 1", "[1]:\n- 1", "a[01]: 1", "a{b}: 1",
	} {
		if got, err := decodeTOON(text); err == nil {
			t.Errorf("%q decodes to %s, want an error", text, got)
		}
	}
}
