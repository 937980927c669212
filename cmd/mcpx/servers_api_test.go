package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"mcpx/internal/mcptest"
)

// site returns the URL of a daemon without the path of the MCP endpoint.
func (d *hosted) site() string { return strings.TrimSuffix(d.url, "/mcp") }

// api sends a request to /api/servers, or to a path below it.
func (d *hosted) api(t testing.TB, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	response, answer := fetch(t, method, d.site()+"/api/servers"+path, body, headers...)
	return response.StatusCode, answer
}

func entry(s server, name string) string {
	s["name"] = name
	text, _ := json.Marshal(s) // cannot fail: the entry has only strings and lists
	delete(s, "name")
	return string(text)
}

// TestServersAPI_Real: a real server is added and removed while a client is connected. The client keeps its
// session, and its calls to the other server.
func TestServersAPI_Real(t *testing.T) {
	mcptest.Parallel(t)
	p, h := findPeers(t), newHome(t)
	kept, err := json.Marshal(fake(t, mcptest.Spec{}))
	if err != nil {
		t.Fatal(err)
	}
	config := h.write(t, "mcpx.json", `{
  // what stays
  "api": true, "exec_wait": 60, "clients": {"e2e": {"structured_content": "always"}},
  "mcpServers": {
    "kept": `+string(kept)+`, // as it is
  },
}
`)
	before := readFile(t, config)
	d := h.serveHTTP(t, "--config", config)
	c := &client{peer: d.peer(t), era: legacy, name: "e2e"}
	c.open(t)
	c.listen(t)
	c.awaitReady(t, "kept")
	pid := c.exec(t, "kept", "pid", `{}`).text(t)
	changes := func() int { return len(c.notes("notifications/tools/list_changed")) }

	known := changes()
	everything := p.server("everything", map[string]string{"ANSWER": "42"})
	if status, body := d.api(t, "POST", "", entry(everything, "real")); status != 201 || !strings.Contains(body, `"name":"real"`) {
		t.Fatalf("adding: %d %s", status, body)
	}
	mcptest.WaitFor(t, "list_changed", patience, func() bool { return changes() > known })
	if got := c.exec(t, "real", "get-sum", `{"a":2,"b":3}`).text(t); !strings.Contains(got, "5") {
		t.Errorf("the sum is %s", got)
	}
	if got := c.exec(t, "real", "get-env", `{}`).text(t); !strings.Contains(got, `"ANSWER":"42"`) {
		t.Errorf("its environment is %s", got)
	}
	if status, body := d.api(t, "GET", "/real", ""); status != 200 || !strings.Contains(body, `"state":"ready"`) {
		t.Errorf("its status: %d %s", status, body)
	}

	if status, body := d.api(t, "PATCH", "/real", `{"tools":{"deny":["get-env"]},"env":{"ANSWER":null}}`); status != 200 {
		t.Errorf("changing: %d %s", status, body)
	}
	if r := c.exec(t, "real", "get-env", `{}`); !strings.Contains(r.text(t), "TOOL_NOT_FOUND") {
		t.Errorf("a tool that is filtered out: %s", r.Content)
	}
	if status, body := d.api(t, "POST", "/real/disable", ""); status != 200 || !strings.Contains(body, `"state":"disabled"`) {
		t.Errorf("disabling: %d %s", status, body)
	}
	if r := c.exec(t, "real", "get-sum", `{"a":2,"b":3}`); !r.IsError {
		t.Errorf("a call of a disabled server: %s", r.Content)
	}
	if status, body := d.api(t, "POST", "/real/enable", ""); status != 200 {
		t.Errorf("enabling: %d %s", status, body)
	}
	if got := c.exec(t, "real", "get-sum", `{"a":2,"b":3}`).text(t); !strings.Contains(got, "5") {
		t.Errorf("the sum of the server that is back is %s", got)
	}

	known = changes()
	if status, body := d.api(t, "DELETE", "/real", ""); status != 204 || body != "" {
		t.Errorf("removing: %d %s", status, body)
	}
	mcptest.WaitFor(t, "list_changed", patience, func() bool { return changes() > known })
	if r := c.exec(t, "real", "get-sum", `{"a":2,"b":3}`); !strings.Contains(r.text(t), "SERVER_NOT_FOUND") {
		t.Errorf("a server that was removed: %s", r.Content)
	}
	if got := c.exec(t, "kept", "pid", `{}`).text(t); got != pid {
		t.Errorf("the server that stays went from process %s to %s", pid, got)
	}
	if got := readFile(t, config); got != before {
		t.Errorf("the config is not what it was:\n%s", got)
	}
}

