package arguments

import (
	"encoding/json"
	"testing"
)

func TestWith(t *testing.T) {
	schema := json.RawMessage(`{"properties":{"path":{},"head":{},"ä":{}},"additionalProperties":true}`)
	for _, test := range []struct{ sent, beside, want string }{
		{``, `{"path":"/x"}`, `{"path":"/x"}`},
		{`null`, `{"path":"/x","head":1}`, `{"path":"/x","head":1}`},
		{`{}`, `{"\u00e4":1.10}`, `{"\u00e4":1.10}`},
		{` {"head": 1 } `, `{"path":"/x"}`, `{"head": 1 ,"path":"/x"}`},
		{`"{\"head\":1}"`, `{"path":"/x"}`, `{"head":1,"path":"/x"}`},
		{`{"path":"/x"}`, `{"path":"/x"}`, `{"path":"/x"}`},
		{`{"path":"/x"}`, `{"path":"/y"}`, "stray"},
		{`{"path":"/x"}`, `{"path":null}`, "stray"},
		{``, `{"paht":"/x"}`, "stray"},
		{``, `{"path":"/x","other":1}`, "stray"},
		{`[]`, `{"path":"/x"}`, "/: arguments must be an object"},
		{`{"a`, `{"path":"/x"}`, "/: arguments is not valid JSON: unexpected end of JSON input, after `{\"a`"},
	} {
		got, err := new(Schemas).With(json.RawMessage(test.sent), json.RawMessage(test.beside), schema, "stray")
		text := string(got)
		if err != nil {
			text = err.Error()
		}
		if text != test.want {
			t.Errorf("%s and %s: got %s, want %s", test.sent, test.beside, text, test.want)
		}
	}
	for _, schema := range []string{``, `true`, `{"properties":[]}`, `{}`} {
		if got, err := new(Schemas).With(nil, json.RawMessage(`{"path":1}`), json.RawMessage(schema), "stray"); err == nil {
			t.Errorf("schema %s: got %s", schema, got)
		}
	}
}
