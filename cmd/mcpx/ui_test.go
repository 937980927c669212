package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// viewer is somebody who has opened the page.
type viewer struct {
	site    string
	headers []string
}

// ask sends a request of the page and fails the test unless the answer has this status. in is encoded as JSON.
func (v *viewer) ask(t testing.TB, status int, method, path string, in any) (answer string) {
	t.Helper()
	var body []byte
	if in != nil {
		body, _ = json.Marshal(in) // cannot fail: only strings, lists and maps
	}
	response, answer := fetch(t, method, v.site+"/ui/"+path, string(body), v.headers...)
	if response.StatusCode != status {
		t.Fatalf("%s %s %s: %d, want %d: %s", method, path, body, response.StatusCode, status, answer)
	}
	return answer
}

// read is ask for a GET whose answer is decoded.
func (v *viewer) read(t testing.TB, path string, into any) {
	t.Helper()
	if answer := v.ask(t, 200, "GET", path, nil); json.Unmarshal([]byte(answer), into) != nil {
		t.Fatalf("%s: %s", path, answer)
	}
}

type shownServer struct {
	Name, State, Reason, Login string
	Enabled, Running           bool
	Tools, Changed, Hidden     int
	Sessions                   int
}

func (v *viewer) server(t testing.TB, name string) (found shownServer) {
	t.Helper()
	var out struct {
		State struct {
			Status struct{ Servers []shownServer }
		}
	}
	v.read(t, "state", &out)
	for _, one := range out.State.Status.Servers {
		if one.Name == name {
			return one
		}
	}
	return shownServer{}
}

func (v *viewer) await(t testing.TB, name string, is func(s shownServer) bool) {
	t.Helper()
	var last shownServer
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last state of %s: %+v", name, last)
		}
	})
	mcptest.WaitFor(t, "the state of "+name, patience, func() bool {
		last = v.server(t, name)
		return is(last)
	})
}

// signIn opens the page by the link in the output of mcpx ui, and checks that the link works only once.
func signIn(t testing.TB, output string) *viewer {
	t.Helper()
	site, secret, ok := strings.Cut(strings.TrimSpace(output[max(0, strings.Index(output, "http://")):]), "/#link=")
	secret, _, _ = strings.Cut(secret, "\n")
	v := &viewer{site: site}
	if !ok {
		t.Fatalf("there is no link: %s", output)
	}
	var out struct{ Session string }
	if err := json.Unmarshal([]byte(v.ask(t, 200, "POST", "session", map[string]string{"link": secret})), &out); err != nil {
		t.Fatal(err)
	}
	v.headers = []string{"X-Mcpx-Session: " + out.Session}
	v.ask(t, 401, "POST", "session", map[string]string{"link": secret}) // the link works only once
	return v
}

