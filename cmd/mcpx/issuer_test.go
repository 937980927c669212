package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// trusting serves an mcpx that accepts the JWTs of a real authorization server.
func trusting(t *testing.T, h *home) (*hosted, *guarded) { return needing(t, h, "mcp") }

// needing is trusting for tokens that need these scopes.
func needing(t *testing.T, h *home, scopes ...string) (*hosted, *guarded) {
	t.Helper()
	g := guard(t, 600, map[string]any{"format": "jwt"})
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, map[string]any{
		"auth": map[string]any{"issuers": []any{map[string]any{"issuer": g.issuer}}, "scopes": scopes},
	})
	return h.serveHTTP(t, "--config", path), g
}

// TestIssuer_TypeScript: the client of the TypeScript SDK finds the authorization server,
// registers, logs in, and renews its tokens.
func TestIssuer_TypeScript(t *testing.T) {
	mcptest.Parallel(t)
	d, g := trusting(t, newHome(t))
	listsTwice(t, d, func(page string) string {
		_, last := browseFrom(t, page, func(next *http.Request, _ []*http.Request) error {
			if next.URL.Path == "/callback" {
				return http.ErrUseLastResponse
			}
			return nil
		})
		return last
	}, g.suite.node, filepath.Join(g.suite.dir, "connect.mjs"), d.url, "http://127.0.0.1:1/callback")
}

// listsTwice runs connect.mjs, which lists the tools of mcpx, renews its tokens and lists the tools again.
// browse opens the login page and returns the address of the final redirect.
func listsTwice(t *testing.T, d *hosted, browse func(page string) string, node string, args ...string) {
	t.Helper()
	cmd := exec.Command(node, args...)
	var stderr lockedBuffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := visit(t, cmd, func(page string) { fmt.Fprintln(in, browse(page)) })
	lists := slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(line string) bool { return strings.HasPrefix(line, "http") })
	if err != nil || strings.Join(lists, ", ") != "inspect exec, inspect exec" {
		t.Errorf("%v: %q\n%s\n%s", err, lists, &stderr, d.stderr.String())
	}
}

// TestIssuer_Itself: one mcpx logs in at another, as when a user runs mcpx login. It does so at the main endpoint
// and at the path of one server, whose metadata document names that path.
func TestIssuer_Itself(t *testing.T) {
	mcptest.Parallel(t)
	d, _ := trusting(t, newHome(t))
	h := newHome(t)
	path := h.config(t, map[string]server{"team": {"url": d.url}, "one": {"url": d.url + "/servers/fake"}}, nil)
	for _, test := range [][]string{
		{"team", "exec", `{"server_name":"fake","tool_name":"echo","arguments":{"text":"through both"}}`},
		{"one", "echo", `{"text":"through both"}`},
	} {
		if out, page := h.login(t, 0, "--config", path, test[0]); !strings.Contains(out, "logged in to "+test[0]) {
			t.Fatalf("%s\n%s", out, page)
		}
		out, stderr, code := h.run(t, "", append([]string{"--config", path, "exec"}, test...)...)
		if code != 0 || !strings.Contains(out, "through both") {
			t.Errorf("%s: exit %d\n%s\n%s", test[0], code, out, stderr)
		}
	}
}

// machineToken returns a token that the authorization server has issued to a program for a resource.
func (g *guarded) machineToken(t *testing.T, resource, scope string) string {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "resource": {resource}, "scope": {scope}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.issuer+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth("machine", "machine-secret-of-the-tests")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var said struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil || strings.Count(said.Token, ".") != 2 {
		t.Fatalf("%s: %+v, %v", response.Status, said, err)
	}
	return said.Token
}

// TestIssuer_Scopes: the answer to a token without one of the scopes names all of them. Clients log in again with just the scopes in the
// answer, and a token with only the missing one would lack the others.
func TestIssuer_Scopes(t *testing.T) {
	mcptest.Parallel(t)
	d, g := needing(t, newHome(t), "mcp", "more")
	for _, has := range []string{"mcp", "more"} {
		response, said := fetch(t, http.MethodPost, d.url, legacyInitialize, sendsJSON, bearer(g.machineToken(t, d.url, has)))
		got := response.Header.Get("WWW-Authenticate")
		if response.StatusCode != http.StatusForbidden || !strings.Contains(got, `, scope="mcp more", error="insufficient_scope"`) {
			t.Errorf("a token with %s: %d %s %s", has, response.StatusCode, got, said)
		}
	}
	if response, _ := fetch(t, http.MethodPost, d.url, legacyInitialize, sendsJSON, bearer(g.machineToken(t, d.url, "mcp more"))); response.StatusCode != http.StatusOK {
		t.Errorf("a token with both: %s", response.Status)
	}
}

