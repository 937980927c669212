package config

import (
	"slices"
	"strings"
	"testing"
)

const frontKey = "0123456789abcdef0123456789abcdef"

func TestFront(t *testing.T) {
	env := map[string]string{"CLIENT_SECRET": "secret of the client", "FRONT_KEY": frontKey}
	c, err := Parse("config.json", []byte(`{"mcpServers": {}, "auth": {"resource": "https://mcp.example.com/mcp", "front": {
		"issuer": "https://login.example.com", "client_id": "mcpx", "client_secret": "${CLIENT_SECRET}", "key": "${FRONT_KEY}",
		"scopes": ["openid", "groups"], "groups_claim": "roles", "allow_private": true, "documents": false,
		"redirects": ["loopback", "https://chatgpt.com/connector/oauth/*", "cursor://anysphere.cursor-mcp/oauth/callback"],
		"allow": {"emails": ["*@example.com"], "groups": ["staff"]}}}}`), Options{Getenv: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	f := c.Auth.Front
	if f.Issuer != "https://login.example.com" || f.ClientID != "mcpx" || f.ClientSecret != "secret of the client" || len(f.Keys) != 1 || f.Keys[0] != frontKey || len(f.Scopes) != 2 ||
		f.GroupsClaim != "roles" || !f.AllowPrivate || !f.NoDocuments || len(f.Redirects) != 3 || f.Allow.Emails[0] != "*@example.com" || f.Allow.Groups[0] != "staff" || f.Allow.Subjects != nil {
		t.Errorf("%+v", f)
	}
	for _, secret := range env {
		if !slices.Contains(c.Secrets, secret) {
			t.Errorf("%q is not struck out", secret)
		}
	}
}

func TestFront_Faults(t *testing.T) {
	const good = `"issuer": "https://login.example.com", "client_id": "mcpx"`
	for _, test := range []struct{ auth, want string }{
		{`{"resource": "https://mcp.example.com/mcp", "front": {` + good + `}}`, ""},
		{`{"resource": "http://localhost:8080/mcp", "front": {"issuer": "http://127.0.0.1:9000/realm", "client_id": "mcpx"}}`, ""},
		{`{"front": {` + good + `}}`, "needs auth.resource"},
		{`{"resource": "http://mcp.example.com/mcp", "front": {` + good + `}}`, "with https://"},
		{`{"resource": "https://mcp.example.com/mcp", "front": {"client_id": "mcpx"}}`, "needs issuer and client_id"},
		{`{"resource": "https://mcp.example.com/mcp", "front": {"issuer": "https://login.example.com"}}`, "needs issuer and client_id"},
		{`{"resource": "https://mcp.example.com/mcp", "front": {"issuer": "http://login.example.com", "client_id": "mcpx"}}`, "https:// URL of an OpenID issuer"},
		{`{"resource": "https://mcp.example.com/mcp", "front": {` + good + `, "key": "short"}}`, "at least 32"},
		{`{"resource": "https://mcp.example.com/mcp", "front": {` + good + `, "client_secret": "${NOT_THERE}"}}`, "NOT_THERE is not set"},
		{`{"resource": "https://mcp.example.com/mcp", "front": {` + good + `, "redirects": []}}`, "must not be empty"},
		{`{"resource": "https://mcp.example.com/mcp", "front": {` + good + `, "redirects": ["*"]}}`, "redirects[0]"},
		{`{"resource": "https://mcp.example.com/mcp", "front": {` + good + `, "redirects": ["loopback", "http://evil.example/"]}}`, "redirects[1]"},
		{`{"resource": "https://mcp.example.com/mcp", "front": {` + good + `, "redirects": ["*://a.example/"]}}`, "redirects[0]"},
		{`{"resource": "https://mcp.example.com/mcp", "front": {` + good + `, "allow": {}}}`, "needs emails, groups or subjects"},
		{`{"resource": "https://mcp.example.com/mcp", "front": {` + good + `, "allow": {"emails": []}}}`, "must not be empty"},
		{`{"resource": "https://mcp.example.com/mcp", "front": {` + good + `, "allow": {"email": ["x"]}}}`, "unknown key"},
		{`{"resource": "https://mcp.example.com/mcp", "front": {` + good + `, "alow": {}}}`, "alow"},
		{`{"front": {"enabled": false}}`, "no client could connect"},
	} {
		_, err := Parse("config.json", []byte(`{"mcpServers": {}, "auth": `+test.auth+`}`), Options{})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.auth, err, test.want)
		}
	}
}
