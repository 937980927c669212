package sanitize

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const (
	// maxText is how many bytes of a text the methods Line, LineOf and LineEnd use. They ignore the rest of the text.
	maxText = 64 << 10
	// shortSecret is the length in bytes below which a secret is not removed, because so short a string occurs in any
	// text.
	shortSecret = 4
)

// Secrets are values to remove from untrusted text before it is shown to users or logged. A nil *Secrets removes
// nothing. Safe for concurrent use.
type Secrets struct {
	spelled []string // all spellings of the fixed secrets, longest first
	fresh   func() []string
}

// NewSecrets returns Secrets with fixed values, and with the values that the func load returns each time a text is processed.
// load may be nil.
func NewSecrets(fixed []string, load func() []string) *Secrets {
	return &Secrets{spellings(fixed), load}
}

// And returns Secrets with more fixed values. The func load, which may be nil, replaces the func of s.
func (s *Secrets) And(fixed []string, load func() []string) *Secrets {
	more := spellings(fixed)
	if s != nil {
		more = inOrder(slices.Concat(s.spelled, more))
	}
	return &Secrets{more, load}
}

// Strike replaces each secret in text by "[secret]".
func (s *Secrets) Strike(text string) string {
	if s == nil {
		return text
	}
	all := s.spelled
	if s.fresh != nil {
		all = slices.Concat(all, spellings(s.fresh()))
	}
	for _, secret := range all {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	return text
}

// Line removes secrets and applies the function [Line] to the first 64 KiB of text.
func (s *Secrets) Line(text string, max int) string {
	text = Line(s.Strike(text[:min(len(text), maxText)]), 0)
	return Line(s.Strike(text), max) // again, because invisible characters inside a secret have been removed only now
}

// LineOf makes bytes one line without secrets, like the method Line. It copies only the bytes that it processes.
func (s *Secrets) LineOf(text []byte, max int) string {
	return s.Line(string(text[:min(len(text), maxText)]), max)
}

// LineEnd makes the last 64 KiB of text one line without secrets. If more than limit runes are left, it cuts off the beginning.
func (s *Secrets) LineEnd(text string, limit int) string {
	text = s.Strike(Line(s.Strike(text[max(0, len(text)-maxText):]), 0))
	if runes := []rune(text); len(runes) > limit {
		return "..." + string(runes[len(runes)-limit+3:])
	}
	return text
}

// spellings returns secrets in all forms in which they may occur: literal, escaped for a URL, escaped for JSON, escaped for
// JSON that is quoted in other JSON, and each line of a secret with several lines. It leaves out forms that are too short (see
// shortSecret).
func spellings(secrets []string) []string {
	var all []string
	for _, secret := range secrets {
		quoted, _ := json.Marshal(secret)
		escaped := string(quoted[1 : len(quoted)-1])
		nested, _ := json.Marshal(escaped)
		all = append(all, secret, url.QueryEscape(secret), url.PathEscape(secret), escaped, string(nested[1:len(nested)-1]))
		if lines := strings.Split(secret, "\n"); len(lines) > 1 {
			for _, line := range lines {
				// Short lines are left out, because they may be common words.
				if line = strings.TrimSpace(line); len(line) >= 2*shortSecret {
					all = append(all, line)
				}
			}
		}
	}
	return inOrder(slices.DeleteFunc(all, func(secret string) bool { return len(secret) < shortSecret }))
}

// inOrder sorts secrets and removes duplicates. The longest come first, because a secret may contain a shorter one.
func inOrder(secrets []string) []string {
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(secrets)
}
