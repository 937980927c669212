package describe

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/tokens"
)

// TestMatches_LongTools: a tool that would take hundreds of tokens is shown in a short form, not
// complete, and is not left out.
func TestMatches_LongTools(t *testing.T) {
	tool := func(name string, params int) *catalog.Tool {
		var properties []string
		for i := range params {
			properties = append(properties, fmt.Sprintf(`"%s_%d":{"type":"string","description":"What the property %d is for, in some words."}`, strings.Repeat("long", 1+i/20), i, i))
		}
		return &catalog.Tool{Name: name, Description: "Does it.", InputSchema: json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`)}
	}
	one, two := &catalog.Server{Name: "one", Known: true}, &catalog.Server{Name: "two", Known: true, State: catalog.Unavailable}
	text := Matches([]Match{
		{one, tool("small", 2), nil}, {two, tool("large", 36), []string{"three", "four"}}, {one, tool("next", 2), nil},
		{two, tool("other", 2), nil}, {one, tool("huge", 90), nil}, {two, tool("last", 0), []string{"five"}},
	}, []Match{{one, tool("a", 1), nil}, {two, tool("b", 1), nil}, {one, tool("c\n// x", 1), nil}}, Options{TypeScript: true})
	at := 0
	for _, want := range []string{
		"// server_name: one\n// Does it.\nsmall(\n", "// Does it.\nnext(\n",
		"// server_name: two\n// two is unavailable\n// types only, inspect it before exec\nlarge(/* …36 optional */) // Does it.\n// also on three, four\n",
		"// types only, inspect them before exec\n// server_name: two\nother(/* …2 optional */) // Does it.\nlast() // Does it.\n// also on five\n",
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

// TestTools_Many: the answer about many tools of a server that are named at once has a limit. It is longer only if their names
// take more.
func TestTools_Many(t *testing.T) {
	var tools []*catalog.Tool
	for i := range 200 {
		var properties []string
		for j := range 8 {
			said := fmt.Sprintf("What field %d of tool %d is for, in some words.", j, i)
			properties = append(properties, fmt.Sprintf(`"field_%d":{"type":"string","description":%q}`, j, said))
		}
		tools = append(tools, &catalog.Tool{
			Name: fmt.Sprintf("tool_%d", i), Description: fmt.Sprintf("Does thing %d.", i),
			InputSchema: json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`),
		})
	}
	s := &catalog.Server{Name: "s", Known: true, State: catalog.Ready}
	for _, typescript := range []bool{true, false} {
		o := Options{TypeScript: typescript}
		text := Tools(s, tools, o)
		if n := tokens.Count(text); n > 7500 {
			t.Errorf("%d tokens", n)
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
