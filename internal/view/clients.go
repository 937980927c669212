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

// StructuredPolicy decides which clients get structuredContent.
type StructuredPolicy string

// The policies. Auto leaves structuredContent out for the clients in knownClients.
const (
	StructuredAuto   StructuredPolicy = "auto"
	StructuredAlways StructuredPolicy = "always"
	StructuredNever  StructuredPolicy = "never"
)

// ClientRule overrides the table knownClients for some clients.
type ClientRule struct {
	// Name is a glob of clientInfo.name; case does not matter.
	Name string
	// Structured is empty if the rule does not concern it.
	Structured StructuredPolicy
	// DescriptionChars bounds a tool's description, in UTF-16 units; 0 if the rule
	// does not concern it.
	DescriptionChars int
}

// knownClients are clients that give the model structuredContent instead of the
// text, or both. With them structuredContent would undo all compression, and drop
// images. Claude Code also cuts descriptions at 2,048 characters without notice.
// Evidence: anthropics/claude-code#79944, #41593; opencode PR#32074;
// github/copilot-cli#3258, #4515; vscode#290063.
var knownClients = []ClientRule{
	{Name: "claude-code*", Structured: StructuredNever, DescriptionChars: 2000},
	{Name: "codex*", Structured: StructuredNever},
	{Name: "visual studio code*", Structured: StructuredNever},
	{Name: "vscode*", Structured: StructuredNever},
	{Name: "*copilot*", Structured: StructuredNever},
}

// settings are the options, with a cache of the profiles of clients.
type settings struct {
	Options
	profiles sync.Map // name -> profile; maxProfiles of them at most
	kept     atomic.Int32
}

// maxProfiles bounds the cache: clients can invent names.
const maxProfiles = 1000

func newSettings(o Options) *settings {
	o.MaxDescription = cmp.Or(o.MaxDescription, 300)
	o.StartupWait = cmp.Or(o.StartupWait, 5*time.Second)
	return &settings{Options: o}
}

// profile has the settings of one client, by the rules and knownClients.
type profile struct {
	structured bool
	shown      shown
}

// profile is the profile of the clients of a name. It matches the globs once for each
// name, as that costs more than the rest of a small call.
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

// structured reports whether a client gets structuredContent. The request itself
// (asked) can override the policy.
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
	for _, p := range []StructuredPolicy{firstRule(s.Clients, client, policy), s.Structured, firstRule(knownClients, client, policy)} {
		if p != "" && p != StructuredAuto {
			return p == StructuredAlways
		}
	}
	return true
}

// budget bounds the description of inspect for a client.
func (s *settings) budget(client string) describe.Budget {
	b := describe.Budget{Tokens: s.BudgetTokens, Chars: s.BudgetChars}
	chars := func(r ClientRule) int { return r.DescriptionChars }
	if own := cmp.Or(firstRule(s.Clients, client, chars), firstRule(knownClients, client, chars)); own > 0 && (b.Chars == 0 || own < b.Chars) {
		b.Chars = own
	}
	return b
}

// firstRule is a setting of the first rule that matches a client and has it, or zero.
func firstRule[T comparable](rules []ClientRule, client string, setting func(ClientRule) T) (zero T) {
	for _, rule := range rules {
		if value := setting(rule); value != zero && rule.matches(client) {
			return value
		}
	}
	return zero
}

func (r ClientRule) matches(client string) bool {
	ok, err := path.Match(strings.ToLower(strings.ReplaceAll(r.Name, "/", " ")), strings.ToLower(strings.ReplaceAll(client, "/", " ")))
	return err == nil && ok
}
