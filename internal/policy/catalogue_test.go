package policy

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
)

func snapshot(rules catalog.Rules, servers ...catalog.Server) *catalog.Snapshot {
	snap := catalog.NewSnapshot(slices.Clone(servers))
	snap.Rules = rules
	return snap
}

func server(name string, tools ...string) catalog.Server {
	list := make([]catalog.Tool, len(tools))
	for i, tool := range tools {
		list[i].Name = tool
	}
	return catalog.Server{Name: name, Known: true, State: catalog.Ready}.WithTools(list)
}

func of(t *testing.T, snap *catalog.Snapshot, name string) *catalog.Server {
	t.Helper()
	s, ok := snap.Server(name)
	if !ok {
		t.Fatalf("%s is not there", name)
	}
	return s
}

func oneList(a, b *catalog.Server) bool {
	return len(a.Tools) == len(b.Tools) && len(a.Tools) > 0 && &a.Tools[0] == &b.Tools[0]
}

// TestCatalogues_Identity: a catalogue is made once for each snapshot, and shares unchanged lists of tools with
// the catalogue of the next snapshot.
func TestCatalogues_Identity(t *testing.T) {
	some, other, free := server("some", "get_a", "put_a"), server("other", "get_b", "put_b"), server("free", "x")
	denies := func() *Rules {
		return &Rules{Servers: map[string]ServerRules{"some": {Deny: []string{"put_*"}}, "other": {Deny: []string{"put_*"}}}}
	}
	var c Catalogues
	first := snapshot(denies(), some, other, free)
	before := c.Of(first)
	if c.Of(first) != before {
		t.Error("one snapshot has two catalogues")
	}
	if got := of(t, before, "some").ToolNames(); !slices.Equal(got, []string{"get_a"}) {
		t.Errorf("some has %v", got)
	}
	if _, ok := of(t, before, "some").Tool("put_a"); ok {
		t.Error("a hidden tool is found")
	}
	if !oneList(of(t, before, "free"), &free) {
		t.Error("a list without hidden tools was copied")
	}

	// The next snapshot: one server has another state, another server has other tools, and the rules were read
	// again but are equal.
	some.State = catalog.Unavailable
	after := c.Of(snapshot(denies(), some, server("other", "get_b", "put_b"), free))
	if s := of(t, after, "some"); s.State != catalog.Unavailable || !oneList(s, of(t, before, "some")) || oneList(of(t, after, "other"), of(t, before, "other")) {
		t.Errorf("some: %+v", s)
	}
	if s := of(t, after, "some"); s != nil {
		if _, ok := s.Tool("get_a"); !ok {
			t.Error("a kept list has no index")
		}
	}

	// Now the rules are different.
	none := c.Of(snapshot(&Rules{Disabled: []string{"*"}}, some, other, free))
	if none.Tools() != 0 {
		t.Errorf("%d tools are left", none.Tools())
	}
	if bare := snapshot(nil, some); !oneList(of(t, c.Of(bare), "some"), &some) {
		t.Error("without rules a list was copied")
	}
}

// TestCatalogues_Hidden: if all tools of a server are hidden, its field Hidden says by which settings. For other servers it is
// empty.
func TestCatalogues_Hidden(t *testing.T) {
	rules := &Rules{Servers: map[string]ServerRules{
		"all": {ReadOnly: true}, "one": {Deny: []string{"*"}}, "two": {Allow: []string{"x"}, ReadOnly: true}, "some": {Deny: []string{"a"}},
		"lock": {Pin: conf.PinBlock}, "dial": {Pin: conf.PinBlock, Dialled: true},
	}}
	var c Catalogues
	servers := []catalog.Server{server("all", "a", "b"), server("lock", "a", "b"), server("dial", "a", "b"), server("one", "a"), server("two", "a", "x"), server("some", "a", "b"), server("empty")}
	for range 2 { // the second catalogue is computed from the first
		snap := c.Of(snapshot(rules, servers...))
		for name, want := range map[string]string{
			"all":  "its 2 tools are all hidden by read_only (a tool counts as read-only if it declares readOnlyHint)",
			"one":  "its only tool is hidden by tools.deny",
			"two":  "its 2 tools are all hidden by tools.allow, read_only (a tool counts as read-only if it declares readOnlyHint)",
			"lock": "its 2 tools are all hidden by pin (mcpx lock approves them)",
			"dial": "its 2 tools are all hidden by dial (an admin approves them: /api/dialled/dial)",
			"some": "", "empty": "",
		} {
			if got := of(t, snap, name).Hidden; got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}

// TestCatalogues_AppOnly: a tool that is only for its server's own app is not visible to a model, with or without
// rules.
func TestCatalogues_AppOnly(t *testing.T) {
	var tools []catalog.Tool
	for _, raw := range []string{
		`{"name":"for_both","_meta":{"ui":{"visibility":["model","app"]}}}`, `{"name":"for_apps","_meta":{"ui":{"visibility":["app"]}}}`,
		`{"name":"for_none","_meta":{"ui":{"visibility":[]}}}`, `{"name":"silent","_meta":{"ui":{"resourceUri":"ui://x"}}}`,
		`{"name":"odd","_meta":{"ui":{"visibility":"app"}}}`, `{"name":"null","_meta":{"ui":{"visibility":null}}}`,
	} {
		tool, err := catalog.DecodeTool(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		tools = append(tools, tool)
	}
	some, only := server("some").WithTools(tools), server("only").WithTools(tools[1:2])
	for _, rules := range []catalog.Rules{nil, &Rules{}, &Rules{Servers: map[string]ServerRules{"some": {Allow: []string{"*"}}}}} {
		var c Catalogues
		snap := c.Of(snapshot(rules, some, only))
		if got := of(t, snap, "some").ToolNames(); !slices.Equal(got, []string{"for_both", "silent", "odd", "null"}) {
			t.Errorf("%v: got %v", rules, got)
		}
		if got := of(t, snap, "only").Hidden; got != "its only tool is hidden by _meta.ui.visibility (meant for its own app)" {
			t.Errorf("%v: %q", rules, got)
		}
	}
}

// TestCatalogues_AtOnce: concurrent requests get the same catalogue.
func TestCatalogues_AtOnce(t *testing.T) {
	var c Catalogues
	snap := snapshot(&Rules{Disabled: []string{"s.a"}}, server("s", "a", "b"))
	var all sync.WaitGroup
	seen := make([]*catalog.Snapshot, 20)
	for i := range seen {
		all.Go(func() { seen[i] = c.Of(snap) })
	}
	all.Wait()
	if slices.ContainsFunc(seen, func(s *catalog.Snapshot) bool { return s != seen[0] }) {
		t.Error("they see several")
	}
}
