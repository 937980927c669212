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
			tool("create_repository", "Create a new project.", ""),
			tool("create_branch", "Create a branch of a repo.", "repo"),
		}}, catalog.Server{Name: "kubernetes", Tools: []catalog.Tool{
			tool("logs", "Shows output.", ""),
		}}, catalog.Server{Name: "cloudwatch", Tools: []catalog.Tool{
			tool("analyze_log_group", "Finds the most frequent logs.", "logs"),
		}}))
	x := New(snap)
	tests := []struct{ query, want string }{
		// one letter less, one more, two in the other order, and another letter
		{"take screnshot", "browser_take_screenshot"},
		{"weather forrecast", "get_forecast"},
		{"navgiate to a page", "browser_navigate"},
		{"fork the repozitory", "fork_repository"},
		{"forcasts", "get_forecast"},
		{"mergeReqest", "approve_merge_request"},
		// British and American
		{"label colours", "get_colors"},
		{"analysing the catalogue", "analyze_catalog"},
		{"organisations", "find_organizations"},
		// short forms
		{"approve MR", "approve_merge_request"},
		{"execute in a pod", "exec_in_pod"},
		{"fork repo", "fork_repository"},
		{"create repo", "create_repository"},
		{"k8s logs", "logs"},
	}
	for _, tt := range tests {
		if got := x.Search(tt.query, Options{}); len(got) == 0 || got[0].Tool != tt.want || got[0].Weak {
			t.Errorf("%q: %+v, want %s", tt.query, first(got, 3), tt.want)
		}
	}
}

// TestStem_Forms: all forms of a word have the same stem.
func TestStem_Forms(t *testing.T) {
	for _, forms := range [][]string{
		{"raise", "raises", "raised", "raising"}, {"tour", "tours", "toured", "touring"}, {"noise", "noises"},
		{"colour", "color", "colours", "coloured", "coloring"}, {"organise", "organizes", "organised", "organizing"},
	} {
		for _, form := range forms[1:] {
			if got, want := stem(form, latin), stem(forms[0], latin); got != want {
				t.Errorf("%s: %s, but %s: %s", form, got, forms[0], want)
			}
		}
	}
}

func TestRespell(t *testing.T) {
	x := New(sample())
	tests := []struct{ word, want string }{
		{"screnshot", "screenshot"}, {"navgiate", "navig"}, {"repozitory", "repositori"}, {"reqests", "request"},
		{"screenshot", ""}, // it is right
		{"stack", ""},      // an English word, and not slack
		{"valyes", ""},     // a short word with another letter
		{"flie", ""},       // a word of four letters
		{"wwritte", ""},    // two edits
		{"xchannel", ""},   // another first letter
		{"channel2", ""},
	}
	for _, tt := range tests {
		if _, got := x.respell(tt.word, stem(tt.word, latin)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.word, got, tt.want)
		}
	}
}
