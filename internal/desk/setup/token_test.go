package setup

import (
	"errors"
	"strings"
	"testing"
)

// TestTokens: adding, replacing and removing tokens keeps the rest of the file.
func TestTokens(t *testing.T) {
	const file = `{
  // the servers
  "mcpServers": {},
  "auth": {
    // who may connect
    "tokens": {
      "ci": {"sha256": "old", "groups": ["a"]}, // of the pipeline
    },
  },
}
`
	set := func(data, name, digest string, groups []string, replace bool) string {
		t.Helper()
		after, err := SetToken([]byte(data), name, Token{SHA256: digest, Groups: groups}, replace)
		if err != nil {
			t.Fatal(err)
		}
		return string(after)
	}
	added := set(file, "alice", "new", []string{"dev"}, false)
	for _, want := range []string{"// the servers", "// who may connect", "// of the pipeline", `"alice": {`, `"sha256": "new"`, `"groups": ["dev"]`, `"sha256": "old"`} {
		if !strings.Contains(added, want) {
			t.Errorf("no %s in\n%s", want, added)
		}
	}
	if after := set(file, "ci", "new", nil, true); after != strings.Replace(file, "old", "new", 1) {
		t.Errorf("replaced:\n%s", after)
	}
	if after := set(file, "ci", "new", []string{"b"}, true); after != strings.NewReplacer("old", "new", `["a"]`, `["b"]`).Replace(file) {
		t.Errorf("replaced with groups:\n%s", after)
	}
	second := set(file, "ci", "0123456789abcdef", nil, false)
	for _, want := range []string{`"ci": {"sha256": "old", "groups": ["a"]}, // of the pipeline`, `"ci/01234567": {`, `"sha256": "0123456789abcdef"`} {
		if !strings.Contains(second, want) || strings.Count(second, `["a"]`) != 2 {
			t.Errorf("no %s in\n%s", want, second)
		}
	}
	if one, err := RemoveToken([]byte(second), "ci", "01234567"); err != nil || string(one) != file {
		t.Errorf("removed the second: %v\n%s", err, one)
	}
	if one, err := RemoveToken([]byte(second), "ci", "OLD"); err != nil || strings.Contains(string(one), "old") || !strings.Contains(string(one), "ci/01234567") {
		t.Errorf("removed the first: %v\n%s", err, one)
	}
	if all, err := RemoveToken([]byte(second), "ci", ""); err != nil || strings.Contains(string(all), "sha256") {
		t.Errorf("removed all: %v\n%s", err, all)
	}
	if only := set(second, "ci", "new", nil, true); strings.Contains(only, "ci/") || strings.Contains(only, "old") {
		t.Errorf("only one left:\n%s", only)
	}
	if _, err := RemoveToken([]byte(second), "ci", "ffffffff"); !errors.Is(err, ErrNoToken) {
		t.Errorf("removed what is not there: %v", err)
	}
	removed, err := RemoveToken([]byte(added), "alice", "")
	if err != nil || strings.Contains(string(removed), "alice") || !strings.Contains(string(removed), "// of the pipeline") {
		t.Errorf("removed: %v\n%s", err, removed)
	}
	if _, err := RemoveToken([]byte(file), "bob", ""); !errors.Is(err, ErrNoToken) {
		t.Errorf("removed what is not there: %v", err)
	}
	if after := set(`{"mcpServers": {}}`, "ci", "new", nil, false); after != `{"mcpServers": {}, "auth": {"tokens":{"ci":{"sha256":"new"}}}}` {
		t.Errorf("the first one: %s", after)
	}
}
