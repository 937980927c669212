package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"mcpx/internal/mcptest"
)

func TestVersion(t *testing.T) {
	mcptest.Parallel(t)
	out, stderr, code := newHome(t).run(t, "", "version", "--log-level", "Warn")
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "mcpx ") || !strings.HasPrefix(lines[1], "commit ") ||
		!strings.HasPrefix(lines[2], "go1.") || !strings.HasPrefix(lines[3], "protocols 2026-07-28 ") {
		t.Errorf("got %q", lines)
	}
}

// TestDemo_Screen: mcpx demo needs no config and no network, and its output fits on the screen.
func TestDemo_Screen(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	out, stderr, code := h.run(t, "", "demo")
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	again, _, _ := h.run(t, "", "demo")
	if again != out {
		t.Error("the second run prints something else than the first")
	}
	if !utf8.ValidString(out) {
		t.Error("not UTF-8")
	}
	if n := strings.Count(out, "\n"); n > 30 {
		t.Errorf("%d lines are more than one screen", n)
	}
	for i, line := range strings.Split(out, "\n") {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("line %d has %d columns: %s", i+1, n, line)
		}
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
			t.Errorf("line %d has control characters: %q", i+1, line)
		}
	}
}

// TestDemo_All: mcpx demo --all prints the complete texts.
func TestDemo_All(t *testing.T) {
	mcptest.Parallel(t)
	out, stderr, code := newHome(t).run(t, "", "demo", "--all")
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"The description of inspect", "Available tools:", "Server: weather", "inspect cities.search_cities", "offset?: number"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	mcptest.Parallel(t)
	for _, args := range [][]string{
		{"--nonsense"}, {"nonsense"}, {"exec"}, {"exec", "onlyserver"}, {"--log-level", "loud", "version"}, {"version", "extra"},
	} {
		out, stderr, code := newHome(t).run(t, "", args...)
		if code != 80 || out != "" {
			t.Errorf("mcpx %q: exit %d, stdout %q", args, code, out)
		}
		if !strings.HasPrefix(stderr, "mcpx: error: ") || !strings.Contains(stderr, "\nmcpx: hint: ") {
			t.Errorf("mcpx %q: stderr %q", args, stderr)
		}
	}
}

// TestMeant: a command line has the same output with the commands that it may mean as with all commands.
func TestMeant(t *testing.T) {
	understood := func(commands []commandRow, args []string) string {
		var out strings.Builder
		parser := newParser(&cli{}, commands, kong.Writers(&out, &out), kong.Exit(func(code int) { fmt.Fprintln(&out, "exit", code) }))
		parsed, err := parser.Parse(args)
		if err == nil {
			out.WriteString("command " + parsed.Command())
		}
		return out.String() // if it is empty, run asks kong again, with all commands
	}
	for line, enough := range map[string]bool{
		"": true, "--watch": true, "--config exec": false, "--config exec serve": true, "--view check": false, "serve --view check": true,
		"exec check help": true, "token new me": true, "token": false, "exec -- x -h": true, "tokn": false, "-h": true, "--help": true,
		"check -h": true, "check -qh": false, "logins --help": true, "--version": true, "version --version": true, "help logins end": true,
		"__complete : exec": true, "version serve": false, "--http x version": false, "add time -- uvx version": true,
	} {
		args := strings.Fields(line)
		few, all := understood(meant(args), args), understood(allCommands(), args)
		if few != all && few != "" || few == "" && enough {
			t.Errorf("mcpx %s: with the commands that it may mean %q, with all %q", line, few, all)
		}
	}
	for _, command := range allCommands()[1:] {
		if got := meant([]string{"--log-level", "debug", command.name}); command.name[0] != '_' && command.name != "help" && len(got) != 1 {
			t.Errorf("%s: %d commands", command.name, len(got))
		}
	}
}

