package search

import (
	"slices"
	"testing"

	"mcpx/internal/base/catalog"
)

func TestIsDeprecated(t *testing.T) {
	tests := []struct {
		title, description string
		want               bool
	}{
		{"Read File (Deprecated)", "Read a file.", true},
		{"[DEPRECATED] Read File", "", true},
		{"deprecated: Read File", "", true},
		{"", "DEPRECATED: use read_text_file instead.", true},
		{"", "Read a file. DEPRECATED: Use read_text_file instead.", true},
		{"", "**DEPRECATED** Read a file", true},
		{"", "[Deprecated] Read a file", true},
		{"", "(deprecated) Read a file", true},
		{"", "Deprecated, use read_text_file", true},
		{"", "Deprecated since 2.0. Read a file", true},
		{"", "Deprecated - read a file", true},
		{"", "\u26a0\ufe0f Deprecated: read a file", true},
		{"", "List contacts by group and status.\n\n**Deprecated.** This endpoint cannot target a profile.", true},
		{"", "Delete a group.\n\n.. deprecated::\n    This tool exists for old clients.", true},
		{"", "Reads a file. This tool is deprecated in favour of another.", true},

		{"Deprecated APIs", "List deprecated APIs", false},
		{"", "Check if packages are deprecated", false},
		{"", "Deprecated packages are listed with their versions.", false},
		{"", "Lists packages.\n\nArgs:\n    deprecated: also list old ones\n    id (deprecated): no more used", false},
		{"", "Updates a model. The field x is deprecated.", false},
		{"", "Undeprecated. Read a file", false},
	}
	for _, tt := range tests {
		lead, _ := splitLead(tt.description)
		tool := &catalog.Tool{Title: tt.title, Description: tt.description}
		if got := isDeprecated(tool, lead); got != tt.want {
			t.Errorf("%q, %q: got %t", tt.title, tt.description, got)
		}
	}
}

// TestSearch_DeprecatedToolsComeLater: a deprecated tool is ranked after a tool that does the same, in whatever
// order the catalogue has them. If the query mentions deprecation, the deprecated tool is first.
func TestSearch_DeprecatedToolsComeLater(t *testing.T) {
	old := tool("read_file", "Read the complete contents of a file as text. DEPRECATED: Use read_text_file instead.", "path")
	x := New(catalog.NewSnapshot([]catalog.Server{{Name: "files", Tools: []catalog.Tool{
		old,
		tool("read_text_file", "Read the complete contents of a file from the file system as text. Handles various encodings.", "path"),
		tool("list_directory", "List a directory.", "path"),
	}}}))
	for query, want := range map[string]string{
		"read a file":                  "read_text_file",
		"read file":                    "read_text_file",
		"the deprecated tool for read": "read_file",
	} {
		if got := first(x.Search(query, Options{}), 2); got[0] != want {
			t.Errorf("%s: got %v, want %s first", query, got, want)
		}
	}
	if got := first(x.Search("read a file", Options{}), 3); !slices.Contains(got, "read_file") {
		t.Errorf("the deprecated tool is gone: %v", got)
	}
}