// TestIssuer_Tokens: mcpx accepts only tokens that a real authorization server has issued for mcpx, also after
// the server has rotated its keys, and while the server is down.
func TestIssuer_Tokens(t *testing.T) {
	mcptest.Parallel(t)
	d, g := trusting(t, newHome(t))
	try := func(token string) (status int, challenge string) {
		t.Helper()
		response, _ := fetch(t, http.MethodPost, d.url, legacyInitialize, sendsJSON, bearer(token))
		return response.StatusCode, response.Header.Get("WWW-Authenticate")
	}
	down := func(is bool) {
		g.with(func() {
			g.answer = func(w http.ResponseWriter, _ *http.Request) bool {
				if is {
					http.Error(w, "down", http.StatusBadGateway)
				}
				return is
			}
		})
	}
	metadata := strings.TrimSuffix(d.url, "/mcp") + "/.well-known/oauth-protected-resource/mcp"
	good, foreign, little := g.machineToken(t, d.url, "mcp"), g.machineToken(t, "https://other.example/mcp", "mcp"), g.machineToken(t, d.url, "more")
	view := g.machineToken(t, d.url+"/tools", "mcp")
	localhost := g.machineToken(t, strings.Replace(d.url, "127.0.0.1", "localhost", 1), "mcp")
	for _, test := range []struct {
		name, token string
		status      int
		challenge   string
	}{
		{"good", good, 200, ""},
		{"again", good, 200, ""},
		{"foreign", foreign, 401, `Bearer resource_metadata="` + metadata + `", scope="mcp", error="invalid_token"`},
		{"the other name of this machine", localhost, 401, `Bearer resource_metadata="` + metadata + `", scope="mcp", error="invalid_token"`},
		{"for a view", view, 401, `Bearer resource_metadata="` + metadata + `", scope="mcp", error="invalid_token"`},
		{"too little", little, 403, `Bearer resource_metadata="` + metadata + `", scope="mcp", error="insufficient_scope"`},
		{"cut", good[:len(good)-8], 401, `Bearer resource_metadata="` + metadata + `", scope="mcp", error="invalid_token"`},
	} {
		if status, challenge := try(test.token); status != test.status || challenge != test.challenge {
			t.Errorf("%s: %d %s\nwant %d %s", test.name, status, challenge, test.status, test.challenge)
		}
	}
	wanted := "the token has the audience https://other.example/mcp, and must have " + d.url
	if _, said := fetch(t, http.MethodPost, d.url, legacyInitialize, sendsJSON, bearer(foreign)); strings.TrimSpace(said) != wanted {
		t.Errorf("foreign: %s", said)
	}
	// A client with a renewed token is the same principal, and can continue its session.
	peer := d.peer(t)
	c := &client{era: legacy, name: "e2e", peer: peer}
	for i := range 2 {
		peer.header.Set("Authorization", "Bearer "+g.machineToken(t, d.url, "mcp"))
		if i == 0 {
			c.open(t)
		}
		if got := c.exec(t, "fake", "echo", `{"text":"hello"}`).text(t); got != "hello" {
			t.Errorf("token %d of a session: %s", i, got)
		}
	}
	looks := g.count("/jwks")
	g.admin(t, "/test/rotate")
	if status, _ := try(g.machineToken(t, d.url, "mcp")); status != 200 || g.count("/jwks") != looks+1 {
		t.Errorf("after a rotation: %d, %d looks at the keys", status, g.count("/jwks")-looks)
	}
	another := g.machineToken(t, d.url, "mcp more")
	down(true)
	if status, _ := try(another); status != 200 {
		t.Errorf("while it is down: %d", status)
	}
}

// TestIssuer_DownAtStart: mcpx starts although the authorization server is down. A request with a token gets
// an error that says that the token cannot be checked now.
func TestIssuer_DownAtStart(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, map[string]any{
		"auth": map[string]any{"issuers": []any{map[string]any{"issuer": "http://127.0.0.1:1"}}},
	})
	d := h.serveHTTP(t, "--config", path)
	// The first token decodes to {"alg":"RS256"}.{"iss":"http://127.0.0.1:1"}.x
	for token, want := range map[string]int{"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwOi8vMTI3LjAuMC4xOjEifQ.eA": 503, "a.b.c": 401, "x": 401} {
		response, _ := fetch(t, http.MethodGet, d.url, "", bearer(token))
		if response.StatusCode != want {
			t.Errorf("%s: %s, want %d", token, response.Status, want)
		}
	}
	mcptest.WaitFor(t, "the log to say why", patience, func() bool { return d.logged("cannot read the keys of an issuer") > 0 })
}
