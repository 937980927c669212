package setup

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlText is the text of a TOML file. Each edit changes the text and parses it again.
type tomlText struct {
	fileText
	all   map[string]any
	lines []expression
}

// expression is one piece of a TOML file: a table header, a key with its value, or a comment.
type expression struct {
	start int      // the offset of the beginning of its first line
	path  []string // the path of the table, or of the key including its table; nil for a comment
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

// table returns the table at a path, or nil if there is none.
func (d *tomlText) table(keys ...string) map[string]any {
	at := d.all
	for _, key := range keys {
		at, _ = at[key].(map[string]any)
	}
	return at
}

func (d *tomlText) get(keys ...string) any {
	last := len(keys) - 1
	return d.table(keys[:last]...)[keys[last]]
}

func (d *tomlText) start(entry object, keys ...string) error {
	if d.get(keys...) == nil {
		return d.add(entry, keys...)
	}
	command := d.extents(append(slices.Clip(keys), "command"))
	args := d.extents(append(slices.Clip(keys), "args"))
	var others []splice // the members of entry beside these, which the new text replaces
	for _, f := range entry {
		if f.key != "command" && f.key != "args" {
			others = append(others, d.extents(append(slices.Clip(keys), f.key))...)
		}
	}
	// If the command is written with a dotted key, such as mcpx.command, the line of the command cannot be replaced. Then the whole
	// table is removed and written anew.
	if len(command) != 1 || len(args) > 1 || !bytes.HasPrefix(bytes.TrimSpace(d.text[command[0].from:]), []byte("command")) {
		if err := d.remove(keys...); err != nil {
			return err
		}
		return d.add(entry, keys...)
	}
	text, err := d.members(entry)
	if err != nil {
		return err
	}
	command[0].text = text
	return d.apply(slices.Concat(command, args, others)...)
}

func (d *tomlText) restore(original document, keys ...string) error {
	source := original.(*tomlText)
	text := d.eol()
	for _, extent := range source.extents(keys) {
		text += string(source.text[extent.from:extent.to])
	}
	restored, err := parseTOMLText(d.spliced([]splice{{len(d.text), len(d.text), text}}))
	if err == nil && reflect.DeepEqual(restored.get(keys...), source.get(keys...)) {
		*d = *restored
		return nil
	}
	// The lines belong below the header of a table above, as NAME = {…} does in [mcp_servers]. So the entry becomes a table.
	var entry object
	table := source.table(keys...)
	for _, key := range sortedKeys(table) {
		entry = append(entry, field{key, table[key]})
	}
	return d.add(entry, keys...)
}

func (d *tomlText) found(from origin, _ []string) []Found { return from.tomlServers(d) }

// members returns the members of an entry as lines of TOML.
func (d *tomlText) members(entry object) (string, error) {
	var b strings.Builder
	for _, f := range entry {
		var line strings.Builder
		if err := toml.NewEncoder(&line).SetTablesInline(true).Encode(map[string]any{f.key: f.value}); err != nil {
			return "", err
		}
		b.WriteString(strings.TrimSpace(line.String()) + d.eol())
	}
	return b.String(), nil
}

// add appends a table at the end of the text. That is an error if the table above it is a value in one line, such as {}, to which TOML
// allows no addition.
func (d *tomlText) add(entry object, keys ...string) error {
	eol := d.eol()
	members, err := d.members(entry)
	if err != nil {
		return err
	}
	gap := ""
	if len(d.text) > 0 {
		gap = eol
		if !bytes.HasSuffix(d.text, []byte("\n")) {
			gap += eol
		}
	}
	err = d.apply(splice{len(d.text), len(d.text), gap + "[" + tomlKey(keys) + "]" + eol + members})
	if errors.Is(err, ErrUnsafe) {
		above := tomlKey(keys[:len(keys)-1])
		return fmt.Errorf("%s is written as one value; write its servers as tables, such as [%s.NAME], and run the command again", above, above)
	}
	return err
}

// apply makes replacements, which must not overlap, and parses the result.
func (d *tomlText) apply(splices ...splice) error {
	edited, err := parseTOMLText(d.spliced(splices))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	*d = *edited
	return nil
}

// extents returns which lines belong to each expression in the table at a path, and in the tables below it. The result has the offsets
// of these lines, and no text. If a value has several lines, comments between them are included.
func (d *tomlText) extents(keys []string) (all []splice) {
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
		// Empty lines after an expression do not belong to it.
		end = e.start + len(bytes.TrimRight(d.text[e.start:end], " \t\r\n"))
		if i := bytes.IndexByte(d.text[end:], '\n'); i >= 0 {
			end += i + 1
		} else {
			end = len(d.text)
		}
		all = append(all, splice{from: e.start, to: end})
	}
	return all
}

// remove removes the table at a path and the tables below it. It also removes one empty line before each of these tables.
func (d *tomlText) remove(keys ...string) error {
	cuts, kept := d.extents(keys), 0
	for i := range cuts {
		before := d.text[kept:cuts[i].from]
		kept = cuts[i].to
		if trimmed, ok := cutEmptyLine(before); ok {
			cuts[i].from -= len(before) - len(trimmed)
		} else if i > 0 && len(bytes.TrimSpace(before)) == 0 { // also remove the white space between two removed parts
			cuts[i].from -= len(before)
		}
	}
	if err := d.apply(cuts...); err != nil {
		return err
	}
	if d.get(keys...) != nil {
		return fmt.Errorf("%s is written in a way that cannot be edited safely; remove it by hand", tomlKey(keys))
	}
	return nil
}

// cutEmptyLine removes one empty line from the end of text. The second result is false if text does not end with an empty line.
func cutEmptyLine(text []byte) ([]byte, bool) {
	for _, empty := range []string{"\n\n", "\n\r\n"} {
		if bytes.HasSuffix(text, []byte(empty)) {
			return text[:len(text)-len(empty)+1], true
		}
	}
	return text, false
}

// tomlKey returns a path as a dotted TOML key.
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
