package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// The bounds of what is read. No real config comes near them; they keep a file
// that is no config from taking the memory of the machine.
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

// node is one JSON value with its place: each fault names its place, and a key that
// is there twice has to be seen.
type node struct {
	kind   kind
	offset int // of the first byte, in the file
	// text is the decoded string, or the literal of a number or boolean.
	text    string
	members []member // of an object, in the order of the file
	items   []*node  // of an array
}

type member struct {
	key    string
	offset int // of the key
	value  *node
}

// json is the value as JSON, in the order of the file and with numbers as they are
// written there.
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
			out = append(append(append(append(out, ','), key...), ':'), m.value.json()...)
		}
		return append(append([]byte{'{'}, bytes.TrimPrefix(out, []byte{','})...), '}')
	default:
		out = []byte(n.text)
	}
	return out
}

// syntaxError is where and why a text is no JSON.
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
	// hujson wants the end of a line after the last comment as well.
	value, err := hujson.Parse(append(data[:len(data):len(data)], '\n'))
	if err != nil {
		return nil, explain(data, err)
	}
	return nodeOf(value), nil
}

// StandardJSON is data without the comments and trailing commas that the config may
// have too. name stands before the place of a fault, in a [SyntaxError].
func StandardJSON(name string, data []byte) ([]byte, error) {
	if _, err := decode(name, data); err != nil {
		return nil, err
	}
	return hujson.Standardize(append(data[:len(data):len(data)], '\n'))
}

// checkBounds refuses what is nested too deep, or has too many values.
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
			n.members = append(n.members, member{key: key.String(), offset: m.Name.StartOffset, value: nodeOf(m.Value)})
		}
	case *hujson.Array:
		n.kind = arrayKind
		for _, item := range value.Elements {
			n.items = append(n.items, nodeOf(item))
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
