package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// python returns the folder with the servers from PyPI, installed under testdata/pypi. Its subfolders sdk1 and
// sdk2 have the servers for the two major versions of the SDK.
func python(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(testdata(), "pypi", "venv")
	if _, err := os.Stat(filepath.Join(dir, "sdk2", "bin", "mcp-server-git")); err != nil {
		mcptest.Missing(t, "the servers from PyPI are not installed (.ci/run installs them): %v", err)
	}
	return dir
}

// judged is a tool as a server lists it, with the parts of its schema from which the test makes calls.
type judged struct {
	Name        string
	InputSchema struct {
		Properties map[string]json.RawMessage
		Required   []string
		Others     json.RawMessage `json:"additionalProperties"`
	}
}

// parameter is one property of a schema, with the keywords that the test looks at.
type parameter struct {
	Type    any
	Enum    []json.RawMessage
	Format  string
	Default json.RawMessage
	Minimum *float64
	Items   json.RawMessage
	AnyOf   []json.RawMessage
}

func (p parameter) is(kinds ...string) bool {
	kind, _ := p.Type.(string)
	return slices.Contains(kinds, kind)
}

// value returns a JSON value that fits the schema; ok is false if the schema is too complex for the test. The
// value names nothing that exists, such as a file.
func value(schema json.RawMessage) (text string, ok bool) {
	var p parameter
	if json.Unmarshal(schema, &p) != nil {
		return "", false
	}
	if several, _ := p.Type.([]any); len(several) > 0 {
		p.Type = several[0]
	}
	switch {
	case len(p.Enum) > 0:
		return string(p.Enum[0]), true
	case len(p.AnyOf) > 0:
		return value(p.AnyOf[0])
	case p.is("string") && p.Format == "uri":
		return `"http://127.0.0.1:1/"`, true
	case p.is("string"):
		return `"no-such-thing"`, true
	case p.is("number", "integer"):
		if p.Minimum != nil && *p.Minimum > 1 {
			return fmt.Sprint(*p.Minimum), true
		}
		return "1", true
	case p.is("boolean"):
		return "false", true
	case p.is("array"):
		return "[]", true
	}
	return "", false
}

// calls returns arguments for the tool; none if a required one is too complex for the test. Each of them leaves out the
// required arguments that have a default. Except for the first, each has one more deviation from the schema that the server may
// accept.
func (j judged) calls() (all []string) {
	var base []string
	names := make([]string, 0, len(j.InputSchema.Properties))
	for name := range j.InputSchema.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	member := func(name, value string) string { return fmt.Sprintf("%q:%s", name, value) }
	for _, name := range j.InputSchema.Required {
		text, ok := value(j.InputSchema.Properties[name])
		var p parameter
		if !ok || json.Unmarshal(j.InputSchema.Properties[name], &p) != nil {
			return nil
		}
		if p.Default == nil {
			base = append(base, member(name, text))
		}
	}
	put := func(name, value string) {
		others := slices.DeleteFunc(slices.Clone(base), func(m string) bool { return strings.HasPrefix(m, member(name, "")) })
		all = append(all, "{"+strings.Join(append(others, member(name, value)), ",")+"}")
	}
	all = append(all, "{"+strings.Join(base, ",")+"}")
	if string(j.InputSchema.Others) != "false" {
		put("zz_unknown", "1")
	}
	for _, name := range names {
		var p parameter
		if json.Unmarshal(j.InputSchema.Properties[name], &p) != nil {
			continue
		}
		if text, ok := value(j.InputSchema.Properties[name]); ok && p.is("number", "integer", "boolean") {
			put(name, `"`+text+`"`)
		}
		if !slices.Contains(j.InputSchema.Required, name) {
			put(name, "null")
		}
	}
	return all
}

// refusal matches the errors by which servers refuse invalid arguments.
var refusal = regexp.MustCompile(`(?i)-32602|validation error|invalid (arguments|params|input)|invalid_type|Field required|is not of type|is a required property|expected .*received|must be (a |an )?(string|number|integer|boolean)`)

