package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// These are the limits for a file: its size in bytes, the depth of nested objects and arrays, and the number of values. No real
// config comes near these limits. They keep a file that is not a config from using up the memory.
const (
	maxFileBytes = 8 << 20
	maxDepth     = 64
	maxValues    = 200_000
)

type kind byte

const (
	nullKind kind = iota
	boolKind
	numberKind
	stringKind
	arrayKind
	objectKind
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// node is a JSON value of the file. Its fields parent, key and index give its path, which messages about faults show. Unlike a Go map,
// a node that is an object has its members in the order of the file, and has both members if a key occurs twice.
type node struct {
	kind   kind
	offset int // the offset of the value's first byte in the file
	// text is the decoded string, or a number or boolean as the file writes it.
	text    string
	members []*node // if the value is an object
	items   []*node // if the value is an array

	parent *node  // nil for the root
	key    string // the key of the member, if parent is an object
	index  int    // the index of the element, if parent is an array
}

// path returns the path of the value, such as mcpServers.github.url. It is empty for the root.
func (n *node) path() string {
	switch {
	case n.parent == nil:
		return ""
	case n.parent.kind == arrayKind:
		return index(n.parent.path(), n.index)
	}
	return join(n.parent.path(), n.key)
}

// child returns a node that has only the path of a key in n, for a fault about this key. n need not have the key.
func (n *node) child(key string) *node {
	return &node{parent: n, key: key, offset: n.offset}
}

// json encodes the value as JSON, with the members in the same order, and numbers written as in the file.
func (n *node) json() json.RawMessage {
	var out []byte
	switch n.kind {
	case nullKind:
		return json.RawMessage("null")
	case stringKind:
		out, _ = json.Marshal(n.text)
	case arrayKind:
		for _, item := range n.items {
			out = append(append(out, ','), item.json()...)
		}
		return append(append([]byte{'['}, bytes.TrimPrefix(out, []byte{','})...), ']')
	case objectKind:
		for _, m := range n.members {
			key, _ := json.Marshal(m.key)
			out = append(append(append(append(out, ','), key...), ':'), m.json()...)
		}
		return append(append([]byte{'{'}, bytes.TrimPrefix(out, []byte{','})...), '}')
	default:
		out = []byte(n.text)
	}
	return out
}

// syntaxError says where and why parseJSON refuses the content of a file.
type syntaxError struct {
	offset int
	text   string
}

func (e *syntaxError) Error() string { return e.text }

func errorAt(offset int, format string, args ...any) error {
	return &syntaxError{offset, fmt.Sprintf(format, args...)}
}

// parseJSON parses data, which must be a single JSON value. Comments (// and /* */) and trailing commas are allowed. The
// error is a *syntaxError.
func parseJSON(data []byte) (*node, error) {
	if err := checkBounds(data); err != nil { // comes first, because hujson recurses for each level of nesting
		return nil, err
	}
	// hujson requires a line break after a // comment, even at the end of the file.
	value, err := hujson.Parse(append(data[:len(data):len(data)], '\n'))
	if err != nil {
		return nil, explain(data, err)
	}
	return nodeOf(value), nil
}

// StandardJSON returns data without comments, trailing commas and a byte order mark. Any error is a [*SyntaxError], whose field
// File is name.
func StandardJSON(name string, data []byte) ([]byte, error) {
	if _, err := decode(name, data); err != nil {
		return nil, err
	}
	data = withoutMark(data)
	return hujson.Standardize(append(data[:len(data):len(data)], '\n'))
}

// checkBounds returns an error if data is nested too deeply or has too many values.
func checkBounds(data []byte) error {
	values := 0
	for s := (scanner{data: data}); s.next(); {
		if !s.isValue() {
			continue
		}
		if len(s.open) > maxDepth {
			return errorAt(s.pos, "nested deeper than %d levels", maxDepth)
		}
		if values++; values > maxValues {
			return errorAt(s.pos, "more than %d values", maxValues)
		}
	}
	return nil
}

// CheckDepth returns an error if data, which may be invalid JSON, has more than limit objects and arrays in each other.
func CheckDepth(data []byte, limit int) error {
	for s := (scanner{data: data}); s.next(); {
		if len(s.open) > limit {
			return fmt.Errorf("nested deeper than %d levels", limit)
		}
	}
	return nil
}

func nodeOf(v hujson.Value) *node {
	n := &node{offset: v.StartOffset}
	switch value := v.Value.(type) {
	case *hujson.Object:
		n.kind = objectKind
		for _, m := range value.Members {
			key := m.Name.Value.(hujson.Literal) // hujson accepts only strings as keys
			value := nodeOf(m.Value)
			value.parent, value.key = n, key.String()
			n.members = append(n.members, value)
		}
	case *hujson.Array:
		n.kind = arrayKind
		for i, item := range value.Elements {
			value := nodeOf(item)
			value.parent, value.index = n, i
			n.items = append(n.items, value)
		}
	case hujson.Literal:
		switch value.Kind() {
		case 'n':
			return n
		case 't', 'f':
			n.kind = boolKind
		case '0':
			n.kind = numberKind
		case '"':
			n.kind = stringKind
		}
		n.text = value.String()
	}
	return n
}

// position returns the line and the column of an offset. Both begin with 1. Columns count characters, as in editors.
func position(data []byte, offset int) (line, column int) {
	before := string(data[:offset])
	start := strings.LastIndexByte(before, '\n') + 1
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[start:])
}
