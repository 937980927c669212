package arguments

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// gitLog is a schema of mcp-server-git, screenshot one of the Playwright server.
const (
	gitLog = `{"properties":{"repo_path":{"title":"Repo Path","type":"string"},"max_count":{"default":10,"title":"Max Count","type":"integer"},
		"start_timestamp":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}},"required":["repo_path"],"title":"GitLog","type":"object"}`
	screenshot = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"element":{"type":"string"},
		"type":{"default":"png","type":"string","enum":["png","jpeg"]},"scale":{"default":"css","type":"string","enum":["css","device"]},
		"fullPage":{"type":"boolean"}},"required":["type","scale"],"additionalProperties":false}`
	// draft7 is the beginning of a schema, as zod-to-json-schema writes it.
	draft7 = `{"$schema":"http://json-schema.org/draft-07/schema#",`
)

// TestMend: arguments with a clear meaning are accepted: unchanged if they fit, otherwise with the fewest changes,
// and with a note on each change.
func TestMend(t *testing.T) {
	property := func(schema string) string { return `{"properties":{"x":` + schema + `}}` }
	tests := []struct {
		name, schema, sent, want string
		converted, leftOut       []string
	}{
		{"defaults need not be sent", screenshot, `{}`, `{}`, nil, nil},
		{"nor those of a reference", `{"properties":{"x":{"$ref":"#/$defs/d"}},"required":["x"],"$defs":{"d":{"default":1}}}`, `{}`, `{}`, nil, nil},
		{"nor those in a list", `{"properties":{"l":{"items":{"properties":{"x":{"default":1}},"required":["x"]}}}}`, `{"l":[{}]}`, `{"l":[{}]}`, nil, nil},
		{"nor those of an alternative", `{"oneOf":[{"properties":{"k":{"const":"a"},"x":{"default":1}},"required":["k","x"]},{"properties":{"k":{"const":"b"}},"required":["k"]}]}`, `{"k":"a"}`, `{"k":"a"}`, nil, nil},
		{"nor do they make two fit", `{"oneOf":[{"properties":{"x":{"default":1}},"required":["x"]},{"required":["y"]}]}`, `{"y":1}`, `{"y":1}`, nil, nil},
		{"times without a zone, as zod means them", draft7 + `"properties":{"t":{"type":"string","format":"time"}}}`, `{"t":"03:04:05"}`, `{"t":"03:04:05"}`, nil, nil},
		{"days, for z.coerce.date()", draft7 + `"properties":{"t":{"type":"string","format":"date-time"}}}`, `{"t":"2026-01-02"}`, `{"t":"2026-01-02"}`, nil, nil},
		{"addresses that URL takes", draft7 + `"properties":{"u":{"type":"string","format":"uri"}}}`, `{"u":"https://x.com/100%off"}`, `{"u":"https://x.com/100%off"}`, nil, nil},
		{"one of two formats", draft7 + `"properties":{"ip":{"oneOf":[{"format":"ipv4"},{"format":"ipv6"}]}}}`, `{"ip":"fe80::1%eth0"}`, `{"ip":"fe80::1%eth0"}`, nil, nil},
		{"one of two formats, deep in a loop", `{"$ref":"#/$defs/t","$defs":{"t":{"properties":{"d":{"format":"date"},"in":{"oneOf":[{"$ref":"#/$defs/t"},{"minimum":1}]}}}}}`, `{"in":{"d":"soon"}}`, `{"in":{"d":"soon"}}`, nil, nil},
		{"one of two formats, in a newer draft", `{"properties":{"d":{"oneOf":[{"type":"string","format":"date"},{"type":"string","format":"date-time"}]}}}`, `{"d":"2026-01-02"}`, `{"d":"2026-01-02"}`, nil, nil},
		{"a format that is excluded", `{"properties":{"a":{"not":{"format":"email"}}}}`, `{"a":"x"}`, `{"a":"x"}`, nil, nil},
		{"nor do they fit what is excluded", `{"not":{"properties":{"x":{"default":1}},"required":["x"]}}`, `{}`, `{}`, nil, nil},
		{"nor what is excluded by reference", `{"properties":{"y":{"$ref":"#/$defs/d"}},"not":{"$ref":"#/$defs/d"},"$defs":{"d":{"properties":{"x":{"default":1}},"required":["x"]}}}`, `{}`, `{}`, nil, nil},
		{"a number", gitLog, `{"repo_path":"/r","max_count":"5"}`, `{"repo_path":"/r","max_count":5}`, []string{"/max_count"}, nil},
		{"as many digits as were written", property(`{"type":"number"}`), `{"x":"-90071992547409931.10"}`, `{"x":-90071992547409931.10}`, []string{"/x"}, nil},
		{"a boolean", screenshot, `{"fullPage":"true"}`, `{"fullPage":true}`, []string{"/fullPage"}, nil},
		{"one of several types", property(`{"anyOf":[{"type":"integer"},{"type":"boolean"},{"type":"null"}]}`), `{"x":"false"}`, `{"x":false}`, []string{"/x"}, nil},
		{"of an enumeration", property(`{"enum":[1,2,5]}`), `{"x":"5"}`, `{"x":5}`, []string{"/x"}, nil},
		{"deeper", `{"properties":{"l":{"items":{"properties":{"a/b":{"type":"integer"}}}}}}`, `{ "k":1.10, "l" : [{"a/b":1},{"a/b":"2","c":"3"}]}`, `{"k":1.10,"l":[{"a/b":1},{"a/b":2,"c":"3"}]}`, []string{"/l/1/a~1b"}, nil},
		{"in a list", property(`{"items":{"type":"number"}}`), `{"x":["1",2,"3.5"]}`, `{"x":[1,2,3.5]}`, []string{"/x/0", "/x/2"}, nil},
		{"in a string", property(`{"type":"array","items":{"type":"number"}}`), `{"x":"[\"1\"]"}`, `{"x":[1]}`, []string{"/x/0"}, nil},
		{"of the alternative that fits", `{"anyOf":[{"properties":{"k":{"const":"a"},"v":{"type":"integer"}}},{"properties":{"k":{"const":"b"},"v":{"type":"string"},"n":{"type":"integer"}}}]}`, `{"k":"b","v":"5","n":"3"}`, `{"k":"b","v":"5","n":3}`, []string{"/n"}, nil},
		{"a string fits too", property(`{"type":["integer","string"]}`), `{"x":"5"}`, `{"x":"5"}`, nil, nil},
		{"null", screenshot, `{"element":null,"fullPage":null}`, `{}`, nil, []string{"/element", "/fullPage"}},
		{"null for a default", screenshot, `{"scale":null}`, `{}`, nil, []string{"/scale"}},
		{"null deeper", property(`{"properties":{"y":{"$ref":"#/$defs/d"}},"required":[]}`)[:len(property(`{"properties":{"y":{"$ref":"#/$defs/d"}},"required":[]}`))-1] + `,"$defs":{"d":{"enum":["a"]}}}`, `{"x":{"y":null,"z":null}}`, `{"x":{"z":null}}`, nil, []string{"/x/y"}},
		{"null that OpenAPI allows", `{"properties":{"milestone":{"type":"integer","nullable":true}}}`, `{"milestone":null}`, `{"milestone":null}`, nil, nil},
		{"required, and of an enumeration", `{"properties":{"state":{"type":"string","enum":["open"],"nullable":true}},"required":["state"]}`, `{"state":null}`, `{"state":null}`, nil, nil},
		{"already named there", draft7 + `"properties":{"x":{"type":"string","enum":["a",null],"nullable":true},"n":{"type":"integer"}}}`, `{"x":null,"n":"1"}`, `{"x":null,"n":1}`, []string{"/n"}, nil},
		{"of a reference", `{"properties":{"owner":{"allOf":[{"$ref":"#/$defs/user"}],"nullable":true}},"$defs":{"user":{"type":"object"}}}`, `{"owner":null}`, `{"owner":null}`, nil, nil},
		{"of two alternatives", `{"properties":{"x":{"oneOf":[{"type":"string","nullable":true},{"type":"integer"}],"nullable":true}}}`, `{"x":null}`, `{"x":null}`, nil, nil},
		{"of two alternatives that both allow it", `{"properties":{"x":{"oneOf":[{"type":"string","nullable":true},{"type":"integer","nullable":true}]}}}`, `{"x":null}`, `{"x":null}`, nil, nil},
		{"of several types", `{"properties":{"x":{"type":["string","integer"],"nullable":true}}}`, `{"x":null}`, `{"x":null}`, nil, nil},
		{"of a constant", `{"properties":{"x":{"const":"a","nullable":true}}}`, `{"x":null}`, `{"x":null}`, nil, nil},
		{"of an argument named enum", `{"properties":{"enum":{"type":"string","nullable":true}}}`, `{"enum":null}`, `{"enum":null}`, nil, nil},
		{"beside a reference, where draft 7 ignores the other keywords", draft7 + `"properties":{"x":{"$ref":"#/definitions/s","nullable":true,"type":"integer"}},"definitions":{"s":{"type":"string"}}}`, `{"x":"a"}`, `{"x":"a"}`, nil, nil},
		{"with a reference into it", `{"properties":{"x":{"allOf":[{"type":"integer"}],"nullable":true},"y":{"$ref":"#/properties/x/allOf/0"}}}`, `{"x":null,"y":"1"}`, `{"x":null,"y":1}`, []string{"/y"}, nil},
		{"not of an argument named nullable", `{"properties":{"nullable":true,"oneOf":{"type":"string"},"n":{"type":"integer"}}}`, `{"oneOf":null,"n":"1"}`, `{"n":1}`, []string{"/n"}, []string{"/oneOf"}},
		{"not of a value named nullable", `{"properties":{"x":{"enum":[{"type":"string","nullable":true}]}}}`, `{"x":{"type":"string","nullable":true}}`, `{"x":{"type":"string","nullable":true}}`, nil, nil},
		{"a string of an alternative", `{"oneOf":[{"properties":{"k":{"const":"a"},"v":{"type":"object"}}},{"properties":{"k":{"const":"b"},"v":{"type":"string"}}}]}`, `{"k":"b","v":"{}"}`, `{"k":"b","v":"{}"}`, nil, nil},
		{"null that is allowed", gitLog, `{"repo_path":"/r","start_timestamp":null}`, `{"repo_path":"/r","start_timestamp":null}`, nil, nil},
		{"both", gitLog, `{"repo_path":"/r","max_count":null,"start_timestamp":"5"}`, `{"repo_path":"/r","start_timestamp":"5"}`, nil, []string{"/max_count"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, notes, err := new(Schemas).Read(json.RawMessage(tt.sent), json.RawMessage(tt.schema), true)
			if err != nil || string(got) != tt.want {
				t.Fatalf("got %s, %v, want %s", got, err, tt.want)
			}
			if !slices.Equal(notes.Converted, tt.converted) || !slices.Equal(notes.LeftOut, tt.leftOut) {
				t.Errorf("got %+v", notes)
			}
			if got, _, err := new(Schemas).Read(json.RawMessage(tt.sent), json.RawMessage(tt.schema), false); err != nil || tt.converted == nil && tt.leftOut == nil && string(got) != tt.want {
				t.Errorf("unchecked: got %s, %v", got, err)
			}
		})
	}
}

// TestMend_JSON: a string of JSON becomes this JSON wherever the schema wants an object or an array, and no string.
func TestMend_JSON(t *testing.T) {
	property := func(schema string) string { return `{"properties":{"x":` + schema + `}}` }
	for _, tt := range []struct{ name, schema, sent, want string }{
		{"an object of an alternative", `{"oneOf":[{"properties":{"k":{"const":"b"},"v":{"type":"string"}}},{"properties":{"k":{"const":"a"},"v":{"type":"object"}}}]}`, `{"k":"a","v":"{}"}`, `{"k":"a","v":{}}`},
		{"objects in a list or null", property(`{"anyOf":[{"items":{"type":"object"},"type":"array"},{"type":"null"}]}`), `{"x":["{\"a\":1.10}"]}`, `{"x":[{"a":1.10}]}`},
		{"objects by name", property(`{"additionalProperties":{"type":"array"}}`), `{"x":{"a":"[1]","b":"\t[2]"}}`, `{"x":{"a":[1],"b":[2]}}`},
		{"the first of a list", property(`{"prefixItems":[{"type":"object"}]}`), `{"x":["{}","{}"]}`, `{"x":[{},"{}"]}`},
		{"an object beside a number", `{"additionalProperties":{"type":["object","integer"]}}`, `{"a":"{}","b":"1"}`, `{"a":{},"b":1}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, notes, err := new(Schemas).Read(json.RawMessage(tt.sent), json.RawMessage(tt.schema), true)
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
			if numbers := []string{"/b"}; notes.Converted != nil && !slices.Equal(notes.Converted, numbers) {
				t.Errorf("got notes on %s, want at most %s", notes.Converted, numbers)
			}
		})
	}
}