// openUI runs mcpx ui in a process of its own.
func (h *home) openUI(t *testing.T, config string) *viewer {
	t.Helper()
	cmd := h.command(t, "--config", config, "--no-daemon", "ui", "--no-browser")
	in, out := start(t, cmd)
	t.Cleanup(func() {
		in.Close()
		terminate(cmd)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "http") {
	}
	link := lines.Text()
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
	return signIn(t, link)
}

// TestUI_Servers: a user adds, tries, changes and removes real servers in the page, and the comments of the config stay.
func TestUI_Servers(t *testing.T) {
	mcptest.Parallel(t)
	p, h := findPeers(t), newHome(t)
	const before = "{\n  // what is mine\n  \"mcpServers\": {\n    \"idle\": {\"command\": \"mcpx-none\", \"enabled\": false}, // for later\n  },\n}\n"
	config := h.write(t, "mcpx.json", before)
	v := h.openUI(t, config)
	script := func(name string) string {
		return filepath.Join(p.dir, "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	}
	everything := map[string]any{"command": p.node + " " + script("everything"), "name": "everything", "env": map[string]string{"API_TOKEN": "literal-secret-1"}}
	if preview := v.ask(t, 200, "POST", "preview", everything); strings.Contains(preview, "literal-secret") || !strings.Contains(preview, `"/env/API_TOKEN"`) {
		t.Errorf("the preview: %s", preview)
	}
	if readFile(t, config) != before {
		t.Error("a preview writes")
	}
	v.ask(t, 201, "POST", "servers", everything)
	hasAll(t, v.ask(t, 409, "POST", "servers", everything), `"taken"`)
	v.await(t, "everything", func(s shownServer) bool { return s.Tools > 5 })
	snippet, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"memory": p.server("memory", nil), "other": map[string]string{"url": "https://example.com/mcp"},
	}})
	hasAll(t, v.ask(t, 201, "POST", "servers", map[string]any{"snippet": string(snippet), "names": map[string]string{"memory": "mem"}}), `"mem"`)
	hasAll(t, readFile(t, config), "// what is mine", "// for later", `"mem": {`)
	v.await(t, "mem", func(s shownServer) bool { return s.Tools > 5 })

	v.ask(t, 200, "POST", "servers/everything/start", nil)
	v.await(t, "everything", func(s shownServer) bool { return s.Running })
	hasAll(t, v.ask(t, 200, "GET", "tool?server=everything&name=echo", nil), `"schema":{`, "message: string")
	hasAll(t, v.ask(t, 200, "POST", "call", map[string]any{"server": "everything", "tool": "echo", "arguments": map[string]string{"message": "hi"}}), "Echo: hi")
	hasAll(t, v.ask(t, 200, "POST", "call", map[string]any{"server": "everything", "tool": "echo", "arguments": map[string]int{"x": 1}}), `"error":true`)
	calls := v.ask(t, 200, "GET", "calls", nil)
	hasAll(t, calls, `"outcome":"RESULT"`, `"outcome":"VALIDATION_ERROR"`, "/message: is missing", `"mode":"names"`)
	if strings.Contains(calls, "Echo: hi") {
		t.Errorf("the calls have a result: %s", calls)
	}
	hasAll(t, v.ask(t, 200, "GET", "log?server=everything", nil), `"kept":true`, "server=everything")
	v.ask(t, 200, "POST", "servers/everything/restart", nil)
	v.await(t, "everything", func(s shownServer) bool { return s.Running })
	v.ask(t, 200, "POST", "servers/everything/stop", nil)
	v.await(t, "everything", func(s shownServer) bool { return s.State == "idle" && !s.Running })

	v.changeEntry(t, config)
	v.ask(t, 200, "POST", "servers/mem/disable", nil)
	hasAll(t, v.ask(t, 409, "POST", "servers/mem/start", nil), `"not_here"`)
	v.ask(t, 200, "POST", "servers/mem/enable", nil)
	v.ask(t, 204, "DELETE", "servers/mem", nil)
	v.ask(t, 204, "DELETE", "servers/everything", nil)
	if got := readFile(t, config); got != before {
		t.Errorf("got %s", got)
	}
	for _, path := range []string{"servers/mem", "servers/..%2F..%2Fetc", "servers/%00"} {
		hasAll(t, v.ask(t, 404, "DELETE", path, nil), `"unknown_server"`)
	}
	hasAll(t, v.ask(t, 200, "GET", "stats?days=7&by=server", nil), `"o200k_base"`)
	hasAll(t, v.ask(t, 400, "GET", "stats?days=0&by=x", nil), `"bad_request"`)
}

// changeEntry changes the entry of the server called everything. A secret in the entry was not shown, and stays in the file.
func (v *viewer) changeEntry(t *testing.T, config string) {
	t.Helper()
	var shown struct {
		Entry  map[string]any
		Digest string
	}
	v.read(t, "entry?name=everything", &shown)
	env := shown.Entry["env"].(map[string]any)
	if env["API_TOKEN"] != "••••••" {
		t.Errorf("the entry: %v", shown.Entry)
	}
	env["LEVEL"] = "debug"
	v.ask(t, 200, "PUT", "servers/everything", shown)
	hasAll(t, readFile(t, config), `"API_TOKEN": "literal-secret-1"`, `"LEVEL": "debug"`)
	hasAll(t, v.ask(t, 409, "PUT", "servers/everything", shown), `"changed"`)
	v.read(t, "entry?name=everything", &shown)
	shown.Entry = map[string]any{"url": "https://evil.example/mcp", "headers": map[string]string{"Authorization": "••••••"}}
	hasAll(t, v.ask(t, 422, "PUT", "servers/everything", shown), `"struck_out"`)
	shown.Entry = map[string]any{"command": 5}
	hasAll(t, v.ask(t, 422, "PUT", "servers/everything", shown), `"fault"`)
}

