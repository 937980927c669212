package policy

import (
	"slices"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
)

// TestPart: a part contains only the scope's servers, and only tools that both sets of rules permit. The same
// catalogue always has the same part, and a list from which no tool is removed is not copied.
func TestPart(t *testing.T) {
	some, other, free := server("some", "get_a", "put_a"), server("other", "get_b"), server("free", "x", "y")
	snap := snapshot(nil, some, other, free)
	for _, test := range []struct {
		name string
		part *Scope
		want map[string][]string
	}{
		{"nil", nil, map[string][]string{"some": {"get_a", "put_a"}, "other": {"get_b"}, "free": {"x", "y"}}},
		{"all", &Scope{}, map[string][]string{"some": {"get_a", "put_a"}, "other": {"get_b"}, "free": {"x", "y"}}},
		{"two", &Scope{Servers: []string{"some", "free", "gone"}}, map[string][]string{"some": {"get_a", "put_a"}, "free": {"x", "y"}}},
		{"none", &Scope{Servers: []string{}}, map[string][]string{}},
		{"rules", &Scope{Servers: []string{"some"}, Rules: &Rules{Disabled: []string{"*.put_*"}}}, map[string][]string{"some": {"get_a"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.part.Of(snap)
			if len(got.Servers) != len(test.want) {
				t.Errorf("servers are %v", got.ServerNames())
			}
			for name, want := range test.want {
				if tools := of(t, got, name).ToolNames(); !slices.Equal(tools, want) || !test.part.Has(name) {
					t.Errorf("%s has %v, want %v", name, tools, want)
				}
			}
			if test.part.Of(snap) != got {
				t.Error("one catalogue has two parts")
			}
			if s, ok := got.Server("free"); ok && !oneList(s, &free) {
				t.Error("a list without hidden tools was copied")
			}
		})
	}
	part := &Scope{Servers: []string{"some"}, Rules: &Rules{Disabled: []string{"*.put_*"}}}
	before := part.Of(snap)
	some.State = catalog.Unavailable
	if after := part.Of(snapshot(nil, some, free)); after == before || !oneList(of(t, before, "some"), of(t, after, "some")) || of(t, after, "some").State != catalog.Unavailable {
		t.Error("another state changed the list of tools")
	}
}

// TestScope_Confirms: a scope has its own confirmation, no scope has none.
func TestScope_Confirms(t *testing.T) {
	if got := (&Scope{Confirm: conf.ConfirmAll}).Confirms(); got != conf.ConfirmAll {
		t.Errorf("got %v", got)
	}
	if got := (*Scope)(nil).Confirms(); got != conf.ConfirmNone {
		t.Errorf("without a scope: %v", got)
	}
}
