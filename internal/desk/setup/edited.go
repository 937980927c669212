package setup

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

const byteOrderMark = "\xEF\xBB\xBF"

// fileText is the text of a file that is edited.
type fileText struct {
	text []byte // without the byte order mark
	mark string // the byte order mark, or nothing
}

func textOf(data []byte) fileText {
	if rest, ok := bytes.CutPrefix(data, []byte(byteOrderMark)); ok {
		return fileText{rest, byteOrderMark}
	}
	return fileText{text: data}
}

// data is the whole file.
func (t fileText) data() []byte { return append([]byte(t.mark), t.text...) }

// eol is how its lines end.
func (t fileText) eol() string {
	if bytes.Contains(t.text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// edited is a client's file, as JSON or TOML.
type edited struct {
	format format
	json   *jsonText
	toml   *tomlText
}

func parse(f format, data []byte) (e edited, err error) {
	e.format = f
	if f.toml {
		e.toml, err = parseTOMLText(data)
		return e, err
	}
	e.json, err = parseJSONText(data)
	if err == nil && len(f.at) == 1 && f.at[0] == "mcp" && e.json.openCode2() {
		e.format.at = []string{"mcp", "servers"}
	}
	return e, err
}

// openCode2 reports whether the file has the form of opencode 2, with the servers
// a level deeper.
func (d *jsonText) openCode2() bool {
	servers := d.value("mcp", "servers")
	return servers != nil && servers.Value.Kind() == '{' && d.value("mcp", "servers", "command") == nil
}

func (e edited) data() []byte {
	if e.format.toml {
		return e.toml.data()
	}
	return e.json.data()
}

func (e edited) keys(name string) []string { return append(slices.Clone(e.format.at), name) }

// set writes the entry of mcpx. Of one that is there only how mcpx is started
// changes: a timeout or an approval that the user added stays.
func (e edited) set(name string, entry object) (edited, error) {
	var err error
	if e.format.toml {
		if e.has(name) {
			e.toml, err = e.toml.reset(entry, e.keys(name)...)
		} else {
			e.toml, err = e.toml.add(entry, e.keys(name)...)
		}
		return e, err
	}
	if e.json.objectAt(e.keys(name)...) != nil {
		for _, f := range entry {
			if (f.key == "command" || f.key == "args") && err == nil {
				e.json, err = e.json.set(f.value, append(e.keys(name), f.key)...)
			}
		}
		return e, err
	}
	if e.format.at[0] == "mcp" && e.format.at[len(e.format.at)-1] == "servers" {
		entry = entry.without("enabled") // opencode 2 does not have it
	}
	e.json, err = e.json.set(entry, e.keys(name)...)
	return e, err
}

func (e edited) has(name string) bool {
	if e.format.toml {
		return e.toml.table(e.format.at...)[name] != nil
	}
	return e.json.value(e.keys(name)...) != nil
}

func (e edited) remove(name string) (edited, error) {
	var err error
	if e.format.toml {
		e.toml, err = e.toml.remove(e.keys(name)...)
	} else {
		e.json, err = e.json.remove(e.keys(name)...)
	}
	return e, err
}

// restore puts a server back as it was in another version of the file.
func (e edited) restore(name string, from edited) (edited, error) {
	if e.has(name) || !from.has(name) {
		return e, nil
	}
	var err error
	if e.format.toml {
		text := string(e.toml.text) + e.toml.eol()
		for _, extent := range from.toml.extents(from.keys(name)) {
			text += string(from.toml.text[extent[0]:extent[1]])
		}
		e.toml, err = e.toml.changed(text)
		return e, err
	}
	e.json, err = e.json.set(raw(from.json.value(from.keys(name)...)), e.keys(name)...)
	return e, err
}

// servers are the entries at the place where the client's servers are.
func (e edited) servers(from origin) ([]Found, error) {
	if e.format.toml {
		return from.tomlServers(e.toml.data())
	}
	value := e.json.value(e.format.at...)
	if value == nil {
		return nil, nil
	}
	return from.serversIn(value, strings.Join(e.format.at, ".")), nil
}

// sameEntry reports whether the file starts mcpx in this way already. What a user
// added to the entry, such as a timeout, stays.
func (e edited) sameEntry(name string, entry object) bool {
	var now map[string]any
	switch {
	case !e.has(name):
		return false
	case e.format.toml:
		now, _ = e.toml.table(e.format.at...)[name].(map[string]any)
	default:
		_ = json.Unmarshal(raw(e.json.value(e.keys(name)...)), &now)
	}
	for _, f := range entry {
		a, _ := marshal(now[f.key])
		b, _ := marshal(f.value)
		if (f.key == "command" || f.key == "args") && string(a) != string(b) {
			return false
		}
	}
	return true
}

// undo puts the servers back that were moved, each from the copy of the file that
// has it, and drops an object for servers that mcpx had made. first is the content
// of the file before mcpx.
func (e edited) undo(r record, first []byte) (edited, error) {
	for _, m := range r.Moved {
		data, _, err := read(m.Backup)
		if err != nil {
			return e, err
		}
		from, err := parse(e.format, data)
		if err != nil {
			return e, err
		}
		if e, err = e.restore(m.Server, from); err != nil {
			return e, err
		}
	}
	before, err := parse(e.format, first)
	if err != nil || e.format.toml || len(e.format.at) > 1 {
		return e, err
	}
	return e.dropEmpty(before)
}

// dropEmpty removes the object for servers where it is empty now and was not
// there before.
func (e edited) dropEmpty(before edited) (edited, error) {
	o := e.json.objectAt(e.format.at...)
	if o == nil || len(o.Members) > 0 || len(o.AfterExtra) > 0 || before.json.value(e.format.at...) != nil {
		return e, nil
	}
	var err error
	e.json, err = e.json.remove(e.format.at...)
	return e, err
}
