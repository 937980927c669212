package learned

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// tsType is a TypeScript type, parsed from the text that [Shape.TypeScript] returns.
type tsType struct {
	union   []*tsType
	word    string // string, number, boolean, null, unknown, object or {}
	members map[string]*tsType
	missing map[string]bool // the members that may be missing
	record  *tsType
	items   *tsType
}

type tsReader struct {
	t    *testing.T
	text string
	pos  int
}

func readType(t *testing.T, text string) *tsType {
	t.Helper()
	r := &tsReader{t: t, text: text}
	typ := r.union()
	if r.pos != len(text) {
		t.Fatalf("%q: read as far as %q", text, text[r.pos:])
	}
	return typ
}

func (r *tsReader) take(word string) bool {
	if !strings.HasPrefix(r.text[r.pos:], word) {
		return false
	}
	r.pos += len(word)
	return true
}

func (r *tsReader) union() *tsType {
	typ := &tsType{union: []*tsType{r.one()}}
	for r.take(" | ") {
		typ.union = append(typ.union, r.one())
	}
	return typ
}

func (r *tsReader) one() (typ *tsType) {
	switch {
	case r.take("("):
		typ = r.union()
		if !r.take(")") {
			r.t.Fatalf("%q: no ) at %d", r.text, r.pos)
		}
	case r.take("Record<string, "):
		typ = &tsType{record: r.union()}
		if !r.take(">") {
			r.t.Fatalf("%q: no > at %d", r.text, r.pos)
		}
	case r.take("{}"):
		typ = &tsType{word: "{}"}
	case r.take("{"):
		typ = r.object()
	default:
		for _, word := range []string{"string", "number", "boolean", "null", "unknown", "object"} {
			if r.take(word) {
				typ = &tsType{word: word}
				break
			}
		}
		if typ == nil {
			r.t.Fatalf("%q: no type at %q", r.text, r.text[r.pos:])
		}
	}
	for r.take("[]") {
		typ = &tsType{items: typ}
	}
	return typ
}

func (r *tsReader) object() *tsType {
	typ := &tsType{members: map[string]*tsType{}, missing: map[string]bool{}}
	for {
		end := strings.IndexAny(r.text[r.pos:], "?:")
		if end < 0 {
			r.t.Fatalf("%q: no key at %q", r.text, r.text[r.pos:])
		}
		key := r.text[r.pos : r.pos+end]
		if !identifier([]byte(key)) {
			r.t.Fatalf("%q: the key %q", r.text, key)
		}
		r.pos += end
		typ.missing[key] = r.take("?")
		if !r.take(": ") {
			r.t.Fatalf("%q: no type of %q", r.text, key)
		}
		typ.members[key] = r.union()
		if r.take(", ") {
			continue
		}
		r.take(" /*…*/")
		if !r.take("}") {
			r.t.Fatalf("%q: no } at %q", r.text, r.text[r.pos:])
		}
		return typ
	}
}

// accepts returns the reason why a value is not of the type, or "" if it is. As in TypeScript, an object may have additional
// members.
func (typ *tsType) accepts(value any) string {
	if typ.union != nil {
		why := ""
		for _, one := range typ.union {
			if why = one.accepts(value); why == "" {
				return ""
			}
		}
		return why
	}
	is := "null"
	switch value.(type) {
	case string:
		is = "string"
	case json.Number:
		is = "number"
	case bool:
		is = "boolean"
	case map[string]any:
		is = "object"
	case []any:
		is = "array"
	}
	object, _ := value.(map[string]any)
	switch {
	case typ.word == "unknown", typ.word == is, typ.word == "{}" && is == "object":
		return ""
	case typ.items != nil && is == "array":
		for i, item := range value.([]any) {
			if why := typ.items.accepts(item); why != "" {
				return fmt.Sprintf("[%d]%s", i, why)
			}
		}
		return ""
	case typ.record != nil && object != nil:
		for key, member := range object {
			if why := typ.record.accepts(member); why != "" {
				return "[" + key + "]" + why
			}
		}
		return ""
	case typ.members != nil && object != nil:
		for key, member := range typ.members {
			if there, ok := object[key]; !ok && !typ.missing[key] {
				return "." + key + " is missing"
			} else if why := member.accepts(there); ok && why != "" {
				return "." + key + why
			}
		}
		return ""
	}
	return " is " + is
}

func decoded(t *testing.T, value []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return v
}