// TestAccepted: calls to real servers leave out arguments that have a default, write numbers and booleans as strings, or have
// nulls or unknown arguments. mcpx does not refuse a call that the server itself accepts.
func TestAccepted(t *testing.T) {
	mcptest.Parallel(t)
	p, bin := findPeers(t), python(t)
	script := func(path string, args ...string) []string {
		return append([]string{p.node, filepath.Join(p.dir, "node_modules", path)}, args...)
	}
	reference := func(name string, args ...string) []string {
		return script("@modelcontextprotocol/server-"+name+"/dist/index.js", args...)
	}
	program := func(sdk, name string, args ...string) []string {
		return append([]string{filepath.Join(bin, sdk, "bin", name)}, args...)
	}
	servers := []struct {
		name    string
		command []string
		env     map[string]string
		skip    []string // tools not to call: they download something, or take seconds
		least   int      // the least number of calls that the server accepts
		must    []string // calls that the server must accept: tool and arguments
	}{
		{name: "everything", command: reference("everything"), least: 20, skip: []string{"gzip-file-as-resource", "trigger-long-running-operation", "simulate-research-query"}},
		{name: "filesystem", command: reference("filesystem", "DIR"), least: 14},
		{name: "memory", command: reference("memory"), env: map[string]string{"MEMORY_FILE_PATH": "DIR/memory.jsonl"}, least: 10},
		{name: "sequential-thinking", command: reference("sequential-thinking"), least: 5},
		// The server starts its browser before it reads arguments. The browser is missing here, so no call gets an
		// error about arguments. The calls in must are accepted with a browser too.
		{name: "playwright", command: script("@playwright/mcp/cli.js", "--headless", "--executable-path", "/no/such/browser"), skip: []string{"browser_install"}, least: 88, must: []string{
			"browser_take_screenshot {}", "browser_console_messages {}", "browser_network_requests {}"}},
		{name: "git", command: program("sdk2", "mcp-server-git"), least: 31, must: []string{`git_log {"repo_path":"no-such-thing","max_count":"1"}`, `git_log {"repo_path":"no-such-thing","zz_unknown":1}`}},
		{name: "time", command: program("sdk2", "mcp-server-time", "--local-timezone", "UTC"), least: 4},
		{name: "fetch", command: program("sdk2", "mcp-server-fetch", "--ignore-robots-txt"), least: 2},
		{name: "sqlite", command: program("sdk1", "mcp-server-sqlite", "--db-path", "DIR/test.db"), least: 12},
		{name: "calculator", command: program("sdk1", "mcp-server-calculator"), least: 2},
		{name: "excel", command: program("sdk2", "excel-mcp-server", "stdio"), least: 83},
	}
	for _, s := range mcptest.Part(t, servers, 3) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			command := slices.Clone(s.command)
			for i := range command {
				command[i] = strings.ReplaceAll(command[i], "DIR", h.dir)
			}
			env := map[string]string{}
			for name, value := range s.env {
				env[name] = strings.ReplaceAll(value, "DIR", h.dir)
			}
			entry := server{"command": command[0], "args": command[1:], "env": env, "cwd": h.dir}
			config := h.config(t, map[string]server{s.name: entry}, patient)
			through := &client{peer: h.serveStdio(t, "--config", config, "serve"), era: legacy, name: "e2e"}
			through.open(t)
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Dir, cmd.Env = h.dir, h.env()
			for name, value := range env {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			straight := &client{peer: startStdio(t, cmd), era: legacy, name: "e2e"}
			straight.open(t)
			through.awaitReady(t, s.name)
			var list struct{ Tools []judged }
			if err := json.Unmarshal(straight.result(t, "tools/list", `{}`), &list); err != nil {
				t.Fatal(err)
			}
			tried, taken := 0, map[string]bool{}
			for _, tool := range list.Tools {
				if slices.Contains(s.skip, tool.Name) {
					continue
				}
				for _, arguments := range tool.calls() {
					tried++
					if m := straight.request(t, "tools/call", `{"name":"`+tool.Name+`","arguments":`+arguments+`}`); refusal.Match(m.Error) || refusal.Match(m.Result) {
						continue
					}
					taken[tool.Name+" "+arguments] = true
					if text := string(through.exec(t, s.name, tool.Name, arguments).Content[0]); strings.Contains(text, `"VALIDATION_ERROR`) {
						t.Errorf("%s %s: the server takes it, mcpx says %.300s", tool.Name, arguments, text)
					}
				}
			}
			t.Logf("%s: %d tools, %d calls, the server takes %d", s.name, len(list.Tools), tried, len(taken))
			if len(taken) < s.least {
				t.Errorf("too few to tell anything")
			}
			for _, call := range s.must {
				if !taken[call] {
					t.Errorf("not among the calls that the server takes: %s", call)
				}
			}
		})
	}
}
