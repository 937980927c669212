package arguments

import (
	"encoding/json"
	"testing"
)

// TestRead_Wrapper: an object around the arguments is removed only if nothing else can be meant.
func TestRead_Wrapper(t *testing.T) {
	const (
		closed = `{"type":"object","properties":{"If-Match":{"type":"string"},"n":{"type":"integer"}},"required":["If-Match"],"additionalProperties":false}`
		open   = `{"type":"object","properties":{"q":{"type":"string"}}}`
		own    = `{"type":"object","properties":{"args":{"type":"object"},"q":{"type":"string"}}}`
		others = `{"type":"object","properties":{"q":{"type":"string"}},"additionalProperties":{"type":"object"}}`
		needed = `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"],"additionalProperties":{"type":"object"}}`
		either = `{"anyOf":[{"properties":{"args":{"type":"object"}}},{"properties":{"q":{"type":"string"}},"required":["q"]}]}`
	)
	for _, c := range []struct{ schema, sent, want, unwrapped string }{
		{closed, `{"args":{"If-Match":"x"}}`, `{"If-Match":"x"}`, "args"},
		{closed, `{"arguments":{"If-Match":"x","n":"5"}}`, `{"If-Match":"x","n":5}`, "arguments"},
		{closed, `{"args":"{\"If-Match\":\"x\"}"}`, `{"If-Match":"x"}`, "args"},
		{open, `{"args":{"q":"x"}}`, `{"q":"x"}`, "args"},
		{open, `{"args":{"other":"x"}}`, `{"args":{"other":"x"}}`, ""},
		{open, `{"args":{"q":"x"},"q":"y"}`, `{"args":{"q":"x"},"q":"y"}`, ""},
		{open, `{"args":["q"]}`, `{"args":["q"]}`, ""},
		{own, `{"args":{"q":"x"}}`, `{"args":{"q":"x"}}`, ""},
		{others, `{"args":{"q":"x"}}`, `{"args":{"q":"x"}}`, ""},
		{needed, `{"args":{"q":"x"}}`, `{"q":"x"}`, "args"},
		{either, `{"args":{"q":"x"}}`, `{"args":{"q":"x"}}`, ""},
		{either, `{"arguments":{"q":"x"}}`, `{"q":"x"}`, "arguments"},
		{closed, `{"args":{"If-Match":5}}`, "", ""},
		{closed, `{"args":{"args":{"If-Match":"x"}}}`, "", ""},
	} {
		var s Schemas
		got, notes, err := s.Read(json.RawMessage(c.sent), json.RawMessage(c.schema), true)
		if string(got) != c.want || notes.Unwrapped != c.unwrapped || (err != nil) != (c.want == "") {
			t.Errorf("%s: got %s, %+v, %v", c.sent, got, notes, err)
		}
	}
}
