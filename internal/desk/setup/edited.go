package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

const byteOrderMark = "\xEF\xBB\xBF"

// fileText is the text of a file that is edited.
type fileText struct {
	text []byte // without the byte order mark
	mark string // the byte order mark; empty if the file has none
}

func textOf(data []byte) fileText {
	if rest, ok := bytes.CutPrefix(data, []byte(byteOrderMark)); ok {
		return fileText{rest, byteOrderMark}
	}
	return fileText{text: data}
}

// data returns the whole content of the file, including the byte order mark.
func (t fileText) data() []byte { return append([]byte(t.mark), t.text...) }

// eol returns the line ending for new lines: CRLF if the file has any, otherwise LF.
func (t fileText) eol() string {
	if bytes.Contains(t.text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// splice replaces a part of a file by text. The fields from and to are the byte offsets where the part begins and ends.
type splice struct {
	from, to int
	text     string
}

// spliced returns the content of the file after replacements, which must not overlap.
func (t fileText) spliced(splices []splice) []byte {
	slices.SortStableFunc(splices, func(a, b splice) int { return a.from - b.from })
	b, at := []byte(t.mark), 0
	for _, s := range splices {
		b = append(append(b, t.text[at:s.from]...), s.text...)
		at = s.to
	}
	return append(b, t.text[at:]...)
}

// ErrUnsafe says that a file is valid, but is written in a way that mcpx cannot edit without the risk of losing something.
var ErrUnsafe = errors.New("the file is written in a way that cannot be edited safely")

// document is the text of a client's file: a [jsonText], [tomlText] or [yamlText]. A path is given by its keys, the outermost first. A
// document must not be used after an error, because the edit may be incomplete.
type document interface {
	data() []byte
	// get returns the decoded value at a path, or nil if there is none.
	get(keys ...string) any
	// start writes an entry, with which a client starts mcpx, at the path keys. In an existing entry, start changes only the
	// command and the arguments, so that members which the user added stay, such as a timeout. (Goose's name for command is cmd.)
	// An existing entry is replaced as a whole if it has no command, or if its text cannot be edited in parts, such as an entry in
	// one line of YAML.
	start(entry object, keys ...string) error
	remove(keys ...string) error
	// restore copies the value at a path from the document original, an earlier version of the same file.
	restore(original document, keys ...string) error
	// found returns the servers in the object or table at a path.
	found(from origin, keys []string) []Found
}

func (d *jsonText) get(keys ...string) (value any) {
	if v := d.value(keys...); v != nil {
		_ = json.Unmarshal(raw(v), &value) // raw returns valid JSON
	}
	return value
}

func (d *jsonText) start(entry object, keys ...string) error {
	if d.value(append(slices.Clip(keys), "command")...) == nil {
		return d.set(entry, keys...) // no entry, or one without a command, as with Cline's member transport
	}
	for _, f := range entry {
		if f.key == "command" || f.key == "args" {
			if err := d.set(f.value, append(slices.Clip(keys), f.key)...); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *jsonText) restore(original document, keys ...string) error {
	return d.set(raw(original.(*jsonText).value(keys...)), keys...)
}

func (d *jsonText) found(from origin, keys []string) []Found {
	found := from.serversIn(d.value(keys...), keys)
	if from.client == "claude-code" {
		// mcpx adds its entry for the user, never for single projects of Claude Code. So an entry that starts mcpx in a project was
		// added by the user, and is left out here.
		found = append(found, slices.DeleteFunc(from.projectServers(d), isSelf)...)
	}
	return found
}

// edited is a client's file that is being edited, with the format of the file.
type edited struct {
	document
	format format
}

func parse(f format, data []byte) (edited, error) {
	switch f.language {
	case tomlLanguage:
		d, err := parseTOMLText(data)
		return edited{d, f}, err
	case yamlLanguage:
		d, err := parseYAMLText(data)
		return edited{d, f}, err
	}
	d, err := parseJSONText(data)
	if err == nil && slices.Equal(f.path, []string{"mcp"}) && d.openCode2() {
		f.path = []string{"mcp", "servers"}
		f.entry = func(command string, args []string) object { return openCodeEntry(command, args).without("enabled") }
	}
	return edited{d, f}, err
}

// openCode2 reports whether the file has the format of opencode 2, in which the servers are one level deeper than in
// opencode 1.
func (d *jsonText) openCode2() bool {
	return d.objectAt("mcp", "servers") != nil && d.value("mcp", "servers", "command") == nil
}

// remove removes the value at a path. If a JSON object has the key several times, of which clients use the last one, remove removes
// all of them: otherwise the client would use another one. It refuses an empty path, which an entry in an array has.
func (e edited) remove(keys ...string) error {
	if len(keys) == 0 {
		return errors.New("the servers are in a list, which mcpx does not edit; remove mcpx by hand")
	}
	for {
		if err := e.document.remove(keys...); err != nil {
			return err
		}
		if d, isJSON := e.document.(*jsonText); !isJSON || d.objectAt(keys[:len(keys)-1]...) == nil || d.value(keys...) == nil {
			return nil
		}
	}
}

func (e edited) keys(name string) []string { return append(slices.Clip(e.format.path), name) }

// starts reports whether the file's entry called name already has the same command and arguments as entry.
func (e edited) starts(name string, entry object) bool {
	now, _ := e.get(e.keys(name)...).(map[string]any)
	keys := []string{"command", "cmd", "args"}
	if entry.get(e.format.variables) != nil {
		keys = append(keys, e.format.variables)
	}
	for _, key := range keys {
		is, _ := marshal(now[key])
		want, _ := marshal(entry.get(key))
		if string(is) != string(want) {
			return false
		}
	}
	return true
}

// restoreMoved adds the servers that [edited.connect] removed, unless the file has them again. It copies the entry of each server from the
// backup, and returns the names of the servers that it added.
func (e edited) restoreMoved(servers []moved) (restored []string, err error) {
	for _, m := range servers {
		data, _, err := Read(m.Backup)
		if err != nil {
			return nil, err
		}
		from, err := parse(e.format, data)
		if err != nil {
			return nil, err
		}
		at := m.At
		if at == nil { // a record of an older version of mcpx has no path
			at = e.keys(m.Server)
		}
		if e.get(at...) != nil || from.get(at...) == nil {
			continue
		}
		if err := e.restore(from.document, at...); err != nil {
			return nil, fmt.Errorf("restoring %s: %w", m.Server, err)
		}
		restored = append(restored, m.Server)
	}
	return restored, nil
}

// dropEmpty removes the object that contains the servers, if this object is empty now and is not in original, the file's
// content before mcpx changed it. It does so only in JSON, where the object is a member of the outermost object.
func (e edited) dropEmpty(original []byte) error {
	d, ok := e.document.(*jsonText)
	if !ok || len(e.format.path) > 1 {
		return nil
	}
	first, err := parseJSONText(original)
	if err != nil {
		return err
	}
	o := d.objectAt(e.format.path...)
	if o == nil || len(o.Members) > 0 || len(o.AfterExtra) > 0 || first.value(e.format.path...) != nil {
		return nil
	}
	return d.remove(e.format.path...)
}