// TestUsageHints: the error for a wrong command line recommends the right one.
func TestUsageHints(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	for _, test := range []struct {
		want string
		args []string
	}{
		{"hint: mcpx --version", []string{"-v"}},
		{"hint: mcpx --version", []string{"-V"}},
		{"did you mean mcpx check?", []string{"list"}},
		{"did you mean mcpx exec?", []string{"call"}},
		{"hint: mcpx --config my.json serves", []string{"my.json"}},
		{"hint: mcpx --config my.json serves", []string{"serve", "my.json"}},
		{"hint: mcpx serve --http 127.0.0.1:8000 serves", []string{"--port", "8000"}},
		{"hint: mcpx serve --http 127.0.0.1:8000 serves", []string{"serve", "--host=0.0.0.0"}},
		{"hint: mcpx ui opens", []string{"my.json", "--gui"}},
		{"did you mean mcpx check?", []string{"chek", "my.json"}},
		{"did you mean mcpx exec?", []string{"call", "web", "fetch", "--host", "x"}},
		{"--config: expected file value after it", []string{"--config"}},
		{"there is no command", []string{"help", "nope"}},
		{"--timeout", []string{"check", "--timeout", "5 apples"}},
	} {
		out := h.must(t, exitUsage, test.args...)
		hasAll(t, out, test.want)
		if strings.Contains(out, `"-h"`) || strings.Contains(out, "EOL") {
			t.Errorf("mcpx %q: %s", test.args, out)
		}
	}
	path := h.config(t, map[string]server{"off": {"command": "x", "enabled": false}}, nil)
	h.must(t, 0, "check", "--config", path, "--timeout", "5")
}

func TestConfigFaults(t *testing.T) {
	mcptest.Parallel(t)
	tests := []struct {
		name, config string
		want         []string
	}{
		{"broken JSON", "{\n  \"mcpServers\": {\n    \"a\": {\"command\" \"x\"}\n  }\n}\n", []string{"mcpx.json:3:", "invalid JSON: "}},
		{"not an object", `[]`, []string{"mcpx.json"}},
		{"safety in another form", `{"mcpServers": {}, "audit": "x", "auth": true}`, []string{"mcpx.json: audit: must be an object", "mcpx.json: auth: must be an object"}},
		{"many faults at once", `{
			"mcpServers": {"a": {"command": 5, "args": "x"}, "b": {"url": ["no"]}},
			"catalogue_token_budget": "many", "structured_content": "perhaps", "startup_wiat": 5}`,
			[]string{"mcpServers.a.command", "mcpServers.a.args", "mcpServers.b.url", "catalogue_token_budget", "structured_content", "startup_wait"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHome(t)
			path := h.write(t, "mcpx.json", test.config)
			for _, command := range [][]string{{"serve"}, {"check"}, {"inspect"}, {"exec", "a", "b"}} {
				out, stderr, code := h.run(t, "", append([]string{"--config", path}, command...)...)
				if code != 2 || out != "" {
					t.Errorf("%s: exit %d, stdout %q", command[0], code, out)
				}
				for _, want := range test.want {
					if !strings.Contains(stderr, want) {
						t.Errorf("%s: no %q in:\n%s", command[0], want, stderr)
					}
				}
				for _, line := range strings.Split(strings.TrimSpace(stderr), "\n") {
					if !strings.HasPrefix(line, "mcpx: error: ") && !strings.HasPrefix(line, "mcpx: hint: ") {
						t.Errorf("%s: odd line %q", command[0], line)
					}
				}
			}
		})
	}
}

func TestConfigMissing(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	missing := filepath.Join(h.dir, "nowhere.json")
	for _, args := range [][]string{{"serve"}, {"check", "--config", missing}} {
		out, stderr, code := h.run(t, "", args...)
		if code != 2 || out != "" {
			t.Errorf("%q: exit %d, stdout %q", args, code, out)
		}
		if !strings.HasPrefix(stderr, "mcpx: error: config file not found: ") ||
			!strings.Contains(stderr, "\nmcpx: hint: ") || !strings.Contains(stderr, "mcpx demo") || !strings.Contains(stderr, "config.example.json") {
			t.Errorf("%q: stderr %q", args, stderr)
		}
	}
	// An editor may start mcpx in a cloned repository, so mcpx does not use a config.json in the working folder.
	h.write(t, "config.json", `{"mcpServers":{}}`)
	if _, stderr, code := h.run(t, "", "check"); code != 2 {
		t.Errorf("a config.json in the working folder was read: exit %d, %s", code, stderr)
	}
	// mcpx uses the config in the user's configuration folder.
	h.write(t, "config/mcpx/config.json", `{"mcpServers":{}}`)
	if _, stderr, code := h.run(t, "", "check"); code != 0 {
		t.Errorf("the user's config was not found: exit %d, %s", code, stderr)
	}
}