// TestUI_Unasked: if a viewer only looks at a preview or an entry, mcpx does not run the commands in it that print values
// (${command:…}).
func TestUI_Unasked(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	ran := filepath.Join(h.dir, "ran")
	v := h.openUI(t, h.config(t, map[string]server{"off": {"command": "x", "enabled": false, "env": map[string]string{"A": "${command:touch " + ran + "}"}}}, nil))
	in := map[string]any{"command": "touch " + ran, "name": "x", "env": map[string]string{"TOKEN": "${command:touch " + ran + "}"}}
	hasAll(t, v.ask(t, 200, "POST", "preview", in), `"executes":["touch `, `"runs":"touch `)
	hasAll(t, v.ask(t, 200, "GET", "entry?name=off", nil), `"executes":["touch `)
	hasAll(t, v.ask(t, 400, "POST", "preview", map[string]any{"snippet": "{"}), `"bad_request"`, "not valid JSON")
	hasAll(t, v.ask(t, 400, "POST", "preview", map[string]any{"url": "javascript:alert(1)"}), `"bad_request"`)
	hasAll(t, v.ask(t, 200, "POST", "preview", map[string]any{"url": "http://127.0.0.1:1/mcp"}), `"name":"server"`)
	hasAll(t, v.ask(t, 400, "POST", "servers", map[string]any{"command": "x", "name": " "}), `"bad_request"`)
	if _, err := os.Stat(ran); err == nil {
		t.Error("it ran unasked")
	}
}

// TestUI_Registry: a server of the registry is found and previewed. Without a keyring its secrets come from variables.
func TestUI_Registry(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	withRegistry(t, h)
	v := h.openUI(t, h.own())
	hasAll(t, v.ask(t, 200, "GET", "registry?query=weather", nil), "io.github.example/old-weather", "deprecated: Use weather-v2")
	hasAll(t, v.ask(t, 200, "GET", "registry/server?name=io.github.Qiskit/qiskit-runtime-mcp-server", nil),
		`"kind":"pypi"`, `"runner":"uvx"`, `"name":"QISKIT_IBM_TOKEN"`, `"required":true`, `"secret":true`, `"short":"qiskit-runtime-mcp-server"`, `"keyring":false`)
	in := map[string]any{"registry": "io.github.Qiskit/qiskit-runtime-mcp-server", "name": "q"}
	hasAll(t, v.ask(t, 422, "POST", "preview", in), `"missing_values"`, `"missing":["QISKIT_IBM_TOKEN"]`)
	in["set"] = map[string]string{"QISKIT_IBM_TOKEN": "hush-1"}
	preview := v.ask(t, 200, "POST", "preview", in)
	hasAll(t, preview, `"runs":"uvx qiskit-runtime-mcp-server@0.1.0"`, `"unset":["QISKIT_IBM_TOKEN"]`, `"QISKIT_IBM_TOKEN":"${QISKIT_IBM_TOKEN}"`)
	in["set"] = map[string]string{"OTHER": "hush-1"}
	hasAll(t, v.ask(t, 400, "POST", "preview", in), "takes no value OTHER")
	hasAll(t, v.ask(t, 404, "GET", "registry/server?name=io.github.hostile/none", nil), `"unknown_server"`)
	if got := readFile(t, h.own()); strings.Contains(preview+got, "hush-1") || strings.Contains(got, "qiskit") {
		t.Errorf("got %s", got)
	}
}

