package arguments

import (
	"encoding/json"
	"testing"
)

func TestRead(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{``, `{}`}, {`null`, `{}`}, {` {"a":1.10} `, `{"a":1.10}`}, {`"{\"a\": 9007199254740993}"`, `{"a": 9007199254740993}`},
		{`""`, `{}`}, {`"null"`, `{}`}, {`" {} "`, `{}`},
	} {
		if got, _, err := new(Schemas).Read(json.RawMessage(tt.in), nil, true); err != nil || string(got) != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
	for _, in := range []string{`[]`, `7`, `true`, `"text"`, `"[1]"`, `"{broken"`, `{"a":}`, `"{\"a\":1}x"`, `"\"{}\""`} {
		if got, _, err := new(Schemas).Read(json.RawMessage(in), nil, true); err == nil {
			t.Errorf("%s: got %s, want an error", in, got)
		}
	}
}

// TestRepairer_Kinds: a type is allowed if every part of allOf, or any part of anyOf or oneOf, allows it.
func TestRepairer_Kinds(t *testing.T) {
	for _, tt := range []struct {
		schema string
		want   kinds
	}{
		{`{}`, anyKind}, {`true`, anyKind}, {`{"type":"integer"}`, kindInteger}, {`{"type":["object","null"]}`, kindObject | kindNull},
		{`{"allOf":[{"type":"object"},{"description":"d"}]}`, kindObject},
		{`{"allOf":[{"description":"d"},{"description":"e"}]}`, anyKind},
		{`{"allOf":[{"type":["object","string"]},{"type":["array","object"]}]}`, kindObject},
		{`{"allOf":[{"type":"object"},{"type":"string"}]}`, 0},
		{`{"type":["object","string"],"allOf":[{"properties":{}}]}`, kindObject | kindString},
		{`{"anyOf":[{"type":"object"},{"type":"array"}]}`, kindObject | kindArray},
		{`{"oneOf":[{"type":"object"},{"description":"d"}]}`, anyKind},
		{`{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`, kindObject},
		{`{"properties":{},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, anyKind},
		{`{"anyOf":[{"type":"object"},{"type":"string"}],"oneOf":[{"type":"object"},{"type":"null"}]}`, kindObject},
		{`{"anyOf":[]}`, anyKind}, {`{"items":{}}`, anyKind},
	} {
		if got := new(repairer).kinds(compiledOf(json.RawMessage(tt.schema)), 0); got != tt.want {
			t.Errorf("%s: got %04b, want %04b", tt.schema, got, tt.want)
		}
	}
}

// TestRepair: a string that contains JSON is replaced by it if the schema allows an object or an array, but no string. Other
// values stay unchanged byte for byte.
func TestRepair(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"object":{"type":"object","properties":{"list":{"type":"array"},"text":{"type":"string"}}},
		"list":{"type":"array","items":{"type":"object","properties":{"o":{"type":"object"}}}},
		"text":{"type":"string"},"any":{},"either":{"type":["object","string"]},"nullable":{"type":["array","null"]},
		"union":{"anyOf":[{"type":"object"},{"type":"null"}]},"loose":{"anyOf":[{"type":"object"},{"type":"string"}]},
		"ref":{"$ref":"#/$defs/o"},"indexed":{"$ref":"#/allOf/0/properties/extra"},"bare":{"properties":{"a":{}}},"described":{"allOf":[{"$ref":"#/$defs/o"},{"description":"d"}]},"number":{"type":"number"},"loop":{"$ref":"#/$defs/loop"}},
		"allOf":[{"properties":{"extra":{"type":"object"}}}],
		"$defs":{"o":{"type":"object","properties":{"inner":{"type":"array"}}},"loop":{"$ref":"#/$defs/loop"}}}`
	tests := []struct{ name, in, want string }{
		{"an object", `{"object":"{\"n\": 9007199254740993}"}`, `{"object":{"n": 9007199254740993}}`},
		{"an array", `{"list":"[{\"a\":1.10}]"}`, `{"list":[{"a":1.10}]}`},
		{"with white space", `{"object":" \n{\"a\":1} "}`, `{"object":{"a":1}}`},
		{"null or an array", `{"nullable":"[1]"}`, `{"nullable":[1]}`},
		{"one of several", `{"union":"{}"}`, `{"union":{}}`},
		{"by reference", `{"ref":"{\"inner\":\"[1]\"}"}`, `{"ref":{"inner":[1]}}`},
		{"by a reference into a list", `{"indexed":"{\"a\":1}"}`, `{"indexed":{"a":1}}`},
		{"of a part", `{"extra":"{}"}`, `{"extra":{}}`},
		{"with a description beside", `{"described":"{\"inner\":\"[1]\"}"}`, `{"described":{"inner":[1]}}`},
		{"deeper", `{"object":{"list":"[1,2]","text":"[1,2]"}}`, `{"object":{"list":[1,2],"text":"[1,2]"}}`},
		{"in a string in a string", `{"object":"{\"list\":\"[1]\"}"}`, `{"object":{"list":[1]}}`},
		{"in an array", `{"list":["{\"o\":\"{}\"}",{"o":"{}"},7]}`, `{"list":[{"o":{}},{"o":{}},7]}`},
		{"others stay", `{ "text" : "{\"a\":1}" , "object":"{}","n":1.10,"text":"<\/b>" }`, `{"text":"{\"a\":1}","object":{},"n":1.10,"text":"<\/b>"}`},
		{"a string is wanted", `{"text":"[1]"}`, `{"text":"[1]"}`},
		{"anything is wanted", `{"any":"[1]"}`, `{"any":"[1]"}`},
		{"a string would do", `{"either":"{}","loose":"{}"}`, `{"either":"{}","loose":"{}"}`},
		{"of the wrong kind", `{"object":"[1]","list":"{}","number":"[1]"}`, `{"object":"[1]","list":"{}","number":"[1]"}`},
		{"not JSON", `{"object":"{a:1}","list":"[1,"}`, `{"object":"{a:1}","list":"[1,"}`},
		{"without a type", `{"bare":"{\"a\":1}"}`, `{"bare":"{\"a\":1}"}`},
		{"unknown names", `{"other":"{}"}`, `{"other":"{}"}`},
		{"a reference without end", `{"loop":"{}"}`, `{"loop":"{}"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := compiledOf(json.RawMessage(schema)).repair(json.RawMessage(tt.in)); string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	for _, odd := range []string{``, `true`, `"x"`, `{"properties":[]}`, `{"properties":{"object":true}}`, `nonsense`} {
		if got := compiledOf(json.RawMessage(odd)).repair(json.RawMessage(`{"object":"{}"}`)); string(got) != `{"object":"{}"}` {
			t.Errorf("schema %s: got %s", odd, got)
		}
	}
}

// TestRead_Repair: a string that contains JSON stays a string in arguments that fit as they were sent, and where one of several
// alternatives has a string.
func TestRead_Repair(t *testing.T) {
	const (
		blocks = `{"properties":{"n":{"type":"integer"},"l":{"anyOf":[{"type":"array","items":{"oneOf":[
			{"properties":{"kind":{"const":"data"},"content":{"type":"object"},"meta":{"type":"object"}},"required":["kind"]},
			{"properties":{"kind":{"const":"text"},"content":{"type":"string"},"meta":{"type":["object","null"]}},"required":["kind"]}]}},{"type":"null"}]}}}`
		loose = `{"properties":{"n":{"type":"integer"},"o":{"anyOf":[{"properties":{"a":{"type":"object"}},"required":["a"]},{"properties":{"b":{"type":"integer"}},"required":["b"]}]}}}`
	)
	for _, c := range []struct{ schema, sent, want string }{
		{blocks, `{"l":[{"kind":"text","content":"{\"x\":1}"}]}`, `{"l":[{"kind":"text","content":"{\"x\":1}"}]}`},
		{blocks, `{"n":"5","l":[{"kind":"text","content":"{\"x\":1}"}]}`, `{"n":5,"l":[{"kind":"text","content":"{\"x\":1}"}]}`},
		{blocks, `{"l":[{"kind":"data","meta":"{\"x\":1}"}]}`, `{"l":[{"kind":"data","meta":{"x":1}}]}`},
		{loose, `{"o":{"b":1,"a":"{}"}}`, `{"o":{"b":1,"a":"{}"}}`},
		{loose, `{"o":{"a":"{}"}}`, `{"o":{"a":{}}}`},
	} {
		if got, _, err := new(Schemas).Read(json.RawMessage(c.sent), json.RawMessage(c.schema), true); err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v", c.sent, got, err)
		}
	}
}
