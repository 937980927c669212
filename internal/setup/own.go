package setup

import (
	"errors"
	"fmt"

	"github.com/tailscale/hujson"
)

// ErrNoServer is the error of an edit of a server that is not in the config.
var ErrNoServer = errors.New("no such server")

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
	Command string
	Args    []string
	Env     map[string]string
	URL     string
	Type    string
	Headers map[string]string
}

func (e Entry) object() object {
	var o object
	if e.Type != "" {
		o = append(o, field{"type", e.Type})
	}
	if e.Command != "" {
		o = append(o, field{"command", e.Command})
	}
	if len(e.Args) > 0 {
		o = append(o, field{"args", e.Args})
	}
	if len(e.Env) > 0 {
		o = append(o, field{"env", e.Env})
	}
	if e.URL != "" {
		o = append(o, field{"url", e.URL})
	}
	if len(e.Headers) > 0 {
		o = append(o, field{"headers", e.Headers})
	}
	return o
}

// AddServer adds an entry to the text of a config, which may be empty.
func AddServer(data []byte, name string, e Entry) ([]byte, error) {
	d, err := parseJSONText(data)
	if err != nil {
		return nil, err
	}
	if _, found := d.server(name); found {
		return nil, fmt.Errorf("%s is in the config already; remove it first: mcpx remove %s", name, name)
	}
	at, err := d.serversKey()
	if err != nil {
		return nil, err
	}
	d, err = d.set(e.object(), at, name)
	if err != nil {
		return nil, err
	}
	return d.data(), nil
}

// ownServer is where a server stands in a config: in an object, or in the older
// array, where it has an index.
type ownServer struct {
	key, name string
	index     int
	value     *hujson.Value
}

// server finds an entry of a config by its name.
func (d *jsonText) server(name string) (ownServer, bool) {
	for _, key := range ownKeys {
		v := d.value(key)
		if v == nil {
			continue
		}
		switch container := v.Value.(type) {
		case *hujson.Object:
			if i := member(container, name); i >= 0 {
				return ownServer{key, name, -1, &container.Members[i].Value}, true
			}
		case *hujson.Array:
			for i := range container.Elements {
				entry := fields(&container.Elements[i])
				if entry.text("name") == name || entry.text("id") == name {
					return ownServer{key, name, i, &container.Elements[i]}, true
				}
			}
		}
	}
	return ownServer{}, false
}

// ServerNames are the names of the servers in the text of a config.
func ServerNames(data []byte) []string {
	d, err := parseJSONText(data)
	if err != nil {
		return nil
	}
	var names []string
	for _, key := range ownKeys {
		v := d.value(key)
		if v == nil {
			continue
		}
		switch container := v.Value.(type) {
		case *hujson.Object:
			for _, m := range container.Members {
				names = append(names, m.Name.Value.(hujson.Literal).String())
			}
		case *hujson.Array:
			for i := range container.Elements {
				entry := fields(&container.Elements[i])
				if name := entry.text("name"); name != "" {
					names = append(names, name)
				} else if id := entry.text("id"); id != "" {
					names = append(names, id)
				}
			}
		}
	}
	return names
}

// RemoveServer takes an entry out of the text of a config. The error is
// [ErrNoServer] where it is not there.
func RemoveServer(data []byte, name string) ([]byte, error) {
	d, err := parseJSONText(data)
	if err != nil {
		return nil, err
	}
	at, found := d.server(name)
	if !found {
		return nil, ErrNoServer
	}
	if at.index >= 0 {
		d, err = d.removeItem(at.index, at.key)
	} else {
		d, err = d.remove(at.key, name)
	}
	if err != nil {
		return nil, err
	}
	return d.data(), nil
}

// SetEnabled turns a server on or off. The text is the same where it was so
// already. The error is [ErrNoServer] where it is not there.
func SetEnabled(data []byte, name string, on bool) ([]byte, error) {
	d, err := parseJSONText(data)
	if err != nil {
		return nil, err
	}
	// "disabled" is what other clients write.
	for _, key := range []string{"disabled", "enabled"} {
		at, found := d.server(name)
		if !found {
			return nil, ErrNoServer
		}
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
	}
	return d.data(), nil
}
