package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/executor"
	"mcpx/internal/mcptest"
	"mcpx/internal/policy"
	"mcpx/internal/registry"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

func named(servers map[string][]string) *catalog.Snapshot {
	var all []catalog.Server
	for name, tools := range servers {
		list := make([]catalog.Tool, len(tools))
		for i, tool := range tools {
			list[i].Name = tool
		}
		all = append(all, catalog.Server{Name: name, Known: true}.WithTools(list))
	}
	return catalog.NewSnapshot(all)
}

// TestNaming: with and without prefixes, each name is unique, belongs to the right tool, and has at most 64 characters.
func TestNaming(t *testing.T) {
	long := strings.Repeat("very_", 20) + "long"
	for _, test := range []struct {
		name    string
		naming  Naming
		servers map[string][]string
		want    []string
	}{
		{"always", Naming{}, map[string][]string{"b": {"y", "x"}, "a": {"x"}}, []string{"a__x", "b__y", "b__x"}},
		{"separator", Naming{Separator: "-"}, map[string][]string{"a": {"x"}}, []string{"a-x"}},
		{"conflict", Naming{Prefix: PrefixConflict}, map[string][]string{"b": {"y", "x"}, "a": {"x"}}, []string{"a__x", "y", "b__x"}},
		{"never", Naming{Prefix: PrefixNever}, map[string][]string{"b": {"y", "x"}, "a": {"x"}}, []string{"x", "y", "b__x"}},
		{"a dot in the server", Naming{}, map[string][]string{"a.b": {"x.y"}}, []string{"a_b__x.y"}},
		{"64 are not too long", Naming{Prefix: PrefixNever}, map[string][]string{"a": {strings.Repeat("é", 64)}}, []string{strings.Repeat("é", 64)}},
		{"65 are", Naming{Prefix: PrefixNever}, map[string][]string{"a": {strings.Repeat("é", 65)}}, []string{strings.Repeat("é", 55) + "_a9407121"}},
		{"too long", Naming{}, map[string][]string{"a": {long, long + "er"}}, []string{"a__" + long[:52] + "_6e69d42a", "a__" + long[:52] + "_198eb85b"}},
		{"one name for two", Naming{}, map[string][]string{"a": {"b__x"}, "a__b": {"x"}}, []string{"a__b__x", "a__b__x_1118aefb"}},
		{"a name with a hash", Naming{Prefix: PrefixNever}, map[string][]string{"a": {long[:55] + "_6e69d42a", long}}, []string{long[:55] + "_6e69d42a", long[:55] + "_d431cb66"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			snap := named(test.servers)
			all, byName := test.naming.names(snap)
			var got []string
			for _, o := range all {
				got = append(got, o.name)
				if byName[o.name] != o || utf8.RuneCountInString(o.name) > 64 {
					t.Errorf("%q leads to %+v", o.name, byName[o.name])
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
			if len(byName) != snap.Tools() {
				t.Errorf("%d names for %d tools", len(byName), snap.Tools())
			}
		})
	}
}

// TestNative: a definition is as the server sent it, except for the name. Parts that SDKs refuse are left out or replaced, and
// the rest of the definition is listed.
func TestNative(t *testing.T) {
	const sound = `{"zzz":1.10,"name":"x","title":"X","inputSchema":{"type":"object","properties":{"n":{"maximum":9007199254740993}},"x-y":[]},` +
		`"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"ui":{}},"icons":[{"src":"data:"}],"execution":{"taskSupport":"optional"}}`
	for _, test := range []struct{ raw, name, want string }{
		{sound, "x", sound},
		{sound, "s__x", strings.Replace(sound, `"name":"x"`, `"name":"s__x"`, 1)},
		{`{"name":"x"}`, "x", `{"name":"x","inputSchema":{"type":"object"}}`},
		{`{"name":"x","inputSchema":null}`, "x", `{"name":"x","inputSchema":{"type":"object"}}`},
		{`{"name":"x","inputSchema":{}}`, "x", `{"name":"x","inputSchema":{"type":"object"}}`},
		{`{"name":"x","inputSchema":{"anyOf":[{"required":["a"]}]}}`, "x", `{"name":"x","inputSchema":{"type":"object","anyOf":[{"required":["a"]}]}}`},
		{`{"name":"x","inputSchema":{"type":"string"}}`, "x", `{"name":"x","inputSchema":{"type":"object"}}`},
		{`{"name":"x","inputSchema":{"type":"object","required":"a"}}`, "x", `{"name":"x","inputSchema":{"type":"object"}}`},
		{`{"name":"x","inputSchema":{"type":"object","properties":{"a":true}}}`, "x", `{"name":"x","inputSchema":{"type":"object"}}`},
		{`{"name":"x","description":null,"title":7,"annotations":{"readOnlyHint":"yes"},"_meta":[],"icons":{},"execution":1,"outputSchema":{"type":"array"},"inputSchema":{"type":"object"}}`, "x",
			`{"name":"x","inputSchema":{"type":"object"}}`},
	} {
		tool, err := catalog.DecodeTool(json.RawMessage(test.raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(native(&tool, test.name)); got != test.want {
			t.Errorf("%s\ngot  %s\nwant %s", test.raw, got, test.want)
		}
	}
}

// TestNatives: the list of a catalogue's tools is created only once for each Naming.
func TestNatives(t *testing.T) {
	var kept texts
	snap := named(map[string][]string{"a": {"x"}})
	first := kept.natives(snap, Naming{})
	snap.Servers[0].State = catalog.Unavailable
	if kept.natives(snap, Naming{}) != first {
		t.Error("a state makes another list")
	}
	if again := kept.natives(snap, Naming{Prefix: PrefixNever}); again == first || again.byName["x"].server != "a" || kept.natives(snap, Naming{}) != first {
		t.Errorf("got %+v", again)
	}
	if got := fmt.Sprint(first.unknown("a_x")); got != `unknown tool "a_x"; did you mean a__x?` {
		t.Error(got)
	}
}

// TestAllTools_Unlisted: a call of a tool of a server that has never listed its tools waits for the server, as exec does, also if
// the list itself no longer waits for it. If the server cannot be reached, the answer says so.
func TestAllTools_Unlisted(t *testing.T) {
	mcptest.NoLeaks(t)
	down := registry.Server{Spec: upstream.Spec{Options: transport.Options{
		Name: "down", Type: transport.Stdio, Launch: transport.Launch{Command: "no-such-program"},
	}}}
	r := registry.New([]registry.Server{remote("slow", mcptest.Spec{ListDelay: 200 * time.Millisecond}.HTTP(t)), down}, registry.Options{})
	e := chained(r, executor.Options{})
	all := NewAllTools(r, e, Options{StartupWait: time.Nanosecond})
	one := NewAllTools(r, e, Options{StartupWait: time.Nanosecond, Naming: Naming{Prefix: PrefixNever, Transparent: true}, Scope: &policy.Scope{Servers: []string{"slow"}}})
	t.Cleanup(func() { all.Close(); one.Close(); r.Close(time.Second) })
	r.Start()
	var calls sync.WaitGroup
	for _, c := range []struct {
		view       *AllTools
		name, want string
	}{{all, "slow__echo", "hi"}, {one, "echo", "hi"}, {all, "down__echo", "SERVER_UNAVAILABLE"}, {all, "slow__none", "TOOL_NOT_FOUND"}} {
		calls.Go(func() {
			result, err := c.view.Call(t.Context(), Call{Name: c.name, Arguments: json.RawMessage(`{"text":"hi"}`)})
			if err != nil || !strings.Contains(string(result.Content[0]), c.want) {
				t.Errorf("%s: got %+v, %v", c.name, result, err)
			}
		})
	}
	calls.Wait()
}

// TestPassUnknown: a notification that mcpx does not know reaches the clients of a transparent view of its server, and no others.
func TestPassUnknown(t *testing.T) {
	mcptest.NoLeaks(t)
	r := registry.New([]registry.Server{remote("a", mcptest.Spec{}.HTTP(t)), remote("b", mcptest.Spec{}.HTTP(t))}, registry.Options{})
	e := chained(r, executor.Options{})
	of := func(transparent bool, server string) *AllTools {
		return NewAllTools(r, e, Options{Naming: Naming{Transparent: transparent}, Scope: &policy.Scope{Servers: []string{server}}})
	}
	views := []*AllTools{of(true, "a"), of(true, "b"), of(false, "a")}
	t.Cleanup(func() {
		for _, v := range views {
			v.Close()
		}
		r.Close(time.Second)
	})
	client := caller.New(caller.Place{ID: "c"}, caller.Said{})
	for i, v := range views {
		got := 0
		defer v.Attach(&client, Attachment{Changed: func(catalog.Kind) {}, Unknown: func(string, json.RawMessage) { got++ }})()
		v.passUnknown("a", "notifications/x", nil)
		if want := []int{1, 0, 0}[i]; got != want {
			t.Errorf("view %d: %d notifications", i, got)
		}
	}
}
