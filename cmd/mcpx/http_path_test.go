package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestHTTPPath: if the config sets another path than /mcp, the MCP endpoints are served under it, without and with auth, and
// nothing under /mcp.
func TestHTTPPath(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	fakes := map[string]server{"fake": fake(t, mcptest.Spec{}), "my fake": fake(t, mcptest.Spec{})}
	d := h.serveHTTP(t, "--config", h.config(t, fakes, map[string]any{"http_path": "/gateway/v1", "sse": true}))
	base, ok := strings.CutSuffix(d.peer(t).url, "/gateway/v1")
	if !ok {
		t.Fatalf("served at %s", d.peer(t).url)
	}
	for _, era := range []string{legacy, modern} {
		for _, path := range []string{"", "/servers/fake"} {
			peer := d.peer(t)
			peer.url += path
			c := &client{peer: peer, era: era, name: "e2e"}
			c.open(t)
			if got := string(c.result(t, "tools/list", `{}`)); !strings.Contains(got, `"name":"exec"`) && !strings.Contains(got, `"name":"echo"`) {
				t.Errorf("%s%s: %s", era, path, got)
			}
		}
	}
	get := func(at string) (status int, header http.Header, text string) {
		t.Helper()
		response, err := http.Get(base + at)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
			first := make([]byte, 200)
			n, _ := response.Body.Read(first)
			return response.StatusCode, response.Header, string(first[:n])
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, response.Header, string(body)
	}
	for at, want := range map[string]string{
		"/":                                 base + "/gateway/v1\n",
		"/gateway/v1/nope":                  "there are /gateway/v1, /gateway/v1/tools",
		"/gateway/v1/sse":                   "/gateway/v1/messages?",
		"/gateway/v1/servers/my%20fake/sse": "data: /gateway/v1/servers/my%20fake/messages?",
		"/sse":                              "/messages?",
		"/mcp":                              "404",
		"/mcp/servers/fake":                 "404",
		"/gateway":                          "404",
	} {
		if status, _, text := get(at); !strings.Contains(text, want) && !(want == "404" && status == 404) {
			t.Errorf("%s: %d %s", at, status, text)
		}
	}

	// With an authorization server, the metadata contains the path too.
	d = h.serveHTTP(t, "--config", h.config(t, fakes, map[string]any{"http_path": "/gateway/v1", "auth": map[string]any{
		"resource": "https://tools.example.com/a/gateway/v1", "issuers": []any{map[string]any{"issuer": "https://issuer.example.com"}},
	}}))
	base = strings.TrimSuffix(d.peer(t).url, "/gateway/v1")
	status, header, _ := get("/gateway/v1/servers/fake")
	const document = "https://tools.example.com/.well-known/oauth-protected-resource/a/gateway/v1/servers/fake"
	if got := header.Get("WWW-Authenticate"); status != 401 || !strings.Contains(got, document) {
		t.Errorf("%d %s", status, got)
	}
	for at, want := range map[string]string{
		"":                           "https://tools.example.com/a/gateway/v1",
		"/a/gateway/v1/servers/fake": "https://tools.example.com/a/gateway/v1/servers/fake",
		"/gateway/v1":                "https://tools.example.com/a/gateway/v1",
	} {
		if status, _, text := get("/.well-known/oauth-protected-resource" + at); status != 200 || !strings.Contains(text, `"resource":"`+want+`"`) {
			t.Errorf("%s: %d %s", at, status, text)
		}
	}

	for path, want := range map[string]string{
		"mcp": "must be a path", "/": "must be a path", "/x/": "must be a path", "/a/../b": "must be a path", "/a b": "must be a path",
		"//x": "must be a path", "/{x}": "must be a path", "/oauth/x": "something else at /oauth", "/status": "something else", "/.well-known/x": "something else",
	} {
		hasAll(t, h.must(t, exitConfig, "check", "--config", h.config(t, fakes, map[string]any{"http_path": path})), "http_path: ", want)
	}
}
