package config

import (
	"fmt"
	"testing"
)

func TestOverrides_Faults(t *testing.T) {
	for _, test := range []struct{ value, want string }{
		{`{"get_*": {"description": "", "annotations": {"readOnlyHint": true, "title": "x"}, "arguments": {"a": [1.10, null, {"b": "c"}]}}, "x": {"name": "y"}, "//": 1, "z": null}`, ""},
		{`[]`, ": must be an object, not an array"},
		{`{"x": "y"}`, ".x: must be an object, not a string"},
		{`{"[": {}}`, `["["]: is not a valid pattern: "["`},
		{`{"x*": {"name": "y"}}`, `["x*"].name: can only rename one tool, so the override must be for a tool's name, not a pattern`},
		{`{"x": {"name": "y"}, "z": {"name": "y"}}`, ".z.name: is already the name of another tool here"},
		{`{"x": {"name": "y z"}}`, ".x.name: must be 1 to 64 letters (a-z), digits, '.', '_' and '-'"},
		{`{"x": {"annotations": {"readOnlyHint": "true"}}}`, ".x.annotations.readOnlyHint: must be true or false, not a string"},
		{`{"x": {"annotations": {"readonlyHint": true}}}`, `.x.annotations.readonlyHint: unknown key "readonlyHint", did you mean "readOnlyHint"?`},
		{`{"x": {"arguments": [1]}}`, ".x.arguments: must be an object, not an array"},
		{`{"x": {"desciption": "y"}}`, `.x.desciption: unknown key "desciption", did you mean "description"?`},
	} {
		c, err := Parse("c.json", fmt.Appendf(nil, `{"mcpServers": {"a": {"command": "x", "overrides": %s}}}`, test.value), Options{})
		want := "c.json: mcpServers.a.overrides" + test.want
		if got := fmt.Sprint(err); test.want != "" && got != want || test.want == "" && err != nil {
			t.Errorf("%s\ngot  %s\nwant %s", test.value, got, want)
		}
		if err == nil {
			if o := c.Servers[0].Overrides; len(o) != 2 || o[0].Glob != "get_*" || *o[0].Description != "" || o[1].Name != "y" ||
				string(o[0].Annotations) != `{"readOnlyHint":true,"title":"x"}` || string(o[0].Arguments) != `{"a":[1.10,null,{"b":"c"}]}` {
				t.Errorf("got %+v", o)
			}
		}
	}
}