// TestMend_Refused: arguments whose meaning is not clear are refused. The error describes what is still wrong
// after the other arguments were mended.
func TestMend_Refused(t *testing.T) {
	property := func(schema string) string { return `{"properties":{"x":` + schema + `}}` }
	for _, tt := range []struct{ schema, sent, want string }{
		{gitLog, `{"repo_path":null,"max_count":"5"}`, "/repo_path: must be string, not null"},
		{gitLog, `{"repo_path":"/r","max_count":"5.5"}`, "/max_count: must be integer, not string"},
		{gitLog, `{"repo_path":"/r","max_count":"five"}`, "/max_count: must be integer, not string"},
		{gitLog, `{"repo_path":"/r","max_count":" 5"}`, "/max_count: must be integer, not string"},
		{gitLog, `{"repo_path":5}`, "/repo_path: must be string, not number"},
		{property(`{"type":"integer","maximum":3}`), `{"x":"5"}`, "/x: must be <=3"},
		{property(`{"type":"boolean"}`), `{"x":"1"}`, "/x: must be boolean, not string"},
		{property(`{"type":"boolean"}`), `{"x":"True"}`, "/x: must be boolean, not string"},
		{property(`{"anyOf":[{"type":"integer"},{"enum":["auto"]}]}`), `{"x":"5"}`, `/x: must be "auto"; /x: must be integer, not string`},
		{property(`{"items":{"type":"string"}}`), `{"x":[null]}`, "/x/0: must be string, not null"},
		{property(`{"type":"number"}`), `{"x":"1e5"}`, "/x: must be number, not string"},
		{`{"properties":{"n":{"oneOf":[{"minimum":1},{"minimum":2}]},"d":{"format":"date"}}}`, `{"n":3,"d":"soon"}`, "/n: fits more than one of oneOf"},
		{property(`{"items":{"anyOf":[{"type":"object"},{"pattern":"x"}]}}`), `{"x":["{}"]}`, "/x/0: must be object, not string; /x/0: must match x"},
		{`{"additionalProperties":{"type":"object"}}`, `{"a":"{","b":"[]"}`, "/a: must be object, not string; /b: must be object, not string"},
		{`{"additionalProperties":{"type":"array"}}`, `{"a":"` + strings.Repeat("[", 128) + strings.Repeat("]", 128) + `"}`, "/a: must be array, not string"},
		{`{"additionalProperties":{"type":"array"}}`, `{"a":"[1e999]"}`, "/a: must be array, not string"},
		{property(`{"type":"number"}`), `{"x":"` + strings.Repeat("9", 65) + `"}`, "/x: must be number, not string"},
	} {
		_, _, err := new(Schemas).Read(json.RawMessage(tt.sent), json.RawMessage(tt.schema), true)
		var invalid *ValidationError
		if !errors.As(err, &invalid) || invalid.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.sent, err, tt.want)
		}
	}
}

