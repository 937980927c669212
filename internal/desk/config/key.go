package config

import (
	"iter"
	"reflect"
	"slices"
	"strings"
)

//go:generate go test -run ^TestTables$ -update .

// key describes one key of an object in the file. The code that reads the file, the suggestions for mistyped keys, the
// JSON Schema, and the tables of keys in the documentation all use these descriptions.
type key struct {
	name string
	value
	// help explains the key, in Markdown. It is empty for a key that comes from the files of other clients or of older versions of
	// mcpx. Most of these keys have the same meaning as one of the keys of mcpx.
	help string
}

// object describes an object in the file by its keys.
type object struct {
	name string // the name of its definition in the JSON Schema
	// strict means that each unknown key is a fault. If strict is false, an unknown key is a fault only if it resembles a key of
	// the object; otherwise it leads to a warning. strict is mostly set where a mistyped key could let mcpx allow more than the
	// user wanted.
	strict bool
	keys   []key
}

// value describes the value of a key, and how it is read.
type value struct {
	read func(n *node)
	// schema is a JSON Schema for the value. The fields named, off, minimum and maximum add to it. If schema is empty, the JSON
	// Schema is made from the fields words and describe.
	schema string
	// named means that the value is an object whose keys are names that users choose (see [loader.named]). Then the fields schema
	// and describe are about the value of each member.
	named bool
	// words are the accepted strings, if there are only a few.
	words []string
	// off is the name of a definition in the JSON Schema, "off" or "plainOff". The definition lists the values that turn the key
	// off. off is empty if no value turns the key off, or if schema already accepts the values that do.
	off string
	// minimum and maximum are the smallest and the largest accepted number. maximum is 0 if there are no such limits, or if schema
	// contains the limits.
	minimum, maximum int64
	// describe returns the description of the object that is the value, or of an object to which schema refers by name. It is nil
	// if there is no such object.
	describe func() object
	// into points to the variable that receives the value, or to a copy of it. Before the file is read, the variable has the
	// default. derived means that the JSON Schema must not show this default, mostly because it depends on other keys or on the
	// machine. into is nil if no single variable has the value, or if the variable is part of a larger one to which the into of
	// another key points.
	into    any
	derived bool
	// noNull means that null is a fault. For most keys, null means the same as a missing key. null is a fault in rules and
	// groups, where a missing key mostly allows more than any value would.
	noNull bool
	// effect says when a change of the key takes effect while mcpx runs. Empty means at once.
	effect effect
}

type effect string

const (
	atStart  effect = "next start"      // when mcpx starts again
	restarts effect = "servers restart" // at once, but mcpx has to stop and start the servers
)

func (v value) takes(e effect) value {
	v.effect = e
	return v
}

func (v value) notNull() value {
	v.noNull = true
	return v
}

// andThen returns a copy of v that also calls action after the value is read, even if the value has a fault.
func (v value) andThen(action func(*node)) value {
	read := v.read
	v.read = func(n *node) {
		read(n)
		action(n)
	}
	return v
}

func (o object) names() []string {
	names := make([]string, len(o.keys))
	for i := range o.keys {
		names[i] = o.keys[i].name
	}
	slices.Sort(names)
	return names
}

func (o object) key(name string) *key {
	i := slices.IndexFunc(o.keys, func(k key) bool { return k.name == name })
	if i < 0 {
		return nil
	}
	return &o.keys[i]
}

// nested describes a value that must be an object. The keys of the object are those that the function describe returns.
func (l *loader) nested(describe func() object) value {
	return value{describe: describe, read: func(n *node) {
		if l.expectKind(objectKind, n) {
			l.members(n, describe(), nil)
		}
	}}
}

// optional reads an object into *into. The function keys describes the object, initial has the defaults, and check adds faults that
// concern several keys. If the value turns the key off, as false and {"enabled": false} do, *into stays nil.
func optional[T any](l *loader, into **T, initial T, keys func(*T) object, check func(*node, *T)) value {
	describe := func() object { return keys(new(initial)) }
	return value{into: into, off: "off", describe: describe, read: func(n *node) {
		if n.off() || !l.expectKind(objectKind, n) {
			return
		}
		*into = new(initial)
		l.members(n, keys(*into), nil)
		check(n, *into)
	}}
}

// list reads an array of objects, which replaces the content of *into. The function keys describes each object, initial has its
// defaults, and check adds faults that concern several keys of the object.
func list[T any](l *loader, into *[]T, initial T, keys func(*T) object, check func(*node, *T)) value {
	describe := func() object { return keys(new(initial)) }
	schema := `{"type": "array", "items": {"$ref": "#/$defs/` + describe().name + `"}}`
	return value{into: into, schema: schema, describe: describe, read: func(n *node) {
		if !l.expectKind(arrayKind, n) {
			return
		}
		*into = []T{}
		for _, item := range n.items {
			if l.expectKind(objectKind, item) {
				one := initial
				l.members(item, keys(&one), nil)
				check(item, &one)
				*into = append(*into, one)
			}
		}
	}}
}

