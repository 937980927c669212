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

// StructuredPolicy says in which results a client gets structuredContent.
type StructuredPolicy = conf.StructuredPolicy

// The policies. StructuredAuto passes on the server's structuredContent, except to clients that have another policy in
// knownClients. StructuredOnce omits structuredContent if a text contains the same; it is for clients that show both to the model.
// StructuredAlways is for programs: it also creates structuredContent if the server sends none. StructuredNever omits
// structuredContent.
const (
	StructuredAuto   StructuredPolicy = "auto"
	StructuredAlways StructuredPolicy = "always"
	StructuredOnce   StructuredPolicy = "once"
	StructuredNever  StructuredPolicy = "never"
)

// TextForm determines to which formats texts in results may be converted.
type TextForm = conf.TextForm

// With TextJSON no text is converted to TOON or JavaScript, because a program reads it. TextAuto allows these formats.
const (
	TextAuto TextForm = "auto"
	TextJSON TextForm = "json"
)

// ClientRule has settings for clients by name. A field that is empty or 0 is not set by the rule.
type ClientRule = conf.ClientRule

// Settings are Options with a cache of the clients' profiles. The options never change.
type Settings struct {
	Options
	profiles sync.Map // name -> profile; at most maxProfiles entries
	kept     atomic.Int32
}

// maxProfiles is the maximum number of cached profiles. It is needed because clients can use any names.
const maxProfiles = 1000

// NewSettings returns settings with these options. A StartupWait of 0 becomes 5 s.
func NewSettings(o Options) *Settings {
	o.StartupWait = cmp.Or(o.StartupWait, 5*time.Second)
	return &Settings{Options: o}
}

// profile has the settings for one client, from the rules in the config and from knownClients. form is the format for results; code
// is the format for results that a program written by the model reads.
type profile struct {
	form, code results.Format
	shown      shown
}

// profile returns the profile for a client's name. It is cached by name, because matching the globs takes longer than the rest
// of a small call.
func (s *Settings) profile(name string) profile {
	if found, ok := s.profiles.Load(name); ok {
		return found.(profile)
	}
	p := profile{form: s.form(name, "", false), code: s.form(name, "", true)}
	texts := p.form.Texts(compress.Options{TOON: true, JS: true})
	searches := firstRule(knownClients, name, func(r ClientRule) bool { return r.Searches })
	chars := firstRule(s.Clients, name, func(r ClientRule) int { return r.DescriptionChars })
	p.shown = shown{budget: s.budget(name), features: describe.Features{
		JSONSchema: s.JSONSchema, NoTOON: !texts.TOON, NoJS: !texts.JS, ShortNames: s.ShortNames, ReadDoor: s.ReadDoor,
		Brief: searches && chars == 0,
	}}
	if s.kept.Load() < maxProfiles {
		s.kept.Add(1)
		s.profiles.Store(name, p)
	}
	return p
}

// form returns the format for the result of a call. If the request itself chooses StructuredAlways or StructuredNever, the format
// follows that choice. Otherwise it comes from the client's profile, which has another format for calls by a program.
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

// form returns the format of results for a client. The policy for structuredContent comes from the header of the request (the
// parameter requested), or else from the rule for the client, or else from the config. If there is none, or it is StructuredAuto,
// knownClients decides. But if code is true, which means that a program makes the call, knownClients is not consulted for this
// policy.
func (s *Settings) form(client string, requested StructuredPolicy, code bool) results.Format {
	known := func(r ClientRule) StructuredPolicy { return r.Structured }
	text := func(r ClientRule) TextForm { return r.Text }
	chars := func(r ClientRule) int { return r.ResultChars }
	first := func(r ClientRule) bool { return r.LineFirst }
	wait := func(r ClientRule) time.Duration { return r.CallWait }

	policy := cmp.Or(requested, firstRule(s.Clients, client, known), s.Structured)
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
	// Without a rule for the client, results for programs are not cut, and no results are cut if the user has turned the limit
	// off.
	if f.Bytes == 0 && !f.JSON && !s.NeverCut {
		f.Bytes = cmp.Or(firstRule(knownClients, client, chars), unknownResultChars)
	}
	// The answer must reach the client in time: mcpx uses only five sixths of the time that the client waits.
	f.Wait = cmp.Or(firstRule(s.Clients, client, wait), firstRule(knownClients, client, wait)) * 5 / 6
	f.Uncut = firstRule(knownClients, client, func(r ClientRule) bool { return r.Uncut })
	f.LineFirst = f.Bytes > 0 && firstRule(knownClients, client, first)
	return f
}

// budget returns the limits of the descriptions of inspect and exec for a client.
func (s *Settings) budget(client string) describe.Budget {
	b := describe.Budget{Tokens: s.BudgetTokens, Chars: s.BudgetChars}
	chars := func(r ClientRule) int { return r.DescriptionChars }
	own := cmp.Or(firstRule(s.Clients, client, chars), firstRule(knownClients, client, chars))
	if own > 0 && (b.Chars == 0 || own < b.Chars) {
		b.Chars = own
	}
	return b
}

// firstRule returns a setting from the first rule that matches the client and has this setting. If there is none, it returns
// zero.
func firstRule[T comparable](rules []ClientRule, client string, setting func(ClientRule) T) (zero T) {
	for _, rule := range rules {
		if value := setting(rule); value != zero && policy.Match([]string{strings.ToLower(rule.Name)}, strings.ToLower(client)) {
			return value
		}
	}
	return zero
}
