package sanitize

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const (
	// looked bounds the text that is processed.
	looked = 64 << 10
	// shortSecret is the length below which a secret is not removed, as it would occur in any text.
	shortSecret = 4
)

// Secrets are values to be removed from untrusted text before users or logs get it. Nil removes none. Safe for
// concurrent use.
type Secrets struct {
	spelled []string // longest first
	fresh   func() []string
}

// NewSecrets makes Secrets of fixed values and the values that fresh, which may be nil, returns for each text.
func NewSecrets(fixed []string, fresh func() []string) *Secrets {
	return &Secrets{spellings(fixed), fresh}
}

// And returns Secrets with more fixed values, and with fresh, which may be nil, in place of the previous one.
func (s *Secrets) And(fixed []string, fresh func() []string) *Secrets {
	more := spellings(fixed)
	if s != nil {
		more = inOrder(slices.Concat(s.spelled, more))
	}
	return &Secrets{more, fresh}
}

// Strike replaces each secret by "[secret]".
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

// Line removes secrets and applies [Line] to the first 64 KiB of text.
func (s *Secrets) Line(text string, max int) string {
	text = Line(s.Strike(text[:min(len(text), looked)]), 0)
	return Line(s.Strike(text), max) // again: invisible characters inside a secret are gone now
}

// LineOf is Line for bytes. It copies only the bytes that it processes.
func (s *Secrets) LineOf(text []byte, max int) string {
	return s.Line(string(text[:min(len(text), looked)]), max)
}

// LineEnd is Line for text whose end matters most.
func (s *Secrets) LineEnd(text string, limit int) string {
	text = s.Strike(Line(s.Strike(text[max(0, len(text)-looked):]), 0))
	if runes := []rune(text); len(runes) > limit {
		return "..." + string(runes[len(runes)-limit+3:])
	}
	return text
}

// spellings returns secrets in all forms in which they may occur: literal, in a URL, in JSON, and line by line.
func spellings(secrets []string) []string {
	var all []string
	for _, secret := range secrets {
		quoted, _ := json.Marshal(secret)
		all = append(all, secret, url.QueryEscape(secret), url.PathEscape(secret), string(quoted[1:len(quoted)-1]))
		if lines := strings.Split(secret, "\n"); len(lines) > 1 {
			for _, line := range lines {
				// A shorter line may be a common word.
				if line = strings.TrimSpace(line); len(line) >= 2*shortSecret {
					all = append(all, line)
				}
			}
		}
	}
	return inOrder(slices.DeleteFunc(all, func(secret string) bool { return len(secret) < shortSecret }))
}

// inOrder sorts secrets, longest first as one may contain another, without duplicates.
func inOrder(secrets []string) []string {
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return slices.Compact(secrets)
}
