package setup

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// withSecrets is a config with secrets in many places. Its comments are there to show that [ReplaceServer] keeps comments.
const withSecrets = `{
  // the servers
  "mcpServers": {
    "a": {
      "command": "npx", // why
      "args": ["-y", "x@1", "--token", "tok-in-args-1", "--level", "debug", "--api-key=key-in-args-1"],
      "env": {
        // which
        "API_TOKEN": "literal-in-env",
        "REFERENCE": "${API_TOKEN}",
        "DEFAULT_TOKEN": "${X:-default-secret}",
        "LEVEL": "debug", "COMMANDED": "${command:op read op://a/b}", "PORT": "8080"
      },
    },
    "b": {"url": "https://user:pass-in-url@example.com/mcp?api_key=key-in-query", "headers": {
      "Authorization": "Bearer bearer-literal", "X-Of-Mine": "header-literal", "X-Ref": "Bearer ${TOKEN}", "Accept": "text/plain"},
      "oauth": {"client_id": "public", "client_secret": "client-secret-1"}},
  },
}
`

// TestShowServer: no secret that is written in the entry is shown. References and other values are shown.
func TestShowServer(t *testing.T) {
	for name, want := range map[string]struct {
		struck []string
		shown  []string
	}{
		"a": {[]string{"/args/3", "/args/6", "/env/API_TOKEN", "/env/DEFAULT_TOKEN"}, []string{"debug", "${API_TOKEN}", "op read", "8080", "x@1"}},
		"b": {[]string{"/url", "/headers/Authorization", "/headers/X-Of-Mine", "/oauth/client_secret"}, []string{"Bearer ${TOKEN}", "text/plain", "public"}},
	} {
		got, err := ShowServer([]byte(withSecrets), name)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(got.Secret)
		slices.Sort(want.struck)
		if !slices.Equal(got.Secret, want.struck) {
			t.Errorf("%s: struck out %q, want %q\n%s", name, got.Secret, want.struck, got.Entry)
		}
		for _, secret := range []string{"literal", "-in-", "default-secret", "client-secret"} {
			if strings.Contains(string(got.Entry), secret) {
				t.Errorf("%s: the entry shows %s: %s", name, secret, got.Entry)
			}
		}
		for _, text := range want.shown {
			if !strings.Contains(string(got.Entry), text) {
				t.Errorf("%s: the entry does not show %s: %s", name, text, got.Entry)
			}
		}
		if name == "a" && !slices.Equal(got.Executes, []string{"op read op://a/b"}) {
			t.Errorf("got the commands %q", got.Executes)
		}
	}
	if _, err := ShowServer([]byte(withSecrets), "../a"); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v", err)
	}
}

// TestReplaceServer: a value that is struck out in the edited entry stays as it is in the file. Unchanged values keep their
// comments. struckOut at a place where the file has no secret is an error, so that nobody can send a secret to another place.
func TestReplaceServer(t *testing.T) {
	shown, err := ShowServer([]byte(withSecrets), "a")
	if err != nil {
		t.Fatal(err)
	}
	same, err := ReplaceServer([]byte(withSecrets), "a", shown.Entry)
	if err != nil || string(same) != withSecrets {
		t.Errorf("the entry as it was shown changes the file: %v\n%s", err, same)
	}
	changed := strings.Replace(string(shown.Entry), `"LEVEL":"debug"`, `"LEVEL":"info"`, 1)
	got, err := ReplaceServer([]byte(withSecrets), "a", json.RawMessage(changed))
	if want := strings.Replace(withSecrets, `"LEVEL": "debug"`, `"LEVEL": "info"`, 1); err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	without := strings.Replace(string(shown.Entry), `"PORT":"8080"`, `"NEW":"1"`, 1)
	got, err = ReplaceServer([]byte(withSecrets), "a", json.RawMessage(without))
	if text := string(got); err != nil || strings.Contains(text, "PORT") || !strings.Contains(text, `"NEW": "1"`) || !strings.Contains(text, "literal-in-env") {
		t.Errorf("%v\n%s", err, got)
	}
	for _, entry := range []string{
		`{"command":"x","env":{"OTHER":"` + struckOut + `"}}`, `{"command":"` + struckOut + `"}`,
		`{"url":"https://evil.example/","headers":{"Authorization":"` + struckOut + `"}}`, `{"args":["` + struckOut + `"]}`,
	} {
		if got, err := ReplaceServer([]byte(withSecrets), "a", json.RawMessage(entry)); !errors.Is(err, ErrStruckOut) {
			t.Errorf("%s: got %v\n%s", entry, err, got)
		}
	}
}

// TestReplaceServer_Array: a server that is an element of an array keeps its name.
func TestReplaceServer_Array(t *testing.T) {
	const file = `{"servers": [{"name": "a", "command": "x", "env": {"TOKEN": "literal-1"}}, {"name": "b", "command": "y"}]}`
	got, err := ReplaceServer([]byte(file), "a", json.RawMessage(`{"command":"z","env":{"TOKEN":"`+struckOut+`"}}`))
	if want := strings.Replace(file, `"x"`, `"z"`, 1); err != nil || string(got) != want {
		t.Errorf("got %v\n%s", err, got)
	}
}
