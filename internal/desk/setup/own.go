package setup

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tailscale/hujson"
)

// ErrNoServer is the error of an edit of a server that is not in the config, ErrThere that
// of adding one that is.
var (
	ErrNoServer = errors.New("no such server")
	ErrThere    = errors.New("is in the config already")
)

// The keys of a config of mcpx that hold servers, the first that is there gets
// new ones.
var ownKeys = []string{"mcpServers", "servers", "mcp_servers"}

// Blank reports whether there is nothing in a JSON file, but for comments.
func Blank(data []byte) bool {
	d, err := parseJSONText(data)
	return err == nil && d.blank
}

// serversKey is the key that new servers go under.
func (d *jsonText) serversKey() (string, error) {
	for _, key := range ownKeys {
		if d.objectAt(key) != nil {
			return key, nil
		}
	}
	if v := d.value(ownKeys[0]); v != nil && v.Value.Kind() != 'n' {
		return "", fmt.Errorf("%s is not an object", ownKeys[0])
	}
	return ownKeys[0], nil
}

// Entry is a server that a user adds: a program, or a URL.
type Entry struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// AddServer adds an entry, an [Entry] or raw JSON, to the text of a config, which may be
// empty. The error is [ErrThere] where there is one of that name.
func AddServer(data []byte, name string, e any) ([]byte, error) {
	d, err := parseJSONText(data)
	if err != nil {
		return nil, err
	}
	if _, found := d.server(name); found {
		return nil, fmt.Errorf("%s %w; remove it first: mcpx remove %s", name, ErrThere, name)
	}
	at, err := d.serversKey()
	if err != nil {
		return nil, err
	}
	d, err = d.set(e, at, name)
	if err != nil {
		return nil, err
	}
	return d.data(), nil
}

// ownEntry is an entry of a config, with the key that it is under.
type ownEntry struct {
	key string
	entryAt
}

// entries are the servers of a config, under whatever keys.
func (d *jsonText) entries() (all []ownEntry) {
	for _, key := range ownKeys {
		if v := d.value(key); v != nil {
			for _, one := range entriesIn(v) {
				all = append(all, ownEntry{key, one})
			}
		}
	}
	return all
}

// server finds an entry of a config by its name; of several the last of its object, as
// the readers of JSON do.
func (d *jsonText) server(name string) (found ownEntry, ok bool) {
	for _, one := range d.entries() {
		if one.name == name && (!ok || one.key == found.key && !one.listed) {
			found, ok = one, true
		}
	}
	return found, ok
}

// ServerNames are the names of the servers in the text of a config.
func ServerNames(data []byte) (names []string) {
	d, err := parseJSONText(data)
	if err != nil {
		return nil
	}
	for _, one := range d.entries() {
		names = append(names, one.name)
	}
	return names
}

// editServer changes the entry of a server in the text of a config. The error is
// [ErrNoServer] where it is not there.
func editServer(data []byte, name string, edit func(*jsonText, ownEntry) (*jsonText, error)) ([]byte, error) {
	d, err := parseJSONText(data)
	if err != nil {
		return nil, err
	}
	at, found := d.server(name)
	if !found {
		return nil, ErrNoServer
	}
	if d, err = edit(d, at); err != nil {
		return nil, err
	}
	return d.data(), nil
}

// RemoveServer takes an entry out of the text of a config. The error is
// [ErrNoServer] where it is not there.
func RemoveServer(data []byte, name string) ([]byte, error) {
	return editServer(data, name, func(d *jsonText, at ownEntry) (*jsonText, error) {
		if at.listed {
			return d.removeItem(at.index, at.key)
		}
		return d.remove(at.key, name)
	})
}

// SetEnabled turns a server on or off. The text is the same where it was so
// already. The error is [ErrNoServer] where it is not there.
func SetEnabled(data []byte, name string, on bool) ([]byte, error) {
	return editServer(data, name, func(d *jsonText, at ownEntry) (_ *jsonText, err error) {
		// "disabled" is what other clients write.
		for _, key := range []string{"disabled", "enabled"} {
			o, ok := at.value.Value.(*hujson.Object)
			if !ok {
				return nil, fmt.Errorf("%s is not an object", name)
			}
			want := on == (key == "enabled")
			i := member(o, key)
			switch {
			case i >= 0:
				if literal, ok := o.Members[i].Value.Value.(hujson.Literal); ok && literal.Bool() == want && literal.Kind() != 'n' {
					continue
				}
				d, err = d.replace(&o.Members[i].Value, want)
			case key == "enabled" && !on:
				d, err = d.insert(at.value, o, key, false)
			default:
				continue
			}
			if err != nil {
				return nil, err
			}
			at, _ = d.server(name)
		}
		return d, nil
	})
}

// SetServer replaces an entry by raw JSON. The error is [ErrNoServer] where it is not there.
func SetServer(data []byte, name string, entry json.RawMessage) ([]byte, error) {
	return editServer(data, name, func(d *jsonText, at ownEntry) (*jsonText, error) {
		var value any = entry
		if at.listed { // where the name is a member
			members, err := hujson.Parse(entry)
			if err != nil {
				return nil, err
			}
			value = append(object{{"name", name}}, fields(&members)...)
		}
		return d.replace(at.value, value)
	})
}

// MergeServer changes members of an entry by a patch (RFC 7396): null takes a member out.
// What the patch does not name stays as it is written. The error is [ErrNoServer] where the
// entry is not there.
func MergeServer(data []byte, name string, patch json.RawMessage) ([]byte, error) {
	return editServer(data, name, func(d *jsonText, _ ownEntry) (*jsonText, error) {
		members, err := hujson.Parse(patch)
		if err != nil {
			return nil, err
		}
		return d.merge(&members, func(d *jsonText) *hujson.Value {
			at, _ := d.server(name)
			return at.value
		})
	})
}

// merge applies a patch to the value that find finds in each version of the text.
func (d *jsonText) merge(patch *hujson.Value, find func(*jsonText) *hujson.Value) (_ *jsonText, err error) {
	if _, ok := find(d).Value.(*hujson.Object); !ok {
		if d, err = d.replace(find(d), object{}); err != nil {
			return nil, err
		}
	}
	for _, m := range patch.Value.(*hujson.Object).Members {
		at := find(d)
		into := at.Value.(*hujson.Object)
		key, value := m.Name.Value.(hujson.Literal).String(), m.Value
		i := member(into, key)
		_, isObject := value.Value.(*hujson.Object)
		switch null := value.Value.Kind() == 'n'; {
		case null && i < 0:
		case null:
			d, err = d.removeMember(at, i)
		case isObject:
			if i < 0 {
				if d, err = d.insert(at, into, key, object{}); err != nil {
					return nil, err
				}
			}
			d, err = d.merge(&value, func(d *jsonText) *hujson.Value {
				o := find(d).Value.(*hujson.Object)
				return &o.Members[member(o, key)].Value
			})
		case i < 0:
			d, err = d.insert(at, into, key, raw(&value))
		default:
			d, err = d.replace(&into.Members[i].Value, raw(&value))
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// ReadEntry reads a JSON object that may have the name of the server beside its members.
func ReadEntry(text []byte) (name string, entry json.RawMessage, err error) {
	v, err := hujson.Parse(text)
	if err != nil || !v.IsStandard() || v.Value.Kind() != '{' {
		return "", nil, errors.New("the body must be a JSON object: the entry of a server")
	}
	members := fields(&v)
	entry, err = marshal(members.without("name"))
	return members.text("name"), entry, err
}