// members reads the members of the object n. The parameter o describes the keys of n. members ignores notes for human readers (see
// [isComment]), and values that are null, unless their key has noNull. For each key that o does not have, it calls the function
// foreign, which reports whether it knows the key; foreign may be nil. A key that foreign does not know either is a fault if it
// resembles a key of o or if o is strict; otherwise a warning lists the key.
func (l *loader) members(n *node, o object, foreign func(m *node) bool) {
	for _, m := range n.members {
		k := o.key(m.key)
		if m.kind == nullKind {
			if k != nil && k.noNull {
				l.fault(m, "must not be null, which would allow everything; leave the key out for that")
			}
			continue
		}
		if k != nil {
			k.read(m)
			continue
		}
		if foreign != nil && foreign(m) || isComment(m.key) {
			continue
		}
		switch near := nearest(m.key, o.names()); {
		case near != "":
			l.fault(m, "unknown key %s, did you mean %q?", quote(m.key), near)
		case o.strict:
			l.fault(m, "unknown key")
		default:
			l.unknown.add(label(m.key), n.path())
		}
	}
}

// enabled is the key by which users can turn an object off. It has no variable for its value, because [node.off] looks at the value
// in the file.
var enabled = key{"enabled", value{schema: `{}`, read: func(*node) {}}, "false turns all of it off, as if it were not there"}

// named yields the members of n, whose keys are names that users choose. It skips notes for human readers (see [isComment]) and
// members with the value null. If n is not an object, it adds a fault.
func (l *loader) named(n *node) iter.Seq[*node] {
	return func(yield func(*node) bool) {
		if !l.expectKind(objectKind, n) {
			return
		}
		for _, m := range n.members {
			if m.kind != nullKind && !isComment(m.key) && !yield(m) {
				return
			}
		}
	}
}

// isComment reports whether a key and its value are only a note, by common conventions for JSON files.
func isComment(key string) bool {
	return key == "$schema" || strings.HasPrefix(key, "//") || strings.HasPrefix(key, "_") || strings.HasPrefix(key, "#")
}

// Key is a key of the file, together with its value in a certain config.
type Key struct {
	// Path is the path of the key, such as limits.connections.
	Path string
	// AtStart means that a change takes effect when mcpx starts again. Restarts means that a change takes effect at once,
	// but stops and starts the servers.
	AtStart, Restarts bool
	// Value points to the variable with the value of the key, mostly a field of the config. For api and learn, it points to a
	// copy of what is in force. Most root keys that are a default for all servers have no field, because the value is copied
	// into each server; then Value points to a variable that nothing else uses.
	Value any
}

// Keys returns the keys of a config, each with its value. The value of the key mcpServers is the list of all servers. The result
// also has an entry for each key that a server may have, with the path servers.KEY or mcp_servers.KEY. The values of these entries
// belong to no server of the config.
func Keys(cfg *Config) []Key {
	l := newLoader(cfg.Path, Options{})
	l.cfg = cfg
	return l.root().flat("")
}

func (o object) flat(prefix string) (keys []Key) {
	for _, k := range o.keys {
		switch {
		case k.into != nil:
			keys = append(keys, Key{prefix + k.name, k.effect == atStart, k.effect == restarts, k.into})
		case k.describe != nil:
			keys = append(keys, k.describe().flat(prefix+k.name+".")...)
		}
	}
	return keys
}

// Changed compares two configs. It returns the names of servers that are in both but differ, and the paths of other keys that
// differ, except keys that take effect only when mcpx starts again.
func Changed(before, now *Config) (servers, keys []string) {
	for i := range now.Servers {
		for j := range before.Servers {
			if before.Servers[j].Name == now.Servers[i].Name && !reflect.DeepEqual(before.Servers[j], now.Servers[i]) {
				servers = append(servers, now.Servers[i].Name)
			}
		}
	}
	was := Keys(before)
	for i, key := range Keys(now) {
		if !key.AtStart && key.Path != claudeServers && !reflect.DeepEqual(key.Value, was[i].Value) {
			keys = append(keys, key.Path)
		}
	}
	return servers, keys
}

// NextStart compares two configs. It returns the paths of the keys that differ and whose change takes effect only when mcpx starts
// again.
func NextStart(before, after *Config) (paths []string) {
	now, then := Keys(before), Keys(after)
	for i, key := range now {
		if key.AtStart && !reflect.DeepEqual(key.Value, then[i].Value) {
			paths = append(paths, key.Path)
		}
	}
	return paths
}
