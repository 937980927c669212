package config

import (
	"iter"
	"reflect"
	"slices"
	"strings"
)

//go:generate go test -run ^TestTables$ -update .

// key is one key of an object in the file, called a row. The reader, its hints at mistyped keys, the
// JSON Schema and the tables in the documents are all made from the rows.
type key struct {
	name string
	value
	// help is the meaning, in Markdown. It is empty for a key that other clients or older systems
	// use in place of one of ours.
	help string
}

// object lists the keys of an object in the file.
type object struct {
	name string // among the definitions of the schema
	// strict makes an unknown key a fault. Ignoring one could let a client in, or lift a limit, that the
	// user meant to set.
	strict bool
	keys   []key
}

// value says what may be under a key, and how it is read.
type value struct {
	read func(n *node)
	// schema is JSON Schema, to which the other fields add. If it is empty, words and of say all.
	schema string
	// named: the value is an object whose keys are names that users choose ([loader.named]). schema, or
	// of, then describes each of its members.
	named bool
	// words are the accepted texts.
	words []string
	// off is the definition, in the schema, of the values that turn the key off.
	off string
	// least and most bound a number; most is 0 if schema has the bounds.
	least, most int64
	// of describes an object that is the value, or that schema refers to by its name.
	of func() object
	// into points to the variable that is read into. Before the reading it holds the default, unless
	// derived is set: then the default depends on other keys.
	into    any
	derived bool
	// effect says how a change takes effect while mcpx runs; empty means at once.
	effect effect
}

type effect string

const (
	atStart  effect = "next start"      // of mcpx
	restarts effect = "servers restart" // registry stops and starts them
)

func (v value) takes(e effect) value {
	v.effect = e
	return v
}

// then calls more after v was read.
func (v value) then(more func(*node)) value {
	read := v.read
	v.read = func(n *node) {
		read(n)
		more(n)
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

// nested is a value that is an object.
func (l *loader) nested(of func() object) value {
	return value{of: of, read: func(n *node) {
		if l.is(objectKind, n) {
			l.members(n, of(), nil)
		}
	}}
}

// optional reads an object into *into, which stays nil if the value turns the key off. An object can do that
// only if it has the key enabled. initial has the defaults; check notes what is wrong with the whole.
func optional[T any](l *loader, into **T, initial T, keys func(*T) object, check func(*node, *T)) value {
	of, off := func() object { return keys(new(initial)) }, "plainOff"
	if of().key("enabled") != nil {
		off = "off"
	}
	return value{into: into, off: off, of: of, read: func(n *node) {
		if n.off() && (n.kind != objectKind || off == "off") || !l.is(objectKind, n) {
			return
		}
		*into = new(initial)
		l.members(n, keys(*into), nil)
		check(n, *into)
	}}
}

// list reads an array of objects. A list in the file replaces what *into has.
func list[T any](l *loader, into *[]T, initial T, keys func(*T) object, check func(*node, *T)) value {
	of := func() object { return keys(new(initial)) }
	schema := `{"type": "array", "items": {"$ref": "#/$defs/` + of().name + `"}}`
	return value{into: into, schema: schema, of: of, read: func(n *node) {
		if !l.is(arrayKind, n) {
			return
		}
		*into = []T{}
		for _, item := range n.items {
			if l.is(objectKind, item) {
				one := initial
				l.members(item, keys(&one), nil)
				check(item, &one)
				*into = append(*into, one)
			}
		}
	}}
}

// members reads an object. A null is like a key left out. foreign, which may be nil, handles keys that o does
// not have, and reports whether it knew one. Other unknown keys are faults if they resemble a key of o or o
// is strict; else one warning lists them.
func (l *loader) members(n *node, o object, foreign func(m *node) bool) {
	for _, m := range n.members {
		if m.kind == nullKind {
			continue
		}
		if k := o.key(m.key); k != nil {
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

// enabled is the key of an object that can be turned off; [node.off] reads it.
var enabled = key{"enabled", value{schema: `{}`, read: func(*node) {}}, "false turns all of it off, as if it were not there"}

// named yields the members of an object whose keys are names that users choose, without notes and nulls.
// A value that is not an object is a fault.
func (l *loader) named(n *node) iter.Seq[*node] {
	return func(yield func(*node) bool) {
		if !l.is(objectKind, n) {
			return
		}
		for _, m := range n.members {
			if m.kind != nullKind && !isComment(m.key) && !yield(m) {
				return
			}
		}
	}
}

// isComment reports whether a key holds a note, by the customs of JSON files.
func isComment(key string) bool {
	return key == "$schema" || strings.HasPrefix(key, "//") || strings.HasPrefix(key, "_") || strings.HasPrefix(key, "#")
}

// Key is a key of the file with its value in a config.
type Key struct {
	// Path is the key, such as limits.connections.
	Path string
	// AtStart: a change takes effect at the next start of mcpx. Restarts: it stops and starts the servers.
	AtStart, Restarts bool
	// Value points into the config. For a key at the root that is a default of all servers it points
	// elsewhere: the config has such values in its Servers.
	Value any
}

// Keys lists the keys of a config, without those inside of servers.
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
		case k.of != nil:
			keys = append(keys, k.of().flat(prefix+k.name+".")...)
		}
	}
	return keys
}

// NextStart lists the keys that differ between two configs and take effect at the next start.
func NextStart(at, to *Config) (paths []string) {
	now, then := Keys(at), Keys(to)
	for i, key := range now {
		if key.AtStart && !reflect.DeepEqual(key.Value, then[i].Value) {
			paths = append(paths, key.Path)
		}
	}
	return paths
}
