package schemats

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// length counts bytes. The tests use it as the estimate of tokens, so that the limits in them are easy to check.
func length(s string) int { return len(s) }

// complete returns the text of one tool.
func complete(t Tool, o Options, estimate func(string) int) string {
	texts, _ := All([]Tool{t}, o, estimate)
	return texts[0]
}

func tool(name, description, input string) Tool {
	return Tool{Name: name, Description: description, Input: json.RawMessage(input)}
}

func props(list string) string { return `{"type":"object","properties":{` + list + `}}` }

// TestComplete_Marks: what is true of all objects of a tool (see marks) is written once, in the header of the tool.
func TestComplete_Marks(t *testing.T) {
	open := func(list string) string {
		return `{"type":"object","properties":{` + list + `},"additionalProperties":{}}`
	}
	two := `"a":` + open(`"x":{"type":"string"}`) + `,"b":` + open(`"y":{"type":"number"}`)
	null := func(names ...string) string {
		var list []string
		for _, n := range names {
			list = append(list, fmt.Sprintf(`%q:{"type":["string","null"]}`, n))
		}
		return strings.Join(list, ",")
	}
	tests := []struct{ name, schema, want string }{
		{"all objects inside are open", props(two), "f(a?: {x?: string}, b?: {y?: number}) // objects inside take other keys too"},
		{"and the arguments", open(two), "f(a?: {x?: string}, b?: {y?: number}) // objects take other keys too"},
		{"one is not", props(two + `,"c":` + props(`"z":{}`)), "f(a?: {x?: string; [k: string]: unknown}, b?: {y?: number; [k: string]: unknown}, c?: {z?: unknown})"},
		{"one is typed", props(two + `,"c":{"type":"object","properties":{"z":{}},"additionalProperties":{"type":"string"}}`), "// objects inside take other keys too\nf(\n a?: {x?: string},\n b?: {y?: number},\n c?: {z?: unknown} // additionalProperties: {\"type\":\"string\"}\n)"},
		{"all optional may be null", props(null("a", "b", "c", "d")), "f(a?: string, b?: string, c?: string, d?: string) // optional ones may be null"},
		{"too few to say", props(null("a", "b", "c")), "f(a?: string | null, b?: string | null, c?: string | null)"},
		{"one may not", props(null("a", "b", "c", "d") + `,"e":{"type":"string"}`), "f(a?: string | null, b?: string | null, c?: string | null, d?: string | null, e?: string)"},
		{"a required one is apart", `{"type":"object","required":["a"],"properties":{` + null("a", "b", "c", "d", "e") + `}}`, "f(a: string | null, b?: string, c?: string, d?: string, e?: string) // optional ones may be null"},
		{"inside only", props(`"s":{"type":"string"},"o":{"anyOf":[` + props(null("a", "b", "c", "d")) + `,{"type":"null"}]}`), "// optional ones inside objects may be null\nf(s?: string, o?: {a?: string; b?: string; c?: string; d?: string} | null)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := complete(tool("f", "", tt.schema), full, func(s string) int { return strings.Count(s, "Schema")*1000 + len(s)/10 })
			if got != tt.want {
				t.Errorf("got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestAll_NamesOnce: no two types of an answer have the same name, also if types of the schemas are called Args or Result.
func TestAll_NamesOnce(t *testing.T) {
	const itself = `{"type":"object","properties":{"v":{"type":"number"},"next":{"$ref":"#"}}}`
	const shared = `{"type":"object","properties":{"a":{"$ref":"#/$defs/Args"},"b":{"$ref":"#/$defs/Args"},"c":{"$ref":"#/$defs/Args"}},"$defs":{"Args":` +
		`{"type":"object","properties":{"first":{"type":"string"},"second":{"type":"string"},"third":{"type":"string"}}}}}`
	apart := tool("apart", "", props(`"a b":{"type":"string"},"c":{"type":"number"}`))
	recursive := Tool{Name: "recursive", Input: json.RawMessage(itself), Output: json.RawMessage(itself)}
	small := func(s string) int { return strings.Count(s, "Schema")*1000 + len(s)/10 }
	statement := regexp.MustCompile(`(?m)^type (\w+) =`)
	for _, tools := range [][]Tool{{recursive}, {apart, recursive}, {recursive, apart}, {tool("shared", "", shared), apart}, {recursive, recursive, apart}} {
		texts, _ := All(tools, full, small)
		text, seen := strings.Join(texts, "\n\n"), map[string]bool{}
		for _, m := range statement.FindAllStringSubmatch(text, -1) {
			if seen[m[1]] {
				t.Errorf("%s is there twice:\n%s", m[1], text)
			}
			seen[m[1]] = true
		}
	}
}

// TestAll_SaidOnce: a text does not repeat what it already contains, and leaves out nothing else.
func TestAll_SaidOnce(t *testing.T) {
	address := `{"type":"object","properties":{"street":{"type":"string"},"number":{"type":"integer"},"city":{"type":"string"},"country":{"type":"string"}}}`
	top := `"top":{"type":"integer","description":"How many of the results to return."}`
	more := `"path":{"type":"string","description":"Where it is. For more information, see https://example.com/paths."}`
	got, cut := All([]Tool{
		tool("list", "Lists.", props(top+`,"home":`+address+`,`+more)),
		tool("find", "Finds.", props(`"file":{"type":"string","description":"A file. For more information, see https://example.com/paths."},`+top+`,"work":`+address)),
		tool("skip", "Skips.", props(`"top":{"type":"integer","description":"How many to leave out."},"count":{"type":"integer","description":"How many of the results to return."}`)),
		tool("last", "Is last.", props(top)),
	}, full, length)
	want := []string{
		`type Home = {street?: string; number?: number /* int */; city?: string; country?: string};
// Lists.
list(
 top?: number,// How many of the results to return. int
 home?: Home,
 path?: string // Where it is. For more information, see https://example.com/paths.
)`,
		`// Finds.
find(
 file?: string,// A file.
 top?: number,// as above
 work?: Home
)`,
		`// Skips.
skip(
 top?: number,// How many to leave out. int
 count?: number // How many of the results to return. int
)`,
		`// Is last.
last(
 top?: number // as count
)`,
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: got %s\nwant %s", i, got[i], want[i])
		}
	}
	if cut {
		t.Error("nothing is cut")
	}
}

// TestAll_FallbackSaysNoTypes: if a tool is shown as its JSON Schema, later tools must write its types themselves.
func TestAll_FallbackSaysNoTypes(t *testing.T) {
	address := `{"type":"object","properties":{"street":{"type":"string"},"number":{"type":"integer"},"city":{"type":"string"}}}`
	lossy := `"not":{"enum":["` + strings.Repeat("x", 300) + `"]}`
	got, _ := All([]Tool{
		tool("a", "", `{"type":"object","properties":{"home":`+address+`},`+lossy+`}`),
		tool("b", "", props(`"home":`+address)),
	}, full, length)
	if !strings.Contains(got[0], "JSON Schema: ") || !strings.HasPrefix(got[1], "type Home = {") {
		t.Errorf("got %q", got)
	}
}

func TestAll_Cut(t *testing.T) {
	long := strings.Repeat("word ", 100)
	two := []Tool{tool("a", "", props(`"p":{"description":"`+long+`"}`)), tool("b", "", props(`"q":{}`))}
	o := full
	o.MaxDescription = 50
	got, cut := All(two, o, length)
	if want := "a(\n p?: unknown // " + strings.TrimSuffix(long[:45], " ") + "... [+455]\n)"; got[0] != want || !cut {
		t.Errorf("got %s, %v\nwant %s", got[0], cut, want)
	}
}

func TestProse(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"paragraphs are one line", "One.\n\nTwo\nthree.", "One. Two three."},
		{"lists keep their lines", "Pick:\n\n- a: x\n  - b\n- c\n\nThen go.", "Pick:\n- a: x\n  - b\n- c\nThen go."},
		{"numbered", "Steps:\n 1. One\n 2. Two", "Steps:\n1. One\n2. Two"},
		{"what all lines are indented by", "Does it.\n\n    Args:\n      * a", "Does it.\nArgs:\n  * a"},
		{"a table", "x\n|a|b|\n|1|2|", "x\n|a|b|\n|1|2|"},
		{"no list", "A - b\n2.5 m\n-1 or so", "A - b 2.5 m -1 or so"},
		{"nothing hidden", "a\u202eb\n- \u200bc\u001b[31m", "ab\n- c"},
		{"twice", "The service must be running when this is called. Go. The service must be running when this is called.", "The service must be running when this is called. Go."},
		{"short ones may come twice", "If a: it is required. If b: it is required.", "If a: it is required. If b: it is required."},
	}
	for _, tt := range tests {
		if got := prose(tt.text); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestAll_AsAbove: "as above" replaces a description only if the same description was written before, even if that was in the
// type of the result.
func TestAll_AsAbove(t *testing.T) {
	const docs = `"description":"The number of the issue as the web page shows it, without the sign before it"`
	item := `{"type":"object","properties":{"issue":{"type":"number",` + docs + `},"title":{"type":"string"}},"required":["issue","title"]}`
	texts, _ := All([]Tool{{
		Name: "get", Description: "Gets it.",
		Input:  json.RawMessage(`{"type":"object","properties":{"issue":{"type":"number",` + docs + `}},"required":["issue"]}`),
		Output: json.RawMessage(`{"type":"object","properties":{"first":` + item + `,"last":` + item + `},"required":["first","last"]}`),
	}}, full, length)
	said, above := strings.Index(texts[0], "The number of the issue"), strings.Index(texts[0], "as above")
	if said < 0 || above < said {
		t.Errorf("got %s", texts[0])
	}
}
