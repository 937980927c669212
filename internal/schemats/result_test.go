package schemats

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// nestedResult returns an output schema of nested objects, no two of which are alike. levels is how deeply they are nested,
// properties is the number of properties of each object, and extra has more keywords for each object.
func nestedResult(properties, levels int, extra string) json.RawMessage {
	leaves := 0
	var object func(level int) string
	object = func(level int) string {
		if level < 0 {
			leaves++
			return fmt.Sprintf(`{"type":"string","description":"A leaf. (%d)"}`, leaves)
		}
		var list []string
		for i := range properties {
			list = append(list, fmt.Sprintf(`"l%d_%d":%s`, level, i, object(level-1)))
		}
		return `{"type":"object","description":"A level.","properties":{` + strings.Join(list, ",") + `}` + extra + `}`
	}
	return json.RawMessage(object(levels - 1))
}

// TestComplete_MaxResult: a result type that is longer than MaxResult is cut to its top levels,
// whatever keywords its schema has. The parameters do not change.
func TestComplete_MaxResult(t *testing.T) {
	const input = `{"type":"object","properties":{"query":{"type":"string","description":"What to find."},"limit":{"type":"integer","maximum":50}},"required":["query"]}`
	const odd = `,"not":{"required":["x"]}`
	tests := []struct {
		name   string
		input  string
		output json.RawMessage
		most   int
		short  bool
		want   string // a part of the text
	}{
		{"no bound", input, nestedResult(6, 3, ""), 0, false, "l0_5"},
		{"within the bound", input, nestedResult(2, 2, ""), 400, false, "A leaf."},
		{"a level is left out", input, nestedResult(6, 3, ""), 800, true, "l1_0?: object"},
		{"only the first level", input, nestedResult(6, 3, ""), 200, true, "l2_5?: object}"},
		{"not even the first level", input, nestedResult(300, 1, ""), 400, true, "/* cut */}"},
		{"what no type says does not bring the schema back", input, nestedResult(6, 3, odd), 800, true, "l1_0?: object"},
		{"a schema of the input as it is", `{"type":"object","properties":{"q":{"not":{"type":"string","enum":["` + strings.Repeat("x", 300) + `"]}}}}`, nestedResult(6, 3, ""), 400, true, "JSON Schema: {"},
		{"a recursive one", input, json.RawMessage(`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"value":{"type":"string","description":"` + strings.Repeat("long ", 90) + `"},"next":{"$ref":"#/$defs/n"}}}}}`), 400, true, "{value?: string; next?: object}"},
		{"nothing fits", input, nestedResult(6, 3, ""), 1, true, ": unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tool := Tool{Name: "find", Description: "Finds.", Input: json.RawMessage(tt.input), Output: tt.output}
			o := full
			o.MaxResult = tt.most
			got := complete(tool, o, length)
			if strings.Contains(got, shortened) != tt.short || !strings.Contains(got, tt.want) {
				t.Errorf("got %s", got)
			}
			tool.Output = nil
			without := complete(tool, o, length)
			if !strings.HasPrefix(got, strings.TrimSuffix(without, " // Finds.")) && !strings.Contains(got, strings.TrimPrefix(without, "// Finds.\n")) {
				t.Errorf("the input differs: got %s, want it to have %s", got, without)
			}
			if room := len(got) - len(without); tt.short && tt.most > 1 && room > tt.most+20 {
				t.Errorf("the result takes %d bytes, want at most %d: %s", room, tt.most, got)
			}
		})
	}
}

// TestResult_Wrapper: if the result is an object whose only property is a string, its type is
// shown as `string | JSON`. If an SDK wrapped the result in an object, its type is shown without
// this object.
func TestResult_Wrapper(t *testing.T) {
	for _, tt := range []struct{ output, want string }{
		{`{"type":"object","properties":{"content":{"type":"string"}},"required":["content"]}`, "string | JSON"},
		// FastMCP (Python) declares this for a tool that returns a str.
		{`{"properties":{"result":{"title":"Result","type":"string"}},"required":["result"],"title":"executeOutput","type":"object","x-fastmcp-wrap-result":true}`, "string | JSON"},
		{`{"$ref":"#/$defs/r","$defs":{"r":{"type":"object","properties":{"text":{"type":"string"}}}}}`, "string | JSON"},
		{`{"type":"object","properties":{"result":{"type":"array","items":{"type":"string"}}},"required":["result"]}`, "{result: string[]}"},
		{`{"properties":{"result":{"type":"array","items":{"type":"string"}}},"required":["result"],"title":"findOutput","type":"object"}`, "string[]"},
		{`{"properties":{"result":{"type":"integer"}},"required":["result"],"type":"object","x-fastmcp-wrap-result":true}`, "number"},
		{`{"type":"object","properties":{"content":{"type":"string"},"n":{"type":"number"}},"required":["content"]}`, "{content: string; n?: number}"},
		{`{"type":"object","properties":{"kind":{"enum":["a","b"]}},"required":["kind"]}`, `{kind: "a"|"b"}`},
	} {
		tool := Tool{Name: "find", Output: json.RawMessage(tt.output)}
		if got := Listing(tool); got != "find(/* any arguments */): "+tt.want {
			t.Errorf("Listing: got %s, want %s", got, tt.want)
		}
		tight := strings.NewReplacer(": ", ":", "; ", ";")
		if got := strings.NewReplacer(" /* if the text is JSON */", "", " /* int */", "").Replace(complete(tool, full, length)); !strings.HasSuffix(tight.Replace(got), tight.Replace(tt.want)) {
			t.Errorf("Complete: got %s, want %s", got, tt.want)
		}
	}
	// If the input is shown as JSON Schema, a wrapped result is still shown as its type without
	// the object; other results are shown as JSON Schema.
	odd := Tool{Name: "find", Input: json.RawMessage(`{"type":"object","properties":{"q":{"not":{"type":"string","enum":["` + strings.Repeat("x", 300) + `"]}}}}`)}
	for _, tt := range []struct{ output, want string }{
		{`{"type":"object","properties":{"content":{"type":"string"}}}`, "\n// result: string | JSON /* if the text is JSON */"},
		{`{"properties":{"result":{"type":"array","items":{"type":"string"}}},"required":["result"],"title":"findOutput","type":"object"}`, "\n// result: string[]"},
		{`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"type":"object"}`, `,"type":"object"}`},
	} {
		odd.Output = json.RawMessage(tt.output)
		if got := complete(odd, full, length); !strings.Contains(got, "JSON Schema: {") || !strings.HasSuffix(got, tt.want) {
			t.Errorf("as JSON Schema: got %s, want %s at its end", got, tt.want)
		}
	}
}
