package arguments

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestReplace: Replace finds the references, and only these. It puts a value in the place of each, and keeps all other bytes.
func TestReplace(t *testing.T) {
	schema := `{"type":"object","properties":{
		"text":{"type":"string"},"any":{},"list":{"type":"array","items":{"type":"string"}},
		"pointer":{"type":"object","properties":{"$result":{"type":"string"},"select":{"type":"string"}}},"deep":{"$ref":"#/$defs/deep"}},
		"$defs":{"deep":{"type":"object","properties":{"text":{"type":["string","null"]}}}}}`
	for _, test := range []struct{ sent, want string }{
		{`{"a":{"$result":"h"}}`, `{"a":<h||false>}`},
		{`{"a": {"$result" : "h", "select" : ".x"} , "b":1.50}`, `{"a":<h|.x|false>,"b":1.50}`},
		{`{"a":{"select":".x","$result":"h"}}`, `{"a":<h|.x|false>}`},
		{`{"a":{"\u0024result":"h"}}`, `{"a":<h||false>}`},
		{`{"a":[1,{"$file":"p"},[{"b":{"$result":"h"}}]]}`, `{"a":[1,<file p>,[{"b":<h||false>}]]}`},
		{`{"text":{"$result":"h"},"any":{"$result":"h"},"list":[{"$result":"h"}],"deep":{"text":{"$result":"h"}}}`,
			`{"text":<h||true>,"any":<h||false>,"list":[<h||true>],"deep":{"text":<h||true>}}`},
		{`{"pointer":{"$result":"h"}}`, `{"pointer":{"$result":"h"}}`},
		{`{"pointer":{"$result":"h","select":"."}}`, `{"pointer":{"$result":"h","select":"."}}`},
		{`{"pointer":{"$file":"p"}}`, `{"pointer":<file p>}`},
		{`{"a":{"$result":"h","more":1}}`, `{"a":{"$result":"h","more":1}}`},
		{`{"a":{"$result":"h","$file":"p"}}`, `{"a":{"$result":"h","$file":"p"}}`},
		{`{"a":{"$file":"p","select":"."}}`, `{"a":{"$file":"p","select":"."}}`},
		{`{"a":{"select":"."}}`, `{"a":{"select":"."}}`},
		{`{"a":"{\"$result\":\"h\"}"}`, `{"a":"{\"$result\":\"h\"}"}`},
		{`"{\"a\":{\"$result\":\"h\"}}"`, `"{\"a\":{\"$result\":\"h\"}}"`},
		{`{"a":{"$result":"h"}`, `{"a":{"$result":"h"}`}, // invalid, and refused by Read
		{`{"$result":"object"}`, `{"in":{"$result":"h"}}`},
		{`{"a":{"$result":"object"}}`, `{"a":{"in":{"$result":"h"}}}`}, // a reference within the value of another one is not replaced
	} {
		got, err := new(Schemas).Replace(json.RawMessage(test.sent), json.RawMessage(schema), func(r Reference) (json.RawMessage, error) {
			switch {
			case r.Result == "object":
				return json.RawMessage(`{"in":{"$result":"h"}}`), nil
			case r.File != "":
				return json.RawMessage("<file " + r.File + ">"), nil
			case r.Text:
				return json.RawMessage("<" + r.Result + "|" + r.Select + "|true>"), nil
			}
			return json.RawMessage("<" + r.Result + "|" + r.Select + "|false>"), nil
		})
		if string(got) != test.want || err != nil {
			t.Errorf("%s\n got %s, %v\nwant %s", test.sent, got, err, test.want)
		}
	}
}

// TestReplace_Violations: if something is wrong with a reference, the error has the path of the reference.
func TestReplace_Violations(t *testing.T) {
	for sent, want := range map[string]string{
		`{"a":{"$result":1}}`:                  "/a: $result must be a string",
		`{"a":{"$file":null}}`:                 "/a: $file must be a string",
		`{"a":{"$result":""}}`:                 "/a: is empty",
		`{"a":{"$result":"h","select":{}}}`:    "/a: select must be a string",
		`{"a":{"$result":"h","$result":"h"}}`:  "/a: has a member twice",
		`{"a":[0,{"b/~":{"$result":"gone"}}]}`: "/a/1/b~1~0: is gone",
		`{"$result":"list"}`:                   "/: what is referred to is no object",
		`{"$result":"gone"}`:                   "/: is gone",
		strings.Repeat(`{"a":`, 100) + `{"$result":1}` + strings.Repeat("}", 100): "",
	} {
		_, err := new(Schemas).Replace(json.RawMessage(sent), nil, func(r Reference) (json.RawMessage, error) {
			if r.Result == "list" {
				return json.RawMessage(`[]`), nil
			}
			return nil, &ReferenceError{"is gone"}
		})
		if invalid, _ := errors.AsType[*ValidationError](err); want != "" && (invalid == nil || invalid.Error() != want) {
			t.Errorf("%.60s: %v, want %s", sent, err, want)
		}
	}
	other := errors.New("another")
	if _, err := new(Schemas).Replace(json.RawMessage(`{"a":{"$result":"h"}}`), nil, func(Reference) (json.RawMessage, error) { return nil, other }); err != other {
		t.Error(err)
	}
}

// TestReplace_Deep: references deep inside are replaced, unless the arguments are so large that this would take long.
func TestReplace_Deep(t *testing.T) {
	mcptest.OneGoroutine(t)
	bring := func(Reference) (json.RawMessage, error) { return json.RawMessage(`1`), nil }
	for values, want := range map[int]bool{1000: true, 1 << 20: false} {
		object := json.RawMessage(nested(120, `{"a":`, `[`+list(values, `"x"`)+`,{"$result":"h"}]`, `}`))
		replaced, err := new(Schemas).Replace(object, nil, bring)
		if got := err == nil && strings.Contains(string(replaced), `"x",1]`); got != want {
			t.Errorf("%d values: %v, %.200s", values, err, replaced)
		}
	}
}