// TestUnknown: if the schema does not describe an argument, the error or note names the argument that may be
// meant.
func TestUnknown(t *testing.T) {
	const file = `{"properties":{"path":{"type":"string"},"head":{"type":"number"}},"required":["path"]`
	for _, tt := range []struct{ schema, sent, refused, noted string }{
		{file + `,"additionalProperties":false}`, `{"filepath":"a"}`, "/filepath: is unknown; did you mean path?; /path: is missing", ""},
		{file + `}`, `{"filepath":"a"}`, "/filepath: is unknown; did you mean path?; /path: is missing", ""},
		{file + `}`, `{"path":"a","haed":1}`, "", "no argument haed; did you mean head?"},
		{file + `}`, `{"path":"a","zzz":1}`, "", "no argument zzz, only head, path"},
		{file + `}`, `{"path":"a","head":1,"zzz":1}`, "", "no argument zzz, only head, path"},
		{file + `}`, `{"path":"a","format":"x"}`, "", "no argument format, only head, path"},
		{file + `,"additionalProperties":true}`, `{"path":"a","zzz":1}`, "", ""},
		{file + `,"additionalProperties":true}`, `{"path":"a","haed":1}`, "", "no argument haed; did you mean head?"},
		{file + `,"additionalProperties":{"type":"string"}}`, `{"path":"a","haed":"x"}`, "", ""},
		{file + `,"patternProperties":{"^h":{}}}`, `{"path":"a","haed":"x"}`, "", ""},
		{file + `,"allOf":[{"properties":{"tail":{}}}]}`, `{"path":"a","tail":1}`, "", ""},
		{`{"properties":{"o":` + file + `,"additionalProperties":false}}}`, `{"o":{"path":"x","haed":1}}`, "/o/haed: is unknown; did you mean head?", ""},
		{`{}`, `{"a":1}`, "", ""},
	} {
		_, notes, err := new(Schemas).Read(json.RawMessage(tt.sent), json.RawMessage(tt.schema), true)
		refused := ""
		if err != nil {
			refused = err.Error()
		}
		var noted []string
		for _, u := range notes.Unknown {
			noted = append(noted, u.String())
		}
		if refused != tt.refused || strings.Join(noted, "; ") != tt.noted {
			t.Errorf("%s for %s: got %q, %q", tt.sent, tt.schema, refused, noted)
		}
	}
}
