package executor

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/builtin"
	"mcpx/internal/jq"
	"mcpx/internal/mcptest"
	"mcpx/internal/results"
)

// TestGrep: grep shows the lines of each text that match, with their numbers, or the items. If much is left out, the last line
// has the offsets of the items, and says how to read what is around the matches.
func TestGrep(t *testing.T) {
	mcptest.NoLeaks(t)
	filters := jq.New(jq.Limits{Time: time.Minute}, nil)
	t.Cleanup(filters.Close)
	const image = `{"type":"image","data":"eA==","mimeType":"image/png"}`
	text := func(s string) string { return `{"type":"text","text":` + string(wire.Encode(s)) + `}` }
	const list = "[\n  {\"id\": 1, \"name\": \"a\"},\n  {\"id\": 2, \"name\": \"b\"},\n  {\"id\": 3, \"name\": \"b\"}\n]"
	long := strings.Repeat("a line\n", 200) + "the one\n" + strings.Repeat("a line\n", 200)
	numbered := func(n int) string {
		rows := make([]string, n)
		for i := range rows {
			rows[i] = fmt.Sprintf(`{"n":%d}`, i)
		}
		return "[" + strings.Join(rows, ",") + "]"
	}
	const call = `exec {"server_name":"mcpx","tool_name":"read_result","arguments":{"handle":"H"`
	tests := []struct {
		name, grep, selects string
		result              string
		want                []string // the expected texts, with H in place of a handle; other blocks unchanged
		data                string
	}{
		{"lines", "^b", "", `{"content":[` + text("alpha\nbeta\ngamma") + `]}`, []string{"2:beta\n[1 of 3 lines match]"}, ""},
		{"the end of a line", "a$", "", `{"content":[` + text("alpha\nbeta\r\ngama x") + `]}`, []string{"1:alpha\n2:beta\r\n[2 of 3 lines match]"}, ""},
		{"all lines", "a", "", `{"content":[` + text("alpha\nbeta") + `]}`, []string{"alpha\nbeta"}, ""},
		{"lines, one with JSON", "^ERR", "", `{"content":[` + text("start\nstep 1\nstep 2\nERR {\"code\":5,\"ids\":[1,2]}\nretry\nok\nend") + `]}`, []string{"4:ERR {\"code\":5,\"ids\":[1,2]}\n[1 of 7 lines match]"}, ""},
		{"no line", "x", "", `{"content":[` + text("alpha\nbeta") + `]}`, []string{"[0 of 2 lines match]"}, ""},
		{"a long text", "one", "", `{"content":[` + text(long) + `]}`, []string{"201:the one\n[1 of 401 lines match; around them: " + call + `,"offset":200}}]`}, ""},
		{"a long list", `"n":3[0-9]\b`, "", `{"content":[` + text(numbered(300)) + `]}`, []string{`[{"n":30},{"n":31},{"n":32},{"n":33},{"n":34},{"n":35},{"n":36},{"n":37},{"n":38},{"n":39}]` + "\n[10 of 300 items match, offset 30-39; around them: " + call + `,"offset":30}}]`}, ""},
		{"nothing in a long text", "two", "", `{"content":[` + text(long) + `]}`, []string{"[0 of 401 lines match; all: " + call + `}}]`}, ""},
		{"items", `"b"`, "", `{"content":[` + text(list) + `]}`, []string{"[2]{id,name}:\n  2,b\n  3,b\n[2 of 3 items match]"}, `{"result":[{"id":2,"name":"b"},{"id":3,"name":"b"}]}`},
		{"rows of a table", `^3,b$`, "", `{"content":[` + text(list) + `]}`, []string{`[{"id":3,"name":"b"}]` + "\n[1 of 3 items match]"}, ""},
		{"items within an object", `"b"`, "", `{"content":[` + text(`{"total":3,"rows":`+list+`}`) + `]}`, []string{"[2]{id,name}:\n  2,b\n  3,b\n[2 of 3 items of .rows match]"}, `{"result":[{"id":2,"name":"b"},{"id":3,"name":"b"}]}`},
		{"beside the items", `total`, "", `{"content":[` + text(`{"total":3,"rows":`+list+`}`) + `]}`, []string{`{"total":3,"rows":[]}` + "\n[0 of 3 items of .rows match]"}, `{"result":{"total":3,"rows":[]}}`},
		{"members", `url`, "", `{"content":[` + text(`{"id":1,"html_url":"x","name":"y"}`) + `]}`, []string{`{"html_url":"x"}` + "\n[1 of 3 items match]"}, `{"result":{"html_url":"x"}}`},
		{"items of one page of many", `"b"`, "", `{"content":[` + text(`{"rows":`+list+`,"next_cursor":"bzoy"}`) + `]}`, []string{"[2]{id,name}:\n  2,b\n  3,b\n[2 of 3 items of .rows match]", "\n[not selected: .next_cursor \"bzoy\"]"}, `{"result":[{"id":2,"name":"b"},{"id":3,"name":"b"}]}`},
		{"a selection of one page of many", `b`, ".rows[].name", `{"content":[` + text(`{"rows":`+list+`,"next_cursor":"bzoy"}`) + `]}`, []string{"[\"b\",\"b\"]\n[2 of 3 items match]", "\n[not selected: .next_cursor \"bzoy\"]"}, `{"result":["b","b"]}`},
		{"JSON Lines", `"b"`, "", `{"content":[` + text("{\"id\":1,\"n\":\"a\"}\n{\"id\":2,\"n\":\"b\",\"x\":[]}\n{\"id\":3}") + `]}`, []string{`{"id":2,"n":"b","x":[]}` + "\n[1 of 3 items match]"}, `{"result":[{"id":2,"n":"b","x":[]}]}`},
		{"lines of a string", `two`, "", `{"content":[` + text(`{"exit_code":0,"stdout":"one\ntwo\nthree"}`) + `]}`, []string{"2:two\n[1 of 3 lines of .stdout match]"}, ""},
		{"lines of a JSON string", `^two`, "", `{"content":[` + text(`"one\ntwo\nthree"`) + `]}`, []string{"2:two\n[1 of 3 lines match]"}, ""},
		{"a JSON string with one line", `one`, "", `{"content":[` + text(`"one two"`) + `]}`, []string{`"one two"`}, ""},
		{"structuredContent only", `b`, "", `{"content":[],"structuredContent":{"rows":["a","b"]}}`, []string{"[\"b\"]\n[1 of 2 items of .rows match]"}, `{"result":["b"]}`},
		{"structuredContent that a text says", `b`, "", `{"content":[` + text(`["a","b"]`) + `],"structuredContent":{"result":["a","b"]}}`, []string{"[\"b\"]\n[1 of 2 items match]"}, `{"result":["b"]}`},
		{"several texts", `b`, "", `{"content":[` + text("a\nb") + "," + image + "," + text("c\nd") + "," + text("b") + `]}`, []string{"2:b\n[1 of 2 lines match]", image, "b", "\n[2 of 3 text blocks match]"}, ""},
		{"several long texts", `b`, "", `{"content":[` + text("a\nb") + "," + text(long) + `]}`, []string{"2:b\n[1 of 2 lines match]", "\n[1 of 2 text blocks match; all: " + call + "}}]"}, ""},
		{"items as blocks", `"b"`, "", `{"content":[` + text(`{"id":1,"n":"a"}`) + "," + text(`{ "id": 2, "n": "b" }`) + "," + text(`{"id":3}`) + `]}`, []string{`{"id":2,"n":"b"}` + "\n[1 of 3 items match]"}, `{"result":[{"id":2,"n":"b"}]}`},
		{"no text", `b`, "", `{"content":[` + image + `]}`, []string{image}, ""},
		{"an error of the tool", `b`, "", `{"content":[` + text("a\nb") + `],"isError":true}`, []string{"a\nb"}, ""},
		{"a selection", `b`, ".[].name", `{"content":[` + text(list) + `]}`, []string{"[\"b\",\"b\"]\n[2 of 3 items match]"}, `{"result":["b","b"]}`},
		{"all of a selection", `b`, ".[1:][].name", `{"content":[` + text(list) + `]}`, []string{"\"b\"\n\"b\""}, `{"result":["b","b"]}`},
		{"lines of a selection", `^b`, ".[].name|tostring", `{"content":[` + text(`[{"name":"a\nb"}]`) + `]}`, []string{"2:b\n[1 of 2 lines match]"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := executing(t, Options{TOON: true, Filter: filters}, nil, piped(t, "one", mcptest.Spec{
				Tools: json.RawMessage(`[{"name":"t"}]`), Results: map[string]json.RawMessage{"t": json.RawMessage(tt.result)},
			}))
			got := exec(t, e, Request{Server: "one", Tool: "t", Grep: tt.grep, Select: tt.selects, Format: always})
			if len(got.Content) != len(tt.want) {
				t.Fatalf("got %s", got.Content)
			}
			handle := regexp.MustCompile(`"handle":"r[a-z0-9]{20}"`)
			for i, want := range tt.want {
				b := wire.ReadBlock(got.Content[i])
				have := string(b.Raw)
				if b.IsText {
					have = handle.ReplaceAllString(b.Text, `"handle":"H"`)
				}
				if have != want {
					t.Errorf("block %d: got %s\nwant %s", i, have, want)
				}
			}
			if tt.data != "" && string(got.Structured) != tt.data {
				t.Errorf("structuredContent: got %s, want %s", got.Structured, tt.data)
			}
		})
	}
}

