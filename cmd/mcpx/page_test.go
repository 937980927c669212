package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// evilTools have markup and scripts in the texts that a server can choose; one has an endless name.
const evilTools = `[
	{"name": "<img src=x onerror=alert(4)>", "description": "<b>bold</b><script>alert(5)</script> \u202eright to left\u202c", "annotations": {"destructiveHint": true},
		"inputSchema": {"type": "object", "required": ["<i>a</i>"], "properties": {"<i>a</i>": {"type": "string", "description": "<img src=x onerror=alert(7)>", "default": "</textarea><script>alert(6)</script>"},
			"big": {"type": "integer"}, "<b>b</b>": {"enum": ["<img src=x onerror=alert(8)>"]}}}},
	{"name": "drop_all", "description": "<script>alert(10)</script>", "inputSchema": {"type": "object"}},
	{"name": "` + "an_endless_name_" + `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "inputSchema": {"type": "object"}}]`

// browserPeers returns the npm peers if those that the page's check needs are installed.
func browserPeers(t *testing.T) peers {
	t.Helper()
	p := findPeers(t)
	for _, name := range []string{"axe-core", "playwright-core", "@sparticuz/chromium"} {
		if _, err := os.Stat(filepath.Join(p.dir, "node_modules", name)); err != nil {
			mcptest.Missing(t, "not installed (npm ci --prefix testdata/npm): %v", err)
		}
	}
	return p
}

// pageServers are the servers whose page the check looks at. tools is the file with the definitions of one of them.
func pageServers(t *testing.T, p peers, tools string) map[string]server {
	t.Helper()
	down := "Error: <img src=x onerror=alert(1)> " + strings.Repeat("a reason that goes on, ", 12) + strings.Repeat("x", 100)
	evil := fake(t, mcptest.Spec{Instructions: "<img src=x onerror=alert(2)><script>alert(3)</script>", Tools: json.RawMessage(evilTools)})
	evil["disabled_tools"] = []string{"drop_*"}
	servers := map[string]server{
		"alpha": fake(t, mcptest.Spec{}), "evil": evil, "odd": fake(t, mcptest.Spec{OddTools: true}),
		"down": fake(t, mcptest.Spec{ExitAtOnce: true, StderrLines: []string{down}}), "switched": fake(t, mcptest.Spec{}),
		"changing":   fake(t, mcptest.Spec{ToolsFile: tools}),
		"memory":     {"command": p.node, "args": []string{p.memory()}, "env": map[string]string{"API_TOKEN": "a-secret-value"}},
		"everything": p.server("everything", nil, "stdio"),
		"a-server-with-a-long-name-that-goes-on.and-on.example": {"url": "http://127.0.0.1:9/mcp"},
		"not-set": {"url": "https://example.com/mcp", "headers": map[string]string{"Authorization": "Bearer ${MCPX_TEST_UNSET}"}},
		"off":     {"command": "mcpx-no-such-program", "enabled": false},
	}
	for i := range 6 {
		servers[fmt.Sprintf("more-%d", i)] = server{"url": "http://127.0.0.1:9/mcp", "start": "lazy"}
	}
	return servers
}

// memory is the path of the npm server memory.
func (p peers) memory() string {
	return filepath.Join(p.dir, "node_modules", "@modelcontextprotocol", "server-memory", "dist", "index.js")
}

// uiLink starts mcpx ui without a daemon, and returns its link.
func (h *home) uiLink(t *testing.T, config string) string {
	t.Helper()
	cmd := h.command(t, "ui", "--no-browser", "--no-daemon", "--config", config)
	_, out := start(t, cmd)
	t.Cleanup(func() {
		terminate(cmd)
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "http://") {
			return lines.Text()
		}
	}
	t.Fatal("mcpx ui printed no link")
	return ""
}

// frontedPage starts an mcpx whose people sign in at an issuer, anna as an admin, and returns the address of its page.
func frontedPage(t *testing.T) string {
	t.Helper()
	h, display := newHome(t), map[string]any{"display_claim": "email"}
	f := h.startFronted(t, display)
	f.follow(t, "config loaded again", func() {
		auth := f.auth(display)
		auth["rights"] = []any{map[string]any{"principals": []string{"*"}}, map[string]any{"principals": []string{"anna@*"}, "admin": true}}
		h.config(t, map[string]server{"box": f.box}, map[string]any{"auth": auth})
	})
	return strings.TrimSuffix(f.resource, "mcp")
}

