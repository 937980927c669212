package arguments

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the golden file anew")

// TestViolations compares the text of each kind of violation, as the model gets it, with the golden file.
func TestViolations(t *testing.T) {
	const kinds = `{"properties":{"a":{"anyOf":[{"type":"null"},{"oneOf":[
		{"type":"object","properties":{"kind":{"type":"string","const":"move"},"to":{"type":"string"}},"required":["kind","to"],"additionalProperties":false},
		{"type":"object","properties":{"kind":{"type":"string","const":"delete"},"force":{"type":"boolean"}},"required":["kind","force"],"additionalProperties":false},
		{"type":"object","properties":{"kind":{"type":"string","enum":["copy","link"]},"to":{"type":"string"},"mode":{"type":"integer"}},"required":["kind","mode"],"additionalProperties":false}]}]}}}`
	tests := []struct{ name, schema, arguments string }{
		{"missing", `{"required":["x"]}`, `{}`},
		{"several-missing", `{"required":["x","y"]}`, `{}`},
		{"missing-deeper", `{"properties":{"a":{"items":{"required":["x"]}}}}`, `{"a":[{}]}`},
		{"more-than-five-missing", `{"required":["a","b","c","d","e","f","g"]}`, `{}`},
		{"needed-by-another", `{"dependentRequired":{"a":["b","c"]}}`, `{"a":1}`},
		{"needed-by-another-draft-7", draft7 + `"dependencies":{"a":["b"]}}`, `{"a":1}`},
		{"unknown", `{"properties":{"a":{}},"additionalProperties":false}`, `{"a":1,"b":1,"c":1}`},
		{"unevaluated", `{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, `{"a":1,"b":1}`},
		{"type", `{"properties":{"a":{"type":"string"}}}`, `{"a":1}`},
		{"types", `{"properties":{"a":{"type":["string","null"]}}}`, `{"a":1}`},
		{"types-of-alternatives", `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"},{"type":"array","items":{"type":"string"}}]}}}`, `{"a":1}`},
		{"types-with-two-of-numbers", `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"number"}]}}}`, `{"a":true}`},
		{"alternatives", `{"properties":{"a":{"anyOf":[{"type":"string","minLength":3},{"type":"integer","minimum":3}]}}}`, `{"a":1}`},
		{"optional-object", `{"properties":{"a":{"anyOf":[{"type":"object","properties":{"b":{}},"additionalProperties":false},{"type":"null"}]}}}`, `{"a":{"c":1}}`},
		{"optional-objects-in-each-other", `{"properties":{"a":{"anyOf":[{"properties":{"b":{"anyOf":[{"properties":{"c":{"type":"string"}}},{"type":"null"}]}}},{"type":"null"}]}}}`, `{"a":{"b":{"c":1}}}`},
		{"optional-list", `{"properties":{"a":{"anyOf":[{"type":"array","items":{"enum":["x","y"]}},{"type":"string"},{"type":"null"}]}}}`, `{"a":["z"]}`},
		{"optional-enum", `{"properties":{"a":{"anyOf":[{"enum":["x","y"]},{"type":"null"}]}}}`, `{"a":"z"}`},
		{"optional-number", `{"properties":{"a":{"anyOf":[{"type":"integer","minimum":3},{"type":"null"}]}}}`, `{"a":1}`},
		{"null-alone", `{"properties":{"a":{"type":"null"},"ab":{"type":"string"}}}`, `{"a":1,"ab":1}`},
		{"kinds", kinds, `{"a":{"kind":"move","to":1}}`},
		{"no-such-kind", kinds, `{"a":{"kind":"moved","to":1}}`},
		{"kind-missing", kinds, `{"a":{"to":"x"}}`},
		{"kind-of-two", kinds, `{"a":{"kind":"copy","to":1}}`},
		{"kinds-by-reference", `{"properties":{"l":{"type":"array","items":{"discriminator":{"propertyName":"t"},"oneOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]}}},"$defs":{"A":{"properties":{"t":{"const":1},"x":{}},"required":["t","x"]},"B":{"allOf":[{"$ref":"#/$defs/C"},{"required":["t","y"]}]},"C":{"properties":{"t":{"enum":[2,3]}}}}}`, `{"l":[{"t":3},{"t":1},{"t":4}]}`},
		{"one-of-two", `{"properties":{"a":{"oneOf":[{"minimum":1},{"minimum":2}]}}}`, `{"a":3}`},
		{"not", `{"properties":{"a":{"not":{"const":1}}}}`, `{"a":1}`},
		{"never", `{"properties":{"a":false}}`, `{"a":1}`},
		{"enum", `{"properties":{"a":{"enum":["x","y",1.10,null]}}}`, `{"a":"z"}`},
		{"enum-of-one", `{"properties":{"a":{"enum":["x"]}}}`, `{"a":"z"}`},
		{"enum-of-many", `{"properties":{"a":{"enum":["value_01","value_02","value_03","value_04","value_05","value_06","value_07","value_08","value_09","value_10","value_11"]}}}`, `{"a":"z"}`},
		{"enum-of-objects", `{"properties":{"a":{"enum":[{"k":[1]},[]]}}}`, `{"a":"z"}`},
		{"const", `{"properties":{"a":{"const":"x<y"}}}`, `{"a":"z"}`},
		{"pattern", `{"properties":{"a":{"pattern":"^[a-z]+$"}}}`, `{"a":"1"}`},
		{"pattern-of-names", `{"properties":{"a":{"propertyNames":{"pattern":"^[a-z]+$"}}}}`, `{"a":{"1":1,"b":1}}`},
		{"lengths", `{"properties":{"a":{"minLength":1},"b":{"minLength":3},"c":{"maxLength":2}}}`, `{"a":"","b":"","c":"ccc"}`},
		{"numbers", `{"properties":{"a":{"minimum":1},"b":{"maximum":0.10},"c":{"exclusiveMinimum":0},"d":{"exclusiveMaximum":1e3},"e":{"multipleOf":0.25}}}`, `{"a":0,"b":1,"c":0,"d":1000,"e":0.1}`},
		{"items", `{"properties":{"a":{"minItems":1},"b":{"minItems":2},"c":{"maxItems":1},"d":{"uniqueItems":true}}}`, `{"a":[],"b":[],"c":[1,2],"d":[1,2,1]}`},
		{"items-too-many", draft7 + `"properties":{"a":{"items":[{}],"additionalItems":false}}}`, `{"a":[1,2,3]}`},
		{"contains", `{"properties":{"a":{"contains":{"const":1}},"b":{"contains":{"const":1},"minContains":2},"c":{"contains":{"const":1},"maxContains":1}}}`, `{"a":[],"b":[1],"c":[1,1]}`},
		{"keys", `{"properties":{"a":{"minProperties":1},"b":{"minProperties":2},"c":{"maxProperties":1}}}`, `{"a":{},"b":{},"c":{"x":1,"y":1}}`},
		{"root", `{"minProperties":1}`, `{}`},
		{"root-type", `{"anyOf":[{"type":"array"},{"type":"null"}]}`, `{"a":1}`},
		{"root-alternatives", `{"anyOf":[{"type":"array"},{"properties":{"a":{"type":"string"}}}]}`, `{"a":1}`},
		{"foreign-text", `{"properties":{"a":{"pattern":"^a\n\u202eb\u001bb$"}}}`, `{"a":"1"}`},
	}
	var got txtar.Archive
	got.Comment = []byte("What the model is told is wrong with its arguments.\n")
	for _, tt := range tests {
		var s Schemas
		var invalid *ValidationError
		if _, _, err := s.Read(json.RawMessage(tt.arguments), json.RawMessage(tt.schema), true); !errors.As(err, &invalid) {
			t.Errorf("%s: no violation", tt.name)
			continue
		}
		for _, violation := range invalid.Violations {
			if place, what, ok := strings.Cut(violation, ": "); !ok || place[0] != '/' || what == "" {
				t.Errorf("%s: %q is not /path: what", tt.name, violation)
			}
		}
		got.Files = append(got.Files, txtar.File{Name: tt.name, Data: []byte(invalid.Error() + "\n")})
	}
	path := filepath.Join("testdata", "violations.txtar")
	if *update {
		if err := os.WriteFile(path, txtar.Format(&got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	if diff := cmp.Diff(string(want), string(txtar.Format(&got))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestNotJSON: a model that sends arguments in a string with a mistake is told where the mistake is.
func TestNotJSON(t *testing.T) {
	const is = "/: arguments is not valid JSON: "
	for sent, want := range map[string]string{
		`{"a":`:                 is + "unexpected end of JSON input, after `{\"a\":`",
		`{"path":"C:\new\yet"}`: is + "invalid character 'y' in string escape code, after `{\"path\":\"C:\\new\\`",
		`{"text":"éééé` + strings.Repeat("é", 40) + `",}`: is + "invalid character '}' looking for beginning of object key string, after `" +
			strings.Repeat("é", 22) + "\",`",
	} {
		quoted, _ := json.Marshal(sent)
		if _, _, err := new(Schemas).Read(quoted, nil, true); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", sent, err, want)
		}
	}
}