// TestGrep_ReadsOn: the call that the answer to a grep suggests reads the text from the first match on.
func TestGrep_ReadsOn(t *testing.T) {
	mcptest.NoLeaks(t)
	lines := make([]string, 300)
	for i := range lines {
		lines[i] = fmt.Sprint("line ", i+1)
	}
	e := executing(t, Options{ResultTokens: 20_000}, nil, piped(t, "one", mcptest.Spec{
		Tools: json.RawMessage(`[{"name":"t"}]`), Results: map[string]json.RawMessage{"t": json.RawMessage(`{"content":[` + string(wire.TextBlock(strings.Join(lines, "\n"))) + `]}`)},
	}))
	got := textOf(t, exec(t, e, Request{Server: "one", Tool: "t", Grep: "e 20[0-9]$"}).Content[0])
	call := regexp.MustCompile(`"arguments":(\{.*\})\}\]$`).FindStringSubmatch(got)
	if call == nil || !strings.HasPrefix(got, "200:line 200\n201:line 201\n") {
		t.Fatalf("got %s", got)
	}
	arguments := strings.TrimSuffix(call[1], "}") + `,"limit":2}`
	if on := textOf(t, exec(t, e, Request{Server: builtin.Name, Tool: results.Tool, Arguments: json.RawMessage(arguments)}).Content[0]); on != "line 200\nline 201\n" {
		t.Errorf("%s: got %q", arguments, on)
	}
}

