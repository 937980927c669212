package schemats

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// typeOf returns the type that Declaration writes for an input schema, without `type Args = `.
func typeOf(schema string, o Options) string {
	return strings.TrimSuffix(strings.TrimPrefix(Declaration(json.RawMessage(schema), nil, o), "type Args = "), ";")
}

func TestDeclaration_Types(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"empty", `{}`, `unknown`},
		{"true", `true`, `unknown`},
		{"false", `false`, `never`},
		{"type list without repeats", `{"type":["integer","number","null"]}`, `number | null`},
		{"nullable", `{"type":"string","nullable":true}`, `string | null`},
		{"nullable beside $ref", `{"$ref":"#/$defs/S","nullable":true,"$defs":{"S":{"type":"string"}}}`, `string | null`},
		{"root object or null", `{"type":["object","null"],"properties":{"a":{"type":"string"}}}`, `{a?: string} | null`},
		{"enum of mixed types", `{"enum":["a",1,-2.50,true,null]}`, `"a"|1|-2.50|true | null`},
		{"enum of values with structure", `{"enum":[{"a":[1]},[]]}`, `{a: [1]} | []`},
		{"empty enum", `{"enum":[]}`, `never`},
		{"enum limited by type", `{"type":"string","enum":["a",1]}`, `"a"`},
		{"const", `{"const":"a\"\\\n\u2028\u202e"}`, `"a\"\\\n\u2028\u202e"`},
		{"anyOf beside properties", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"number"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{a?: string; b?: number} & ({a: unknown} | {b: unknown})`},
		{"allOf of objects", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"number"}},"required":["a","b"]}]}`, `{a: string; b: number}`},
		{"allOf of a closed object and a union", `{"allOf":[{"properties":{"a":{}},"additionalProperties":false},{"anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{}}}]}]}`, `{a?: string} | {a?: unknown}`},
		{"allOf of unions", `{"allOf":[{"anyOf":[{"properties":{"a":{}},"type":"object"},{"type":"null"}]},{"anyOf":[{"properties":{"b":{}},"type":"object"},{"type":"null"}]}]}`, `({a?: unknown} | null) & ({b?: unknown} | null)`},
		{"allOf of arrays", `{"allOf":[{"items":{"type":["string","null"]}},{"items":{"type":["string","number"]}}]}`, `(string | null)[] & (string | number)[]`},
		{"allOf of a record", `{"allOf":[{"type":"object","additionalProperties":{"type":"string"}},{"properties":{"a":{"const":"x"}}}]}`, `Record<string, string> & {a?: "x"}`},
		{"allOf that contradicts itself", `{"allOf":[{"type":"string"},{"type":"number"}]}`, `never`},
		{"pointer into a definition", `{"properties":{"x":{"$ref":"#/$defs/A/properties/b"}},"$defs":{"A":{"properties":{"b":{"type":"boolean"}}}}}`, `{x?: boolean}`},
		{"pointer to a property", `{"properties":{"a":{"type":"string"},"b":{"$ref":"#/properties/a"}}}`, `{a?: string; b?: string}`},
		{"pointer escapes", `{"properties":{"a":{"$ref":"#/$defs/A~1B"},"b":{"$ref":"#/$defs/c%25~0d"}},"$defs":{"A/B":{"type":"null"},"c%~d":{"type":"number"}}}`, `{a?: null; b?: number}`},
		{"anchor", `{"properties":{"a":{"$ref":"#x"}},"$defs":{"q":{"$anchor":"x","type":"number"}}}`, `{a?: unknown /* $ref: "#x" */}`},
		{"local id", `{"$id":"https://e.com/root.json","properties":{"a":{"$ref":"item.json"},"b":{"$ref":"https://e.com/root.json#/$defs/q"}},"$defs":{"q":{"$id":"item.json","type":"number"}}}`,
			`{a?: unknown /* $ref: "item.json" */; b?: unknown /* $ref: "https://e.com/root.json#/$defs/q" */}`},
		{"both maps of definitions", `{"properties":{"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/definitions/B"}},"$defs":{"A":{"type":"string"}},"definitions":{"B":{"type":"number"}}}`, `{a?: string; b?: number}`},
		{"root recursion", `{"type":"object","properties":{"next":{"$ref":"#"}}}`, `{next?: Args}`},
		{"record of itself", `{"type":"object","additionalProperties":{"$ref":"#"}}`, `{[k: string]: Args}`},
		{"odd keys", `{"properties":{"foo-bar":true,"1x":true,"":true,"a\"b":true,"class":true,"__proto__":true,"constructor":true}}`,
			"{\n \"foo-bar\"?: unknown\n \"1x\"?: unknown\n \"\"?: unknown\n \"a\\\"b\"?: unknown\n class?: unknown\n __proto__?: unknown\n constructor?: unknown\n}"},
		{"required but not listed", `{"type":"object","properties":{"a":{"type":"string"}},"required":["z"]}`, `{a?: string; z: unknown}`},
		{"required but forbidden", `{"type":"object","required":["z"],"additionalProperties":false}`, `{z: never}`},
		{"required with a schema for the rest", `{"type":"object","required":["z"],"additionalProperties":{"type":"string"}}`, "// additionalProperties: {\"type\":\"string\"}\ntype Args = {z: string; [k: string]: unknown}"},
		{"draft-07 tuple", `{"type":"array","items":[{"type":"string"},{"type":"number"}],"minItems":2,"additionalItems":false}`, `[string, number]`},
		{"tuple with optional elements and rest", `{"type":"array","prefixItems":[{"type":"string"},{"type":["number","null"]}],"minItems":1,"items":{"type":["string","boolean"]}}`, `[string, (number | null)?, ...(string | boolean)[]]`},
		{"tuple of full length", `{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"minItems":2,"maxItems":2}`, `[string, number]`},
		{"items true", `{"type":"array","items":true}`, `unknown[]`},
		{"items false", `{"type":"array","items":false}`, `[]`},
		{"array of a union", `{"type":"array","items":{"type":["string","number"]}}`, `(string | number)[]`},
		{"array of an object with a union", `{"type":"array","items":{"properties":{"a":{"enum":["x","y"]}}}}`, `{a?: "x"|"y"}[]`},
		{"properties and a schema for the rest", `{"properties":{"a":{"type":"string"}},"additionalProperties":{"type":"number"}}`, "// additionalProperties: {\"type\":\"number\"}\ntype Args = {a?: string; [k: string]: unknown}"},
		{"the rest fits", `{"properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":{"type":"string"}}`, "// additionalProperties: {\"type\":\"string\"}\ntype Args = {a: string; [k: string]: unknown}"},
		{"open by word", `{"properties":{"a":{"type":"string"}},"additionalProperties":true}`, `{a?: string; [k: string]: unknown}`},
		{"record", `{"type":"object","additionalProperties":{"type":"number"}}`, `Record<string, number>`},
		{"record of named keys", `{"type":"object","propertyNames":{"enum":["a","b"]},"additionalProperties":{"type":"number"}}`, `Partial<Record<"a"|"b", number>>`},
		{"closed and empty", `{"type":"object","additionalProperties":false}`, `Record<string, never>`},
		{"open and empty", `{"type":"object"}`, `Record<string, unknown>`},
		{"patterns", `{"type":"object","properties":{"a":{"type":"object","patternProperties":{"^x-":{"type":"number"}}}}}`,
			`{a?: Record<string, unknown> /* patternProperties: {"^x-":{"type":"number"}} */}`},
		{"patterns beside others", `{"properties":{"o":{"properties":{"a":{"type":"string"}},"patternProperties":{"^x-":{"type":"number"}},"additionalProperties":false,"required":["a","x-1"]}}}`,
			"{\n o?: {a: string; \"x-1\": unknown} // patternProperties: {\"^x-\":{\"type\":\"number\"}}; additionalProperties: false\n}"},
		{"patterns in a closed allOf", `{"items":{"allOf":[{"type":"object","patternProperties":{"^x-":{}}},{"properties":{"n":{"type":"number"}},"additionalProperties":false}]}}`,
			"// each patternProperties: {\"^x-\":{}}\ntype Args = {n?: number}[]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := typeOf(tt.schema, full); got != tt.want {
				t.Errorf("%s\n got %s\nwant %s", tt.schema, got, tt.want)
			}
		})
	}
}

