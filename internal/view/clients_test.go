package view

import (
	"testing"

	"mcpx/internal/describe"
	"mcpx/internal/upstream"
)

func TestTwoTools_Structured(t *testing.T) {
	type rules = []ClientRule
	for _, test := range []struct {
		name    string
		policy  StructuredPolicy
		clients rules
		client  string
		asked   StructuredPolicy
		want    bool
	}{
		{name: "unknown client", client: "some-agent", want: true},
		{name: "no name", want: true},
		{name: "claude code", client: "claude-code", want: false},
		{name: "its other names", client: "claude-code-sdk", want: false},
		{name: "case does not matter", client: "Claude-Code", want: false},
		{name: "codex", client: "codex-mcp-client", want: false},
		{name: "vs code", client: "Visual Studio Code", want: false},
		{name: "vs code insiders", client: "Visual Studio Code - Insiders", want: false},
		{name: "vscode", client: "vscode/1.2", want: false},
		{name: "copilot", client: "github-copilot-developer", want: false},
		{name: "claude desktop", client: "claude-ai", want: true},
		{name: "not by a part of the name", client: "my-claude-code", want: true},
		{name: "policy always", policy: StructuredAlways, client: "claude-code", want: true},
		{name: "policy never", policy: StructuredNever, client: "some-agent", want: false},
		{name: "rule over policy", policy: StructuredNever, clients: rules{{Name: "some-*", Structured: StructuredAlways}}, client: "some-agent", want: true},
		{name: "rule over table", clients: rules{{Name: "claude-*", Structured: StructuredAlways}}, client: "claude-code", want: true},
		{name: "first rule that says something", clients: rules{{Name: "*", DescriptionChars: 5}, {Name: "a*", Structured: StructuredNever}, {Name: "*", Structured: StructuredAlways}}, client: "agent", want: false},
		{name: "rule auto is the policy", policy: StructuredNever, clients: rules{{Name: "*", Structured: StructuredAuto}}, client: "agent", want: false},
		{name: "rule for another", clients: rules{{Name: "other", Structured: StructuredNever}}, client: "agent", want: true},
		{name: "name with a slash", clients: rules{{Name: "a/*", Structured: StructuredNever}}, client: "a/b/c", want: false},
		{name: "request always", policy: StructuredNever, client: "claude-code", asked: "always", want: true},
		{name: "request never", policy: StructuredAlways, clients: rules{{Name: "*", Structured: StructuredAlways}}, client: "agent", asked: "never", want: false},
		{name: "request nonsense", client: "claude-code", asked: "perhaps", want: false},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := &TwoTools{}
			v.current.Store(newSettings(Options{Structured: test.policy, Clients: test.clients}))
			if got := v.structured(&upstream.Client{Name: test.client}, test.asked); got != test.want {
				t.Errorf("got %t", got)
			}
		})
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
			if got := newSettings(test.options).profile(test.client).shown.budget; got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
