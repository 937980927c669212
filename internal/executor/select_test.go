package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/caller"
	"mcpx/internal/jq"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

// TestSelected_Keeps: if a filter fails, the result is stored once. If it succeeds, nothing is stored.
func TestSelected_Keeps(t *testing.T) {
	filters := jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(filters.Close)
	for _, tt := range []struct {
		filter string
		kept   int
		want   string
	}{
		{".a", 0, "1"},
		{".a[", 1, "SELECT_ERROR: /select: "},
		{".a.b", 1, "SELECT_ERROR: /select: "},
	} {
		e := chained(registry.New(nil, registry.Options{}), Options{Filter: filters})
		answer := e.begin().answer(&Request{Select: tt.filter}, target{})
		got, err := answer.Of(t.Context(), json.RawMessage(`{"structuredContent":{"a":1}}`))
		if err != nil {
			t.Fatal(err)
		}
		text := wire.ReadBlock(got.Content[0]).Text
		if e.store.Len() != tt.kept || !strings.HasPrefix(text, tt.want) || strings.Count(text, "/select: ") != tt.kept {
			t.Errorf("%s: %d are kept, want %d: %s", tt.filter, e.store.Len(), tt.kept, text)
		}
		if handle := regexp.MustCompile(`"handle":"(r\w+)"`).FindStringSubmatch(text); tt.kept > 0 {
			if handle == nil {
				t.Fatalf("%s: no handle in %s", tt.filter, text)
			}
			read, err := e.Exec(t.Context(), Request{Server: builtin.Name, Tool: results.Tool, Arguments: json.RawMessage(`{"handle":"` + handle[1] + `"}`)})
			if err != nil || wire.ReadBlock(read.Content[0]).Text != `{"a":1}` {
				t.Errorf("%s: the handle gives %s, %v", tt.filter, read.Content, err)
			}
		}
	}
}

// TestSelect_BeforeTheCall: a filter that cannot be parsed is refused before the call. An empty filter means no filter.
func TestSelect_BeforeTheCall(t *testing.T) {
	mcptest.NoLeaks(t)
	filters := jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(filters.Close)
	spec := mcptest.Spec{}.WithFiles(t)
	e := executing(t, Options{Filter: filters}, nil, piped(t, "fake", spec))
	calls := 0
	for _, tt := range []struct {
		filter, arguments, want string
		called                  bool
	}{
		{".entities[", `{"text":"[1]"}`, "VALIDATION_ERROR: /select: unexpected EOF at character 11 of the filter, after `.entities[`", false},
		{"." + strings.Repeat(" ", 64<<10), `{"text":"[1]"}`, "VALIDATION_ERROR: /select: the filter is longer than 64 KB", false},
		{".[", `{"text":1,"no":[`, "VALIDATION_ERROR: /: arguments is not valid JSON", false},
		{"", `{"text":"[1]"}`, "[1]", true},
		{".[0]", `{"text":"[1]"}`, "1", true},
		{".a", `{"text":"[1]"}`, "SELECT_ERROR: /select: expected an object", true},
	} {
		got := exec(t, e, Request{Server: "fake", Tool: "echo", Arguments: json.RawMessage(tt.arguments), Select: tt.filter, Format: always})
		text := textOf(t, got.Content[0])
		if !strings.HasPrefix(text, tt.want) || strings.Contains(text, "The call was made") != (tt.called && got.IsError) {
			t.Errorf("%.40s: got %s, want %s", tt.filter, text, tt.want)
		}
		if tt.called {
			calls++
		}
		if n := len(spec.Log(t).Calls("echo")); n != calls {
			t.Errorf("%.40s: %d calls, want %d", tt.filter, n, calls)
		}
	}
}

