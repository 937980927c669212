package describe

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
	"mcpx/internal/tokens"
)

// TestMatches_LongTools: a tool that would take hundreds of tokens is shown in a short form, not
// complete, and is not left out.
func TestMatches_LongTools(t *testing.T) {
	one, two := &catalog.Server{Name: "one", Known: true}, &catalog.Server{Name: "two", Known: true, State: catalog.Unavailable}
	text := Matches([]Match{
		{one, longTool("small", 2), nil}, {two, longTool("large", 36), []string{"three", "four"}}, {one, longTool("next", 2), nil},
		{two, longTool("other", 2), nil}, {one, longTool("huge", 90), nil}, {two, longTool("last", 0), []string{"five"}},
	}, []Match{{one, longTool("a", 1), nil}, {two, longTool("b", 1), nil}, {one, longTool("c\n// x", 1), nil}}, Options{TypeScript: true})
	at := 0
	for _, want := range []string{
		"// server_name: one\n// Does it.\nsmall(\n", "// Does it.\nnext(\n",
		"// types only, inspect them before exec\n// server_name: two\n// two is unavailable\nlarge(/* …36 optional */) // Does it.\n// also on three, four\n" +
			"other(/* …2 optional */) // Does it.\nlast() // Does it.\n// also on five\n",
		"// server_name: one\nhuge(/* …90 optional */)",
		"// more, names only:\none: a, c // x\ntwo: b",
	} {
		if n := strings.Index(text[at:], want); n >= 0 {
			at += n
		} else {
			t.Errorf("no %q in its place in\n%s", want, text)
		}
	}
	if n := tokens.Count(text); n > 600 {
		t.Errorf("%d tokens", n)
	}
}

// TestMatches_LongFirst: the best tool is shown complete even if it takes more tokens than the others may. It is mostly the right
// one, and another inspect would take the same tokens.
func TestMatches_LongFirst(t *testing.T) {
	s := &catalog.Server{Name: "s", Known: true}
	for _, typescript := range []bool{true, false} {
		o := Options{TypeScript: typescript}
		text := Matches([]Match{{s, longTool("first", 36), nil}, {s, longTool("second", 36), nil}}, nil, o)
		if n := strings.Count(text, "What the property 35 is for"); n != 1 {
			t.Errorf("%d tools are complete in\n%s", n, text)
		}
		text = Matches([]Match{{s, longTool("huge", 90), nil}, {s, longTool("small", 2), nil}}, nil, o)
		if strings.Contains(text, "What the property 89 is for") || !strings.Contains(text, "What the property 1 is for") {
			t.Errorf("the huge tool is complete, or the small one is not, in\n%s", text)
		}
	}
}

// longTool makes a tool that takes about 20 tokens for each parameter.
func longTool(name string, params int) *catalog.Tool {
	var properties []string
	for i := range params {
		key, said := fmt.Sprintf("%s_%d", strings.Repeat("long", 1+i/20), i), fmt.Sprintf("What the property %d is for, in some words.", i)
		properties = append(properties, fmt.Sprintf(`%q:{"type":"string","description":%q}`, key, said))
	}
	schema := `{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`
	return &catalog.Tool{Name: name, Description: "Does it.", InputSchema: json.RawMessage(schema)}
}

// TestTools_Many: the answer about many tools of a server that are named at once has a limit. It is longer only if the names of
// the tools, or the complete definition of the smallest tool, take more.
func TestTools_Many(t *testing.T) {
	mcptest.OneGoroutine(t)
	tool := func(i, fields int) *catalog.Tool {
		var properties []string
		for j := range fields {
			said := fmt.Sprintf("What field %d of tool %d is for, in some words.", j, i)
			properties = append(properties, fmt.Sprintf(`"field_%d":{"type":"string","description":%q}`, j, said))
		}
		return &catalog.Tool{
			Name: fmt.Sprintf("tool_%d", i), Description: fmt.Sprintf("Does thing %d.", i),
			InputSchema: json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`),
		}
	}
	s := &catalog.Server{Name: "s", Known: true, State: catalog.Ready}
	var tools []*catalog.Tool
	for i := range 200 {
		tools = append(tools, tool(i, 8))
	}
	for _, typescript := range []bool{true, false} {
		o := Options{TypeScript: typescript}
		text := Tools(s, tools, o)
		if n := tokens.Count(text); n > 10500 {
			t.Errorf("%d tokens", n)
		}
		if n := tokens.Count(text[:strings.Index(text, ", inspect them before exec")]); n < 5000 || n > 6500 {
			t.Errorf("%d tokens of complete tools", n)
		}
		for _, large := range []struct{ tools, fields, complete int }{{2, 160, 1}, {3, 110, 2}, {2, 400, 1}} {
			list := tools[:0:0]
			for i := range large.tools {
				list = append(list, tool(i, large.fields))
			}
			last := fmt.Sprintf("What field %d ", large.fields-1)
			text := Tools(s, list, o)
			if n := strings.Count(text, last); n != large.complete || !strings.Contains(text, fmt.Sprintf("tool_%d", large.tools-1)) {
				t.Errorf("of %d tools with %d fields (%d tokens), %d are complete", large.tools, large.fields, tokens.Count(Tool(s, list[0], o)), n)
			}
		}
		for _, tool := range tools {
			if !strings.Contains(text, tool.Name) {
				t.Errorf("%s is missing", tool.Name)
			}
		}
		few := Tools(s, tools[:10], o)
		if n := strings.Count(few, "What field 7 "); n != 10 {
			t.Errorf("%d of 10 tools are complete:\n%s", n, few)
		}
	}
}