// TestPage_Browser tests the page in a real browser; see testdata/npm/page-check.mjs. With MCPX_PAGE_PICTURES=DIR it stores
// screenshots in that folder.
func TestPage_Browser(t *testing.T) {
	mcptest.Parallel(t)
	p := browserPeers(t)
	h, g := newHome(t), guard(t, 600)
	tools := h.write(t, "tools.json", `[{"name": "read_note", "description": "Reads a note.", "inputSchema": {"type": "object"}}]`)
	withNpx(t, h, filepath.Join(h.dir, "ran"))
	servers := pageServers(t, p, tools)
	servers["guarded"] = server{"url": g.url}
	config := h.config(t, servers, map[string]any{"api": true, "confirm": "all", "registry": mcptest.ServeRegistry(t, registryAnswers)})
	h.write(t, filepath.Base(config), "// a comment\n"+readFile(t, config))
	full := h.serveHTTP(t, "--config", config)
	agent := &client{peer: full.peer(t), era: legacy, name: "cursor<img src=x onerror=alert(33)>"}
	agent.open(t)
	agent.list(t)
	agent.exec(t, "alpha", "<img src=x onerror=alert(34)>", `{}`)
	empty, guarded := newHome(t), newHome(t)
	none := empty.serveHTTP(t, "--config", empty.config(t, map[string]server{}, nil))
	digest := func(token string) map[string]any {
		sum := sha256.Sum256([]byte(token))
		return map[string]any{"sha256": hex.EncodeToString(sum[:])}
	}
	door := guarded.serveHTTP(t, "--config", guarded.config(t, map[string]server{"alpha": fake(t, mcptest.Spec{})}, map[string]any{"auth": map[string]any{
		"tokens": map[string]any{"root": digest("root-token"), "user": digest("user-token")},
		"rights": []any{map[string]any{"principals": []string{"root"}, "admin": true}, map[string]any{"principals": []string{"user"}}},
	}}))
	own, fronted := newHome(t), ""
	if os.Getenv("MCPX_FULL") != "" {
		fronted = frontedPage(t)
	}
	given, err := json.Marshal(map[string]string{
		"desk": own.uiLink(t, own.config(t, map[string]server{"alpha": fake(t, mcptest.Spec{})}, map[string]any{"ui": map[string]any{"calls": "full"}})),
		"full": full.site() + "/", "empty": none.site() + "/", "guarded": door.site() + "/", "config": config, "tools": tools,
		"fronted": fronted, "memory": p.memory(), "other": none.url, "login": g.issuer,
	})
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(t.Context(), p.node, filepath.Join(p.dir, "page-check.mjs"), string(given))
	check.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "PICTURES="+os.Getenv("MCPX_PAGE_PICTURES"))
	check.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	check.Stdout, check.Stderr = &stdout, &stderr
	err = check.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 77 {
		mcptest.Missing(t, "%s", stderr.String())
	}
	var wrong []string
	if err != nil || json.Unmarshal(stdout.Bytes(), &wrong) != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	t.Log(stderr.String())
	for _, text := range wrong {
		t.Error(text)
	}
}

// TestPage_Off: if the status page is turned off, mcpx returns plain text at / and the paths of the page do
// not exist.
func TestPage_Off(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	d := h.serveHTTP(t, "--config", h.config(t, map[string]server{}, map[string]any{"ui": false}))
	get := func(path string) (int, string) {
		t.Helper()
		response, _ := fetch(t, http.MethodGet, d.site()+path, "", "Accept: text/html,*/*")
		return response.StatusCode, response.Header.Get("Content-Type")
	}
	if status, kind := get("/"); status != 200 || !strings.HasPrefix(kind, "text/plain") {
		t.Errorf("/: %d %s", status, kind)
	}
	for _, path := range []string{"/ui/state", "/ui/page.js", "/ui/events"} {
		if status, _ := get(path); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// TestPage_JWT: a token from a real authorization server opens the status page. The session of the page gives
// access to nothing else.
func TestPage_JWT(t *testing.T) {
	mcptest.Parallel(t)
	h, g := newHome(t), guard(t, 600, map[string]any{"format": "jwt"})
	d := h.serveHTTP(t, "--config", h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, map[string]any{"auth": map[string]any{
		"issuers": []any{map[string]any{"issuer": g.issuer}},
		"rights":  []any{map[string]any{"scopes": []string{"more"}, "admin": true}, map[string]any{"scopes": []string{"mcp"}}},
	}}))
	ask := func(method, path, body, cookie string) (*http.Response, string) {
		t.Helper()
		return fetch(t, method, d.site()+path, body, sendsJSON, "Cookie: "+cookie)
	}
	good := g.machineToken(t, d.url, "mcp more")
	for token, want := range map[string]int{
		g.machineToken(t, "https://other.example/mcp", "mcp more"): 401,
		g.machineToken(t, d.url, "mcp"):                            403,
		good[:len(good)-8]:                                         401,
	} {
		if response, text := ask("POST", "/ui/session", `{"token":"`+token+`"}`, ""); response.StatusCode != want {
			t.Errorf("%s %s, want %d", response.Status, text, want)
		}
	}
	response, text := ask("POST", "/ui/session", `{"token":"`+good+`"}`, "")
	if response.StatusCode != 200 || len(response.Cookies()) != 1 {
		t.Fatalf("%s %s", response.Status, text)
	}
	cookie := response.Cookies()[0].Name + "=" + response.Cookies()[0].Value
	mcptest.WaitFor(t, "the server", patience, func() bool {
		if d.logged("msg=connected", "server=fake") == 0 { // checks the log, since repeated requests would hit the limits
			return false
		}
		_, text := ask("GET", "/ui/state", "", cookie)
		return strings.Contains(text, `"state":"ready"`)
	})
	if response, text := ask("GET", "/ui/server?name=fake", "", cookie); response.StatusCode != 200 || !strings.Contains(text, `"echo"`) {
		t.Errorf("the page: %s %s", response.Status, text)
	}
	for _, one := range []struct{ method, path string }{{"POST", "/mcp"}, {"GET", "/mcp"}, {"GET", "/status"}, {"GET", "/metrics"}, {"POST", "/api/servers"}} {
		if response, text := ask(one.method, one.path, "{}", cookie); response.StatusCode != 401 {
			t.Errorf("%s %s with the cookie: %s %s", one.method, one.path, response.Status, text)
		}
	}
}