// TestSelect: a filter applies to what the model saw, which is the JSON of the texts. But if the filter fails on the texts, or
// names a key that only structuredContent has, it applies to structuredContent. The cases show which other parts of the result the
// answer has. If the filter fails, the answer says that the call was made, so that the model does not repeat it.
func TestSelect(t *testing.T) {
	filters := jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(filters.Close)
	const image = `{"type":"image","data":"eA==","mimeType":"image/png"}`
	text := func(s string) string { return `{"type":"text","text":` + string(wire.Encode(s)) + `}` }
	wrapped := func(key, s string) string { return `{"` + key + `":` + string(wire.Encode(s)) + `}` }
	const tree = "[\n  {\n    \"name\": \"a\",\n    \"type\": \"file\"\n  },\n  {\n    \"name\": \"b\",\n    \"type\": \"directory\",\n    \"children\": []\n  }\n]"
	const query = `{"success": true, "columns": ["a"], "rows": [[0], [1]]}`
	tests := []struct {
		name, structured string
		content          []string
		filter           string
		want             []string // the expected texts, or the raw blocks that are no texts, each up to the handle in it
		data             string   // structuredContent; "" for a failure
	}{
		{"structuredContent", `{"a":1}`, []string{text("One.")}, ".a", []string{"1", "One."}, `{"result":1}`},
		{"other JSON in the text", `{"a":1}`, []string{text(`{"a":2}`)}, ".a", []string{"2"}, `{"result":2}`},
		{"lines of a text beside it", `{"a":1}`, []string{text("one\ntwo")}, `split("\n")|length`, []string{"2", "one\ntwo"}, `{"result":2}`},
		{"a list in a text, whose key is not the only one", `{"total":2,"items":[1,2]}`, []string{text(`[1,2]`)}, "[length, .[0]]", []string{"[2,1]"}, `{"result":[2,1]}`},
		{"what the text does not have", `{"total":2,"items":[1,2]}`, []string{text(`[1,2]`)}, ".total", []string{"2"}, `{"result":2}`},
		{"a key that the text does not have", `{"data":[1]}`, []string{text(`{"summary":"x"}`)}, ".data", []string{"[1]"}, `{"result":[1]}`},
		{"such a key by its own name", `{"total":2,"items":[1]}`, []string{text(`{"items":[1]}`)}, "{total: .total}", []string{`{"total":2}`}, `{"result":{"total":2}}`},
		{"such a key in short", `{"total":2,"page":1,"items":[1]}`, []string{text(`{"items":[1],"n":1}`)}, "{items, total, n}", []string{`{"items":[1],"total":2,"n":null}`}, `{"result":{"items":[1],"total":2,"n":null}}`},
		{"a key that only the text has", `{"data":[1]}`, []string{text(`{"summary":"x"}`)}, ".summary", []string{"x"}, `{"result":"x"}`},
		{"a key that neither has", `{"data":[1]}`, []string{text(`{"summary":"x"}`)}, ".none", []string{"null\n[no key \"none\"; shape of the result: {summary: string}]"}, `{"result":null}`},
		// If the filter finds nothing in structuredContent and in a plain text, the answer is about structuredContent.
		{"a key that it does not have, beside prose", `{"items":[{"title":"a"}]}`, []string{text("One found.")}, "[.name?]", []string{"[null]\n[no key \"name\"; shape of the result: {items: [1 of {title: string}]}]", "One found."}, `{"result":[null]}`},
		{"a key that it does not have, beside two lines of prose", `{"items":[{"title":"a"}]}`, []string{text("One"), text("found")}, "[.name?]", []string{"[null]\n[no key \"name\"; shape of the result: {items: [1 of {title: string}]}]", "One", "found"}, `{"result":[null]}`},
		{"a filter that fails, beside prose", `{"items":[{"title":"a"}]}`, []string{text("One found.")}, "[.items? | .[]? | ascii_downcase]", []string{"SELECT_ERROR: /select: ", "One found."}, ""},
		{"a filter that finds nothing in the JSON of a text", `{"count":0}`, []string{text(`{"items":[]}`)}, ".items[]", []string{"[select gave nothing]"}, `{"result":[]}`},
		{"structuredContent is null", "null", []string{text(`{"a":2}`)}, ".a", []string{"2"}, `{"result":2}`},
		{"it is null, with prose", "null", []string{text("Done.")}, ".a", []string{"SELECT_ERROR: /select: expected an object but got: string (\"Done.\")\nThe call was made; its result is kept: exec {"}, ""},
		{"it is null, with two texts", "null", []string{text(`{"a":2}`), text(`{"a":3}`)}, "map(.a)", []string{"[2,3]"}, `{"result":[2,3]}`},
		{"items as blocks", "", []string{text(`{ "a": 1 }`), text(`{"a":2}`), text(`{"b":3}`)}, "map(.a)", []string{"[1,2,null]"}, `{"result":[1,2,null]}`},
		{"items as blocks, one with more", "", []string{text(`{"a":1}`), text(`{"a":2}`), `{"type":"text","text":"{}","annotations":{}}`}, "map(.a)", []string{"[1,2,null]"}, `{"result":[1,2,null]}`},
		{"it is null, with nothing", "null", nil, ".a", []string{"null"}, `{"result":null}`},
		{"no output", `{"a":[]}`, nil, ".a[]", []string{"[select gave nothing]\n[shape of the result: {a: []}]"}, `{"result":[]}`},
		{"no output, and an image", `{"a":[]}`, []string{image}, "empty", []string{"[select gave nothing]\n[shape of the result: {a: []}]", image}, `{"result":[]}`},
		{"null", `{"a":1}`, nil, ".b", []string{"null\n[no key \"b\" (did you mean \"a\"?); shape of the result: {a: number}]"}, `{"result":null}`},
		{"one page of many", `{"issues":[{"key":"A-1","title":"Login fails"},{"key":"A-2","title":"Slow search"}],"total":640,"next_cursor":"bzoy"}`, nil, ".issues|length", []string{"2", "\n[not selected: .total 640, .next_cursor \"bzoy\"]"}, `{"result":2}`},
		{"one page of many, in a text", "", []string{text(`{"issues":[{"key":"A-1","title":"Login fails"},{"key":"A-2","title":"Slow search"}],"next_cursor":"bzoy"}`)}, ".issues[].key", []string{"\"A-1\"\n\"A-2\"", "\n[not selected: .next_cursor \"bzoy\"]"}, `{"result":["A-1","A-2"]}`},
		{"nothing on one page of many", `{"issues":[{"key":"A-1","title":"Login fails` + strings.Repeat(" on Safari", 40) + `"}],"paging":{"page":1,"has_more":true}}`, nil, `.issues[]|select(.key=="A-7")`, []string{"[select gave nothing]\n[shape of the result: ", "\n[not selected: .paging.has_more true]"}, `{"result":[]}`},
		{"one page of many, where that would be longer than all", `{"a":[1],"next_cursor":"bzoy"}`, nil, ".a", []string{"[1]"}, `{"result":[1]}`},
		{"several nulls", `[{"a":1},{"a":2}]`, nil, ".[].b", []string{"null\nnull\n[no key \"b\" (did you mean \"a\"?); shape of the result: [2 of {a: number}]]"}, `{"result":[null,null]}`},
		{"many nulls", `[{"title":1},{"title":2},{"title":3},{"title":4}]`, nil, ".[].titel", []string{"4 × null\n[no key \"titel\" (did you mean \"title\"?); shape of the result: [4 of {title: number}]]"}, `{"result":[null,null,null,null]}`},
		{"nulls within", `[{"title":1},{"title":2}]`, nil, `map({t:.titel,u:"x.y"|null})`, []string{"4 × null\n[no key \"titel\" (did you mean \"title\"?); shape of the result: [2 of {title: number}]]"}, `{"result":[{"t":null,"u":null},{"t":null,"u":null}]}`},
		{"nulls that are there", `[{"a":null},{"a":null}]`, nil, `.[].a`, []string{"null\nnull\n[shape of the result: [2 of {a: null}]]"}, `{"result":[null,null]}`},
		{"null beside an empty array", `{"a":[]}`, nil, `[.b,.a]`, []string{`[null,[]]`}, `{"result":[null,[]]}`},
		{"null beside a value", `[{"a":1},{"b":2}]`, nil, ".[].b", []string{"null\n2"}, `{"result":[null,2]}`},
		{"null in a value", `{"a":null}`, nil, ".", []string{`{"a":null}`}, `{"result":{"a":null}}`},
		{"an empty array is an output", `{"a":[]}`, nil, ".a", []string{"[]"}, `{"result":[]}`},
		{"an empty text is an output", `{"a":""}`, nil, ".a", []string{`""`}, `{"result":""}`},
		{"only an image", "", []string{image}, ".a", []string{"SELECT_ERROR: /select: the result has no JSON and no text\nThe call was made", image}, ""},
		{"prose and an image", "", []string{text("Done."), image}, ".a", []string{"SELECT_ERROR: /select: expected an object but got: string (\"Done.\")\nThe call was made; its result is kept: exec {", image}, ""},
		// A text that is shown as plain text is a string for the filter, even if structuredContent wraps it in an object.
		{"lines of a text", "", []string{text("one\ntwo")}, `split("\n")|length`, []string{"2"}, `{"result":2}`},
		{"length of a wrapped text", wrapped("content", "[FILE] a\n[DIR] b"), []string{text("[FILE] a\n[DIR] b")}, "length", []string{"16"}, `{"result":16}`},
		{"lines of a wrapped text", wrapped("content", "one\ntwo"), []string{text("one\ntwo")}, `split("\n")`, []string{`["one","two"]`}, `{"result":["one","two"]}`},
		{"a wrapped text, the old way", wrapped("content", "one\ntwo"), []string{text("one\ntwo")}, `{t: .content}`, []string{`{"t":"one\ntwo"}`}, `{"result":{"t":"one\ntwo"}}`},
		{"a wrapped text, the old way, with a question mark", wrapped("content", "one"), []string{text("one")}, `.content?`, []string{"one"}, `{"result":"one"}`},
		{"its key is in the JSON inside too", wrapped("content", `{"content":[1,2]}`), []string{text(`{"content":[1,2]}`)}, `.content|length`, []string{"2"}, `{"result":2}`},
		{"length of a wrapped list", `{"result":[{"a":1},{"a":2}]}`, []string{text(`[{"a":1},{"a":2}]`)}, "length", []string{"2"}, `{"result":2}`},
		{"a wrapped number", `{"result":5}`, []string{text("5")}, ".+1", []string{"6"}, `{"result":6}`},
		{"JSON in a JSON string", "", []string{text(`"{\"a\":1}"`)}, ".a", []string{"1"}, `{"result":1}`},
		{"JSON beside prose", "", []string{text("Found it:"), text(`{"a":1}`)}, ".a", []string{"1", "Found it:"}, `{"result":1}`},
		{"several texts", "", []string{text("one"), text("two")}, ".[1]", []string{"two"}, `{"result":"two"}`},
		// Keys are in the order in which the filter names them, otherwise in the order of the document.
		{"keys as the filter names them", `{"a":1,"z":2,"m":{"id":3}}`, nil, `{z, m: .m.id, a}`, []string{`{"z":2,"m":3,"a":1}`}, `{"result":{"z":2,"m":3,"a":1}}`},
		{"keys of the document", `[{"name":"x","id":1,"about":{"z":1,"a":1.10}}]`, nil, `.[0]`, []string{`{"name":"x","id":1,"about":{"z":1,"a":1.10}}`}, `{"result":{"name":"x","id":1,"about":{"z":1,"a":1.10}}}`},
		{"keys of both", `{"z":1,"a":2}`, nil, `. + {b: 3}`, []string{`{"z":1,"a":2,"b":3}`}, `{"result":{"z":1,"a":2,"b":3}}`},
		{"keys twice in the document", `[{"z":1,"z":2},{"b":1,"z":2,"y":0}]`, nil, `.[1]|{z,b}`, []string{`{"z":2,"b":1}`}, `{"result":{"z":2,"b":1}}`},
		// npm's filesystem server answers list_directory and directory_tree like this.
		{"a wrapped listing", wrapped("content", "[FILE] a\n[DIR] b"), []string{text("[FILE] a\n[DIR] b")}, `.content|split("\n")|length`, []string{"2"}, `{"result":2}`},
		{"a wrapped tree", wrapped("content", tree), []string{text(tree)}, ".[].name", []string{"\"a\"\n\"b\""}, `{"result":["a","b"]}`},
		// PyPI's mcp-server-motherduck answers execute_query like this.
		{"a wrapped answer", wrapped("result", query), []string{text(query)}, ".rows", []string{"[[0],[1]]"}, `{"result":[[0],[1]]}`},
		{"a wrapped scalar stays", wrapped("result", "5"), []string{text("5")}, ".result", []string{`"5"`}, `{"result":"5"}`},
		{"a wrapper around another text stays", wrapped("result", "[1]"), []string{text("[2]")}, ".result", []string{`"[1]"`}, `{"result":"[1]"}`},
		{"a wrapper that is shown stays", wrapped("result", "[1]"), nil, ".result", []string{`"[1]"`}, `{"result":"[1]"}`},
		// The Python SDK sends a list like this.
		{"a wrapped list by its type", `{"result":[{"a":1},{"a":2}]}`, []string{text(`{"a":1}`), text(`{"a":2}`)}, ".result[1].a", []string{"2"}, `{"result":2}`},
		{"a wrapped list as it is shown", `{"result":[{"a":1},{"a":2}]}`, []string{text(`{"a":1}`), text(`{"a":2}`)}, ".[1].a", []string{"2"}, `{"result":2}`},
		{"a wrapped list in one text", `{"result":[{"a":1},{"a":2}]}`, []string{text(`[{"a":1},{"a":2}]`)}, "map(.a)", []string{"[1,2]"}, `{"result":[1,2]}`},
		{"a list that is not shown", `{"result":[{"a":1},{"a":2}]}`, []string{text("Two.")}, ".[1].a", []string{"SELECT_ERROR: /select: ", "Two."}, ""},
		{"two members are no wrapper", `{"result":"[1]","n":1}`, []string{text("[1]")}, ".n", []string{"1"}, `{"result":1}`},
		{"one string of JSON", `"{\"a\":1}"`, nil, ".a", []string{"1"}, `{"result":1}`},
		{"one string of prose", `"Done."`, []string{text("Done.")}, ".", []string{"Done."}, `{"result":"Done."}`},
		{"a text that is in it", `{"stdout":"Done.\n","code":0}`, []string{text("Done.")}, ".code", []string{"0"}, `{"result":0}`},
		{"a text that is not in it", `{"stdout":"Done.","code":0}`, []string{text("Done."), text("Not done.")}, ".code", []string{"0", "Not done."}, `{"result":0}`},
		// PyPI's mcp-server-sqlite answers read_query like this.
		{"Python", "", []string{text(`[{'id': 1, 'name': "it's", 'b': None}]`)}, ".[0].name", []string{"it's"}, `{"result":"it's"}`},
		{"Python in a wrapper", wrapped("result", "[{'a': 1}]"), []string{text("[{'a': 1}]")}, ".[].a", []string{"1"}, `{"result":1}`},
		{"Python that repeats it", `{"result":[{"a":1}]}`, []string{text("[{'a': 1}]")}, ".result[].a", []string{"1"}, `{"result":1}`},
		{"Python without exact JSON", "", []string{text("[{1, 2}]")}, "keys", []string{"SELECT_ERROR: /select: "}, ""},
		{"a filter that fails, prose and an image", `{"a":1}`, []string{text("Done."), image}, ".a.b", []string{"SELECT_ERROR: /select: ", "Done.", image}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := chained(registry.New(nil, registry.Options{}), Options{Filter: filters})
			raw := `{"content":[` + strings.Join(tt.content, ",") + "]"
			if tt.structured != "" {
				raw += `,"structuredContent":` + tt.structured
			}
			answer := e.begin().answer(&Request{Select: tt.filter, Format: always}, target{})
			out, err := answer.Of(t.Context(), json.RawMessage(raw+"}"))
			if err != nil {
				t.Fatal(err)
			}
			if len(out.Content) != len(tt.want) || out.IsError != (tt.data == "") {
				t.Fatalf("got %s, isError %t, want %q", out.Content, out.IsError, tt.want)
			}
			for i, want := range tt.want {
				b := wire.ReadBlock(out.Content[i])
				if b.IsText && (!strings.HasPrefix(b.Text, want) || i > 0 && b.Text != want) || !b.IsText && string(b.Raw) != want {
					t.Errorf("block %d: got %s, want %s", i, b.Raw, want)
				}
			}
			if tt.data != "" && string(out.Structured) != tt.data {
				t.Errorf("structuredContent: got %s, want %s", out.Structured, tt.data)
			}
		})
	}
}