func TestDeclaration_NamedTypes(t *testing.T) {
	object := `{"type":"object","properties":{"longpropertyname":{"type":"string"},"another":{"type":"number"},"x":{"type":"null"}}}`
	other := func(n int) string { return strings.Replace(object, `"x"`, fmt.Sprintf(`"x%d"`, n), 1) }
	tests := []struct{ name, schema, want string }{
		{"alike, in place", `{"properties":{"from":` + object + `,"to":{"type":"array","items":` + object + `}}}`,
			"type From = OBJ;\ntype Args = {from?: From; to?: From[]};"},
		{"alike by reference and in place", `{"properties":{"from":` + object + `,"to":{"$ref":"#/$defs/Address"}},"$defs":{"Address":` + object + `}}`,
			"type From = OBJ;\ntype Args = {from?: From; to?: From};"},
		{"alike but for the docs of the place", `{"properties":{"a":` + strings.Replace(object, "{", `{"description":"One.",`, 1) + `,"b":` + object + `}}`,
			"type A = OBJ;\ntype Args = {\n a?: A // One.\n b?: A\n};"},
		{"alike with their docs", `{"properties":{"a":` + strings.Replace(object, "{", `{"description":"One.",`, 1) + `,"b":` + strings.Replace(object, "{", `{"description":"One.",`, 1) + `}}`,
			"// One.\ntype A = OBJ;\ntype Args = {a?: A; b?: A};"},
		{"alike but for what is inside", `{"properties":{"a":` + object + `,"b":` + strings.Replace(object, `"string"`, `"string","description":"Two."`, 1) + `}}`,
			"type Args = {\n a?: OBJ\n b?: {\n longpropertyname?: string // Two.\n another?: number\n x?: null\n }\n};"},
		{"a long enum", `{"properties":{"a":{"enum":["alphabetical","chronological","relevance"]},"b":{"enum":["alphabetical","chronological","relevance"]},"c":{"enum":["x","y"]},"d":{"enum":["x","y"]}}}`,
			"type A = \"alphabetical\"|\"chronological\"|\"relevance\";\ntype Args = {a?: A; b?: A; c?: \"x\"|\"y\"; d?: \"x\"|\"y\"};"},
		{"a reference with a text of its own in an array", `{"properties":{"a":{"type":"array","items":{"$ref":"#/$defs/N","description":"Its own."}},"b":{"$ref":"#/$defs/N"}},"$defs":{"N":` + object + `}}`,
			"type N = OBJ;\ntype Args = {\n a?: N[] // each: Its own.\n b?: N\n};"},
		{"recursive", `{"properties":{"n":{"$ref":"#/$defs/Node"}},"$defs":{"Node":{"properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/Node"}}}},"Unused":{"type":"string"}}}`,
			"type Node = {kids?: Node[]};\ntype Args = {n?: Node};"},
		{"pure cycle", `{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/A"}}}`,
			"// circular $ref\ntype A = unknown;\ntype Args = A;"},
		{"cycle through anyOf", `{"$ref":"#/$defs/A","$defs":{"A":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"string"}]}}}`,
			"// circular $ref\ntype A = string;\ntype Args = A;"},
		{"one identifier, reserved names", `{"properties":{"a":{"$ref":"#/$defs/my-type"},"b":{"$ref":"#/$defs/my_type"},"c":{"$ref":"#/$defs/String"},"d":{"$ref":"#/$defs/Args"},
			"e":{"type":"array","prefixItems":[{"$ref":"#/$defs/my-type"},{"$ref":"#/$defs/my_type"},{"$ref":"#/$defs/String"},{"$ref":"#/$defs/Args"}],"minItems":4,"maxItems":4}},
			"$defs":{"my-type":` + object + `,"my_type":` + other(1) + `,"String":` + other(2) + `,"Args":` + other(3) + `}}`,
			"type my_type = OBJ;\ntype my_type_ = OBJ1;\ntype String_ = OBJ2;\ntype Args_ = OBJ3;\ntype Args = {a?: my_type; b?: my_type_; c?: String_; d?: Args_; e?: [my_type, my_type_, String_, Args_]};"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			for _, n := range []string{"1", "2", "3", ""} {
				want = strings.ReplaceAll(want, "OBJ"+n, "{longpropertyname?: string; another?: number; x"+n+"?: null}")
			}
			if got := Declaration(json.RawMessage(tt.schema), nil, full); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestDeclaration_Comments(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"int and range", `{"type":"integer","minimum":1,"maximum":5,"default":2}`, `int 1..5; default 2`},
		{"sentinels", `{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}`, `int`},
		{"exclusive", `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1,"multipleOf":0.10}`, `>0; <1; multiple of 0.10`},
		{"string", `{"type":"string","minLength":2,"maxLength":9,"pattern":"^a*/b$"}`, `length 2..9; /^a*/b$/`},
		{"format", `{"type":"string","format":"uuid","examples":["x"],"deprecated":true}`, `uuid; e.g. "x"; deprecated`},
		{"pattern beside a format", `{"type":"string","format":"email","pattern":"^[a-z.]+@(one|two)\\.example\\.org$"}`, `email; /^[a-z.]+@(one|two)\.example\.org$/`},
		{"pattern of zod", `{"type":"string","format":"time","pattern":"^(?:[01]\\d|2[0-3]):[0-5]\\d(?::[0-5]\\d(?:\\.\\d+)?)?$"}`, `time`},
		{"items", `{"type":"array","items":{"type":"string","format":"uri","description":"A link"},"minItems":1,"maxItems":3,"uniqueItems":true}`, `each: A link; 1..3 items; unique; each uri`},
		{"description", `{"type":"string","description":" A\r\n */ b\u2028c\u202e\u200bd\u0007 \u001b[31me\udb40\udc41 "}`, `A */ b cd e`},
		{"said already", `{"type":"integer","minimum":1,"maximum":50,"default":20,"description":"How many (1-50, default 20)"}`, `How many (1-50, default 20); int`},
		{"said already, one bound", `{"type":"integer","minimum":1,"description":"Page (min 1)"}`, `Page (min 1); int`},
		{"not", `{"type":"string","not":{"const":"x"}}`, `not: {"const":"x"}`},
		{"if", `{"type":"object","if":{"required":["a"]},"then":{"required":["b"]},"dependentRequired":{"a":["c"]}}`, `if: {"required":["a"]}; then: {"required":["b"]}; dependentRequired: {"a":["c"]}`},
		{"contains", `{"type":"array","contains":{"type":"string"}}`, `contains: {"type":"string"}`},
		{"key names", `{"type":"object","propertyNames":{"pattern":"^a"},"minProperties":1}`, `keys match ^a; >=1 keys`},
		{"remote", `{"$ref":"https://example.com/s.json"}`, `$ref: "https://example.com/s.json"`},
		{"missing", `{"$ref":"#/$defs/No"}`, `$ref: "#/$defs/No"`},
		// zod writes such references when a type occurs a second time. Only a definition's own description applies everywhere.
		{"as another property", `{"$ref":"#/properties/a","description":"B","properties":{"a":{"type":"object","description":"A"}}}`, `B`},
		{"as an item", `{"$ref":"#/properties/a/items","description":"B","properties":{"a":{"items":{"type":"integer","description":"A"}}}}`, `B; int`},
		{"as another, undescribed", `{"$ref":"#/properties/a","properties":{"a":{"type":"object","description":"A"}}}`, `A`},
		{"as a definition", `{"$ref":"#/$defs/items","description":"B","$defs":{"items":{"type":"string","description":"A"}}}`, `B; A`},
		{"optional tag", `{"oneOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}],"discriminator":{"propertyName":"op"},"$defs":{
			"A":{"type":"object","properties":{"op":{"const":"a","default":"a"}}},"B":{"type":"object","properties":{"op":{"const":"b","default":"b"}}}}}`, `needs op`},
		{"required tag", `{"description":"D","oneOf":[{"type":"object","properties":{"op":{"const":"a"}},"required":["op"]}],"discriminator":{"propertyName":"op"}}`, `D`},
		{"unknown type", `{"type":"file"}`, `type: file`},
		{"not JSON", `{"type":`, `invalid JSON`},
		{"no schema", `[]`, `invalid schema`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _, _ := strings.Cut(Declaration(json.RawMessage(tt.schema), nil, full), "\n")
			if want := "// " + tt.want; got != want {
				t.Errorf("%s\n got %s\nwant %s", tt.schema, got, want)
			}
		})
	}
	t.Run("in a block comment", func(t *testing.T) {
		got := typeOf(`{"properties":{"a":{"type":"string","pattern":"x*/y","default":"*/"}}}`, full)
		if want := `{a?: string /* /x*\/y/; default "*\/" */}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("cut", func(t *testing.T) {
		got := Declaration(json.RawMessage(`{"properties":{"a":{"description":"one two three four five"}}}`), nil, Options{MaxDescription: 16})
		if want := "type Args = {\n a?: unknown // one two three... [+10]\n};"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestParams(t *testing.T) {
	tests := []struct{ schema, want string }{
		{`{"properties":{"b":{},"a":{},"c":{}},"required":["a","z"]}`, "b?,a,c?,z"},
		{`{"allOf":[{"type":"object","properties":{"a":{}}},{"$ref":"#/$defs/B"}],"$defs":{"B":{"type":"object","properties":{"b":{}},"required":["b","a"]}}}`, "a,b"},
		{`{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, "a?,b?"},
		{`{"oneOf":[{"type":"object","properties":{"k":{},"x":{}},"required":["k"]},{"type":"object","properties":{"k":{}},"required":["k"]}]}`, "k,x?"},
		{`{"type":["object","null"],"properties":{"a":{}},"required":["a"]}`, "a"},
		{`{"type":"object","properties":{"params":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"object","properties":{"a":{},"b":{"type":"object","properties":{"c":{}}}},"required":["a"]}}}`, "params?:{a,b?}"},
		{`{"type":"object","properties":{"body":{"anyOf":[{"type":"object","properties":{"a":{}},"required":["a"]},{"type":"null"}]}},"required":["body"]}`, "body:{a}"},
		{`{"type":"object","properties":{"input":{"type":"object","properties":{"a":{},"b":{}}},"x":{}}}`, "input?,x?"},
		{`{"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":{"a":{}}}}}}`, "list?"},
		{`{"type":"object","properties":{"self":{"$ref":"#"}}}`, "self?:{self?}"},
		{`{"type":"object"}`, ""}, {`true`, ""}, {`{`, ""},
	}
	for _, tt := range tests {
		if s := joined(Params(json.RawMessage(tt.schema))); s != tt.want {
			t.Errorf("%s: got %s, want %s", tt.schema, s, tt.want)
		}
	}
	if got := Params(nil); got != nil {
		t.Errorf("no schema: got %v", got)
	}
}

func joined(list []Param) string {
	var got []string
	for _, p := range list {
		name := p.Name
		if p.Optional {
			name += "?"
		}
		if p.Inside != nil {
			name += ":{" + joined(p.Inside) + "}"
		}
		got = append(got, name)
	}
	return strings.Join(got, ",")
}

func TestListing(t *testing.T) {
	values := strings.Join(slices.Collect(func(yield func(string) bool) {
		for i := range 600 {
			if !yield(fmt.Sprintf("%q", fmt.Sprint("v", i))) {
				return
			}
		}
	}), ",")
	tests := []struct {
		tool Tool
		want string
	}{
		{Tool{Name: "read", Description: "Read it, e.g. a file. Then more.", Input: json.RawMessage(`{"properties":{"head":{"type":"integer","minimum":1},"path":{"type":"string"}},"required":["path"]}`)},
			`read(path: string, head?: number) // Read it, e.g. a file.`},
		{Tool{Name: "get-sum"}, `"get-sum"(/* any arguments */)`},
		{Tool{Name: "f", Input: json.RawMessage(`{"properties":{"class":{"type":"string"}}}`), Output: json.RawMessage(`{"type":"string"}`)}, `f: {class?: string} // returns string`},
		{Tool{Name: "f", Input: json.RawMessage(`{"properties":{"e":{"enum":[` + values + `]}}}`)}, `f(e?: string /* 600 values */)`},
		{Tool{Name: "f", Input: json.RawMessage(`{"properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"properties":{"n":{"$ref":"#/$defs/N"}}}}}`)}, `f(n?: object)`},
		{Tool{Name: "f", Input: json.RawMessage(`{"properties":{"p":{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}]}}}`)}, `f(p?: [string, number])`},
		{Tool{Name: "f", Output: json.RawMessage(`{"properties":{"n":{"type":"number"},"l":{"type":"array","items":{"anyOf":[{"properties":{"a":{}}},{"type":"string"},{"properties":{"b":{}}}]}},"o":{"anyOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}},"required":["n","l"]}`)},
			`f(/* any arguments */): {n: number; l: (object | string)[]; o?: object}`},
	}
	for _, tt := range tests {
		if got := Listing(tt.tool); got != tt.want {
			t.Errorf("\n got %s\nwant %s", got, tt.want)
		}
	}
}

// TestComplete_Unsaid: keywords that TypeScript cannot express are quoted in a comment, wherever
// they are in the schema. If the comment could not have all of a keyword, the tool is shown with
// its JSON Schema.
func TestComplete_Unsaid(t *testing.T) {
	places := []string{
		`{"type":"object","properties":{"p":{"type":"string"}},KEYWORD}`,
		`{"type":"object","properties":{"p":{"type":"object","properties":{"q":{"type":"array","items":{KEYWORD}}}}}}`,
		`{"allOf":[{"type":"object","properties":{"p":{"type":"string"}},KEYWORD},{"properties":{"r":{}}}]}`,
		`{"anyOf":[{"type":"object","properties":{"p":{"type":"string"}},KEYWORD},{"type":"null"}]}`,
		`{"type":"object","properties":{"p":{"$ref":"#/$defs/D"},"q":{"$ref":"#/$defs/D"}},"$defs":{"D":{"type":"object","properties":{"p":{"type":"string"}},KEYWORD}}}`,
	}
	for _, keyword := range []string{
		`"$dynamicRef":"#n"`, `"$recursiveRef":"#"`, `"patternProperties":{"^x-":{"type":"number"}}`, `"not":{"required":["p"]}`, `"not":{}`,
		`"if":{"required":["p"]}`, `"then":{"required":["r"]}`, `"else":{"required":["s"]}`, `"dependentRequired":{"p":["r"]}`,
		`"dependentSchemas":{"p":{"required":["r"]}}`, `"dependencies":{"p":["r"]}`, `"contains":{"type":"number"}`, `"minContains":2`, `"maxContains":3`,
		`"unevaluatedItems":false`, `"unevaluatedProperties":false`, `"contentSchema":{"type":"object"}`, `"$ref":"#/$defs/nowhere"`,
	} {
		name, value, _ := strings.Cut(keyword, ":")
		for _, place := range places {
			schema := json.RawMessage(strings.Replace(place, "KEYWORD", keyword, 1))
			quotation := strings.Trim(name, `"`) + ": " + value
			// The function complete may show the JSON Schema instead, which has all keywords.
			if text := complete(Tool{Name: "t", Input: schema}, Options{}, length); !strings.Contains(text, quotation) && !strings.HasSuffix(text, "// JSON Schema: "+string(schema)) {
				t.Errorf("%s is not in %s", keyword, text)
			}
			if text := Declaration(schema, nil, Options{}); !strings.Contains(text, quotation) {
				t.Errorf("%s is not in %s", keyword, text)
			}
		}
	}
}

func TestComplete_Fallback(t *testing.T) {
	long := `{"type":"object","properties":{"a":{"type":"string"}},"not":{"enum":["` + strings.Repeat("x", 300) + `\u2028"]}}`
	got := complete(Tool{Name: "t", Description: "d", Input: json.RawMessage(long)}, full, length)
	if want := "// d\nt // JSON Schema: " + long; got != want {
		t.Errorf("a keyword too long for a comment: got %s", got)
	}
	for _, away := range []string{
		`{"type":"object","properties":{"a":{"$dynamicRef":"#n"}},"$defs":{"n":{"$dynamicAnchor":"n","type":"string"}}}`,
		`{"type":"object","patternProperties":{"^x-":{"enum":["` + strings.Repeat("y", 300) + `"]}}}`,
		`{"type":"object","patternProperties":{"^x-":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"type":"number"}},"additionalProperties":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#x"}},"$defs":{"n":{"$anchor":"x","type":"string"}}}`,
	} {
		if got := complete(Tool{Name: "t", Input: json.RawMessage(away)}, full, length); got != "t // JSON Schema: "+away {
			t.Errorf("not all is in the quotation: got %s", got)
		}
	}
	all := `{"enum":[` + strings.TrimSuffix(strings.Repeat(`"a/b",`, 3), ",") + `]}`
	dear := func(s string) int {
		if strings.Contains(s, "|") || strings.Contains(s, `type Args = "a/b"`) {
			return 1000
		}
		return len(s)
	}
	if got := complete(Tool{Name: "t", Input: json.RawMessage(all)}, full, dear); got != "t // JSON Schema: "+all {
		t.Errorf("dear TypeScript: got %s", got)
	}
}

func BenchmarkComplete(b *testing.B) {
	tools := loadTools(b, "testdata/tools")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		complete(tools[i%len(tools)].Tool, full, length)
	}
}

func BenchmarkListing(b *testing.B) {
	tools := loadTools(b, "testdata/tools")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		Listing(tools[i%len(tools)].Tool)
	}
}

func BenchmarkParams(b *testing.B) {
	tools := loadTools(b, "testdata/tools")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		Params(tools[i%len(tools)].Input)
	}
}
