package config

import (
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/conf"
)

// TestDialCompat: the config key dial.compat needs a key for its tokens. It adds a rule for agents. If there is no key auth, it
// also makes mcpx require credentials.
func TestDialCompat(t *testing.T) {
	const key = "0123456789abcdef0123456789abcdef"
	parse := func(text string) (*Config, error) {
		return Parse("c.json", []byte(`{"mcpServers":{"s":{"command":"s"}},`+text+`}`), Options{Getenv: func(name string) (string, bool) { return key, name == "KEY" }})
	}
	c, err := parse(`"dial":{"compat":"signed","compat_key":"${KEY}"}`)
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Dial; d.Compat != conf.CompatSigned || !slices.Equal(d.Keys, []string{key}) || len(d.Allow) != 1 || d.Allow[0].Principals[0] != "agent:*" || d.Allow[0].For != "self" {
		t.Errorf("%+v", d)
	}
	if c.Auth == nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "only agents can connect") || !slices.Contains(c.Secrets, key) {
		t.Errorf("auth %+v, warnings %q", c.Auth, c.Warnings)
	}
	c, err = parse(`"dial":{"compat":"encrypted","compat_key":["${KEY}","` + strings.Repeat("o", 32) + `"],"allow":[{"names":["x"]}]},"auth":{"rights":[{"principals":["agent:a"],"servers":["s"]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Dial.Keys) != 2 || len(c.Dial.Allow) != 2 || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "never end") {
		t.Errorf("%+v, warnings %q", c.Dial, c.Warnings)
	}
	for _, off := range []string{`false`, `"off"`, `null`} {
		if c, err = parse(`"dial":{"allow":[{"names":["x"]}],"compat":` + off + `,"compat_key":"${KEY}"}`); err != nil || c.Dial.Compat != conf.CompatOff || c.Auth != nil || len(c.Dial.Allow) != 1 {
			t.Errorf("%s: %+v, %v", off, c, err)
		}
	}
	for text, want := range map[string]string{
		`{"compat":"signed"}`:                                `dial: needs "compat_key"`,
		`{"compat":"signed","compat_key":"short"}`:           "dial.compat_key: must be at least 32 characters",
		`{"compat":"signed","compat_key":["` + key + `",7]}`: "dial.compat_key[1]",
		`{"compat":"plain","compat_key":"` + key + `"}`:      "dial.compat: must be",
		`{"compat":true,"compat_key":"` + key + `"}`:         "dial.compat: must be",
		`{"compat_key":"` + key + `"}`:                       `dial: needs "allow"`,
	} {
		if _, err := parse(`"dial":` + text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