// TestSelect_List: the Python SDK sends each item of a list as a text. Whatever the number of items, a filter and a program get
// the list whose type inspect shows.
func TestSelect_List(t *testing.T) {
	filters := jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(filters.Close)
	of := target{tool: &catalog.Tool{Name: "list", OutputSchema: json.RawMessage(`{"title":"listOutput","type":"object",
		"properties":{"result":{"type":"array","items":{"type":"object","properties":{"a":{"type":"number"}}}}},"required":["result"]}`)}}
	for n, list := range []string{`[]`, `[{"a":1}]`, `[{"a":1},{"a":1}]`} {
		texts := strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"{\"a\":1}"},`, n), ",")
		raw := json.RawMessage(`{"content":[` + texts + `],"structuredContent":{"result":` + list + `}}`)
		for filter, want := range map[string]string{
			"length": fmt.Sprint(n), "map(.a)|length": fmt.Sprint(n), ".result|length": fmt.Sprint(n), "[.result[].a]|length": fmt.Sprint(n),
		} {
			answer := chained(registry.New(nil, registry.Options{}), Options{Filter: filters}).begin().answer(&Request{Select: filter, Format: always}, of)
			out, err := answer.Of(t.Context(), raw)
			if err != nil || string(out.Structured) != `{"result":`+want+`}` {
				t.Errorf("%d items, %s: %s, %v", n, filter, out.Content, err)
			}
		}
		// A filter that fails on the list is applied to the texts: one item is an object there.
		answer := chained(registry.New(nil, registry.Options{}), Options{Filter: filters}).begin().answer(&Request{Select: ".a", Format: always}, of)
		out, err := answer.Of(t.Context(), raw)
		if err != nil || (string(out.Structured) == `{"result":1}`) != (n == 1) {
			t.Errorf("%d items, .a: %s, %v", n, out.Content, err)
		}
		if v, err := results.ReadValue(raw, typeOf(of.tool)); err != nil || string(v.JSON) != list {
			t.Errorf("%d items: a program gets %s, %v", n, v.JSON, err)
		}
	}
}

// TestSelect_Verbatim: a filter takes the text of a file out of the result of a tool that hands out files. The model gets it as it is,
// since it may edit the file, and so does read_result after a filter that failed. Of other tools it gets such a text compressed.
func TestSelect_Verbatim(t *testing.T) {
	filters := jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(filters.Close)
	file := "{\n    \"name\": \"x\",\n    \"list\": [\n        {\"a\": 1, \"name\": \"n1\"},\n        {\"a\": 2, \"name\": \"n2\"},\n        {\"a\": 3, \"name\": \"n3\"}\n    ]\n}\n"
	raw := json.RawMessage(`{"content":[` + string(wire.TextBlock(string(wire.Encode(map[string]string{"content": file})))) + `]}`)
	for verbatim, want := range map[bool]map[string]string{
		true:  {".content": file, ".content|fromjson|.list": `[{"a":1,"name":"n1"},{"a":2,"name":"n2"},{"a":3,"name":"n3"}]`},
		false: {".content": "name: x\nlist[3]{a,name}:\n  1,n1\n  2,n2\n  3,n3\n", ".content|fromjson|.list": "[3]{a,name}:\n  1,n1\n  2,n2\n  3,n3"},
	} {
		for filter, want := range want {
			e := chained(registry.New(nil, registry.Options{}), Options{TOON: true, Filter: filters})
			answer := e.begin().answer(&Request{Select: filter}, target{})
			answer.Verbatim = verbatim
			out, err := answer.Of(t.Context(), raw)
			if got := wire.ReadBlock(out.Content[0]).Text; err != nil || got != want {
				t.Errorf("verbatim %t, %s: got %q, %v, want %q", verbatim, filter, got, err, want)
			}
			answer = e.begin().answer(&Request{Select: ".a.b|error"}, target{})
			answer.Verbatim = verbatim
			failed, err := answer.Of(t.Context(), raw)
			if err != nil {
				t.Fatal(err)
			}
			handle := regexp.MustCompile(`"handle":"(r\w+)"`).FindStringSubmatch(wire.ReadBlock(failed.Content[0]).Text)
			arguments := wire.Encode(map[string]string{"handle": handle[1], "select": filter})
			read, err := e.Exec(t.Context(), Request{Server: builtin.Name, Tool: results.Tool, Arguments: arguments})
			if err != nil || wire.ReadBlock(read.Content[0]).Text != want {
				t.Errorf("verbatim %t, %s: read_result gives %s, %v, want %q", verbatim, filter, read.Content, err, want)
			}
		}
	}
}

// TestSelect_NotSelectedFits: an answer with the line about the members that are not selected is no longer than the client shows.
// If there is no room for the line, the line is left out, and not what the filter has found.
func TestSelect_NotSelectedFits(t *testing.T) {
	filters := jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(filters.Close)
	const limit = 1000
	for n, want := range map[int]int{limit - 100: 2, limit - 10: 1} {
		r := Request{Select: ".items[]", Format: results.Format{Bytes: limit}}
		answer := chained(registry.New(nil, registry.Options{}), Options{Filter: filters}).begin().answer(&r, target{})
		raw := `{"content":[],"structuredContent":{"items":["` + strings.Repeat("x", n) + `"],"about":"` + strings.Repeat("y", 200) + `","next_cursor":"bzoy"}}`
		out, err := answer.Of(t.Context(), json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, content := range out.Content {
			size += len(wire.ReadBlock(content).Text)
		}
		if len(out.Content) != want || size > limit {
			t.Errorf("a selection of %d bytes: %d texts with %d bytes, want %d texts", n, len(out.Content), size, want)
		}
		r = Request{Grep: "xxx", Format: results.Format{Bytes: limit}}
		answer = chained(registry.New(nil, registry.Options{}), Options{}).begin().answer(&r, target{})
		raw = `{"content":[],"structuredContent":{"items":["` + strings.Repeat("x", n-40) + `","y"],"next_cursor":"bzoy"}}`
		out, err = answer.Of(t.Context(), json.RawMessage(raw))
		if err != nil || len(out.Content) != want || strings.Contains(string(out.Content[0]), "read_result") {
			t.Errorf("a grep that finds %d bytes: %s, %v, want %d texts", n-40, out.Content, err, want)
		}
	}
}

// TestSelect_NoJSONIsKept: if a filter fails because the result has no JSON, all texts of the result can still be read.
func TestSelect_NoJSONIsKept(t *testing.T) {
	e := chained(registry.New(nil, registry.Options{}), Options{})
	of := &Request{From: request.From{Client: &caller.Client{Principal: &caller.Principal{ID: "p"}}}, Select: ".a", Format: always}
	answer := e.begin().answer(of, target{})
	out, err := answer.Of(t.Context(), json.RawMessage(`{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var data struct {
		Error struct{ Handle string }
	}
	if err := json.Unmarshal(out.Structured, &data); err != nil {
		t.Fatal(err)
	}
	arguments := json.RawMessage(`{"handle":"` + data.Error.Handle + `"}`)
	for principal, want := range map[string]string{"p": `two`, "q": "unknown"} {
		read, err := e.Exec(t.Context(), Request{From: request.From{Client: &caller.Client{Principal: &caller.Principal{ID: principal}}}, Server: builtin.Name, Tool: results.Tool, Arguments: arguments})
		if err != nil || !strings.Contains(string(read.Content[0]), want) {
			t.Errorf("%s: got %s, %v", principal, read.Content, err)
		}
	}
}

// TestReadResult_SelectsNothing: if the filter of read_result finds nothing, the answer says so.
func TestReadResult_SelectsNothing(t *testing.T) {
	filters := jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(filters.Close)
	e := chained(registry.New(nil, registry.Options{}), Options{Filter: filters})
	handle := e.begin().pages(&Request{}).Keep("[1,2]", false)
	for _, more := range []string{"", `,"limit":1`, `,"grep":"x"`} {
		arguments := json.RawMessage(`{"handle":"` + handle + `","select":"empty"` + more + `}`)
		got, err := e.Exec(t.Context(), Request{Server: builtin.Name, Tool: results.Tool, Arguments: arguments})
		if err != nil || wire.ReadBlock(got.Content[0]).Text != "[select gave nothing]\n[shape of the result: [2 of number]]" {
			t.Errorf("%s: got %s, %v", arguments, got.Content, err)
		}
	}
}

// TestSelected_Gone: if ctx has ended, the answer is the error of ctx, and nothing is stored.
func TestSelected_Gone(t *testing.T) {
	filters := jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(filters.Close)
	e := chained(registry.New(nil, registry.Options{}), Options{Filter: filters})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	answer := e.begin().answer(&Request{Select: ".a["}, target{})
	got, err := answer.Of(gone, json.RawMessage(`{"structuredContent":{"a":1}}`))
	if got != nil || !errors.Is(err, context.Canceled) || e.store.Len() != 0 {
		t.Errorf("got %v, %v; %d are kept", got, err, e.store.Len())
	}
}
