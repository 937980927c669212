package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/conf"
)

// TestOAuth: the keys of oauth are read, including the names that other clients have for them. Invalid values are faults.
func TestOAuth(t *testing.T) {
	for _, test := range []struct {
		oauth, fault string
		want         conf.OAuth
	}{
		{`{}`, "", conf.OAuth{}},
		{`true`, "", conf.OAuth{}},
		{`false`, "", conf.OAuth{Off: true}},
		{`{"enabled": false, "clientId": "x"}`, "", conf.OAuth{Off: true, ClientID: "x"}},
		{`{"clientId": "x", "callbackPort": 8080}`, "", conf.OAuth{ClientID: "x", RedirectPort: 8080}},
		{`{"client_id": "x", "client_secret": "${SECRET}", "scopes": ["a", "b"]}`, "", conf.OAuth{ClientID: "x", ClientSecret: "hunter2-hunter2", Scopes: []string{"a", "b"}}},
		{`{"grant": "private_key_jwt", "client_id": "x", "key": "/k.pem"}`, "", conf.OAuth{Grant: "private_key_jwt", ClientID: "x", Key: "/k.pem"}},
		{`{"client_metadata_url": "https://a.example/client.json", "allow_private": true}`, "", conf.OAuth{ClientMetadataURL: "https://a.example/client.json", AllowPrivate: true}},

		{`{"issuer": "https://as.example/t", "audience": "api"}`, "", conf.OAuth{Issuer: "https://as.example/t", Audience: "api"}},
		{`{"issuer": "as.example"}`, "a.oauth.issuer: must be the https:// URL of an authorization server", conf.OAuth{}},
		{`{"grant": "client_credentials", "client_id": "x"}`, "a.oauth.grant: client_credentials needs client_id and client_secret", conf.OAuth{}},
		{`{"grant": "private_key_jwt", "client_id": "x"}`, "a.oauth.grant: private_key_jwt needs client_id and key", conf.OAuth{}},
		{`{"client_secret": "hunter2-hunter2"}`, "a.oauth.client_secret: needs client_id", conf.OAuth{}},
		{`{"client_metadata_url": "http://a.example/client.json"}`, "a.oauth.client_metadata_url: must be the https:// URL of a document", conf.OAuth{}},
		{`{"client_metadata_url": "https://a.example/"}`, "a.oauth.client_metadata_url: must be the https:// URL of a document", conf.OAuth{}},
	} {
		file := fmt.Appendf(nil, `{"mcpServers": {"a": {"url": "https://a.example/mcp", "oauth": %s}}}`, test.oauth)
		c, err := Parse("c.json", file, Options{Getenv: func(string) (string, bool) { return "hunter2-hunter2", true }})
		if err != nil {
			t.Errorf("%s: %v", test.oauth, err)
			continue
		}
		got := c.Servers[0]
		if test.fault != "" {
			test.fault = "mcpServers." + test.fault
		}
		if got.Fault != test.fault || test.fault == "" && !reflect.DeepEqual(got.OAuth, test.want) {
			t.Errorf("%s\ngot  %+v %q\nwant %+v %q", test.oauth, got.OAuth, got.Fault, test.want, test.fault)
		}
		if secret := got.OAuth.ClientSecret; secret != "" && !slices.Contains(got.Secrets, secret) {
			t.Errorf("%s: the secret is not struck out", test.oauth)
		}
	}
	for oauth, want := range map[string]string{
		`{"grant": "password"}`:    "c.json: mcpServers.a.oauth.grant: must be authorization_code, client_credentials or private_key_jwt",
		`{"client-id": "x"}`:       `c.json: mcpServers.a.oauth.client-id: unknown key "client-id", did you mean "clientId"?`,
		`{"redirect_port": 70000}`: "c.json: mcpServers.a.oauth.redirect_port: is too large",
		`"yes"`:                    "c.json: mcpServers.a.oauth: must be an object, not a string",
	} {
		_, err := Parse("c.json", fmt.Appendf(nil, `{"mcpServers": {"a": {"url": "https://a.example/mcp", "oauth": %s}}}`, oauth), Options{})
		if got := fmt.Sprint(err); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", oauth, got, want)
		}
	}
	c, err := Parse("c.json", []byte(`{"mcpServers": {"a": {"command": "x", "oauth": {"client_id": "x"}}}}`), Options{})
	if err != nil || c.Servers[0].Fault != "mcpServers.a.oauth: is for remote servers; set the credentials of a local command in env" {
		t.Errorf("a command: %v %q", err, c.Servers[0].Fault)
	}
}

// TestOAuth_PerPrincipal: without auth.resource, a server with "per": "principal" is unavailable. The fault has a place, and is among
// the faults of the servers. A server that is disabled, or whose login is off, has no fault.
func TestOAuth_PerPrincipal(t *testing.T) {
	file := `{"mcpServers": {
		"my srv": {"url": "https://a.example/mcp", "oauth": {"per": "principal", "issuer": "x"}},
		"off": {"url": "https://b.example/mcp", "enabled": false, "oauth": {"per": "principal"}},
		"no login": {"url": "https://c.example/mcp", "oauth": {"per": "principal", "enabled": false}}
	}%s}`
	const other = `mcpServers["my srv"].oauth.issuer: must be the https:// URL of an authorization server`
	const missing = `mcpServers["my srv"].oauth.per: principal needs auth.resource, the public URL of mcpx: people log in there`
	for auth, faults := range map[string][]string{
		``: {other, missing},
		`, "auth": {"resource": "https://mcp.example/mcp", "tokens": {"ci": {"sha256": "` + strings.Repeat("0", 64) + `"}}}`: {other},
	} {
		c, err := Parse("c.json", fmt.Appendf(nil, file, auth), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, fault := range c.ServerFaults() {
			got = append(got, fault.String())
		}
		if !slices.Equal(got, faults) {
			t.Errorf("%s: faults %q, want %q", auth, got, faults)
		}
		for _, s := range c.Servers {
			if want := strings.Join(faults, "; "); s.Written == "my srv" && s.Fault != want || s.Written != "my srv" && s.Fault != "" {
				t.Errorf("%s: %s: fault %q", auth, s.Name, s.Fault)
			}
		}
	}
}
