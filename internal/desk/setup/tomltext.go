package setup

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlText is the text of a TOML file, and where its expressions lie in it.
type tomlText struct {
	fileText
	all   map[string]any
	lines []expression
}

// expression is a table header, a key with its value, or a comment.
type expression struct {
	// start is where its first line begins.
	start int
	// path is the whole key, with that of its table; nil for a comment.
	path []string
}

func parseTOMLText(data []byte) (*tomlText, error) {
	d := &tomlText{fileText: textOf(data)}
	data = d.text
	if err := toml.Unmarshal(data, &d.all); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, column := at.Position()
			return nil, fmt.Errorf("line %d, column %d: the file is not valid TOML", line, column)
		}
		return nil, errors.New("the file is not valid TOML")
	}
	p := unstable.Parser{KeepComments: true}
	p.Reset(data)
	var table []string
	for p.NextExpression() {
		node := p.Expression()
		e := expression{}
		switch node.Kind {
		case unstable.Comment:
			e.start = d.lineStart(int(node.Raw.Offset))
		case unstable.Table, unstable.ArrayTable, unstable.KeyValue:
			first := -1
			for key := node.Key(); key.Next(); {
				if first < 0 {
					first = int(key.Node().Raw.Offset)
				}
				e.path = append(e.path, string(key.Node().Data))
			}
			e.start = d.lineStart(first)
			if node.Kind == unstable.KeyValue {
				e.path = append(slices.Clone(table), e.path...)
			} else {
				table = e.path
			}
		}
		d.lines = append(d.lines, e)
	}
	return d, p.Error()
}

func (d *tomlText) lineStart(offset int) int {
	return bytes.LastIndexByte(d.text[:offset], '\n') + 1
}

// table is the table at the end of these keys, nil if there is none.
func (d *tomlText) table(keys ...string) map[string]any {
	at := d.all
	for _, key := range keys {
		at, _ = at[key].(map[string]any)
	}
	return at
}

// members are the lines of an entry, which are strings and lists of strings.
func (d *tomlText) members(entry object) (string, error) {
	var b strings.Builder
	for _, f := range entry {
		line, err := toml.Marshal(map[string]any{f.key: f.value})
		if err != nil {
			return "", err
		}
		b.WriteString(strings.TrimSpace(string(line)) + d.eol())
	}
	return b.String(), nil
}

// reset replaces command and args of the table at the end of keys.
func (d *tomlText) reset(entry object, keys ...string) (*tomlText, error) {
	command := d.extents(append(slices.Clone(keys), "command"))
	args := d.extents(append(slices.Clone(keys), "args"))
	// A dotted key is more than a key and its value.
	if len(command) != 1 || len(args) > 1 || !bytes.HasPrefix(bytes.TrimSpace(d.text[command[0][0]:]), []byte("command")) {
		removed, err := d.remove(keys...)
		if err != nil {
			return nil, err
		}
		return removed.add(entry, keys...)
	}
	text, err := d.members(entry)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	at := 0
	extents := append(command, args...)
	slices.SortFunc(extents, func(a, b [2]int) int { return a[0] - b[0] })
	for _, extent := range extents {
		b.Write(d.text[at:extent[0]])
		if extent == command[0] {
			b.WriteString(text)
		}
		at = extent[1]
	}
	b.Write(d.text[at:])
	return d.changed(b.String())
}

// add appends a table. entry has strings and lists of strings.
func (d *tomlText) add(entry object, keys ...string) (*tomlText, error) {
	eol := d.eol()
	members, err := d.members(entry)
	if err != nil {
		return nil, err
	}
	text := string(d.text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += eol
	}
	if text != "" {
		text += eol
	}
	return d.changed(text + "[" + tomlKey(keys) + "]" + eol + members)
}

func (d *tomlText) changed(text string) (*tomlText, error) {
	edited, err := parseTOMLText([]byte(d.mark + text))
	if err != nil {
		return nil, fmt.Errorf("the edit would break the file: %w", err)
	}
	return edited, nil
}

// extents are where the lines of the table at the end of keys lie, and of those
// below it, with the comments between them.
func (d *tomlText) extents(keys []string) [][2]int {
	var all [][2]int
	for i, e := range d.lines {
		if len(e.path) < len(keys) || !slices.Equal(e.path[:len(keys)], keys) {
			continue
		}
		end := len(d.text)
		for _, next := range d.lines[i+1:] {
			if next.start > e.start {
				end = next.start
				break
			}
		}
		// Empty lines behind it part what is left.
		end = e.start + len(bytes.TrimRight(d.text[e.start:end], " \t\r\n"))
		if i := bytes.IndexByte(d.text[end:], '\n'); i >= 0 {
			end += i + 1
		} else {
			end = len(d.text)
		}
		all = append(all, [2]int{e.start, end})
	}
	return all
}

// remove takes out the table at the end of keys and those below it, with one
// empty line that parts it from what is before it.
func (d *tomlText) remove(keys ...string) (*tomlText, error) {
	var b strings.Builder
	kept := 0
	for _, extent := range d.extents(keys) {
		before := d.text[kept:extent[0]]
		if trimmed, ok := cutEmptyLine(before); ok {
			before = trimmed
		} else if kept > 0 && len(bytes.TrimSpace(before)) == 0 {
			before = nil // between two of its tables
		}
		b.Write(before)
		kept = extent[1]
	}
	b.Write(d.text[kept:])
	edited, err := d.changed(b.String())
	if err != nil {
		return nil, err
	}
	if edited.table(keys[:len(keys)-1]...)[keys[len(keys)-1]] != nil {
		return nil, fmt.Errorf("%s is written in a way that cannot be edited safely; remove it by hand", tomlKey(keys))
	}
	return edited, nil
}

// cutEmptyLine takes one empty line off the end.
func cutEmptyLine(text []byte) ([]byte, bool) {
	for _, empty := range []string{"\n\n", "\n\r\n"} {
		if bytes.HasSuffix(text, []byte(empty)) {
			return text[:len(text)-len(empty)+1], true
		}
	}
	return text, false
}

// tomlKey is a dotted key.
func tomlKey(keys []string) string {
	parts := make([]string, len(keys))
	for i, key := range keys {
		parts[i] = key
		if strings.ContainsFunc(key, func(c rune) bool {
			return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
		}) || key == "" {
			parts[i] = string(quoted(key))
		}
	}
	return strings.Join(parts, ".")
}
