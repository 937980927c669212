package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// connector acts as the backend of claude.ai or ChatGPT: it knows only the URL of an MCP server.
type connector struct {
	t        *testing.T
	metadata map[string]any // the metadata of the authorization server
	resource string
	scope    string
	session  string // the MCP session; it belongs to the user, so it also works with renewed tokens
}

func (c *connector) get(address string) (out map[string]any) {
	c.t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %s %v", address, resp.Status, err)
	}
	return out
}

// call posts a message to the MCP server.
func (c *connector) call(at, token, message string) (status int, header http.Header, answer string) {
	c.t.Helper()
	headers := []string{sendsJSON, takesBoth}
	if token != "" {
		headers = append(headers, bearer(token))
	}
	resp, answer := fetch(c.t, http.MethodPost, at, message, headers...)
	return resp.StatusCode, resp.Header, answer
}

// discover sends the MCP server a request without a token, and follows the answer to the metadata of the
// authorization server.
func discover(t *testing.T, f *fronted) *connector {
	c := &connector{t: t}
	status, header, _ := c.call(f.resource, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	challenge := header.Get("Www-Authenticate")
	at := regexp.MustCompile(`resource_metadata="([^"]+)"`).FindStringSubmatch(challenge)
	scope := regexp.MustCompile(`scope="([^"]+)"`).FindStringSubmatch(challenge)
	if status != http.StatusUnauthorized || at == nil || scope == nil {
		t.Fatalf("%d %s", status, challenge)
	}
	resource := c.get(at[1])
	c.resource, c.scope = resource["resource"].(string), scope[1]
	issuer := resource["authorization_servers"].([]any)[0].(string)
	c.metadata = c.get(issuer + "/.well-known/oauth-authorization-server")
	if c.resource != f.resource || c.metadata["issuer"] != issuer || c.metadata["code_challenge_methods_supported"].([]any)[0] != "S256" {
		t.Fatalf("%v %v", resource, c.metadata)
	}
	return c
}

func (c *connector) endpoint(name string) string { return c.metadata[name].(string) }

func (c *connector) post(name, kind, body string) (status int, answer map[string]any) {
	c.t.Helper()
	resp, err := http.Post(c.endpoint(name), kind, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		c.t.Fatalf("%s: %s %v", name, resp.Status, err)
	}
	return resp.StatusCode, answer
}

func (c *connector) token(form url.Values) (status int, answer map[string]any) {
	c.t.Helper()
	form.Set("resource", c.resource)
	return c.post("token_endpoint", "application/x-www-form-urlencoded", form.Encode())
}

const connectorVerifier = "verifier-of-the-connector-of-43-characters-or-more"

// code gets an authorization code; the function agree acts as the user.
func (c *connector) code(f *fronted, client, redirect string) string {
	c.t.Helper()
	sum := sha256.Sum256([]byte(connectorVerifier))
	to := agree(c.t, f, c.endpoint("authorization_endpoint")+"?"+url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirect}, "state": {"state"}, "scope": {c.scope}, "resource": {c.resource},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}.Encode())
	back := to.Query()
	if !strings.HasPrefix(to.String(), redirect+"?") || back.Get("state") != "state" || back.Get("iss") != c.metadata["issuer"] {
		c.t.Fatalf("sent back to %s\n%s", to, f.stderr.String())
	}
	return back.Get("code")
}

// connect gets a code and exchanges it for tokens.
func (c *connector) connect(f *fronted, client, redirect string) (tokens map[string]any) {
	c.t.Helper()
	status, tokens := c.token(url.Values{
		"grant_type": {"authorization_code"}, "client_id": {client}, "code": {c.code(f, client, redirect)}, "redirect_uri": {redirect}, "code_verifier": {connectorVerifier},
	})
	if status != http.StatusOK {
		c.t.Fatalf("token: %d %v", status, tokens)
	}
	return tokens
}

const (
	legacyInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"connector","version":"1"}}}`
	legacyTools      = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
)

// tools lists the tools with a token.
func (c *connector) tools(tokens map[string]any) string {
	c.t.Helper()
	return c.ask(tokens, legacyTools)
}

// ask sends a request with a token. It opens a session if there is none yet.
func (c *connector) ask(tokens map[string]any, message string) string {
	c.t.Helper()
	token := tokens["access_token"].(string)
	if c.session == "" {
		status, header, answer := c.call(c.resource, token, legacyInitialize)
		if status != http.StatusOK {
			c.t.Fatalf("initialize: %d %s", status, answer)
		}
		c.session = header.Get("Mcp-Session-Id")
	}
	_, answer := fetch(c.t, http.MethodPost, c.resource, message, sendsJSON, takesBoth, bearer(token),
		"Mcp-Session-Id: "+c.session, "Mcp-Protocol-Version: 2025-06-18")
	return answer
}
