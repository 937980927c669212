package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/arguments"
	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/request"
	"mcpx/internal/results"
	"mcpx/internal/tokens"
)

// wrong has arguments that many schemas refuse, by the kind of error.
var wrong = []struct {
	name string
	make func(schema any) any
}{
	{"empty", func(any) any { return map[string]any{} }},
	{"list", func(any) any { return []any{} }},
	{"unknown", func(any) any { return map[string]any{"zzz_not_there": 1} }},
	{"leaves", func(schema any) any { return instance(schema, 0, false, false) }},
	{"objects", func(schema any) any { return instance(schema, 0, true, false) }},
	{"strangers", func(schema any) any { return instance(schema, 0, false, true) }},
}

// instance returns a value that has every property of a schema, down to the sixth level. Each leaf has a type that the schema
// does not allow. With flat, objects and arrays below the first level have a wrong type too. With strange, every object has an
// undeclared property.
func instance(schema any, depth int, flat, strange bool) any {
	s, _ := schema.(map[string]any)
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 && s["type"] == nil {
			return instance(list[0], depth, flat, strange)
		}
	}
	properties, _ := s["properties"].(map[string]any)
	kind := fmt.Sprint(s["type"])
	switch {
	case depth > 6 || flat && depth == 1 && (properties != nil || s["items"] != nil):
		return 7.5
	case properties != nil:
		object := make(map[string]any)
		for name, property := range properties {
			object[name] = instance(property, depth+1, flat, strange)
		}
		if strange {
			object["zzz_not_there"] = 1
		}
		return object
	case s["items"] != nil:
		return []any{instance(s["items"], depth+1, flat, strange)}
	case strings.Contains(kind, "string"):
		return map[string]any{"a": 1}
	}
	return "neither a number nor true"
}

// recordedTools returns recorded tools that servers made from OpenAPI documents. If MCPX_CORPUS is set, it also returns the tools
// in that folder.
func recordedTools(t *testing.T) (tools []catalog.Tool) {
	t.Helper()
	files, err := filepath.Glob("../schemats/testdata/openapi/*.json")
	if dir := os.Getenv("MCPX_CORPUS"); dir != "" && err == nil {
		var more []string
		more, err = filepath.Glob(filepath.Join(dir, "tools", "*.json"))
		files = append(files, more...)
	}
	for _, file := range files {
		data, readErr := os.ReadFile(file)
		page, pageErr := catalog.ReadPage(catalog.Tools, data)
		if err = errors.Join(err, readErr, pageErr); err == nil {
			list, _ := catalog.DecodeTools(page.Items)
			tools = append(tools, list...)
		}
	}
	if err != nil || len(tools) == 0 {
		t.Fatalf("%d tools: %v", len(tools), err)
	}
	return tools
}

// TestInvalid_Short: the text of a VALIDATION_ERROR is short for any schema.
func TestInvalid_Short(t *testing.T) {
	mcptest.OneGoroutine(t)
	tools := mcptest.Part(t, recordedTools(t), 40)
	for _, typeScript := range []bool{true, false} {
		e := New(registry.New(nil, registry.Options{}), Options{TypeScript: typeScript}).begin()
		t.Logf("TypeScript %v, %d tools", typeScript, len(tools))
		for _, w := range wrong {
			var costs []int
			var longest string
			for i := range tools {
				tool := &tools[i]
				var schema any
				_ = json.Unmarshal(tool.InputSchema, &schema)
				sent, _ := json.Marshal(w.make(schema))
				_, _, err := e.schemas.Read(sent, tool.InputSchema, true)
				var invalid *arguments.ValidationError
				if !errors.As(err, &invalid) {
					continue
				}
				f := e.failure(&Request{Server: "server", Tool: tool.Name}, target{tool: tool}, err)
				n := tokens.Count(f.Said())
				if n > 400 {
					t.Errorf("%s, %s: %d tokens: %.300s", w.name, tool.Name, n, f.Said())
				}
				if len(costs) == 0 || n > slices.Max(costs) {
					longest = f.Said()
				}
				costs = append(costs, n)
			}
			slices.Sort(costs)
			if len(costs) == 0 {
				continue
			}
			t.Logf("%-10s %4d errors, median %4d, p95 %4d, max %5d tokens", w.name, len(costs), costs[len(costs)/2], costs[len(costs)*95/100], costs[len(costs)-1])
			if os.Getenv("SHOW") != "" {
				t.Logf("%.3000s", longest)
			}
		}
	}
}

// TestArguments_OfExec: a model may put an argument of exec, such as select or grep, among the arguments of the tool. If the tool
// has no such argument, the answer says where it belongs. In a view without exec, the answer calls it unknown, like any other.
func TestArguments_OfExec(t *testing.T) {
	mcptest.NoLeaks(t)
	e := executing(t, Options{}, nil, piped(t, "git", mcptest.Spec{
		Tools: json.RawMessage(`[{"name":"lax","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}},
			{"name":"strict","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}},
			{"name":"own","inputSchema":{"type":"object","properties":{"select":{"type":"string"}},"additionalProperties":false}}]`),
	}))
	model := request.From{Client: &caller.Client{}}
	for _, tt := range []struct {
		tool, arguments string
		form            results.Format
		native          bool
		want            string
	}{
		{"lax", `{"select":".a"}`, results.Format{}, false, "\nmcpx: lax declares no argument select; exec takes it beside arguments"},
		{"strict", `{"path":"a","grep":"b"}`, results.Format{}, false, "VALIDATION_ERROR: /grep: is unknown; exec takes it beside arguments"},
		{"strict", `{"path":"a","grep":"b","select":".a"}`, results.Format{ShortNames: true}, false, "VALIDATION_ERROR: /grep: is unknown; exec takes it beside args; /select: is unknown; exec takes it beside args"},
		{"strict", `{"grep":"b"}`, results.Format{}, false, "VALIDATION_ERROR: /grep: is unknown; /path: is missing\nExpected: "},
		{"own", `{"select":".a"}`, results.Format{}, false, `{"select":".a"}`},
		{"strict", `{"path":"a","grep":"b"}`, results.Format{}, true, "VALIDATION_ERROR: /grep: is unknown\nExpected: "},
		{"lax", `{"select":".a"}`, results.Format{}, true, "\nmcpx: lax declares no argument select, only path"},
	} {
		r := exec(t, e, Request{From: model, Server: "git", Tool: tt.tool, Arguments: json.RawMessage(tt.arguments), Format: tt.form, Native: tt.native})
		if got := textOf(t, r.Content[len(r.Content)-1]); got != tt.want && !(strings.HasSuffix(tt.want, "Expected: ") && strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s %s: got %s", tt.tool, tt.arguments, got)
		}
	}
	r := exec(t, e, Request{Server: "git", Tool: "strict", Arguments: json.RawMessage(`{"path":"a","grep":"b"}`)})
	if got := textOf(t, r.Content[0]); got != "VALIDATION_ERROR: /grep: is unknown; it is the flag --grep" {
		t.Errorf("at the command line: %s", got)
	}
	r = exec(t, e, Request{From: model, Server: "mcpx", Tool: "wait_result", Arguments: json.RawMessage(`{"handle":"r1","select":".a"}`)})
	if got := textOf(t, r.Content[0]); strings.Contains(got, "beside") {
		t.Errorf("wait_result, which exec gives no select: %s", got)
	}
}
