package view

import (
	"cmp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/describe"
	"mcpx/internal/policy"
	"mcpx/internal/results"
)

// StructuredPolicy decides which clients get structuredContent.
type StructuredPolicy = conf.StructuredPolicy

// The policies. Always also makes structuredContent where the upstream sends none, for
// programs. Once passes that of the upstream where no text says the same, for clients that
// show a model both. Auto passes it always, but for clients of which knownClients says
// never or once.
const (
	StructuredAuto   StructuredPolicy = "auto"
	StructuredAlways StructuredPolicy = "always"
	StructuredOnce   StructuredPolicy = "once"
	StructuredNever  StructuredPolicy = "never"
)

// TextForm says what the texts of results may become.
type TextForm = conf.TextForm

// The forms. With TextJSON no text becomes TOON: a program reads them.
const (
	TextAuto TextForm = "auto"
	TextJSON TextForm = "json"
)

// ClientRule is what holds for the clients of some names. What is empty or 0 the rule
// leaves open.
type ClientRule = conf.ClientRule

// Settings are options as views use them, with a cache of the profiles of clients. The options
// never change.
type Settings struct {
	Options
	profiles sync.Map // name -> profile; maxProfiles of them at most
	kept     atomic.Int32
}

// maxProfiles bounds the cache: clients can invent names.
const maxProfiles = 1000

// NewSettings makes settings of options.
func NewSettings(o Options) *Settings {
	o.StartupWait = cmp.Or(o.StartupWait, 5*time.Second)
	return &Settings{Options: o}
}

// profile has the settings of one client, by the rules and knownClients. code is the form
// for calls that a program of the model makes.
type profile struct {
	form, code results.Format
	shown      shown
}

// profile is the profile of the clients of a name. It matches the globs once for each
// name, as that costs more than the rest of a small call.
func (s *Settings) profile(name string) profile {
	if found, ok := s.profiles.Load(name); ok {
		return found.(profile)
	}
	p := profile{form: s.form(name, "", false), code: s.form(name, "", true)}
	searches := firstRule(knownClients, name, func(r ClientRule) bool { return r.Searches })
	chars := firstRule(s.Clients, name, func(r ClientRule) int { return r.DescriptionChars })
	p.shown = shown{s.budget(name), describe.Features{
		JSONSchema: s.JSONSchema, NoTOON: s.NoTOON || p.form.JSON, ShortNames: s.ShortNames, ReadDoor: s.ReadDoor,
		Brief: searches && chars == 0,
	}}
	if s.kept.Add(1) <= maxProfiles {
		s.profiles.Store(name, p)
	}
	return p
}

// form is the form of the results of a call.
func (b *base) form(call Call) results.Format {
	s, client := b.current(), name(call.Client)
	switch {
	case call.Structured == StructuredAlways || call.Structured == StructuredNever:
		return s.form(client, call.Structured, call.Code)
	case call.Code:
		return s.profile(client).code
	}
	return s.profile(client).form
}

// form is the form of results for a client. The header of a request (asked) overrides the
// rule for the client, and that the config. What is only known of the client comes last,
// and does not hold for a call that a program makes.
func (s *Settings) form(client string, asked StructuredPolicy, code bool) results.Format {
	known := func(r ClientRule) StructuredPolicy { return r.Structured }
	text := func(r ClientRule) TextForm { return r.Text }
	chars := func(r ClientRule) int { return r.ResultChars }
	first := func(r ClientRule) bool { return r.LineFirst }
	wait := func(r ClientRule) time.Duration { return r.CallWait }

	policy := cmp.Or(asked, firstRule(s.Clients, client, known), s.Structured)
	if (policy == "" || policy == StructuredAuto) && !code {
		policy = firstRule(knownClients, client, known)
	}
	f := results.Format{Structured: results.StructuredOwn, Bytes: firstRule(s.Clients, client, chars), ShortNames: s.ShortNames}
	switch policy {
	case StructuredAlways:
		f.Structured = results.StructuredAlways
	case StructuredNever:
		f.Structured = results.StructuredNone
	case StructuredOnce:
		f.Structured = results.StructuredOnce
	}
	written := cmp.Or(firstRule(s.Clients, client, text), firstRule(knownClients, client, text))
	f.JSON = code || policy == StructuredAlways || written == TextJSON
	// A program reads results whole, and a user who turns the limit off means it.
	if f.Bytes == 0 && !f.JSON && !s.NeverCut {
		f.Bytes = cmp.Or(firstRule(knownClients, client, chars), unknownResultChars)
	}
	// The answer must have its way to the client before that gives up.
	f.Wait = cmp.Or(firstRule(s.Clients, client, wait), firstRule(knownClients, client, wait)) * 5 / 6
	f.LineFirst = f.Bytes > 0 && firstRule(knownClients, client, first)
	return f
}

// budget bounds the description of inspect for a client.
func (s *Settings) budget(client string) describe.Budget {
	b := describe.Budget{Tokens: s.BudgetTokens, Chars: s.BudgetChars}
	chars := func(r ClientRule) int { return r.DescriptionChars }
	own := cmp.Or(firstRule(s.Clients, client, chars), firstRule(knownClients, client, chars))
	if own > 0 && (b.Chars == 0 || own < b.Chars) {
		b.Chars = own
	}
	return b
}

// firstRule is a setting of the first rule that matches a client and has it, or zero.
func firstRule[T comparable](rules []ClientRule, client string, setting func(ClientRule) T) (zero T) {
	for _, rule := range rules {
		if value := setting(rule); value != zero && policy.Match([]string{strings.ToLower(rule.Name)}, strings.ToLower(client)) {
			return value
		}
	}
	return zero
}
