package front

import (
	"net/http"
	"path"
	"strings"

	"mcpx/internal/describe"
)

// StructuredPolicy says who gets structuredContent.
type StructuredPolicy string

// The policies. Auto leaves it out for the clients in the table below.
const (
	StructuredAuto   StructuredPolicy = "auto"
	StructuredAlways StructuredPolicy = "always"
	StructuredNever  StructuredPolicy = "never"
)

// ClientRule overrides what is known about a client.
type ClientRule struct {
	// Name is a glob of clientInfo.name; case does not matter.
	Name string
	// Structured is empty where the rule says nothing of it.
	Structured StructuredPolicy
	// DescriptionChars bounds a tool's description, in UTF-16 units; 0 = says
	// nothing.
	DescriptionChars int
}

// knownClients are the clients that give the model structuredContent instead of
// the text, or both: there it would undo all compression, and drop images.
// Claude Code also cuts descriptions at 2,048 characters without a word.
// Evidence: anthropics/claude-code#79944, #41593; opencode PR#32074;
// github/copilot-cli#3258, #4515; vscode#290063.
var knownClients = []ClientRule{
	{Name: "claude-code*", Structured: StructuredNever, DescriptionChars: 2000},
	{Name: "codex*", Structured: StructuredNever},
	{Name: "visual studio code*", Structured: StructuredNever},
	{Name: "vscode*", Structured: StructuredNever},
	{Name: "*copilot*", Structured: StructuredNever},
}

// structuredHeader lets an HTTP client say for itself whether it wants
// structuredContent.
const structuredHeader = "Mcpx-Structured-Content"

// structured reports whether a client gets structuredContent.
func (f *Front) structured(client string, header http.Header) bool {
	switch strings.ToLower(header.Get(structuredHeader)) {
	case "always":
		return true
	case "never":
		return false
	}
	for _, rule := range f.options().Clients {
		if rule.Structured != "" && rule.matches(client) {
			if rule.Structured != StructuredAuto {
				return rule.Structured == StructuredAlways
			}
			break
		}
	}
	switch f.options().Structured {
	case StructuredAlways:
		return true
	case StructuredNever:
		return false
	}
	for _, rule := range knownClients {
		if rule.matches(client) {
			return rule.Structured != StructuredNever
		}
	}
	return true
}

// view is how a client sees the descriptions.
func (f *Front) view(client string) view {
	o := f.options()
	return view{f.budget(client), describe.Features{JSONSchema: o.JSONSchema, NoTOON: o.NoTOON}}
}

// budget is what the description of inspect may cost for a client.
func (f *Front) budget(client string) describe.Budget {
	b := describe.Budget{Tokens: f.options().BudgetTokens, Chars: f.options().BudgetChars}
	for _, rules := range [][]ClientRule{f.options().Clients, knownClients} {
		for _, rule := range rules {
			if rule.DescriptionChars > 0 && rule.matches(client) {
				if b.Chars == 0 || rule.DescriptionChars < b.Chars {
					b.Chars = rule.DescriptionChars
				}
				return b
			}
		}
	}
	return b
}

func (r ClientRule) matches(client string) bool {
	ok, err := path.Match(strings.ToLower(strings.ReplaceAll(r.Name, "/", " ")), strings.ToLower(strings.ReplaceAll(client, "/", " ")))
	return err == nil && ok
}
