package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"mcpx/internal/base/conf"
)

func digestOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// TestAuth: the keys of auth are read. An unknown key in auth is a fault, because the user may have meant it to keep clients
// out.
func TestAuth(t *testing.T) {
	a, b := digestOf("a"), digestOf("b")
	for value, want := range map[string]*Auth{
		`{"resource": "https://M.example/mcp/", "tokens": {"ci": {"sha256": "` + b + `"}, "al.ice_1-2": {"sha256": "` + strings.ToUpper(a) + `", "groups": ["dev"], "scopes": ["x"], "//": "note"}}}`: {
			Resource: "https://M.example/mcp",
			Tokens: []conf.Token{
				{Name: "al.ice_1-2", SHA256: sha256.Sum256([]byte("a")), Groups: []string{"dev"}, Scopes: []string{"x"}},
				{Name: "ci", SHA256: sha256.Sum256([]byte("b"))},
			},
		},
		`{"issuers": [{"issuer": "https://login.example.com/"}, {"issuer": "http://localhost:9/x", "audiences": ["a"], "groups_claim": "roles", "allow_private": true}], "scopes": ["mcp:read"], "audiences": ["b"]}`: {
			Scopes: []string{"mcp:read"}, Audiences: []string{"b"},
			Issuers: []conf.Issuer{{URL: "https://login.example.com/", GroupsClaim: "groups"}, {URL: "http://localhost:9/x", Audiences: []string{"a"}, GroupsClaim: "roles", AllowPrivate: true}},
		},
		`null`: nil, `false`: nil, `"off"`: nil, `{"enabled": false, "tokens": ["x"]}`: nil,
	} {
		c, err := Parse("c.json", fmt.Appendf(nil, `{"mcpServers": {}, "auth": %s}`, value), Options{})
		if err != nil || !reflect.DeepEqual(c.Auth, want) {
			t.Errorf("%s\ngot  %+v, %v\nwant %+v", value, c, err, want)
		}
	}
	const nobody = ": no client could connect"
	for value, want := range map[string]string{
		`{}`:                nobody,
		`{"tokens": {}}`:    nobody,
		`{"tokens": []}`:    ".tokens: must be an object, not an array",
		`true`:              ": must be an object, not a boolean",
		`"token"`:           ": must be an object, not a string",
		`{"issuers": {}}`:   ".issuers: must be an array, not an object",
		`{"issuers": [{}]}`: ".issuers[0].issuer: must be an https:// URL",
		`{"issuers": [{"issuer": "https://login.example.com/@team"}]}`:                    ".issuers[0].issuer: must be an https:// URL",
		`{"issuers": [{"issuer": "http://login.example.com"}]}`:                           ".issuers[0].issuer: must be an https:// URL",
		`{"issuers": [{"issuer": "https://a.example"}, {"issuer": "https://a.example"}]}`: ".issuers[1]: is there twice",
		`{"issuers": [{"issuer": "https://a.example", "audience": "x"}]}`:                 ".issuers[0].audience: unknown key",
		`{"issuers": [{"issuer": "https://a.example", "audiences": []}]}`:                 ".issuers[0].audiences: must not be empty",
		`{"issuers": [{"issuer": "https://a.example"}], "scopes": ["a b"]}`:               `.scopes[0]: is not a scope: "a b"`,
		`{"issuers": [{"issuer": "https://a.example"}], "scopes": ["offline_access"]}`:    `.scopes[0]: is a scope for the authorization server`,
		`{"tokens": {"ci": {}}}`:                                                       ".tokens.ci: needs sha256",
		`{"tokens": {"ci": {"sha256": "` + a[1:] + `"}}}`:                              ".tokens.ci.sha256: must be the SHA-256",
		`{"tokens": {"ci": {"sha256": 5}}}`:                                            ".tokens.ci.sha256: must be the SHA-256",
		`{"tokens": {"a b": {"sha256": "` + a + `"}}}`:                                 `.tokens["a b"]: must have a name`,
		`{"tokens": {"auth_token": {"sha256": "` + a + `"}}}`:                          ".tokens.auth_token: must have a name",
		`{"tokens": {"a": {"sha256": "` + a + `"}, "b": {"sha256": "` + a + `"}}}`:     ".tokens.b: is also the token of another name",
		`{"tokens": {"ci": {"sha256": "` + a + `", "group": ["x"]}}}`:                  `.tokens.ci.group: unknown key`,
		`{"tokens": {"ci": {"sha256": "` + a + `", "groups": [""]}}}`:                  ".tokens.ci.groups[0]: must not be empty",
		`{"tokens": {"ci": {"sha256": "` + a + `"}}, "elsewhere": 1}`:                  ".elsewhere: unknown key",
		`{"tokens": {"ci": {"sha256": "` + a + `"}}, "resource": "mcp.example"}`:       ".resource: must be the public URL",
		`{"tokens": {"ci": {"sha256": "` + a + `"}}, "resource": "https://x/mcp?a=b"}`: ".resource: must be the public URL",
	} {
		_, err := Parse("c.json", fmt.Appendf(nil, `{"mcpServers": {}, "auth": %s}`, value), Options{})
		if err == nil || !strings.Contains(err.Error(), "auth"+want) {
			t.Errorf("%s\ngot  %v\nwant auth%s", value, err, want)
		}
	}
}

