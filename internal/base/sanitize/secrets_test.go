package sanitize

import (
	"strings"
	"testing"
)

// TestSecretSpellings: a secret is removed in each form in which servers may write it.
func TestSecretSpellings(t *testing.T) {
	key := "-----BEGIN KEY-----\nMIIabcdefgh\nijklmnopqr\n-----END KEY-----\n"
	secrets := NewSecrets([]string{"to ken/+\"1", "abc"}, nil).And([]string{key, "word"}, func() []string { return []string{"fresh one"} })
	for text, want := range map[string]string{
		`bad token to ken/+"1 given`:                 "bad token [secret] given",
		"GET /x?key=to+ken%2F%2B%221":                "GET /x?key=[secret]",
		"GET /to%20ken%2F+%221/x":                    "GET /[secret]/x",
		`{"token":"to ken/+\"1"}`:                    `{"token":"[secret]"}`,
		"bad key: " + key + " read":                  "bad key: [secret] read",
		"ijklmnopqr\n-----END KEY-----":              "[secret] [secret]",
		"abc is too short to be struck out":          "abc is too short to be struck out",
		"a word is not":                              "a [secret] is not",
		"nor is a fresh one":                         "nor is a [secret]",
		strings.Repeat("x", maxText) + "to ken/+\"1": strings.Repeat("x", 97) + "...",
	} {
		if got := secrets.Line(text, 100); got != want {
			t.Errorf("%.60q: got %q, want %q", text, got, want)
		}
	}
}
