package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestInstances: urls has the addresses of several instances of a server. A single address in urls means the same as url.
func TestInstances(t *testing.T) {
	for _, test := range []struct {
		server string
		urls   []string
		fault  string
	}{
		{`"urls":["https://a","https://b/mcp"]`, []string{"https://a", "https://b/mcp"}, ""},
		{`"urls":["wss://a","ws://b"]`, []string{"wss://a", "ws://b"}, ""},
		{`"urls":["https://a","${B:-https://b}"]`, []string{"https://a", "https://b"}, ""},
		{`"urls":["https://a"]`, nil, ""},
		{`"urls":[],"type":"http"`, nil, "urls: must have an address"},
		{`"urls":["https://a","https://a"]`, nil, "urls[1]: is there twice"},
		{`"urls":["https://a","b"]`, nil, "urls[1]: must start with http:// or https://"},
		{`"urls":["b","https://a"]`, nil, "urls[0]: must start with http:// or https://"},
		{`"urls":["https://a","wss://b"]`, nil, "urls[1]: must start with http:// or https://"},
		{`"urls":["https://a","https://"]`, nil, "urls[1]: has no host"},
		{`"urls":["https://a","https://b"],"url":"https://c"`, nil, "urls: is there beside url; put all addresses into urls"},
		{`"url":"https://c","urls":["https://a","https://b"]`, nil, "urls: is there beside url; put all addresses into urls"},
	} {
		c, err := Parse("c.json", fmt.Appendf(nil, `{"mcpServers":{"s":{%s}}}`, test.server), Options{Getenv: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Errorf("%s: %v", test.server, err)
			continue
		}
		s := c.Servers[0]
		if test.fault == "" && (s.Fault != "" || !slices.Equal(s.URLs, test.urls) || s.URL == "") || test.fault != "" && !strings.Contains(s.Fault, "mcpServers.s."+test.fault) {
			t.Errorf("%s: %q %v, fault %q", test.server, s.URL, s.URLs, s.Fault)
		}
	}
	if _, err := Parse("c.json", []byte(`{"mcpServers":{"s":{"urls":"https://a"}}}`), Options{}); err == nil || !strings.Contains(err.Error(), "mcpServers.s.urls: must be an array") {
		t.Errorf("a string: %v", err)
	}
}
