package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// The bounds of a file. No real config comes near them; they protect the memory of the machine from
// a file that is not a config.
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

// node is one JSON value and its place, which faults name. Unlike a Go map it keeps the order of the file
// and keys that are there twice.
type node struct {
	kind   kind
	offset int // of the first byte, in the file
	// text is the decoded string, or the literal of a number or boolean.
	text    string
	members []*node // of an object
	items   []*node // of an array

	parent *node  // nil for the root
	key    string // of a member
	at     int    // the index of an item
}

// path is the JSON path of the value, empty for the root.
func (n *node) path() string {
	switch {
	case n.parent == nil:
		return ""
	case n.parent.kind == arrayKind:
		return index(n.parent.path(), n.at)
	}
	return join(n.parent.path(), n.key)
}

// child is the place of a key that n may lack, for a fault.
func (n *node) child(key string) *node {
	return &node{parent: n, key: key, offset: n.offset}
}

// json encodes the value again. Members keep their order, and numbers the way they are written.
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

// syntaxError says where and why a text is not JSON.
type syntaxError struct {
	offset int
	text   string
}

func (e *syntaxError) Error() string { return e.text }

func errorAt(offset int, format string, args ...any) error {
	return &syntaxError{offset, fmt.Sprintf(format, args...)}
}

// parseJSON reads the one value that data must be: JSON with // and /* */ comments
// and trailing commas. The error is a *syntaxError.
func parseJSON(data []byte) (*node, error) {
	if err := checkBounds(data); err != nil { // hujson calls itself for each level
		return nil, err
	}
	// hujson needs a line break also after a comment at the end.
	value, err := hujson.Parse(append(data[:len(data):len(data)], '\n'))
	if err != nil {
		return nil, explain(data, err)
	}
	return nodeOf(value), nil
}

// StandardJSON removes the comments and trailing commas, which a config may have. A [SyntaxError]
// calls the file name.
func StandardJSON(name string, data []byte) ([]byte, error) {
	if _, err := decode(name, data); err != nil {
		return nil, err
	}
	return hujson.Standardize(append(data[:len(data):len(data)], '\n'))
}

// checkBounds refuses a text that is nested too deep or has too many values.
func checkBounds(data []byte) error {
	values := 0
	for s := (scanner{data: data}); s.next(); {
		if !s.isValue() {
			continue
		}
		if len(s.open) > maxDepth {
			return errorAt(s.at, "nested deeper than %d levels", maxDepth)
		}
		if values++; values > maxValues {
			return errorAt(s.at, "more than %d values", maxValues)
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
			key := m.Name.Value.(hujson.Literal) // or it would not have been read
			value := nodeOf(m.Value)
			value.parent, value.key = n, key.String()
			n.members = append(n.members, value)
		}
	case *hujson.Array:
		n.kind = arrayKind
		for i, item := range value.Elements {
			value := nodeOf(item)
			value.parent, value.at = n, i
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

// position is the line and the column of an offset, both from 1. Columns count
// characters, as editors do.
func position(data []byte, offset int) (line, column int) {
	before := string(data[:offset])
	start := strings.LastIndexByte(before, '\n') + 1
	return 1 + strings.Count(before, "\n"), 1 + utf8.RuneCountInString(before[start:])
}
