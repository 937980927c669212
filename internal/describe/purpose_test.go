package describe

import (
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
)

// TestPurpose_Orders: a purpose has neither orders to the model nor remarks about the
// instructions themselves.
func TestPurpose_Orders(t *testing.T) {
	for _, test := range []struct{ instructions, title, want string }{
		{"Reads and sends mail.", "", "Reads and sends mail."},
		{"Always call list_folders first. Reads mail. Never delete any.", "", "Reads mail."},
		{"Use this server to search the Web for news.", "", "Search the Web for news."},
		{"This MCP server lets you build a knowledge base.", "", "Build a knowledge base."},
		{"A Model Context Protocol (MCP) server that reads and writes MS Excel data.", "", "Reads and writes MS Excel data."},
		{"This is a TypeScript-based MCP (Model Context Protocol) server which provides browser automation.", "", "Browser automation."},
		{"Before you call a tool, ask. You must not guess ids. IMPORTANT: dates are UTC.", "Mail and folders", "Mail and folders"},
		{"# Everything Server – Server Instructions\n\nAudience: These instructions are written for an LLM.\nFollow them to use the server safely.\n\n## Relationships\n\n- Use `a` to see b\n- `gzip` makes archives of\n  files", "", "Everything Server – Server Instructions"},
		{"Store API notes for agents. Tool descriptions are authoritative; read them before calling.\n\nOrders\n- Run on the same host.", "", ""},
		{"Tools for orders:\n* list them\n* cancel one\n\nReads the whole\nshop. - Is open.", "", "Reads the whole shop. - Is open."},
		{"# Store\n\nAlways ask first.\n\n## Rules\n\nIds are numbers.", "", ""},
		{"# Git history of this repository", "", "Git history of this repository"},
		{"This server über alles.", "", "über alles."},
		{"Users should not be asked. If in doubt, stop", "", ""},
		{"Version 2.0 of the tool. Reads e.g. mail.", "", "Version 2.0 of the tool. Reads e.g. mail."},
		{"Basic Memory lets you build knowledge", "", "Basic Memory lets you build knowledge"},
		{"This server ", "", ""},
		{strings.Repeat("Never do this. ", 1000) + "Reads mail.", "", ""}, // the purpose is after the first maxRead bytes
	} {
		s := &catalog.Server{Name: "store", Instructions: test.instructions, Title: test.title}
		if got := purpose(s, maxPurpose); got != test.want {
			t.Errorf("%.80q: got %q, want %q", test.instructions, got, test.want)
		}
		s = &catalog.Server{Name: "store", Description: "Always my own words.", Instructions: test.instructions}
		if got := purpose(s, maxPurpose); got != "Always my own words." {
			t.Errorf("of the config: got %q", got)
		}
	}
}

// TestPurpose_Scope: who published a server is no purpose, unless it is all that tells what the server is.
func TestPurpose_Scope(t *testing.T) {
	for _, test := range []struct{ name, title, want string }{
		{"git", "@cyanheads/git-mcp-server", ""},
		{"fetch", "zcaceres/fetch", ""},
		{"gh", "@github/mcp-server", "@github/mcp-server"},
		{"work", "@acme/calendar", "@acme/calendar"},
		{"mail", "Calendar/mail of a team", "Calendar/mail of a team"},
	} {
		if got := purpose(&catalog.Server{Name: test.name, Title: test.title}, maxPurpose); got != test.want {
			t.Errorf("%s, %s: got %q, want %q", test.name, test.title, got, test.want)
		}
	}
}

// TestDescription_Noise: in the catalogue, the description of a tool does not begin with words
// that say nothing, and is left out if it only repeats the name of the tool.
func TestDescription_Noise(t *testing.T) {
	for _, test := range []struct{ name, description, want string }{
		{"search_news", "This tool searches for news articles. Use it often.", "Searches for news articles. Use it often."},
		{"search_news", "This tool allows you to search old papers", "Search old papers"},
		{"search_news", "Use this tool to search old papers", "Search old papers"},
		{"search_news", "A tool that finds old papers", "Finds old papers"},
		{"search_news", "Tools for old papers", "Old papers"},
		{"search_news", "Search the news", ""},
		{"list_issues", "Lists all issues.", ""},
		{"create_issue", "Create a new issue in a GitHub repository", "Create a new issue in a GitHub repository"},
		{"now", "The time", "The time"},
		{"tool", "This tool", ""},
		{"verify_task", "## Verify Task\n\nScore the work.", "Score the work."},
		{"verify_task", "## Verify Task", ""},
		{"verify_task", "# Scores\nof tasks", "# Scores of tasks"},
	} {
		s := source{server: &catalog.Server{Tools: []catalog.Tool{{Name: test.name, Description: test.description}}}}
		if got := s.tool(0).desc; got != test.want {
			t.Errorf("%s, %q: got %q, want %q", test.name, test.description, got, test.want)
		}
	}
	verify := catalog.Tool{Name: "verify_task", Description: "## Verify Task\n\nScore the work."}
	for _, typeScript := range []bool{true, false} {
		if got := signature(&verify, Options{TypeScript: typeScript}); strings.Contains(got, "#") || !strings.Contains(got, "Score the work.") {
			t.Errorf("TypeScript %t: got %q", typeScript, got)
		}
	}
}