// TestAuth_OldToken: the key auth_token of older versions of mcpx is read, whether it has the token itself or a reference.
func TestAuth_OldToken(t *testing.T) {
	const token = "a-token-of-old-times"
	o := Options{
		Getenv: func(name string) (string, bool) { return map[string]string{"TOKEN": token}[name], name != "OTHER" },
		Keyring: func(name string) (string, error) {
			if name == "mcpx" {
				return token, nil
			}
			return "", errors.New("no such secret")
		},
		Only: []string{"s"},
	}
	for value, want := range map[string]string{
		token: "", "${TOKEN}": "", "${keyring:mcpx}": "",
		"${EMPTY}":        "is empty",
		"${OTHER}":        "environment variable OTHER is not set",
		"${keyring:x}":    "no such secret",
		"${command:true}": "has a ${...} without a value",
	} {
		c, err := Parse("c.json", fmt.Appendf(nil, `{"mcpServers": {"s": {"command": "x"}}, "auth_token": %q}`, value), o)
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), "auth_token: "+want) {
				t.Errorf("%s: %v, want %s", value, err, want)
			}
			continue
		}
		if err != nil || c.Auth == nil || !reflect.DeepEqual(c.Auth.Tokens, []conf.Token{{Name: "auth_token", SHA256: sha256.Sum256([]byte(token))}}) {
			t.Errorf("%s: %+v, %v", value, c, err)
		}
	}
	c, err := Parse("c.json", []byte(`{"mcpServers": {"s": {"command": "x"}}, "auth_token": "short"}`), o)
	if err != nil || len(c.Auth.Tokens) != 1 || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "auth_token: is shorter than 16 characters") {
		t.Errorf("a short one: %+v, %v", c, err)
	}
}

// TestTLS: relative paths of certificates are relative to the folder of the config file. Keys that tls or auth.certificates
// lacks are faults. An object turns tls off only if it says so.
func TestTLS(t *testing.T) {
	for value, want := range map[string]string{
		`false`: "off", `{"enabled": false}`: "off", `{"enabled": false, "cert": "c"}`: "off", `{"enabled": true, "cert": "c", "key": "k"}`: "on",
		`{}`: "needs cert", `{"enabled": true}`: "needs cert", `{"enabled": null, "cert": "c", "key": "k"}`: "on",
	} {
		c, err := Parse("c.json", []byte(`{"mcpServers": {"a": {"command": "x"}}, "tls": `+value+`}`), Options{})
		got := fmt.Sprint(err)
		if err == nil {
			got = map[bool]string{true: "on", false: "off"}[c.TLS != nil]
		}
		if !strings.Contains(got, want) {
			t.Errorf("tls %s: %s, want %s", value, got, want)
		}
	}
	c, err := Parse("/etc/mcpx/c.json", []byte(`{"mcpServers": {}, "tls": {"cert": "a.pem", "key": "/k", "client_ca": "ca.pem"}, "auth": {"certificates": true}}`), Options{})
	if err != nil || !c.Auth.Certificates || filepath.Base(c.TLS.Cert) != "a.pem" || !filepath.IsAbs(c.TLS.Cert) || c.TLS.Key != "/k" && runtime.GOOS != "windows" {
		t.Errorf("%+v, %v", c, err)
	}
	for value, want := range map[string]string{
		`{"mcpServers": {}, "tls": {"cert": "a"}}`:                                              "tls: needs key",
		`{"mcpServers": {}, "tls": {}}`:                                                         "tls: needs cert",
		`{"mcpServers": {}, "tls": true}`:                                                       "tls: must be an object",
		`{"mcpServers": {}, "tls": {"cert": "a", "key": "b", "ca": "c"}}`:                       "tls.ca: unknown key",
		`{"mcpServers": {}, "auth": {"certificates": true}}`:                                    "auth.certificates: needs tls.client_ca",
		`{"mcpServers": {}, "auth": {"certificates": true}, "tls": {"cert": "a", "key": "b"}}`:  "auth.certificates: needs tls.client_ca",
		`{"mcpServers": {}, "auth": {"certificates": false}, "tls": {"cert": "a", "key": "b"}}`: "auth: no client could connect",
	} {
		if _, err := Parse("c.json", []byte(value), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
	}
}
