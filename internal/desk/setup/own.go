package setup

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tailscale/hujson"

	"mcpx/internal/base/conf"
	"mcpx/internal/desk/config"
)

// These are errors of the functions that edit the servers in a config of mcpx. Compare them with errors.Is.
var (
	ErrNoServer = errors.New("no such server")
	ErrThere    = errors.New("is in the config already")
)

// ownKeys are the keys of mcpx's config that may contain servers. A new server is added under the first of these keys that the
// config has.
var ownKeys = []string{"mcpServers", "servers", "mcp_servers"}

// Blank reports whether a JSON file is empty, or has only comments.
func Blank(data []byte) bool {
	d, err := parseJSONText(data)
	return err == nil && d.blank
}

// serversKey returns the key of the config under which new servers are added: the first key in ownKeys whose value is an object. If
// no value is an object, it returns the first key in ownKeys, whose value must then be missing or null.
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

// Entry is a server to add to a config. It has either a command or a URL.
type Entry struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Share   conf.Share        `json:"share,omitempty"`
}

// WithShare returns the entry with the key share, which says which sessions can use the same process of the server. mcpx knows this
// only for some packages. For other servers, and if the entry has the key already, WithShare returns the entry unchanged.
func (e Entry) WithShare(o config.Options) Entry {
	text, err := marshal(e)
	if err != nil {
		return e
	}
	if v, err := hujson.Parse(text); err == nil {
		f := Found{Name: "server", entry: fields(&v)}
		f.check(o)
		e.Share = cmp.Or(e.Share, f.share())
	}
	return e
}

// AddServer adds a server to the text of a config, which may be empty. e is an [Entry] or raw JSON. If the config already
// has a server of this name, the error is [ErrThere].
func AddServer(data []byte, name string, e any) ([]byte, error) {
	return editJSON(data, func(d *jsonText) error {
		if d.server(name) != nil {
			return fmt.Errorf("%s %w; remove it first: mcpx remove %s", name, ErrThere, name)
		}
		key, err := d.serversKey()
		if err != nil {
			return err
		}
		return d.set(e, key, name)
	})
}

// server returns the path of the server called name in the config, or nil if there is no such server.
func (d *jsonText) server(name string) []string {
	for _, key := range ownKeys {
		for _, one := range entriesIn(d.value(key)) {
			if one.name == name {
				return []string{key, one.key}
			}
		}
	}
	return nil
}

// ServerNames returns the names of the servers in the text of a config, or nil if the text is not valid JSON.
func ServerNames(data []byte) (names []string) {
	d, err := parseJSONText(data)
	if err != nil {
		return nil
	}
	for _, key := range ownKeys {
		for _, one := range entriesIn(d.value(key)) {
			names = append(names, one.name)
		}
	}
	return names
}

// editServer calls edit with the path of the server called name, and returns the edited text. If there is no such server, the error
// is [ErrNoServer].
func editServer(data []byte, name string, edit func(d *jsonText, path []string) error) ([]byte, error) {
	return editJSON(data, func(d *jsonText) error {
		path := d.server(name)
		if path == nil {
			return ErrNoServer
		}
		return edit(d, path)
	})
}

// RemoveServer removes a server from the text of a config. If there is no such server, the error is [ErrNoServer].
func RemoveServer(data []byte, name string) ([]byte, error) {
	return editServer(data, name, func(d *jsonText, path []string) error { return d.remove(path...) })
}

// SetEnabled enables or disables a server. It returns the same text if nothing needs to change.
func SetEnabled(data []byte, name string, on bool) ([]byte, error) {
	return editServer(data, name, func(d *jsonText, path []string) error {
		if d.objectAt(path...) == nil {
			return fmt.Errorf("%s is not an object", name)
		}
		// Some other clients write "disabled" instead of "enabled".
		for _, f := range (object{{"disabled", !on}, {"enabled", on}}) {
			at := append(slices.Clip(path), f.key)
			now := d.value(at...)
			if now == nil && (on || f.key == "disabled") || now != nil && string(raw(now)) == fmt.Sprint(f.value) {
				continue
			}
			if err := d.set(f.value, at...); err != nil {
				return err
			}
		}
		return nil
	})
}

// SetServer replaces the whole entry of a server by a JSON object; comments in the entry are lost.
func SetServer(data []byte, name string, entry json.RawMessage) ([]byte, error) {
	return editServer(data, name, func(d *jsonText, path []string) error {
		if d.objectAt(path[0]) != nil {
			return d.set(entry, path...)
		}
		members, err := hujson.Parse(entry) // the entry of a server in an array has a member with its name
		if err != nil {
			return err
		}
		return d.set(append(object{{"name", name}}, fields(&members)...), path...)
	})
}

// MergeServer applies a JSON merge patch (RFC 7396), which must be an object, to the entry of a server. Members that are not in
// the patch keep their formatting.
func MergeServer(data []byte, name string, patch json.RawMessage) ([]byte, error) {
	return editServer(data, name, func(d *jsonText, path []string) error {
		members, err := hujson.Parse(patch)
		if err != nil {
			return err
		}
		return d.merge(members.Value.(*hujson.Object), path)
	})
}

// merge applies a merge patch to the value at a path, and makes it an object if it is not one.
func (d *jsonText) merge(patch *hujson.Object, path []string) error {
	if d.objectAt(path...) == nil {
		if err := d.set(object{}, path...); err != nil {
			return err
		}
	}
	for i := range patch.Members {
		var err error
		value := &patch.Members[i].Value
		at := append(slices.Clip(path), nameOf(&patch.Members[i]))
		inner, isObject := value.Value.(*hujson.Object)
		switch {
		case isObject:
			err = d.merge(inner, at)
		case value.Value.Kind() != 'n':
			err = d.set(raw(value), at...)
		case d.value(at...) != nil:
			err = d.remove(at...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadEntry parses the entry of a server. The entry may have the server's name as a member, which ReadEntry returns
// separately.
func ReadEntry(text []byte) (name string, entry json.RawMessage, err error) {
	v, err := hujson.Parse(text)
	if err != nil || !v.IsStandard() || v.Value.Kind() != '{' {
		return "", nil, errors.New("the body must be a JSON object: the entry of a server")
	}
	members := fields(&v)
	entry, err = marshal(members.without("name"))
	return members.text("name"), entry, err
}