// TestServersAPI_Faults: an invalid edit changes nothing in the config, and the answer says what is wrong, and
// where.
func TestServersAPI_Faults(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	config := h.config(t, map[string]server{"kept": fake(t, mcptest.Spec{})}, map[string]any{"api": true})
	before := readFile(t, config)
	d := h.serveHTTP(t, "--config", config)
	for _, one := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"POST", "", `{"name":"kept","command":"x"}`, 409, "kept is in the config already"},
		{"POST", "", `{"name":"a","url":"ftp://x"}`, 422, "mcpServers.a.url: must start with http"},
		{"POST", "", `{"name":"a"}`, 422, "mcpServers.a"},
		{"POST", "", `{"name":"a","command":"x","urll":"y"}`, 422, `"faults":["mcpServers.a.urll: unknown key`},
		{"POST", "", `{"name":"a","command":"x","env":{"A":"${MCPX_TEST_UNSET}"}}`, 422, "mcpServers.a.env.A: environment variable MCPX_TEST_UNSET is not set"},
		{"POST", "", `{"command":"x"}`, 400, `no \"name\"`},
		{"POST", "", `{"name":"a","command":"x",}`, 400, "JSON object"},
		{"POST", "", `[]`, 400, "JSON object"},
		{"POST", "", ``, 400, "JSON object"},
		{"POST", "", `{"name":"a","command":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "too large"},
		{"PUT", "/kept", `{"name":"other","command":"x"}`, 400, "cannot be renamed"},
		{"PUT", "/kept", `{}`, 422, "mcpServers.kept"},
		{"PUT", "/nope", `{"command":"x"}`, 404, "no such server"},
		{"PATCH", "/nope", `{}`, 404, "no such server"},
		{"PATCH", "/kept", `{"command":null}`, 422, "mcpServers.kept"},
		{"DELETE", "/nope", "", 404, "no such server"},
		{"POST", "/nope/enable", "", 404, "no such server"},
		{"POST", "/kept/restart", "", 404, ""},
		{"GET", "/nope", "", 404, "no such server"},
	} {
		if status, body := d.api(t, one.method, one.path, one.body); status != one.status || !strings.Contains(body, one.want) {
			t.Errorf("%s %s %.80s: %d %s, want %d with %s", one.method, one.path, one.body, status, body, one.status, one.want)
		}
	}
	for _, header := range []string{"Sec-Fetch-Site: same-site", "Origin: http://localhost:1"} {
		if status, body := d.api(t, "POST", "", `{"name":"a","command":"x"}`, header); status != 403 {
			t.Errorf("from a page, %s: %d %s", header, status, body)
		}
	}
	if err := os.Chmod(config, 0o400); err != nil {
		t.Fatal(err)
	}
	if status, body := d.api(t, "POST", "/kept/disable", ""); status != 500 || !strings.Contains(body, "read-only") {
		t.Errorf("a file that is read-only: %d %s", status, body)
	}
	if got := readFile(t, config); got != before {
		t.Errorf("the config has changed:\n%s", got)
	}
	if files, err := filepath.Glob(filepath.Join(filepath.Dir(config), "*mcpx.json*")); err != nil || len(files) != 1 {
		t.Errorf("beside the config: %v %v", files, err)
	}
}

// TestServersAPI_AtOnce: edits that arrive at the same time are made one after the other, and none is lost.
func TestServersAPI_AtOnce(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	config := h.config(t, map[string]server{}, map[string]any{"api": true})
	d := h.serveHTTP(t, "--config", config)
	const n = 8
	var adding sync.WaitGroup
	for i := range n {
		adding.Go(func() { // the goroutine ends with the answer
			if status, body := d.api(t, "POST", "", fmt.Sprintf(`{"name":"s%d","command":"mcpx-no-such-program"}`, i)); status != 201 {
				t.Errorf("adding s%d: %d %s", i, status, body)
			}
		})
	}
	adding.Wait()
	if status, body := d.api(t, "GET", "", ""); status != 200 || strings.Count(body, `"name":"s`) != n {
		t.Errorf("%d %s", status, body)
	}
	if text := readFile(t, config); strings.Count(text, "mcpx-no-such-program") != n {
		t.Errorf("the config:\n%s", text)
	}
}

