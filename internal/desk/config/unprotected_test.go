package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestUnprotected_Global: the root keys confirm and pin protect the user. A value that they do not accept is a fault of
// structure, and is not ignored. Their words and values that turn them off are accepted.
func TestUnprotected_Global(t *testing.T) {
	for _, test := range []struct{ key, on, off, want string }{
		{"confirm", `true "yes" 1 ["x"]`, `"off" false null "" "OFF" "destructive" "all"`, "must be destructive, all or off"},
		{"pin", `true ["a.b"] "all" {"*":true}`, `false null [] "off" "warn" "block"`, "must be warn, block or off"},
	} {
		for _, value := range strings.Fields(test.on) {
			_, err := Parse("c.json", fmt.Appendf(nil, `{"%s": %s, "mcpServers": {}}`, test.key, value), Options{})
			if got, want := fmt.Sprint(err), "c.json: "+test.key+": "+test.want; got != want {
				t.Errorf("%s: %s\ngot  %s\nwant %s", test.key, value, got, want)
			}
		}
		for _, value := range strings.Fields(test.off) {
			c, err := Parse("c.json", fmt.Appendf(nil, `{"%s": %s, "mcpServers": {}}`, test.key, value), Options{})
			if err != nil || len(c.Warnings) != 1 {
				t.Errorf("%s: %s: %v, %+v", test.key, value, err, c)
			}
		}
	}
}

// TestUnprotected_Missing: a root key that asks for a protection which mcpx does not have is a fault of structure. A value that
// turns the key off is accepted without a warning, and the JSON Schema says the same.
func TestUnprotected_Missing(t *testing.T) {
	schema := compiled(t)
	for _, test := range []struct{ key, on, off string }{
		{"sandbox", `true {} {"network":{}} {"network":{"allowedDomains":["a.b"]}}`, `false null "off" {"enabled":false}`},
		{"flows", `"log" "ask" "block" true`, `"off" false null`},
		{"redact", `[{"find":["card"]}] true`, `[] false null`},
		{"interceptors", `[{"server":"a"}]`, `[] null`},
		{"sandboxEnabled", `true`, `false null`},
		{"marks", `["private"] "outward"`, `[] null`},
	} {
		file := func(value string) []byte {
			return fmt.Appendf(nil, `{"%s": %s, "mcpServers": {"a": {"command": "x"}}}`, test.key, value)
		}
		for _, value := range strings.Fields(test.on) {
			_, err := Parse("c.json", file(value), Options{})
			want := "c.json: " + test.key + ": mcpx has no "
			if got := fmt.Sprint(err); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "remove the key to accept that") {
				t.Errorf("%s: %s: %s, want %s…", test.key, value, got, want)
			}
			if accepts(t, schema, file(value)) == nil {
				t.Errorf("%s: %s: the schema accepts it", test.key, value)
			}
		}
		for _, value := range strings.Fields(test.off) {
			if c, err := Parse("c.json", file(value), Options{}); err != nil || len(c.Warnings) > 0 {
				t.Errorf("%s: %s: %v, %+v", test.key, value, err, c)
			}
			if err := accepts(t, schema, file(value)); err != nil {
				t.Errorf("%s: %s: %v", test.key, value, err)
			}
		}
	}
}

// TestUnprotected_Server: a key of a server that asks for a protection which mcpx does not have makes this server unavailable, and no other. If the value
// turns the key off, the server is available.
func TestUnprotected_Server(t *testing.T) {
	for _, test := range []struct{ key, on, off, want string }{
		{"sandboxEnabled", `true`, `false null`, "mcpx has no sandbox"},
		{"sandbox", `true {"enabled":true} {} {"filesystem":{"allowWrite":["/"]}}`, `false {"enabled":false} {"network":{},"enabled":false}`, "mcpx has no sandbox"},
		{"sandbox", `{"network":{}},"sandboxEnabled":null`, `{"network":{}},"sandboxEnabled":false`, "mcpx has no sandbox"},
		{"marks", `["private"] "outward"`, `[] null`, "mcpx has no control of where data goes"},
		{"flows", `"block" "log"`, `"off" false null`, "mcpx has no control of where data goes"},
		{"redact", `[{"find":["card"]}]`, `[] null`, "mcpx has no redaction"},
		{"interceptors", `[{"phase":"request"}]`, `[] null`, "mcpx has no interceptors"},
		{"overrides", `{"t":{"marks":["private"]}}`, `{"t":{"marks":[]}}`, "mcpx has no control of where data goes"},
	} {
		parse := func(value string) *Config {
			t.Helper()
			file := fmt.Appendf(nil, `{"mcpServers": {"a": {"command": "x", "%s": %s}, "b": {"command": "y"}}}`, test.key, value)
			c, err := Parse("c.json", file, Options{})
			if err != nil || len(c.Servers) != 2 || c.Servers[1].Fault != "" {
				t.Fatalf("%s: %s: %v, %+v", test.key, value, err, c)
			}
			return c
		}
		for _, value := range strings.Fields(test.on) {
			if got := parse(value).Servers[0].Fault; !strings.HasPrefix(got, "mcpServers.a."+test.key) || !strings.Contains(got, test.want) {
				t.Errorf("%s: %s: fault %q, want one with %q", test.key, value, got, test.want)
			}
		}
		for _, value := range strings.Fields(test.off) {
			if got := parse(value).Servers[0].Fault; got != "" {
				t.Errorf("%s: %s: fault %q", test.key, value, got)
			}
		}
	}
}

// TestUnprotected_ReadOnly: at the root, where read_only holds for no server, it is a fault.
func TestUnprotected_ReadOnly(t *testing.T) {
	for value, want := range map[string]string{
		"true":  "c.json: read_only: is a key of servers and groups, so mcpx would run without it; write it there",
		"false": "<nil>",
	} {
		_, err := Parse("c.json", fmt.Appendf(nil, `{"read_only": %s, "mcpServers": {"a": {"command": "x"}}}`, value), Options{})
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%s: %s, want %s", value, got, want)
		}
	}
}

func TestLogLevel(t *testing.T) {
	for value, want := range map[string]string{"INFO": "info", "Warn": "warn", "debug": "debug", "ERROR": "error"} {
		c, err := Parse("c.json", fmt.Appendf(nil, `{"log_level": %q, "mcpServers": {}}`, value), Options{})
		if err != nil || c.LogLevel != want {
			t.Errorf("%s: %v, %+v", value, err, c)
		}
	}
}
