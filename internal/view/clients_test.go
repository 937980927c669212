package view

import (
	"strings"
	"testing"
	"time"

	"mcpx/internal/caller"
	"mcpx/internal/describe"
	"mcpx/internal/policy"
	"mcpx/internal/request"
	"mcpx/internal/results"
)

func TestTwoTools_Form(t *testing.T) {
	type rules = []ClientRule
	const once, own, always = results.StructuredOnce, results.StructuredOwn, results.StructuredAlways
	program := results.Format{Structured: always, JSON: true}
	for _, test := range []struct {
		name    string
		options Options
		client  string
		asked   StructuredPolicy
		code    bool
		want    results.Format
	}{
		{name: "unknown client", client: "some-agent", want: results.Format{Structured: own, Bytes: 38_000}},
		{name: "no name", want: results.Format{Structured: own, Bytes: 38_000}},
		{name: "the name of many frameworks", client: "mcp", want: results.Format{Structured: own, Bytes: 38_000}},
		{name: "claude code", client: "claude-code", want: results.Format{Bytes: 500_000}},
		{name: "its other names", client: "claude-code-sdk", want: results.Format{Bytes: 500_000}},
		{name: "case does not matter", client: "Claude-Code", want: results.Format{Bytes: 500_000}},
		{name: "codex", client: "codex-mcp-client", want: results.Format{Bytes: 38_000}},
		{name: "codex in code mode", client: "codex-mcp-client", code: true, want: results.Format{Structured: own, JSON: true}},
		{name: "vs code", client: "Visual Studio Code", want: results.Format{Bytes: 8000}},
		{name: "vs code insiders", client: "Visual Studio Code - Insiders", want: results.Format{Bytes: 8000}},
		{name: "vs code, built by others", client: "Code - OSS", want: results.Format{Bytes: 8000}},
		{name: "vscode", client: "vscode/1.2", want: results.Format{Bytes: 8000}},
		{name: "cursor is not vs code", client: "cursor-vscode", want: results.Format{Structured: own, Bytes: 38_000}},
		{name: "copilot", client: "github-copilot-developer", want: results.Format{Structured: once, Bytes: 18_000, LineFirst: true}},
		{name: "copilot cli", client: "copilot-cli", want: results.Format{Structured: once, Bytes: 18_000, LineFirst: true}},
		{name: "cline", client: "@cline/core", want: results.Format{Structured: once, Bytes: 6500}},
		{name: "qwen", client: "qwen-cli-mcp-client-mcpx", want: results.Format{Structured: once, Bytes: 24_000, LineFirst: true}},
		{name: "kimi", client: "kimi-code", want: results.Format{Bytes: 48_000}},
		{name: "google adk", client: "google-adk", want: results.Format{Structured: once, Bytes: 38_000}},
		{name: "langchain.js", client: "@langchain/mcp-adapters", want: results.Format{Structured: once, Bytes: 38_000}},
		{name: "gemini", client: "gemini-cli-mcp-client", want: results.Format{Structured: own, Bytes: 38_000}},
		{name: "opencode", client: "opencode", want: results.Format{Structured: own, Bytes: 48_000, LineFirst: true}},
		{name: "inspector", client: "mcp-inspector", want: results.Format{Structured: own, JSON: true}},
		{name: "mcporter", client: "mcporter", want: results.Format{Structured: own, JSON: true}},
		{name: "another mcpx in front", client: "mcpx", want: results.Format{Structured: own, JSON: true, Uncut: true}},
		{name: "another mcpx in front, for one client", client: "claude-code-through-proxy", want: results.Format{Structured: own, JSON: true, Uncut: true}},
		{name: "a rule for another mcpx", options: Options{Clients: rules{{Name: "mcpx", ResultChars: 5000}}}, client: "mcpx", want: results.Format{Structured: own, JSON: true, Uncut: true, Bytes: 5000}},
		{name: "the page of mcpx", client: "mcpx page", want: results.Format{Structured: own, Bytes: 38_000}},
		{name: "claude desktop", client: "claude-ai", want: results.Format{Structured: own, Bytes: 140_000, Wait: 200 * time.Second}},
		{name: "rule of a time", options: Options{Clients: rules{{Name: "claude-*", CallWait: time.Minute}}}, client: "claude-ai", want: results.Format{Structured: own, Bytes: 140_000, Wait: 50 * time.Second}},
		{name: "not by a part of the name", client: "my-claude-code", want: results.Format{Structured: own, Bytes: 38_000}},
		{name: "policy always", options: Options{Structured: StructuredAlways}, client: "claude-code", want: program},
		{name: "policy never", options: Options{Structured: StructuredNever}, client: "some-agent", want: results.Format{Bytes: 38_000}},
		{name: "policy never, of code too", options: Options{Structured: StructuredNever}, client: "codex-mcp-client", code: true, want: results.Format{JSON: true}},
		{name: "rule over policy", options: Options{Structured: StructuredNever, Clients: rules{{Name: "some-*", Structured: StructuredAlways}}}, client: "some-agent", want: program},
		{name: "rule over table", options: Options{Clients: rules{{Name: "claude-*", Structured: StructuredAlways}}}, client: "claude-code", want: program},
		{name: "first rule that says something", options: Options{Clients: rules{{Name: "*", DescriptionChars: 5}, {Name: "a*", Structured: StructuredNever}, {Name: "*", Structured: StructuredAlways}}}, client: "agent", want: results.Format{Bytes: 38_000}},
		{name: "rule once", options: Options{Clients: rules{{Name: "mcp", Structured: StructuredOnce}}}, client: "mcp", want: results.Format{Structured: once, Bytes: 38_000}},
		{name: "rule auto over policy", options: Options{Structured: StructuredAlways, Clients: rules{{Name: "claude-code", Structured: StructuredAuto}}}, client: "claude-code", want: results.Format{Bytes: 500_000}},
		{name: "rule for another", options: Options{Clients: rules{{Name: "other", Structured: StructuredNever}}}, client: "agent", want: results.Format{Structured: own, Bytes: 38_000}},
		{name: "name with a slash", options: Options{Clients: rules{{Name: "a/*", Structured: StructuredNever}}}, client: "a/b/c", want: results.Format{Bytes: 38_000}},
		{name: "request always", options: Options{Structured: StructuredNever}, client: "claude-code", asked: "always", want: program},
		{name: "request never", options: Options{Structured: StructuredAlways, Clients: rules{{Name: "*", Structured: StructuredAlways}}}, client: "agent", asked: "never", want: results.Format{Bytes: 38_000}},
		{name: "request nonsense", client: "claude-code", asked: "perhaps", want: results.Format{Bytes: 500_000}},
		{name: "rule of a length", options: Options{Clients: rules{{Name: "*", ResultChars: 5000}}}, client: "copilot-cli", want: results.Format{Structured: once, Bytes: 5000, LineFirst: true}},
		{name: "rule of a length for a program", options: Options{Clients: rules{{Name: "*", ResultChars: 5000}}}, client: "copilot-cli", asked: "always", want: results.Format{Structured: always, JSON: true, Bytes: 5000, LineFirst: true}},
		{name: "no limit at all", options: Options{NeverCut: true}, client: "copilot-cli", want: results.Format{Structured: once}},
		{name: "no limit but the rule's", options: Options{NeverCut: true, Clients: rules{{Name: "*", ResultChars: 5000}}}, client: "agent", want: results.Format{Structured: own, Bytes: 5000}},
		{name: "rule of JSON", options: Options{Clients: rules{{Name: "agent", Text: TextJSON}}}, client: "agent", want: results.Format{Structured: own, JSON: true}},
		{name: "rule against JSON", options: Options{Clients: rules{{Name: "*", Text: TextAuto}}}, client: "mcporter", want: results.Format{Structured: own, Bytes: 38_000}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v, settings := &TwoTools{}, NewSettings(test.options)
			v.current = func() *Settings { return settings }
			call := Call{From: request.From{Client: &caller.Client{Name: test.client}}, Structured: test.asked, Code: test.code}
			for range 2 { // the second time, the profile comes from the cache
				if got := v.form(call); got != test.want {
					t.Errorf("got %+v, want %+v", got, test.want)
				}
			}
		})
	}
}

