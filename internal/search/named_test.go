package search

import (
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
)

func TestNamed(t *testing.T) {
	servers := append(sample().Servers,
		catalog.Server{Name: "fetch", Tools: []catalog.Tool{tool("fetch", "Fetches a URL.", "url")}},
		catalog.Server{Name: "gitlab", Tools: []catalog.Tool{
			tool("create_issue", "Create an issue of a project.", "project"),
			tool("fork_repository", "Fork a repository to an account.", "owner repo"),
			tool("search", "Search.", "q"), tool("Tool with spaces", "Odd.", ""),
		}},
	)
	x := New(catalog.NewSnapshot(servers))
	tests := []struct{ query, want string }{
		{"write_file", "filesystem.write_file"},
		{"slack_get_users, write_file read_text_file; get_alerts", "slack.slack_get_users filesystem.write_file filesystem.read_text_file weather.get_alerts"},
		{"`write_file` and \"get_alerts\"", "filesystem.write_file weather.get_alerts"},
		{"write_file, write_file", "filesystem.write_file"},
		{"create_issue", "github.create_issue gitlab.create_issue"},
		{"gitlab create_issue", "gitlab.create_issue"},
		{"gitlab.create_issue, github__create_issue, gitlab/search, gitlab:create_issue", "gitlab.create_issue github.create_issue gitlab.search"},
		{"fork_repository", "github.fork_repository+gitlab"},
		{"fetch", "fetch.fetch"},
		{"gitlab search", "gitlab.search"},
		{"Tool with spaces", "gitlab.Tool with spaces"},
		{"fetch, search", "fetch.fetch gitlab.search"},
		{"searchCode, nope_tool, write_file, nope", "github.searchCode filesystem.write_file ?nope_tool ?nope"},
		{"write_file nope_tool", "filesystem.write_file ?nope_tool"},
		// These are descriptions of a need, not lists of names.
		{"fetch search", ""},
		{"slack search", ""},
		{"write_file somewhere", ""},
		{"fetch, then read it", ""},
		{"nope_tool", ""},
		{"gitlab", ""},
		{"and", ""},
		{"", ""},
		{strings.Repeat("write_file,", 1000), ""},
	}
	for _, tt := range tests {
		hits, missing := x.Named(tt.query, Options{})
		var got []string
		for _, h := range hits {
			one := h.Server + "." + h.Tool
			if len(h.Also) > 0 {
				one += "+" + strings.Join(h.Also, "+")
			}
			got = append(got, one)
		}
		for _, m := range missing {
			got = append(got, "?"+m)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q: got %s, want %s", tt.query, s, tt.want)
		}
	}
	if hits, missing := x.Named("create_issue, write_file", Options{Server: "gitlab"}); len(hits) != 1 || hits[0].Server != "gitlab" || len(missing) != 1 {
		t.Errorf("of one server: got %v, missing %v", hits, missing)
	}
}
