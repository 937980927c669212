package config

import (
	"iter"
	"reflect"
	"slices"
	"strings"
)

//go:generate go test -run ^TestTables$ -update .

// key is one key of an object in the file. Its row says all that mcpx knows of it: what is read
// into what, within which bounds, what it means, and when a change takes effect. The reader, its
// hints at mistyped keys, the JSON Schema and the tables of the documents are made of the rows.
type key struct {
	name string
	value
	// help is the meaning, in Markdown. Without it the key is another name of one of ours, in
	// files of other clients or of older systems.
	help string
}

// object is what an object in the file may have.
type object struct {
	name string // among the definitions of the schema
	// strict: an unknown key is a fault. It may be meant to keep somebody out, or something
	// within bounds.
	strict bool
	keys   []key
}

// value is what may be under a key, and how it is read.
type value struct {
	// read reads what is at path.
	read func(path string, n *node)
	// schema is JSON Schema; the other fields add to it. Empty: what words and of say.
	schema string
	// named: schema, or of, says what each member of an object may be whose keys are names that
	// users give ([loader.named]).
	named bool
	// words are the texts that may be there.
	words []string
	// off is the definition in the schema of what else may be there, to turn the key off.
	off string
	// least and most bound a number; most is 0 where schema says it all.
	least, most int64
	// of is the object that may be there, or the object of schema that has the name of it.
	of func() object
	// into points to what is read. It holds the default before, unless derived says that this
	// depends on other keys.
	into    any
	derived bool
	// effect is how a change takes effect while mcpx runs; empty: at once.
	effect effect
}

// effect is how a change of a key takes effect while mcpx runs.
type effect string

const (
	atStart  effect = "next start"      // of mcpx
	restarts effect = "servers restart" // their owner, registry, stops and starts them
)

// takes is a value with this effect.
func (v value) takes(e effect) value {
	v.effect = e
	return v
}

// then is a value that more reads too.
func (v value) then(more func(path string, n *node)) value {
	read := v.read
	v.read = func(path string, n *node) {
		read(path, n)
		more(path, n)
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
	return value{of: of, read: func(path string, n *node) {
		if l.is(objectKind, path, n) {
			l.members(path, n, of(), nil)
		}
	}}
}

// members reads an object. foreign, which may be nil, reports whether it knows a key that is none
// of o. A null is like a key left out. Unknown keys are ignored with one warning, unless o is strict.
func (l *loader) members(path string, n *node, o object, foreign func(at string, m member) bool) {
	for _, m := range n.members {
		at := join(path, m.key)
		if m.value.kind == nullKind {
			continue
		}
		if k := o.key(m.key); k != nil {
			k.read(at, m.value)
			continue
		}
		if foreign != nil && foreign(at, m) || isComment(m.key) {
			continue
		}
		switch near := nearest(m.key, o.names()); {
		case near != "":
			l.fault(at, m.offset, "unknown key %s, did you mean %q?", quote(m.key), near)
		case o.strict:
			l.fault(at, m.offset, "unknown key")
		default:
			l.unknown.add(label(m.key), path)
		}
	}
}

// enabled is the key of an object that can be turned off; [node.off] has read it.
var enabled = key{"enabled", value{schema: `{}`, read: func(string, *node) {}}, "false is as if all of it were not there"}

// named goes through the members of an object whose keys are names that users give: their paths,
// and all of them but notes and nulls. Another value than an object is a fault.
func (l *loader) named(path string, n *node) iter.Seq2[string, member] {
	return func(yield func(at string, m member) bool) {
		if !l.is(objectKind, path, n) {
			return
		}
		for _, m := range n.members {
			if m.value.kind != nullKind && !isComment(m.key) && !yield(join(path, m.key), m) {
				return
			}
		}
	}
}

// isComment reports whether a key is one of those that people write notes under.
func isComment(key string) bool {
	return key == "$schema" || strings.HasPrefix(key, "//") || strings.HasPrefix(key, "_") || strings.HasPrefix(key, "#")
}

// Key is a key of the file whose change takes effect by itself.
type Key struct {
	// Path is the key, such as limits.connections.
	Path string
	// AtStart: a change takes effect at the next start of mcpx. Restarts: the servers stop and start.
	AtStart, Restarts bool
	// Value points to what a config has of it. What the root says for all servers is not of the
	// config: each server has it.
	Value any
}

// Keys are the keys of a config, without the keys of its servers.
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

// NextStart are the keys that differ between two configs and take effect at the next start.
func NextStart(at, to *Config) (paths []string) {
	now, then := Keys(at), Keys(to)
	for i, key := range now {
		if key.AtStart && !reflect.DeepEqual(key.Value, then[i].Value) {
			paths = append(paths, key.Path)
		}
	}
	return paths
}
