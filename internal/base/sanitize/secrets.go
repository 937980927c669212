package sanitize

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const (
	// looked bounds the text that is looked at.
	looked = 64 << 10
	// shortSecret is the length below which a value is struck out of nothing: such values are in every text.
	shortSecret = 4
)

// Secrets are values that are struck out of foreign text before a person or a log gets it. Nil strikes out none.
// Safe for concurrent use.
type Secrets struct {
	spelled []string // longer ones first
	fresh   func() []string
}

// NewSecrets are these values, with those that fresh, which may be nil, returns at the time of each text.
func NewSecrets(fixed []string, fresh func() []string) *Secrets {
	return &Secrets{spellings(fixed), fresh}
}

// And returns further secrets: fixed beside the fixed ones, and fresh, which may be nil, in place of the fresh ones.
func (s *Secrets) And(fixed []string, fresh func() []string) *Secrets {
	more := spellings(fixed)
	if s != nil {
		more = inOrder(slices.Concat(s.spelled, more))
	}
	return &Secrets{more, fresh}
}

// Strike returns text with "[secret]" in place of each secret.
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

// Line is [Line] of the first 64 KiB of text, without the secrets, at most max runes long.
func (s *Secrets) Line(text string, max int) string {
	text = Line(s.Strike(text[:min(len(text), looked)]), 0)
	return Line(s.Strike(text), max) // again: what was hidden in a secret is gone
}

// LineOf is Line for bytes. It copies no more of them than it looks at.
func (s *Secrets) LineOf(text []byte, max int) string {
	return s.Line(string(text[:min(len(text), looked)]), max)
}

// LineEnd is Line for text whose end says most: that is kept.
func (s *Secrets) LineEnd(text string, limit int) string {
	text = s.Strike(Line(s.Strike(text[max(0, len(text)-looked):]), 0))
	if runes := []rune(text); len(runes) > limit {
		return "..." + string(runes[len(runes)-limit+3:])
	}
	return text
}

// spellings are secrets in all the ways that they are met in: as they are, in a URL, in JSON, and line by line.
func spellings(secrets []string) []string {
	var all []string
	for _, secret := range secrets {
		quoted, _ := json.Marshal(secret)
		all = append(all, secret, url.QueryEscape(secret), url.PathEscape(secret), string(quoted[1:len(quoted)-1]))
		if lines := strings.Split(secret, "\n"); len(lines) > 1 {
			for _, line := range lines {
				// A shorter line can be a word of any text.
				if line = strings.TrimSpace(line); len(line) >= 2*shortSecret {
					all = append(all, line)
				}
			}
		}
	}
	return inOrder(slices.DeleteFunc(all, func(secret string) bool { return len(secret) < shortSecret }))
}

// inOrder puts the longer secrets first, as one may be a part of another, and each once.
func inOrder(secrets []string) []string {
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(secrets)
}