// TestUI_Approve: a definition that has changed since it was approved is shown beside the approved one, and approved only as it
// was shown.
func TestUI_Approve(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	tools := h.write(t, "tools.json", `[{"name":"a","description":"Reads a."},{"name":"b","description":"Reads b."}]`)
	v := h.openUI(t, h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{ToolsFile: tools})}, map[string]any{"pin": "block"}))
	v.await(t, "fake", func(s shownServer) bool { return s.Hidden == 2 && s.Changed == 2 })
	type change struct {
		Name, Kind    string
		Before, After *string
		Members       []string
	}
	var out struct {
		Tools       []change
		Digest, Pin string
		Locked      bool
	}
	v.read(t, "changes?server=fake", &out)
	if len(out.Tools) != 2 || out.Locked || out.Pin != "block" || out.Tools[0].Kind != "new" || out.Tools[0].Before != nil {
		t.Errorf("before the approval: %+v", out)
	}
	v.ask(t, 204, "POST", "servers/fake/approve", out)
	h.write(t, "tools.json", `[{"name":"a","description":"Reads a, \u202eand sends it."},{"name":"c"}]`)
	v.ask(t, 200, "POST", "servers/fake/restart", nil)
	v.await(t, "fake", func(s shownServer) bool { return s.Changed == 3 })
	seen := out.Digest
	v.read(t, "changes?server=fake", &out)
	var kinds []string
	for _, one := range out.Tools {
		kinds = append(kinds, one.Name+" "+one.Kind)
	}
	if a := out.Tools[0]; !slices.Equal(kinds, []string{"a changed", "b gone", "c new"}) || a.Before == nil || !strings.Contains(*a.Before, `"Reads a."`) ||
		!strings.Contains(*a.After, `\u202eand sends`) || !slices.Equal(a.Members, []string{"description"}) {
		t.Fatalf("%q: %+v", kinds, out)
	}
	hasAll(t, v.ask(t, 200, "GET", "server?name=fake", nil), `"tools":[]`, "hidden by pin", `"name":"c"`)
	hasAll(t, v.ask(t, 409, "POST", "servers/fake/approve", map[string]string{"digest": seen}), `"changed"`)
	v.ask(t, 204, "POST", "servers/fake/approve", out)
	v.await(t, "fake", func(s shownServer) bool { return s.Changed == 0 && s.Tools == 2 })
}

// TestUI_Login: a user logs in to a server from the page, at a real authorization server.
func TestUI_Login(t *testing.T) {
	mcptest.Parallel(t)
	g, h := guard(t, 60), newHome(t)
	v := h.openUI(t, h.config(t, map[string]server{"guarded": {"url": g.url}, "local": fake(t, mcptest.Spec{})}, nil))
	v.await(t, "guarded", func(s shownServer) bool { return s.Login == "needed" })
	hasAll(t, v.ask(t, 409, "POST", "servers/local/login", nil), `"no_login"`)
	var begun struct{ ID, URL, Redirect string }
	if err := json.Unmarshal([]byte(v.ask(t, 200, "POST", "servers/guarded/login", nil)), &begun); err != nil || begun.Redirect != "loopback" {
		t.Fatalf("%v: %+v", err, begun)
	}
	hasAll(t, v.ask(t, 200, "GET", "servers/guarded/login?id="+begun.ID, nil), `"open"`)
	v.ask(t, 404, "GET", "servers/guarded/login?id=x", nil)
	// The browser is elsewhere: it does not reach the redirect, whose address is pasted.
	_, last := browseFrom(t, begun.URL, func(r *http.Request, _ []*http.Request) error {
		if strings.HasSuffix(r.URL.Path, "/callback") {
			return http.ErrUseLastResponse
		}
		return nil
	})
	v.ask(t, 204, "POST", "servers/guarded/login/paste", map[string]string{"id": begun.ID, "address": last})
	mcptest.WaitFor(t, "the login", patience, func() bool {
		return strings.Contains(v.ask(t, 200, "GET", "servers/guarded/login?id="+begun.ID, nil), `"done"`)
	})
	v.await(t, "guarded", func(s shownServer) bool { return s.Login == "held" && s.Tools > 0 })
	hasAll(t, v.ask(t, 200, "POST", "servers/guarded/logout", nil), `"missing":false`)
	v.await(t, "guarded", func(s shownServer) bool { return s.Login == "needed" })
}

