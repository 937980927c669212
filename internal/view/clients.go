package view

import (
	"cmp"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/describe"
	"mcpx/internal/upstream"
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

// settings are the options with what they say of single clients.
type settings struct {
	Options
	profiles sync.Map // name -> profile; maxProfiles of them at most
	kept     atomic.Int32
}

// maxProfiles bounds the profiles that are kept: names are the clients' own.
const maxProfiles = 1000

func newSettings(o Options) *settings {
	o.MaxDescription = cmp.Or(o.MaxDescription, 300)
	o.StartupWait = cmp.Or(o.StartupWait, 5*time.Second)
	return &settings{Options: o}
}

// profile is what rules and table say of one client.
type profile struct {
	structured bool
	shown      shown
}

// profile returns that of clients of a name. Matching all globs costs more than
// the rest of a small call, so it is done once for each name.
func (s *settings) profile(name string) profile {
	if found, ok := s.profiles.Load(name); ok {
		return found.(profile)
	}
	p := profile{s.structured(name), shown{s.budget(name), describe.Features{JSONSchema: s.JSONSchema, NoTOON: s.NoTOON}}}
	if s.kept.Add(1) <= maxProfiles {
		s.profiles.Store(name, p)
	}
	return p
}

// structured reports whether a client gets structuredContent. A request can say
// for itself that it wants it, or does not.
func (v *TwoTools) structured(client *upstream.Client, asked StructuredPolicy) bool {
	switch asked {
	case StructuredAlways:
		return true
	case StructuredNever:
		return false
	}
	return v.current.Load().profile(name(client)).structured
}

func (s *settings) structured(client string) bool {
	policy := func(r ClientRule) StructuredPolicy { return r.Structured }
	for _, says := range []StructuredPolicy{ruled(s.Clients, client, policy), s.Structured, ruled(knownClients, client, policy)} {
		if says != "" && says != StructuredAuto {
			return says == StructuredAlways
		}
	}
	return true
}

// budget is what the description of inspect may cost for a client.
func (s *settings) budget(client string) describe.Budget {
	b := describe.Budget{Tokens: s.BudgetTokens, Chars: s.BudgetChars}
	chars := func(r ClientRule) int { return r.DescriptionChars }
	if own := cmp.Or(ruled(s.Clients, client, chars), ruled(knownClients, client, chars)); own > 0 && (b.Chars == 0 || own < b.Chars) {
		b.Chars = own
	}
	return b
}

// ruled is what the first of the rules that says anything of it says to a client;
// zero where none does.
func ruled[T comparable](rules []ClientRule, client string, of func(ClientRule) T) (says T) {
	for _, rule := range rules {
		if said := of(rule); said != says && rule.matches(client) {
			return said
		}
	}
	return says
}

func (r ClientRule) matches(client string) bool {
	ok, err := path.Match(strings.ToLower(strings.ReplaceAll(r.Name, "/", " ")), strings.ToLower(strings.ReplaceAll(client, "/", " ")))
	return err == nil && ok
}
