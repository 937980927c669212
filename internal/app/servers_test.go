package app

import (
	"testing"

	"mcpx/internal/config"
)

// TestCacheKey: another credential is another definition, but the same catalogue.
func TestCacheKey(t *testing.T) {
	keys := func(server string, env map[string]string) (key, definition string) {
		t.Helper()
		cfg, err := config.Parse("c.json", []byte(`{"mcpServers":{`+server+`}}`), config.Options{Getenv: func(name string) (string, bool) {
			value, ok := env[name]
			return value, ok
		}})
		if err != nil || len(cfg.Servers) != 1 || cfg.Servers[0].Fault != "" {
			t.Fatalf("%s: %v", server, err)
		}
		one := (&App{}).server(cfg, cfg.Servers[0])
		return one.Key, one.Definition
	}
	for _, test := range []struct {
		name, one, other string
		same             bool
	}{
		{"env", `"a":{"command":"x","env":{"API_TOKEN":"old-token"}}`, `"a":{"command":"x","env":{"API_TOKEN":"new-token"}}`, true},
		{"variable", `"a":{"command":"x","env":{"API":"${OLD_KEY}"}}`, `"a":{"command":"x","env":{"API":"${NEW_KEY}"}}`, true},
		{"header", `"a":{"url":"https://h/","headers":{"Authorization":"Bearer old-token"}}`, `"a":{"url":"https://h/","headers":{"Authorization":"Bearer new-token"}}`, true},
		{"header of a variable", `"a":{"url":"https://h/","headers":{"X-Team":"${OLD}"}}`, `"a":{"url":"https://h/","headers":{"X-Team":"${NEW}"}}`, true},
		{"args", `"a":{"command":"x","args":["--api-key=old-token"]}`, `"a":{"command":"x","args":["--api-key=new-token"]}`, true},
		{"url", `"a":{"url":"https://h/?api_key=old-token"}`, `"a":{"url":"https://h/?api_key=new-token"}`, true},
		{"another setting", `"a":{"command":"x","env":{"STAGE":"production"}}`, `"a":{"command":"x","env":{"STAGE":"development"}}`, false},
		{"another variable", `"a":{"command":"x","args":["${OLD}"]}`, `"a":{"command":"x","args":["${NEW}"]}`, false},
		{"another toolset", `"a":{"url":"https://h/","headers":{"X-Toolsets":"issues"}}`, `"a":{"url":"https://h/","headers":{"X-Toolsets":"repositories"}}`, false},
		{"another account", `"a":{"command":"x","env":{"API_TOKEN":"old-token"}}`, `"b":{"command":"x","env":{"API_TOKEN":"new-token"}}`, false},
		{"no credential", `"a":{"command":"x","env":{"API_TOKEN":"old-token"}}`, `"a":{"command":"x"}`, false},
	} {
		env := map[string]string{"OLD_KEY": "old-token", "NEW_KEY": "new-token", "OLD": "one-value", "NEW": "other-value"}
		key, definition := keys(test.one, env)
		otherKey, otherDefinition := keys(test.other, env)
		if (key == otherKey) != test.same {
			t.Errorf("%s: the same key is %t, want %t", test.name, key == otherKey, test.same)
		}
		if definition == otherDefinition && test.name != "another account" {
			t.Errorf("%s: the same definition", test.name)
		}
	}
}