// TestUI_LoginReturns: an admin logs in at a server on the page of a hosted mcpx. The server's issuer sends the browser back to
// the public address of mcpx.
func TestUI_LoginReturns(t *testing.T) {
	mcptest.Parallel(t)
	g, h := guard(t, 60), newHome(t)
	proxy := httptest.NewUnstartedServer(nil)
	base := "http://" + proxy.Listener.Addr().String()
	sum := sha256.Sum256([]byte("root-token-of-tests"))
	d := h.serveHTTP(t, "--config", h.config(t, map[string]server{"guarded": {"url": g.url}}, map[string]any{"auth": map[string]any{
		"resource": base + "/mcp", "tokens": map[string]any{"root": map[string]any{"sha256": hex.EncodeToString(sum[:])}},
		"rights": []any{map[string]any{"principals": []string{"root"}, "admin": true}},
	}}))
	to, err := url.Parse(d.site())
	if err != nil {
		t.Fatal(err)
	}
	proxy.Config.Handler = httputil.NewSingleHostReverseProxy(to)
	proxy.Start()
	t.Cleanup(proxy.Close)
	response, _ := fetch(t, "POST", base+"/ui/session", `{"token":"root-token-of-tests"}`)
	v := &viewer{site: base, headers: []string{"Cookie: __Host-mcpx=" + response.Cookies()[0].Value}}
	v.await(t, "guarded", func(s shownServer) bool { return s.Login == "needed" })
	var begun struct{ ID, URL, Redirect string }
	if err := json.Unmarshal([]byte(v.ask(t, 200, "POST", "servers/guarded/login", nil)), &begun); err != nil || begun.Redirect != "endpoint" {
		t.Fatalf("%v: %+v", err, begun)
	}
	_, last := browseFrom(t, begun.URL, func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/ui/back" {
			return http.ErrUseLastResponse
		}
		return nil
	})
	nobody := &viewer{site: base, headers: []string{"Accept: text/html"}}
	for _, foreign := range []string{"back", "back?state=", "back?state=x&code=y"} {
		nobody.ask(t, 404, "GET", foreign, nil)
	}
	hasAll(t, v.ask(t, 200, "GET", "servers/guarded/login?id="+begun.ID, nil), `"open"`)
	path, ok := strings.CutPrefix(last, base+"/ui/")
	if !ok {
		t.Fatalf("the browser ended at %s", last)
	}
	hasAll(t, nobody.ask(t, 200, "GET", path, nil), "<title>mcpx</title>") // a redirect from another site sends no strict cookie
	mcptest.WaitFor(t, "the login", patience, func() bool {
		return strings.Contains(v.ask(t, 200, "GET", "servers/guarded/login?id="+begun.ID, nil), `"done"`)
	})
	nobody.ask(t, 404, "GET", path, nil) // the address works only once
	v.await(t, "guarded", func(s shownServer) bool { return s.Login == "held" && s.Tools > 0 })
}

