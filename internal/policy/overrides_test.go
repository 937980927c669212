package policy

import (
	"encoding/json"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
)

func tool(t *testing.T, raw string) *catalog.Tool {
	t.Helper()
	decoded, err := catalog.DecodeTool(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	return &decoded
}

func text(s string) *string { return &s }

// TestOverrides: an override replaces single members of a server's definition; the rest stays unchanged byte for
// byte.
func TestOverrides(t *testing.T) {
	const raw = `{"name":"get_a","inputSchema":{"type":"object","properties":{"n":{"maximum":9007199254740993},"token":{"type":"string"},"id":{}},` +
		`"required":["token","id"],"x":1.10},"zzz":[1.10],"annotations":{"title":"A","destructiveHint":true}}`
	for _, test := range []struct {
		name      string
		overrides []conf.Override
		want      string
		fixed     string
	}{
		{"none matches", []conf.Override{{Glob: "put_*", Name: "x"}}, raw, ""},
		{"nothing to repair", []conf.Override{{Glob: "*"}}, raw, ""},
		{"name", []conf.Override{{Glob: "get_a", Name: "fetch"}}, `{"name":"fetch",` + raw[len(`{"name":"get_a",`):], ""},
		{"a name that is taken", []conf.Override{{Glob: "get_a", Name: "other"}}, raw, ""},
		{"description", []conf.Override{{Glob: "*", Description: text("Says <A>.")}}, raw[:len(raw)-1] + `,"description":"Says <A>."}`, ""},
		{"no description", []conf.Override{{Glob: "*", Description: text("")}}, raw[:len(raw)-1] + `,"description":""}`, ""},
		{"annotations", []conf.Override{{Glob: "*", Annotations: json.RawMessage(`{"readOnlyHint":true,"destructiveHint":false}`)}},
			raw[:len(raw)-len(`{"title":"A","destructiveHint":true}}`)] + `{"readOnlyHint":true,"destructiveHint":false,"title":"A"}}`, ""},
		{"arguments", []conf.Override{{Glob: "*", Arguments: json.RawMessage(`{"token":"s","more":1}`)}},
			`{"name":"get_a","inputSchema":{"type":"object","properties":{"n":{"maximum":9007199254740993},"id":{}},"required":["id"],"x":1.10},"zzz":[1.10],"annotations":{"title":"A","destructiveHint":true}}`,
			`{"token":"s","more":1}`},
		{"the first counts", []conf.Override{{Glob: "get_*", Description: text("one")}, {Glob: "*", Description: text("two"), Name: "fetch"}},
			`{"name":"fetch",` + raw[len(`{"name":"get_a",`):len(raw)-1] + `,"description":"one"}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			sent := tool(t, raw)
			s := catalog.Server{Name: "s", Known: true}.WithTools([]catalog.Tool{*sent, {Name: "other"}})
			rules := &Rules{Servers: map[string]ServerRules{"s": {Overrides: test.overrides}}}
			got, hidden := rules.See(&s, &s.Tools[0])
			if hidden != "" || string(got.Raw) != test.want || string(got.Fixed) != test.fixed || got.OwnName() != "get_a" {
				t.Errorf("%s, fixed %s\ngot  %s\nwant %s", hidden, got.Fixed, got.Raw, test.want)
			}
			if same := test.want == raw; same != (got == &s.Tools[0]) {
				t.Errorf("the same tool: %t", !same)
			}
		})
	}
}

// TestOverrides_Filters: filters apply to the tool as corrected by the overrides, and match its old and its new
// name.
func TestOverrides_Filters(t *testing.T) {
	s := catalog.Server{Name: "s", Known: true}.WithTools([]catalog.Tool{*tool(t, `{"name":"drop","annotations":{"readOnlyHint":true}}`), *tool(t, `{"name":"get"}`)})
	renamed := []conf.Override{{Glob: "drop", Name: "remove", Annotations: json.RawMessage(`{"readOnlyHint":false}`)}, {Glob: "get", Annotations: json.RawMessage(`{"readOnlyHint":true}`)}}
	for _, test := range []struct {
		rules Rules
		want  string
	}{
		{Rules{Servers: map[string]ServerRules{"s": {Overrides: renamed, ReadOnly: true}}}, ByReadOnly},
		{Rules{Servers: map[string]ServerRules{"s": {Overrides: renamed, Deny: []string{"drop"}}}}, ByDeny},
		{Rules{Servers: map[string]ServerRules{"s": {Overrides: renamed, Deny: []string{"remove"}}}}, ByDeny},
		{Rules{Servers: map[string]ServerRules{"s": {Overrides: renamed}}, Disabled: []string{"s.remove"}}, ByDisabled},
		{Rules{Servers: map[string]ServerRules{"s": {Overrides: renamed, Allow: []string{"get"}}}}, ByAllow},
		{Rules{Servers: map[string]ServerRules{"s": {Overrides: renamed, Allow: []string{"remove", "get"}}}}, ""},
	} {
		if _, got := test.rules.See(&s, &s.Tools[0]); got != test.want {
			t.Errorf("%+v: %q, want %q", test.rules, got, test.want)
		}
		if _, got := test.rules.See(&s, &s.Tools[1]); got != "" {
			t.Errorf("%+v: get is hidden by %q", test.rules, got)
		}
	}
}

// TestOverrides_Branches: a hidden property is also removed from allOf, anyOf and oneOf, whose schemas are for the same object.
// Schemas of other objects, and values that are no schemas, stay unchanged.
func TestOverrides_Branches(t *testing.T) {
	for _, test := range []struct{ schema, want string }{
		{`{"anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{},"b":{}}}`,
			`{"anyOf":[{"required":[]},{"required":["b"]}],"properties":{"b":{}}}`},
		{`{"allOf":[{"properties":{"a":{},"o":{"properties":{"a":{}},"required":["a"]}},"oneOf":[{"required":["a","b"]},true]}]}`,
			`{"allOf":[{"properties":{"o":{"properties":{"a":{}},"required":["a"]}},"oneOf":[{"required":["b"]},true]}]}`},
		{`{"allOf":5,"anyOf":{"required":["a"]},"properties":[],"required":"a"}`, `{"allOf":5,"anyOf":{"required":["a"]},"properties":[],"required":"a"}`},
	} {
		if got := string(without(json.RawMessage(test.schema), []string{"a"})); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

// TestOverrides_Referred: if the schema refers to a hidden property, the property is moved to $defs, so that every reference can
// still be resolved.
func TestOverrides_Referred(t *testing.T) {
	for _, test := range []struct{ schema, hidden, want string }{
		{`{"properties":{"a":{"enum":["x",1.10]},"b":{"$ref":"#/properties/a"}},"required":["a","b"]}`, `{"a":"x"}`,
			`{"properties":{"b":{"$ref":"#/$defs/a"}},"required":["b"],"$defs":{"a":{"enum":["x",1.10]}}}`},
		{`{"$defs":{"a":{}},"properties":{"a":{"properties":{"q":{}}},"b":{"items":{"$ref":"#/properties/a/properties/q"}},"c":{"$ref":"#/$defs/a"}}}`, `{"a":{}}`,
			`{"$defs":{"a":{},"a_":{"properties":{"q":{}}}},"properties":{"b":{"items":{"$ref":"#/$defs/a_/properties/q"}},"c":{"$ref":"#/$defs/a"}}}`},
		{`{"properties":{"a":{"$ref":"#/properties/c"},"b":{"$ref":"#/properties/a"},"c":{"items":{"$ref":"#/properties/c"}},"ab":{}}}`, `{"a":1,"c":1,"ab":1}`,
			`{"properties":{"b":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/c"},"c":{"items":{"$ref":"#/$defs/c"}}}}`},
		{`{"properties":{"a":{"items":{"$ref":"#/properties/c"}},"b":{"$ref":"#/properties/a"},"c":{"items":{"$ref":"#/properties/a"}}}}`, `{"a":1,"c":1}`,
			`{"properties":{"b":{"$ref":"#/$defs/a"}},"$defs":{"a":{"items":{"$ref":"#/$defs/c"}},"c":{"items":{"$ref":"#/$defs/a"}}}}`},
		{`{"properties":{"gr\u00f6\u00dfe":{},"a/b":{},"b":{"$ref": "#\/properties\/gr\u00f6\u00dfe"},"c":{"$ref":"#/properties/gr%C3%B6%C3%9Fe/x"},"d":{"$ref":"#/properties/a~1b"},"e":{"const":"\"$ref\":\"#/properties/a~1b\""}}}`,
			`{"größe":1,"a/b":1}`,
			`{"properties":{"b":{"$ref":"#/$defs/größe"},"c":{"$ref":"#/$defs/gr%C3%B6%C3%9Fe/x"},"d":{"$ref":"#/$defs/a~1b"},"e":{"const":"\"$ref\":\"#/properties/a~1b\""}},"$defs":{"größe":{},"a/b":{}}}`},
		{`{"properties":{"a":{"$ref":"#/properties/b"},"b":{}}}`, `{"a":1}`, `{"properties":{"b":{}}}`},
	} {
		s := catalog.Server{Name: "s", Known: true}
		rules := &Rules{Servers: map[string]ServerRules{"s": {Overrides: []conf.Override{{Glob: "*", Arguments: json.RawMessage(test.hidden)}}}}}
		if got, _ := rules.See(&s, tool(t, `{"name":"x","inputSchema":`+test.schema+`}`)); string(got.InputSchema) != test.want {
			t.Errorf("got  %s\nwant %s", got.InputSchema, test.want)
		}
	}
}

// TestArguments: arguments that an override fixes replace the caller's arguments.
func TestArguments(t *testing.T) {
	for _, test := range []struct{ fixed, sent, want string }{
		{"", `{"a":1.10}`, `{"a":1.10}`},
		{`{"token":"s"}`, "", `{"token":"s"}`},
		{`{"token":"s"}`, `{"a":1.10,"token":"mine"}`, `{"token":"s","a":1.10}`},
	} {
		one := &catalog.Tool{}
		if test.fixed != "" {
			one.Fixed = json.RawMessage(test.fixed)
		}
		var sent json.RawMessage
		if test.sent != "" {
			sent = json.RawMessage(test.sent)
		}
		if got := string(Arguments(one, sent)); got != test.want {
			t.Errorf("%s and %s: %s, want %s", test.fixed, test.sent, got, test.want)
		}
	}
}

// TestDigest: a digest depends on the name, description, schemas and annotations of a tool, but not on other members or on
// their order.
func TestDigest(t *testing.T) {
	const raw = `{"name":"x","description":"d","inputSchema":{"type":"object","properties":{"a":{"maximum":1.10}}},"outputSchema":{},"annotations":{"readOnlyHint":true}}`
	digest := Digest(tool(t, raw))
	if same := `{"annotations":{"readOnlyHint":true},"outputSchema":{},"inputSchema":{"properties":{"a":{"maximum":1.10}},"type":"object"},"description":"d","name":"x","icons":[]}`; Digest(tool(t, same)) != digest {
		t.Error("another order has another digest")
	}
	for _, other := range []string{
		`{"name":"y","description":"d","inputSchema":{"type":"object","properties":{"a":{"maximum":1.10}}},"outputSchema":{},"annotations":{"readOnlyHint":true}}`,
		`{"name":"x","description":"e","inputSchema":{"type":"object","properties":{"a":{"maximum":1.10}}},"outputSchema":{},"annotations":{"readOnlyHint":true}}`,
		`{"name":"x","description":"d","inputSchema":{"type":"object","properties":{"a":{"maximum":1.11}}},"outputSchema":{},"annotations":{"readOnlyHint":true}}`,
		`{"name":"x","description":"d","inputSchema":{"type":"object","properties":{"a":{"maximum":1.10}}},"outputSchema":{"a":1},"annotations":{"readOnlyHint":true}}`,
		`{"name":"x","description":"d","inputSchema":{"type":"object","properties":{"a":{"maximum":1.10}}},"outputSchema":{},"annotations":{"readOnlyHint":false}}`,
		`{"name":"x","description":"d","outputSchema":{},"annotations":{"readOnlyHint":true}}`,
	} {
		if Digest(tool(t, other)) == digest {
			t.Errorf("the same digest: %s", other)
		}
	}
	pinned := &Rules{Servers: map[string]ServerRules{"s": {Pin: conf.PinBlock, Approved: map[string]string{"x": digest}, Overrides: []conf.Override{{Glob: "x", Name: "z"}}}}}
	s := catalog.Server{Name: "s"}
	if seen, by := pinned.See(&s, tool(t, raw)); by != "" || seen.Name != "z" {
		t.Errorf("an approved tool: %q", by)
	}
	if _, by := pinned.See(&s, tool(t, `{"name":"x","description":"e"}`)); by != ByPin {
		t.Errorf("a changed tool: %q", by)
	}
	if _, by := pinned.See(&s, tool(t, `{"name":"new"}`)); by != ByPin {
		t.Errorf("a new tool: %q", by)
	}
}