func TestCheck(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{
		"good":    fake(t, mcptest.Spec{}),
		"modern":  fake(t, mcptest.Spec{Era: mcptest.EraModern}),
		"remote":  {"url": mcptest.Spec{}.HTTP(t).URL},
		"missing": {"command": "mcpx-no-such-program"},
		"dying":   fake(t, mcptest.Spec{ExitAtOnce: true, ExitCode: 3, StderrLines: []string{"cannot open the database"}}),
		"unset":   {"command": "x", "args": []string{"${MCPX_TEST_SURELY_UNSET}"}},
		"off":     {"command": "x", "enabled": false},
		"locked":  {"url": mcptest.Spec{Tools: json.RawMessage(`[{"name":"write"}]`)}.HTTP(t).URL, "read_only": true},
	}, nil)
	out, stderr, code := h.run(t, "", "check", "--config", path)
	if code != 1 {
		t.Errorf("exit %d, want 1; stderr %q", code, stderr)
	}
	rows, last := make(map[string]string), ""
	for _, line := range strings.Split(out, "\n") {
		name, rest, _ := strings.Cut(line, " ")
		if name == "" { // this entry is a note and not a server
			name = last
		}
		rows[name] += " " + strings.TrimSpace(rest)
		last = name
	}
	for name, want := range map[string][]string{
		"good":    {"ready", mcptest.LegacyVersion, "stdio", "18"},
		"modern":  {"ready", mcptest.ModernVersion, "stdio", "18"},
		"remote":  {"ready", mcptest.LegacyVersion, "http", "18"},
		"missing": {"unavailable", "mcpx-no-such-program"},
		"dying":   {"unavailable", "cannot open the database"},
		"unset":   {"unavailable", "MCPX_TEST_SURELY_UNSET"},
		"off":     {"disabled"},
		"locked":  {"ready", "0", "its only tool is hidden by read_only"},
	} {
		for _, want := range want {
			if !strings.Contains(rows[name], want) {
				t.Errorf("%s: no %q in %q", name, want, rows[name])
			}
		}
	}
	if !strings.Contains(out, "8 servers: 4 ready, 3 unavailable, 1 disabled; 54 tools") {
		t.Errorf("no summary in:\n%s", out)
	}
}

func TestExec_Command(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{}), "missing": {"command": "mcpx-no-such-program"}}, nil)
	tests := []struct {
		name, stdin string
		args        []string
		code        int
		want        string // empty means that the function check examines the output
		check       func(t *testing.T, out string)
	}{
		{name: "text", args: []string{"fake", "echo", `{"text":"hello <world> & \u00e9"}`}, want: "hello <world> & \u00e9\n"},
		{name: "from stdin", args: []string{"fake", "add", "-"}, stdin: `{"a":9007199254740993,"b":1}`, want: `{"sum":9007199254740994}` + "\n"},
		{name: "no arguments", args: []string{"fake", "slow", `{"ms":0}`}, want: "slept 0 ms\n"},
		{name: "raw", args: []string{"--json", "fake", "content"}, want: mcptest.ContentResult + "\n"},
		{name: "tool fails", args: []string{"fake", "fail", `{"message":"no luck"}`}, code: 1, want: "no luck\n"},
		{name: "unknown tool", args: []string{"fake", "ecko"}, code: 1, check: contains("echo")},
		{name: "unknown server", args: []string{"fakee", "echo"}, code: 1, check: contains("fake")},
		{name: "invalid arguments", args: []string{"fake", "echo", `{"text":5}`}, code: 1, check: contains("/text")},
		{name: "server down", args: []string{"missing", "echo"}, code: 1, check: contains("mcpx-no-such-program")},
		{name: "fault as JSON", args: []string{"--json", "fake", "ecko"}, code: 1, check: contains(`"TOOL_NOT_FOUND"`)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, stderr, code := h.run(t, test.stdin, append([]string{"--config", path, "exec"}, test.args...)...)
			if code != test.code || stderr != "" {
				t.Errorf("exit %d, want %d; stderr %q", code, test.code, stderr)
			}
			if test.check != nil {
				test.check(t, out)
			} else if out != test.want {
				t.Errorf("got  %q\nwant %q", out, test.want)
			}
		})
	}
	if _, stderr, code := h.run(t, "{", "--config", path, "exec", "fake", "echo", "-"); code != 1 || !strings.Contains(stderr, "invalid JSON: the file ends") {
		t.Errorf("broken arguments: exit %d, stderr %q", code, stderr)
	}
	path = h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, map[string]any{"max_message_bytes": 200_000})
	long := strings.Repeat("x", 150_000)
	if out, stderr, code := h.run(t, `{"text":"`+long+`"}`, "--config", path, "exec", "fake", "echo", "-"); code != 0 || out != long+"\n" {
		t.Errorf("long arguments: exit %d, %d bytes, stderr %q", code, len(out), stderr)
	}
	_, stderr, code := h.run(t, `{"text":"`+long+long+`"}`, "--config", path, "exec", "fake", "echo", "-")
	if code != 1 || !strings.Contains(stderr, "the arguments are larger than 200000 bytes") || !strings.Contains(stderr, "hint: raise max_message_bytes") {
		t.Errorf("arguments that are too long: exit %d, stderr %q", code, stderr)
	}
}

