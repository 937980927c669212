package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlText is the text of a YAML file. An edit inserts, removes or replaces whole lines. This works for mappings with one
// member on each line, which is how programs write YAML. After each edit, all values of the new text are compared with the
// expected ones. If they differ, for example because a removed line had an anchor that is used elsewhere, the edit fails with
// [ErrUnsafe], and no value is lost.
type yamlText struct {
	fileText
	root *yaml.Node // the mapping of the first document; nil if the file has no value
	all  map[string]any
}

func parseYAMLText(data []byte) (*yamlText, error) {
	d := &yamlText{fileText: textOf(data)}
	var document yaml.Node
	// The parser's errors may quote values, which may be secret.
	if yaml.Unmarshal(d.text, &document) != nil {
		return nil, errors.New("the file is not valid YAML")
	}
	if len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
		return d, nil
	}
	d.root = document.Content[0]
	if d.root.Kind != yaml.MappingNode || document.Decode(&d.all) != nil {
		return nil, errors.New("the file must hold a mapping with unique keys")
	}
	return d, nil
}

// member returns the nodes of the key and the value at a path, and of the mapping that contains them. If there is no such member,
// key and value are nil. mapping is then the mapping to which the member would have to be added, or nil if there is no such mapping
// either.
func (d *yamlText) member(keys ...string) (key, value, mapping *yaml.Node) {
	value = d.root
	for i, name := range keys {
		mapping, key = value, nil
		value = nil
		if mapping == nil || mapping.Kind != yaml.MappingNode {
			return nil, nil, nil
		}
		for at := 0; at < len(mapping.Content); at += 2 {
			if mapping.Content[at].Value == name {
				key, value = mapping.Content[at], mapping.Content[at+1]
			}
		}
		if value == nil && i < len(keys)-1 {
			return nil, nil, nil
		}
	}
	return key, value, mapping
}

func (d *yamlText) get(keys ...string) any {
	at := any(d.all)
	for _, key := range keys {
		members, _ := at.(map[string]any)
		at = members[key]
	}
	return at
}

// line returns the offset at which a line begins. The first line is 1.
func (d *yamlText) line(number int) int {
	offset := 0
	for range number - 1 {
		i := bytes.IndexByte(d.text[offset:], '\n')
		if i < 0 {
			return len(d.text)
		}
		offset += i + 1
	}
	return offset
}