// TestKnownClients: no entry of knownClients is shadowed by an earlier entry that matches the same names.
func TestKnownClients(t *testing.T) {
	for i, row := range knownClients {
		name := strings.Trim(row.Name, "*")
		for _, before := range knownClients[:i] {
			if policy.Match([]string{before.Name}, name) {
				t.Errorf("%s also matches %s", before.Name, name)
			}
		}
		if row.ResultChars != 0 && row.ResultChars < 1000 {
			t.Errorf("%s: pages need at least 1000 bytes", row.Name)
		}
	}
}

func TestTwoTools_Budget(t *testing.T) {
	for _, test := range []struct {
		name    string
		options Options
		client  string
		want    describe.Budget
	}{
		{"nothing said", Options{}, "agent", describe.Budget{}},
		{"claude code cuts", Options{BudgetTokens: 900}, "claude-code", describe.Budget{Tokens: 900, Chars: 2000}},
		{"a limit for all", Options{BudgetChars: 5000}, "agent", describe.Budget{Chars: 5000}},
		{"the smaller one", Options{BudgetChars: 1000}, "claude-code", describe.Budget{Chars: 1000}},
		{"a rule", Options{Clients: []ClientRule{{Name: "agent*", DescriptionChars: 700}}}, "agent-7", describe.Budget{Chars: 700}},
		{"a rule over the table", Options{Clients: []ClientRule{{Name: "claude-code", DescriptionChars: 4000}}}, "claude-code", describe.Budget{Chars: 4000}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := NewSettings(test.options).profile(test.client).shown.budget; got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