// TestGrep_Refused: an invalid regular expression is refused before the call, with a short message. If matching takes too long,
// the call fails after it was made, and its result is stored.
func TestGrep_Refused(t *testing.T) {
	mcptest.NoLeaks(t)
	spec := mcptest.Spec{}.WithFiles(t)
	e := executing(t, Options{}, nil, piped(t, "fake", spec))
	calls := 0
	for _, tt := range []struct {
		grep, text, want string
		called           bool
	}{
		{"[a", "x", "VALIDATION_ERROR: /grep: missing closing ] `[a`", false},
		{"(?<=a)b", "x", "VALIDATION_ERROR: /grep: invalid named capture `(?<=a)b`", false},
		{strings.Repeat("a", 1001), "x", "VALIDATION_ERROR: /grep: is longer than 1000 bytes", false},
		{`(.{0,50}){0,20}z`, strings.Repeat("a b ", 1<<19), "SELECT_ERROR: /grep: took more than 2s; use a simpler expression, or select\nThe call was made; its result is kept: exec {", true},
	} {
		got := exec(t, e, Request{Server: "fake", Tool: "echo", Arguments: wire.Encode(map[string]string{"text": tt.text}), Grep: tt.grep})
		text := textOf(t, got.Content[0])
		if !got.IsError || !strings.HasPrefix(text, tt.want) || !tt.called && text != tt.want {
			t.Errorf("%.40s: got %s, want %s", tt.grep, text, tt.want)
		}
		if tt.called {
			calls++
		}
		if n := len(spec.Log(t).Calls("echo")); n != calls {
			t.Errorf("%.40s: %d calls, want %d", tt.grep, n, calls)
		}
	}
}