// lineEnd returns the offset after the line that contains offset, including its line break.
func (d *yamlText) lineEnd(offset int) int {
	if i := bytes.IndexByte(d.text[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(d.text)
}

// extent returns which lines belong to a member of a mapping: the line with its key, and the lines after it that have a deeper
// indentation. Lines with the same indentation also belong to it if they begin with the dash of a list. The second result is false if
// something else is before the key on its line.
func (d *yamlText) extent(key *yaml.Node) (splice, bool) {
	from, indent := d.line(key.Line), key.Column-1
	if from+indent > len(d.text) || strings.Trim(string(d.text[from:from+indent]), " ") != "" {
		return splice{}, false
	}
	end := d.lineEnd(from)
	for at := end; at < len(d.text); {
		next := d.lineEnd(at)
		line := bytes.TrimRight(d.text[at:next], " \t\r\n")
		text := string(bytes.TrimLeft(line, " "))
		switch column := len(line) - len(text); {
		case text == "":
		case column > indent, column == indent && strings.HasPrefix(text+" ", "- "):
			end = next
		case text[0] != '#':
			return splice{from: from, to: end}, true
		}
		at = next
	}
	return splice{from: from, to: end}, true
}

// apply makes replacements, which must not overlap. Then it checks that the text has value at the path keys (or nothing, if value
// is nil), and that nothing else has changed.
func (d *yamlText) apply(value any, keys []string, splices ...splice) error {
	edited, err := parseYAMLText(d.spliced(splices))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	if !reflect.DeepEqual(edited.all, withMember(d.all, value, keys)) {
		return ErrUnsafe
	}
	*d = *edited
	return nil
}

// withMember returns a copy of nested maps in which the value at a path is set or, if it is nil, removed.
func withMember(all map[string]any, value any, keys []string) map[string]any {
	all = maps.Clone(all)
	if all == nil {
		all = map[string]any{}
	}
	switch {
	case len(keys) > 1:
		inner, _ := all[keys[0]].(map[string]any)
		all[keys[0]] = withMember(inner, value, keys[1:])
	case value == nil:
		delete(all, keys[0])
	default:
		all[keys[0]] = value
	}
	return all
}

func (d *yamlText) start(entry object, keys ...string) error {
	key, now, _ := d.member(keys...)
	if key == nil {
		return d.insert(entry, keys)
	}
	for _, f := range entry {
		if f.key != "cmd" && f.key != "args" {
			continue
		}
		at := append(slices.Clip(keys), f.key)
		old, _, _ := d.member(at...)
		if old == nil || now.Style&yaml.FlowStyle != 0 {
			if err := d.remove(keys...); err != nil {
				return err
			}
			return d.insert(entry, keys)
		}
		cut, ok := d.extent(old)
		if !ok {
			return ErrUnsafe
		}
		cut.text = d.lines(object{f}, old.Column-1)
		if err := d.apply(decoded(f.value), at, cut); err != nil {
			return err
		}
	}
	return nil
}

// decoded returns a value in the form in which a parser decodes it, with maps in place of objects.
func decoded(value any) (out any) {
	text, _ := marshal(value) // cannot fail: value has only strings, booleans, numbers, lists and objects
	_ = yaml.Unmarshal(text, &out)
	return out
}

// lines returns the members of an object as lines. The values are encoded as JSON, which is valid YAML.
func (d *yamlText) lines(members object, indent int) string {
	var b strings.Builder
	for _, f := range members {
		value, _ := marshal(f.value)
		if list, ok := f.value.([]string); ok {
			parts := make([]string, len(list))
			for i, one := range list {
				parts[i] = string(quoted(one))
			}
			value = []byte("[" + strings.Join(parts, ", ") + "]")
		}
		b.WriteString(strings.Repeat(" ", indent) + f.key + ": " + string(value) + d.eol())
	}
	return b.String()
}

// insert adds an entry at the path keys, as the last member of its mapping.
func (d *yamlText) insert(entry object, keys []string) error {
	name := keys[len(keys)-1]
	return d.insertLines(keys, decoded(entry), func(indent, unit int) string {
		return strings.Repeat(" ", indent) + name + ":" + d.eol() + d.lines(entry, indent+unit)
	})
}

// insertLines adds a member at the end of its mapping. keys is the path of the member and must have two elements. The function lines
// returns the lines of the member; value is its value, with which the result is checked. If the mapping is missing or empty,
// insertLines makes it.
func (d *yamlText) insertLines(keys []string, value any, lines func(indent, unit int) string) error {
	eol := d.eol()
	holder, mapping, _ := d.member(keys[0])
	switch {
	case holder == nil: // add the mapping at the end of the file
		gap := ""
		if len(d.text) > 0 && !bytes.HasSuffix(d.text, []byte("\n")) {
			gap = eol
		}
		return d.apply(value, keys, splice{len(d.text), len(d.text), gap + keys[0] + ":" + eol + lines(2, 2)})
	case mapping.Kind == yaml.MappingNode && len(mapping.Content) > 0:
		last := mapping.Content[len(mapping.Content)-2]
		at, ok := d.extent(last)
		if !ok || mapping.Style&yaml.FlowStyle != 0 {
			return ErrUnsafe
		}
		unit := 2
		if inner := mapping.Content[1]; inner.Kind == yaml.MappingNode && inner.Column > last.Column && inner.Style&yaml.FlowStyle == 0 {
			unit = inner.Column - last.Column
		}
		gap := ""
		if !bytes.HasSuffix(d.text[:at.to], []byte("\n")) {
			gap = eol
		}
		return d.apply(value, keys, splice{at.to, at.to, gap + lines(last.Column-1, unit)})
	}
	// The mapping is empty: after its colon there is {}, null, ~ or nothing. This is removed; a comment after it stays.
	at, ok := d.extent(holder)
	colon := at.from + holder.Column - 1 + len(holder.Value)
	end := d.lineEnd(at.from)
	if !ok || colon >= end || d.text[colon] != ':' {
		return ErrUnsafe
	}
	written, comment, _ := bytes.Cut(d.text[colon+1:end], []byte("#"))
	rest := strings.TrimRight(string(comment), "\r\n")
	if len(comment) > 0 {
		rest = " #" + rest
	}
	if now := strings.TrimSpace(string(written)); now != "" && now != "{}" && now != "null" && now != "~" {
		return ErrUnsafe
	}
	return d.apply(value, keys, splice{colon + 1, end, rest + eol + lines(holder.Column+1, 2)})
}

func (d *yamlText) restore(original document, keys ...string) error {
	source := original.(*yamlText)
	key, _, _ := source.member(keys...)
	at, ok := source.extent(key)
	if !ok {
		return ErrUnsafe
	}
	return d.insertLines(keys, source.get(keys...), func(indent, _ int) string {
		var b strings.Builder
		for line := range strings.Lines(string(source.text[at.from:at.to])) {
			line = strings.TrimRight(line, "\r\n")
			rest := strings.TrimLeft(line, " ")
			if shift := len(line) - len(rest) - (key.Column - 1) + indent; rest != "" && shift > 0 {
				rest = strings.Repeat(" ", shift) + rest
			}
			b.WriteString(rest + d.eol())
		}
		return b.String()
	})
}

// remove removes the lines of a member. A mapping without other members becomes {}, because without any text it would be null.
func (d *yamlText) remove(keys ...string) error {
	key, _, mapping := d.member(keys...)
	if key == nil {
		return fmt.Errorf("%s is not there", strings.Join(keys, "."))
	}
	cut, ok := d.extent(key)
	if !ok || mapping.Style&yaml.FlowStyle != 0 {
		return ErrUnsafe
	}
	cuts := []splice{cut}
	if len(mapping.Content) == 2 && len(keys) > 1 {
		holder, _, _ := d.member(keys[:len(keys)-1]...)
		at := d.line(holder.Line) + holder.Column - 1 + len(holder.Value) + 1
		if at > len(d.text) {
			return ErrUnsafe
		}
		cuts = append(cuts, splice{at, at, " {}"})
	}
	return d.apply(nil, keys, cuts...)
}

func (d *yamlText) found(from origin, at []string) (found []Found) {
	_, mapping, _ := d.member(at...)
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(mapping.Content); i += 2 {
		name := mapping.Content[i].Value
		members, _ := d.get(append(slices.Clip(at), name)...).(map[string]any)
		if members == nil {
			continue
		}
		var entry object
		for _, key := range sortedKeys(members) {
			value, err := marshal(members[key])
			if err != nil {
				continue // a mapping with keys that are not strings; no server has one
			}
			entry = append(entry, field{key, json.RawMessage(value)})
		}
		f := from.translate(name, entry, strings.Join(at, "."))
		f.path = append(slices.Clip(at), name)
		found = append(found, f)
	}
	return found
}