// TestServersAPI_Rights: with auth, only an admin may see and change servers. Without auth no client may change them, unless
// the config permits it.
func TestServersAPI_Rights(t *testing.T) {
	mcptest.Parallel(t)
	digest := func(token string) string {
		sum := sha256.Sum256([]byte(token))
		return hex.EncodeToString(sum[:])
	}
	auth := map[string]any{
		"tokens": map[string]any{"root": map[string]any{"sha256": digest("root-token")}, "user": map[string]any{"sha256": digest("user-token")}},
		"rights": []any{map[string]any{"principals": []string{"root"}, "admin": true}, map[string]any{"principals": []string{"user"}}},
	}
	add := `{"name":"new","command":"mcpx-no-such-program"}`
	serve := func(t *testing.T, global map[string]any) (*hosted, string) {
		h := newHome(t)
		config := h.config(t, map[string]server{"kept": fake(t, mcptest.Spec{})}, global)
		return h.serveHTTP(t, "--config", config), config
	}
	t.Run("auth", func(t *testing.T) {
		mcptest.Parallel(t)
		d, config := serve(t, map[string]any{"auth": auth})
		before := readFile(t, config)
		for _, method := range []string{"GET", "POST"} {
			if status, body := d.api(t, method, "", add); status != 401 || strings.Contains(body, "kept") {
				t.Errorf("%s without a token: %d %s", method, status, body)
			}
			if status, body := d.api(t, method, "", add, "Authorization: Bearer user-token"); status != 403 || strings.Contains(body, "kept") {
				t.Errorf("%s without the right: %d %s", method, status, body)
			}
		}
		if got := readFile(t, config); got != before {
			t.Errorf("the config has changed:\n%s", got)
		}
		if status, body := d.api(t, "POST", "", add, "Authorization: Bearer root-token"); status != 201 {
			t.Errorf("an admin: %d %s", status, body)
		}
		if status, body := d.api(t, "GET", "", "", "Authorization: Bearer root-token"); status != 200 || !strings.Contains(body, `"name":"new"`) {
			t.Errorf("the list: %d %s", status, body)
		}
	})
	t.Run("auth, turned off", func(t *testing.T) {
		mcptest.Parallel(t)
		d, _ := serve(t, map[string]any{"auth": auth, "api": false})
		if status, body := d.api(t, "POST", "", add, "Authorization: Bearer root-token"); status != 403 || !strings.Contains(body, `\"api\"`) {
			t.Errorf("an admin: %d %s", status, body)
		}
	})
	t.Run("demo", func(t *testing.T) {
		mcptest.Parallel(t)
		d := newHome(t).serveHTTP(t, "--demo")
		if status, body := d.api(t, "POST", "", add); status != 409 || !strings.Contains(body, "has no config file") {
			t.Errorf("changing: %d %s", status, body)
		}
	})
	t.Run("no auth", func(t *testing.T) {
		mcptest.Parallel(t)
		d, _ := serve(t, nil)
		if status, body := d.api(t, "POST", "", add); status != 403 || !strings.Contains(body, `\"api\": true`) {
			t.Errorf("changing: %d %s", status, body)
		}
		if status, body := d.api(t, "GET", "", ""); status != 200 || !strings.Contains(body, `"name":"kept"`) {
			t.Errorf("the list: %d %s", status, body)
		}
	})
}
