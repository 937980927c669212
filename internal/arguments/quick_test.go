package arguments

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const shopSchema = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{
	"query":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":100},
	"order":{"type":"string","enum":["asc","desc"]},"tags":{"type":"array","items":{"type":"string"},"maxItems":3},
	"price":{"type":"number","exclusiveMinimum":0},"page":{"anyOf":[{"type":"integer"},{"type":"null"}]},
	"where":{"$ref":"#/definitions/place"},"day":{"type":"string","format":"date"},"kind":{"const":"chair"}},
	"definitions":{"place":{"type":"object","properties":{"city":{"type":"string"},"in":{"$ref":"#/definitions/place"}},"required":["city"]}},
	"required":["query"],"additionalProperties":false}`

// TestQuick: one pass accepts what ordinary calls send. If a value does not certainly fit, the long way decides,
// even if that then accepts it.
func TestQuick(t *testing.T) {
	const yes, no = true, false
	tests := []struct {
		name, schema, arguments string
		want                    bool
	}{
		{"all of it", shopSchema, ` {"query":"blue \"chairs\"","limit":100, "order":"asc","tags":["a","b"],"price":0.5,"page":null,"where":{"city":"Ulm","in":{"city":"x"}},"kind":"chair"} `, yes},
		{"the least", shopSchema, `{"query":"x"}`, yes},
		{"missing", shopSchema, `{"limit":1}`, no},
		{"unknown", shopSchema, `{"query":"x","zzz":1}`, no},
		{"too small", shopSchema, `{"query":"x","limit":0}`, no},
		{"too large", shopSchema, `{"query":"x","limit":101}`, no},
		{"an excluded bound", shopSchema, `{"query":"x","price":0}`, no},
		{"an excluded bound with a point", shopSchema, `{"query":"x","price":0.0}`, no},
		{"1.0 is left to the long way", shopSchema, `{"query":"x","limit":1.0}`, no},
		{"so is an exponent", shopSchema, `{"query":"x","limit":1e1}`, no},
		{"not of the enum", shopSchema, `{"query":"x","order":"up"}`, no},
		{"not the const", shopSchema, `{"query":"x","kind":"table"}`, no},
		{"too many items", shopSchema, `{"query":"x","tags":["a","b","c","d"]}`, no},
		{"an item of another type", shopSchema, `{"query":"x","tags":["a",1]}`, no},
		{"none of anyOf", shopSchema, `{"query":"x","page":"1"}`, no},
		{"missing behind references", shopSchema, `{"query":"x","where":{"city":"Ulm","in":{}}}`, no},
		{"too short", shopSchema, `{"query":""}`, no},
		{"a format", shopSchema, `{"query":"x","day":"soon"}`, yes},
		{"a format of a newer draft", `{"properties":{"d":{"type":"string","format":"date"}}}`, `{"d":"soon"}`, yes},
		{"a string that may be JSON", `{"properties":{"o":{"properties":{"a":{}}}}}`, `{"o":"{\"a\":1}"}`, no},
		{"white space before it", `{"properties":{"o":{"properties":{"a":{}}}}}`, "{\"o\":\"\u00a0{\\\"a\\\":1}\"}", no},
		{"an escaped key", `{"properties":{"a":{"type":"string"}}}`, `{"\u0061":1}`, no},
		{"a key that is no text", `{"properties":{"` + "\ufffd" + `":{"type":"string"}}}`, "{\"\xff\":1}", no},
		{"twice, the last wrong", `{"properties":{"a":{"type":"string"}}}`, `{"a":"x","a":1}`, no},
		{"all of two", `{"allOf":[{"required":["a"]},{"properties":{"a":{"type":"integer"}}}]}`, `{"a":1}`, yes},
		{"one of two", `{"allOf":[{"required":["a"]},{"properties":{"a":{"type":"integer"}}}]}`, `{"a":"1"}`, no},
		{"a reference to itself", `{"$ref":"#"}`, `{}`, no},
		{"required beside a schema for others", `{"required":["a"],"additionalProperties":{"type":"string"}}`, `{"a":1}`, no},
		{"others", `{"additionalProperties":{"type":"string"}}`, `{"a":"x","b":"y"}`, yes},
		{"as deep as any", `{}`, nested(maxDepth, `{"x":`, `1`, `}`), yes},
		{"deeper than any", `{}`, nested(maxDepth+1, `{"x":`, `1`, `}`), no},
		{"an object deeper than any", `{}`, nested(maxDepth, `{"x":`, `{}`, `}`), no},
		{"a list deeper than any", `{}`, nested(maxDepth, `{"x":`, `[]`, `}`), no},
		{"a long fraction", `{}`, `{"n":0.` + strings.Repeat("0", 100) + `}`, no},
		{"a long number", `{}`, `{"n":1` + strings.Repeat("0", 100) + `}`, no},
		{"no schema", ``, `{}`, no},
		{"a oneOf", `{"oneOf":[{}]}`, `{}`, no},
		{"a pattern", `{"properties":{"p":{"pattern":"^a+$"}}}`, `{"p":"a"}`, no},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := new(Schemas).compiled(json.RawMessage(tt.schema))
			if got, _ := c.quick.fits([]byte(tt.arguments)); got != tt.want {
				t.Errorf("got %v", got)
			}
			agree(t, c, tt.schema, tt.arguments)
		})
	}
	for _, broken := range []string{`{"query":"x"`, `{"query":"x"}}`, `{"query":"x",}`, `{"query" "x"}`, `{query:"x"}`, `{"query":"x` + "\n" + `"}`, `{"query":"x\q"}`, `{"query":"x\u12"}`, `{"query":tru}`, `{"limit":01,"query":"x"}`, `{"limit":-,"query":"x"}`, `{"price":1.,"query":"x"}`, `{"tags":[,],"query":"x"}`, `{"tags":["a" "b"],"query":"x"}`, `[]`, ``} {
		if fits, _ := new(Schemas).compiled(json.RawMessage(shopSchema)).quick.fits([]byte(broken)); fits {
			t.Errorf("%s fits", broken)
		}
	}
}

// agree compares the quick check with the slow way: if the quick check says that arguments fit, they are valid
// JSON, repair does not change them, and the long way finds no violation.
func agree(t *testing.T, c *compiled, schema, arguments string) (fits bool) {
	t.Helper()
	object, err := unpack(json.RawMessage(arguments))
	if err != nil {
		return false
	}
	if fits, _ = c.quick.fits(object); !fits {
		return false
	}
	if !json.Valid(object) {
		t.Fatalf("%q fits %s, and is no JSON", object, schema)
	}
	if repaired := c.schema.repair(object); !bytes.Equal(repaired, object) {
		t.Fatalf("%q fits %s, and was repaired to %q", object, schema, repaired)
	}
	if m := measure(object); m.depth > maxDepth || m.digits > maxDigits {
		t.Fatalf("%q fits %s with %+v", object, schema, m)
	}
	if _, failure := c.validate(object, new(int(maxSteps))); failure != nil {
		t.Fatalf("%q fits %s, and the long way says %+v", object, schema, failure)
	}
	return true
}

// TestQuick_Corpus: the quick check can handle nine of ten tools of real servers.
func TestQuick_Corpus(t *testing.T) {
	total, plain := 0, 0
	for _, schema := range corpusSchemas(t) {
		total++
		if q := new(Schemas).compiled(schema).quick; q != nil && q.kinds != 0 {
			plain++
		}
	}
	t.Logf("%d of %d schemas are plain", plain, total)
	if plain*10 < total*9 {
		t.Error("too few")
	}
}

// corpusSchemas returns the input schemas of the tools in MCPX_CORPUS/tools, by the names of their file and tool. It skips the
// test if MCPX_CORPUS is not set.
func corpusSchemas(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	corpus := os.Getenv("MCPX_CORPUS")
	if corpus == "" {
		t.Skip("MCPX_CORPUS is not set")
	}
	files, err := filepath.Glob(filepath.Join(corpus, "tools", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tools in %s: %v", corpus, err)
	}
	schemas := map[string]json.RawMessage{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Tools []struct {
				Name        string
				InputSchema json.RawMessage
			}
		}
		if json.Unmarshal(data, &list) != nil {
			continue
		}
		for _, tool := range list.Tools {
			if len(tool.InputSchema) > 0 {
				schemas[filepath.Base(file)+" "+tool.Name] = tool.InputSchema
			}
		}
	}
	return schemas
}

func FuzzQuick(f *testing.F) {
	f.Add(shopSchema, `{"query":"x","limit":10,"order":"asc","tags":["a"],"price":0.25,"page":2,"where":{"city":"a"}}`)
	f.Add(`{"properties":{"a":{"type":["integer","null"],"minimum":-3,"exclusiveMaximum":7}},"required":["a","b"]}`, `{"a":-2,"b":"\u00e9","c":[1.5,-0,true]}`)
	f.Add(`{"allOf":[{"properties":{"o":{"properties":{"a":{"type":"array"}}}}}],"anyOf":[{"required":["o"]},{"additionalProperties":{"type":"string"}}]}`, `{"o":{"a":"[1]"}}`)
	f.Add(`{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"l":{"items":{"$ref":"#/$defs/n"},"minItems":1,"maxItems":2},"s":{"minLength":1,"maxLength":3,"enum":["ab",1]}}}}}`, `{"l":[{"s":"ab"},{"l":[{}]}]}`)
	f.Add(`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"n":{"minimum":1,"exclusiveMinimum":true,"type":"number"}}}`, `{"n":1.5}`)
	f.Add(`{"properties":{"k":{"const":"v"},"é":{"type":"string"},"f":false,"t":true}}`, `{"k":"v","é":"x","t":{}}`)
	f.Fuzz(func(t *testing.T, schema, arguments string) {
		agree(t, new(Schemas).compiled(json.RawMessage(schema)), schema, arguments)
	})
}

// FuzzQuick_Values compares the quick check with the long way, for any value and one schema that has most keywords that quick
// knows.
func FuzzQuick_Values(f *testing.F) {
	f.Add(`{"query":"x","limit":10,"order":"asc","tags":["a"],"price":0.25,"page":2,"where":{"city":"a","in":{"city":"b"}},"kind":"chair"}`)
	f.Add(`{"query":"\u00e9\n","price":1.50,"page":null,"tags":[]}`)
	schema := strings.Replace(shopSchema, `"additionalProperties":false`, `"additionalProperties":{"type":["number","boolean","null"],"maximum":9}`, 1)
	c := new(Schemas).compiled(json.RawMessage(schema))
	f.Fuzz(func(t *testing.T, arguments string) { agree(t, c, schema, arguments) })
}

// BenchmarkRead measures reading the arguments of a call: with the quick check alone, and the long way, which a schema with
// a pattern requires.
func BenchmarkRead(b *testing.B) {
	arguments := json.RawMessage(`{"query":"blue chairs","limit":10,"order":"asc","tags":["garden","sale"]}`)
	rows := json.RawMessage(`{"query":"x","rows":[` + strings.Repeat(`{"a":"some text of a cell","b":12345,"c":null},`, 1000) + `{"a":"x","b":1}]}`)
	table := `,"rows":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"},"c":{"type":["string","null"]}},"required":["a"]}},"limit"`
	for _, size := range []struct {
		name      string
		schema    string
		arguments json.RawMessage
	}{
		{"small", shopSchema, arguments},
		{"rows", strings.Replace(shopSchema, `,"limit"`, table, 1), rows},
	} {
		for _, way := range []string{"quick", "long"} {
			b.Run(fmt.Sprintf("%s/%s", size.name, way), func(b *testing.B) {
				schema := json.RawMessage(size.schema)
				if way == "long" {
					schema = json.RawMessage(strings.Replace(size.schema, `"minLength":1`, `"pattern":"."`, 1))
				}
				var s Schemas
				b.SetBytes(int64(len(size.arguments)))
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := s.Read(size.arguments, schema, true); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