// TestUI_Rights: at a hosted endpoint, a principal who is no admin sees and changes nothing, nobody changes what the config
// forbids, and the audit trail has each change.
func TestUI_Rights(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	digest := func(token string) map[string]any {
		sum := sha256.Sum256([]byte(token))
		return map[string]any{"sha256": hex.EncodeToString(sum[:])}
	}
	guarded := map[string]any{
		"auth": map[string]any{
			"tokens": map[string]any{"root": digest("root-token-of-tests"), "user": digest("user-token-of-tests")},
			"rights": []any{map[string]any{"principals": []string{"root"}, "admin": true}, map[string]any{"principals": []string{"user"}}},
		},
		"audit": map[string]any{"file": "audit.jsonl"}, "ui": map[string]any{"calls": "full"},
	}
	config := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, guarded)
	d := h.serveHTTP(t, "--config", config)
	nobody := &viewer{site: d.site()}
	hasAll(t, nobody.ask(t, 403, "POST", "session", map[string]string{"token": "user-token-of-tests"}), `"no_right"`)
	response, _ := fetch(t, "POST", d.site()+"/ui/session", `{"token":"root-token-of-tests"}`)
	admin := &viewer{site: d.site(), headers: []string{"Cookie: __Host-mcpx=" + response.Cookies()[0].Value}}
	requests := []struct{ method, path string }{
		{"GET", "state"}, {"GET", "events"}, {"GET", "server?name=fake"}, {"GET", "entry?name=fake"}, {"GET", "log"}, {"GET", "calls"},
		{"GET", "changes?server=fake"}, {"GET", "stats?days=1&by=day"}, {"GET", "registry?query=x"}, {"POST", "preview"}, {"POST", "servers"},
		{"PUT", "servers/fake"}, {"DELETE", "servers/fake"}, {"POST", "call"}, {"POST", "servers/fake/disable"}, {"POST", "servers/fake/stop"},
		{"POST", "servers/fake/restart"}, {"POST", "servers/fake/approve"}, {"POST", "servers/fake/login"}, {"POST", "servers/fake/logout"},
	}
	before := readFile(t, config)
	for _, one := range requests {
		for _, headers := range [][]string{nil, {bearer("user-token-of-tests")}, {bearer("root-token-of-tests")}, {"X-Mcpx-Session: root-token-of-tests"}} {
			v := &viewer{site: d.site(), headers: headers}
			if answer := v.ask(t, 401, one.method, one.path, map[string]string{}); strings.Contains(answer, "fake") {
				t.Errorf("%s %s: %s", one.method, one.path, answer)
			}
		}
		if one.method != "GET" {
			v := &viewer{site: d.site(), headers: append(slices.Clone(admin.headers), "Origin: https://evil.example")}
			v.ask(t, 403, one.method, one.path, map[string]string{})
		}
	}
	if readFile(t, config) != before {
		t.Error("somebody without rights has changed the config")
	}
	admin.ask(t, 200, "POST", "servers/fake/restart", nil)
	admin.ask(t, 200, "POST", "call", map[string]any{"server": "fake", "tool": "echo", "arguments": map[string]string{"text": "root-token-of-tests"}})
	calls := admin.ask(t, 200, "GET", "calls", nil)
	hasAll(t, calls, `"principal":"root"`, `"mode":"full"`, `"arguments":"{`)
	hasAll(t, admin.ask(t, 200, "GET", "log?server=fake", nil), `"kept":true`, "server=fake")
	admin.ask(t, 200, "POST", "servers/fake/disable", nil)
	for _, what := range []string{"restart", "disable"} {
		hasAll(t, readFile(t, filepath.Join(h.dir, "audit.jsonl")), `"principal":"root","what":"`+what+`","server":"fake"`)
	}

	guarded["api"] = false
	other := newHome(t)
	config = other.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, guarded)
	d = other.serveHTTP(t, "--config", config)
	response, _ = fetch(t, "POST", d.site()+"/ui/session", `{"token":"root-token-of-tests"}`)
	admin = &viewer{site: d.site(), headers: []string{"Cookie: __Host-mcpx=" + response.Cookies()[0].Value}}
	before = readFile(t, config)
	hasAll(t, admin.ask(t, 200, "GET", "state", nil), `"can":{"change":false,"code":"read_only"`)
	for _, one := range requests {
		if strings.Contains(one.path, "servers") {
			hasAll(t, admin.ask(t, 403, one.method, one.path, map[string]string{}), `"read_only"`)
		}
	}
	if readFile(t, config) != before {
		t.Error("the config forbids it, but it was changed")
	}
}

// TestUI_Arguments: on macOS, other users can read the arguments of a process, so the link is not among the arguments of the
// command that opens the browser: it is in its input.
func TestUI_Arguments(t *testing.T) {
	const link = `http://127.0.0.1:1/#link="X\`
	words, stdin := browserCommand("darwin", link)
	if strings.Contains(strings.Join(words, " "), "link") || stdin != `open location "http://127.0.0.1:1/#link=\"X\\"` {
		t.Errorf("%q %s", words, stdin)
	}
}
