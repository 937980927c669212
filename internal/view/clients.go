package view

import (
	"cmp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/compress"
	"mcpx/internal/describe"
	"mcpx/internal/policy"
	"mcpx/internal/results"
)

// StructuredPolicy decides which clients get structuredContent.
type StructuredPolicy = conf.StructuredPolicy

// The policies. StructuredAlways also makes structuredContent where the upstream sends none, for programs. StructuredOnce passes
// the upstream's unless a text contains the same, for clients that show a model both. StructuredAuto passes it, except to
// clients for which knownClients says never or once.
const (
	StructuredAuto   StructuredPolicy = "auto"
	StructuredAlways StructuredPolicy = "always"
	StructuredOnce   StructuredPolicy = "once"
	StructuredNever  StructuredPolicy = "never"
)

// TextForm says what the texts of results may become.
type TextForm = conf.TextForm

// With TextJSON no text becomes TOON or JavaScript, because a program reads it.
const (
	TextAuto TextForm = "auto"
	TextJSON TextForm = "json"
)

// ClientRule has settings for clients by name. What is empty or 0 is not set by the rule.
type ClientRule = conf.ClientRule

// Settings are options in use, with a cache of the clients' profiles. The options never change.
type Settings struct {
	Options
	profiles sync.Map // name -> profile; at most maxProfiles
	kept     atomic.Int32
}

// maxProfiles bounds the cache: clients can invent names.
const maxProfiles = 1000

// NewSettings makes settings of options.
func NewSettings(o Options) *Settings {
	o.StartupWait = cmp.Or(o.StartupWait, 5*time.Second)
	return &Settings{Options: o}
}

// profile has the settings for one client, from the rules and knownClients. code is the format for calls made by a program that
// the model wrote.
type profile struct {
	form, code results.Format
	shown      shown
}

// profile returns the profile for a client's name. Matching the globs costs more than the rest of a small call, so it is done once
// for each name.
func (s *Settings) profile(name string) profile {
	if found, ok := s.profiles.Load(name); ok {
		return found.(profile)
	}
	p := profile{form: s.form(name, "", false), code: s.form(name, "", true)}
	texts := p.form.Texts(compress.Options{TOON: true, JS: true})
	searches := firstRule(knownClients, name, func(r ClientRule) bool { return r.Searches })
	chars := firstRule(s.Clients, name, func(r ClientRule) int { return r.DescriptionChars })
	p.shown = shown{s.budget(name), describe.Features{
		JSONSchema: s.JSONSchema, NoTOON: !texts.TOON, NoJS: !texts.JS, ShortNames: s.ShortNames, ReadDoor: s.ReadDoor,
		Brief: searches && chars == 0,
	}}
	if s.kept.Add(1) <= maxProfiles {
		s.profiles.Store(name, p)
	}
	return p
}

// form returns the format for the result of a call.
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

// form returns the format of results for a client. The header of a request (asked) overrides the client's rule, which overrides the
// config. What knownClients says comes last, and does not apply to calls by a program.
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
	forms := func(r ClientRule) conf.ResultForms { return r.Forms }
	f.Forms = cmp.Or(firstRule(s.Clients, client, forms), s.Forms)
	// Programs read results whole, and users who turn the limit off do so on purpose.
	if f.Bytes == 0 && !f.JSON && !s.NeverCut {
		f.Bytes = cmp.Or(firstRule(knownClients, client, chars), unknownResultChars)
	}
	// The answer must reach the client before it gives up.
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

// firstRule returns a setting from the first rule that matches a client and has it, or zero.
func firstRule[T comparable](rules []ClientRule, client string, setting func(ClientRule) T) (zero T) {
	for _, rule := range rules {
		if value := setting(rule); value != zero && policy.Match([]string{strings.ToLower(rule.Name)}, strings.ToLower(client)) {
			return value
		}
	}
	return zero
}