func contains(want string) func(*testing.T, string) {
	return func(t *testing.T, out string) {
		t.Helper()
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
}

func TestInspect_Command(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{Instructions: "All about fakes."})}, nil)
	for _, test := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"Inspect available MCP tools", "  Server: fake - All about fakes.", "- echo(text): Answers the text."}},
		{[]string{"fake"}, []string{"add(", "a:number"}},
		{[]string{"fake", "echo"}, []string{"echo(", "text:string", "What to answer."}},
		{[]string{"fake.echo"}, []string{"echo(", "text:string", "What to answer."}},
		{[]string{"fake", "echo,add"}, []string{"echo(", "add("}},
		{[]string{"--query", "add two numbers"}, []string{"add("}},
	} {
		out, stderr, code := h.run(t, "", append([]string{"--config", path, "inspect"}, test.args...)...)
		if code != 0 || stderr != "" {
			t.Errorf("%q: exit %d, stderr %q", test.args, code, stderr)
		}
		if len(test.args) > 0 && test.args[0] == "fake" && strings.Contains(out, "connecting") { // the tools are on disk after the first command
			t.Errorf("%q does not wait for the server:\n%s", test.args, out)
		}
		for _, want := range test.want {
			// White space in the generated TypeScript is not part of this test.
			if !strings.Contains(strings.ReplaceAll(out, " ", ""), strings.ReplaceAll(want, " ", "")) {
				t.Errorf("%q: no %q in:\n%s", test.args, want, out)
			}
		}
	}
	out, _, code := h.run(t, "", "--config", path, "inspect", "fake", "echo", "--json")
	var data struct {
		Server string
		Tools  []struct{ Name, TypeScript string }
	}
	if err := json.Unmarshal([]byte(out), &data); err != nil || code != 0 || data.Server != "fake" || len(data.Tools) != 1 || data.Tools[0].TypeScript == "" {
		t.Errorf("--json: exit %d, %v: %s", code, err, out)
	}
	if out, _, code := h.run(t, "", "--config", path, "inspect", "fake", "nope"); code != 1 || !strings.Contains(out, "nope") {
		t.Errorf("unknown tool: exit %d: %s", code, out)
	}
}

// TestServe_Bind: without auth, mcpx refuses to serve at an address that other machines could reach.
func TestServe_Bind(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:8080"} {
		out, stderr, code := h.run(t, "", "serve", "--demo", "--http", addr)
		if code != 1 || out != "" || !strings.HasPrefix(stderr, "mcpx: error: refusing to listen on "+addr) || !strings.Contains(stderr, "\nmcpx: hint: bind to loopback") {
			t.Errorf("%s: exit %d, stderr %q", addr, code, stderr)
		}
	}
}

// TestServe_PprofBind: profiles are served only to this machine, even if mcpx serves other machines.
func TestServe_PprofBind(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:6060"} {
		out, stderr, code := h.run(t, "", "serve", "--demo", "--pprof", addr)
		if code != 1 || out != "" || !strings.HasPrefix(stderr, "mcpx: error: --pprof: refusing to listen on "+addr) ||
			!strings.HasSuffix(stderr, "\nmcpx: hint: bind to loopback, for example 127.0.0.1:6060; from another machine use ssh -L\n") {
			t.Errorf("%s: exit %d, stderr %q", addr, code, stderr)
		}
	}
}

// TestFlags_Environment: every flag has an environment variable. No two flags of different types share one, because a user may set it
// for all commands.
func TestFlags_Environment(t *testing.T) {
	parser := newParser(&cli{}, allCommands(), kong.DefaultEnvars("MCPX"))
	types := map[string]string{}
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		for _, flag := range n.Flags {
			if flag.Name == "help" || flag.Name == "version" || n.Hidden {
				continue
			}
			if len(flag.Envs) != 1 || !strings.HasPrefix(flag.Envs[0], "MCPX_") {
				t.Errorf("%s --%s: variables %q", n.Path(), flag.Name, flag.Envs)
				continue
			}
			kind := flag.Target.Type().String()
			if other := types[flag.Envs[0]]; other != "" && other != kind {
				t.Errorf("%s --%s: %s is of %q here, of %q elsewhere", n.Path(), flag.Name, flag.Envs[0], kind, other)
			}
			types[flag.Envs[0]] = kind
		}
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(parser.Model.Node)
}
