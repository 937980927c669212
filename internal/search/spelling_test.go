package search

import (
	"testing"

	"mcpx/internal/base/catalog"
)

func TestSearch_Spelling(t *testing.T) {
	snap := sample()
	snap = catalog.NewSnapshot(append(snap.Servers,
		catalog.Server{Name: "gitlab", Tools: []catalog.Tool{
			tool("approve_merge_request", "Approve a merge request.", "iid"),
			tool("get_colors", "Get the colors of all labels.", ""),
			tool("analyze_catalog", "Analyze what is in a catalog.", ""),
			tool("find_organizations", "Find organizations.", ""),
			tool("exec_in_pod", "Exec in a pod.", ""),
		}}))
	x := New(snap)
	tests := []struct{ query, want string }{
		// British and American
		{"label colours", "get_colors"},
		{"analysing the catalogue", "analyze_catalog"},
		{"organisations", "find_organizations"},
		// short forms
		{"approve MR", "approve_merge_request"},
		{"execute in a pod", "exec_in_pod"},
	}
	for _, tt := range tests {
		if got := x.Search(tt.query, Options{}); len(got) == 0 || got[0].Tool != tt.want || got[0].Weak {
			t.Errorf("%q: %+v, want %s", tt.query, first(got, 3), tt.want)
		}
	}
}
