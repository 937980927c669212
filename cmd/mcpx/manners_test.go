package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

func TestManners(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	version, _, _ := h.run(t, "", "version")
	for _, test := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"--version"}, 0, version, ""},
		{[]string{"help"}, 0, "mcpx <command> [flags]", ""},
		{[]string{"help", "exec"}, 0, "mcpx exec time get_current_time timezone=", ""},
		{[]string{"help", "logins"}, 0, "logins end <which>", ""},
		{[]string{"chek"}, 80, "", "mcpx: hint: did you mean mcpx check?"},
		{[]string{"help", "chek"}, 80, "", "mcpx: hint: did you mean mcpx check?"},
		{[]string{"chek", "status"}, 80, "", "mcpx: hint: did you mean mcpx check?"},
		{[]string{"exec"}, 80, "", "which server and tool? mcpx inspect lists them"},
		{[]string{"check", "--jsn"}, 80, "", "mcpx: hint: mcpx help check shows its usage"},
		{[]string{"token", "new", "--bogus"}, 80, "", "mcpx: hint: mcpx help token new shows its usage"},
		{[]string{"token", "neww"}, 80, "", "mcpx: hint: mcpx help token shows its usage"},
		{[]string{"completion", "bash"}, 0, "complete -o default -F _mcpx mcpx", ""},
		{[]string{"completion", "powershell"}, 0, "Register-ArgumentCompleter", ""},
		{[]string{"completion", "tcsh"}, 80, "", "must be one of"},
	} {
		stdout, stderr, code := h.run(t, "", test.args...)
		if code != test.code || !strings.Contains(stdout, test.stdout) || !strings.Contains(stderr, test.stderr) || (stdout == "") != (test.stdout == "") {
			t.Errorf("%q: exit %d, %q, stderr %q", test.args, code, stdout, stderr)
		}
	}
	// The help of every command has examples.
	names, _, _ := h.run(t, "", "__complete", ":", "--", "help")
	for line := range strings.Lines(names) {
		name, _, _ := strings.Cut(line, "\t")
		if out, _, code := h.run(t, "", "help", name); code != 0 || !strings.Contains(out, "Examples:\n\n    mcpx ") && name != "completion" {
			t.Errorf("%s has no examples: exit %d, %s", name, code, out)
		}
	}
	if strings.Count(names, "\n") < 8 {
		t.Errorf("commands: %q", names)
	}
}

// TestComplete checks the candidates that completion offers to the shells. Completion starts no server.
func TestComplete(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{}), "other": {"command": "x"}}, nil)
	if _, stderr, code := h.run(t, "", "--config", path, "check", "fake"); code != 0 {
		t.Fatalf("exit %d, %s", code, stderr)
	}
	for _, test := range []struct {
		word   string
		before []string
		want   string // the first candidate
		never  string
	}{
		{"", nil, "serve", "__complete"},
		{"ins", nil, "inspect", "init"},
		{"", []string{"exec"}, "fake", "echo"},
		{"ec", []string{"exec", "fake"}, "echo", "add"},
		{"", []string{"exec", "fake", "echo"}, "text=", "echo"},
		{"fake.ec", []string{"check"}, "fake.echo", "add"},
		{"--sel", []string{"exec", "fake"}, "--select", "--json"},
		{"", []string{"--log-level"}, "debug", "serve"},
		{"z", []string{"completion"}, "zsh", "bash"},
		{"ch", []string{"help"}, "check", "exec"},
		{"c", []string{"connect"}, "claude-desktop", "zed"},
		{"fa", []string{"disable"}, "fake", "other"},
		{"fa", []string{"restart"}, "fake", "other"},
		{"o", []string{"logs"}, "other", "fake"},
		{"o", []string{"logs", "-f"}, "other", "fake"},
		{"z", []string{"connect", "-y"}, "zed", "cursor"},
		{"o", []string{"lock", "fake"}, "other", "fake"},
		{"de", []string{"token"}, "delete", "demo"},
		{"rep", []string{"--log-level", "debug", "audit"}, "report", "verify"},
		{"--ex", []string{"token", "new", "ci"}, "--expires", "--yes"},
		{"n", []string{"help", "token"}, "new", "serve"},
		{"", []string{"audit", "verify"}, "", "serve"},
		{"", []string{"--config"}, "", "serve"},
	} {
		args := append([]string{"--config", path, "__complete", ":" + test.word, "--"}, test.before...)
		out, stderr, code := h.run(t, "", args...)
		first, _, _ := strings.Cut(out, "\t")
		if code != 0 || stderr != "" || first != test.want || strings.Contains("\n"+out, "\n"+test.never+"\t") {
			t.Errorf("%q %q: exit %d, %q, stderr %q", test.before, test.word, code, out, stderr)
		}
	}
	out, _, _ := h.run(t, "", "__complete", ":", "--", "--config", path, "exec")
	if !strings.HasPrefix(out, "fake\t") {
		t.Errorf("--config in the line: %q", out)
	}
}

// TestExec_KeyValue: the tool's schema decides the type of a value. JSON arguments may have comments and
// trailing commas, as in the config.
func TestExec_KeyValue(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	for _, test := range []struct {
		args         []string
		code         int
		want, stderr string
	}{
		{[]string{"echo", "text=a=b c"}, 0, "a=b c\n", ""},
		{[]string{"echo", "text=5"}, 0, "5\n", ""},
		{[]string{"add", "a=9007199254740993", "b=1"}, 0, `{"sum":9007199254740994}` + "\n", ""},
		{[]string{"add", `{"a": 1, "b": 2,} // both`}, 0, `{"sum":3}` + "\n", ""},
		{[]string{"add", "a=x", "b=1"}, 1, "", ""},
		{[]string{"echo", "{text: x}"}, 1, "", `mcpx: error: arguments:1:2: invalid JSON: keys need double quotes`},
		{[]string{"echo", "text=\xe9"}, exitUsage, "", "mcpx: error: argument 6 is not UTF-8"},
		{[]string{"echo", "--each", "[{\"text\":\"\xe9\"}]"}, exitUsage, "", "is not UTF-8"},
		{[]string{"echo", "text"}, 1, "", `"text" is not an argument of a tool`},
		{[]string{"echo", "text=x", "y"}, 1, "", `"y" is not an argument of a tool`},
		{[]string{"echo", `{"text":`, `"x"}`}, 1, "", "put it into single quotes"},
		{[]string{"echo", `{"text": "x"`}, 1, "", "KEY=VALUE needs no quotes"},
	} {
		out, stderr, code := h.run(t, "", append([]string{"--config", path, "exec", "fake"}, test.args...)...)
		if code != test.code || test.want != "" && out != test.want || !strings.Contains(stderr, test.stderr) {
			t.Errorf("%q: exit %d, %q, stderr %q", test.args, code, out, stderr)
		}
	}
}

// TestServe_LogFile: the log is also written to the log file. If the file cannot be written, mcpx says so.
func TestServe_LogFile(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{}, map[string]any{"log_file": "logs/mcpx.log"})
	_, stderr, code := h.run(t, "", "--config", path)
	file := filepath.Join(filepath.Dir(path), "logs", "mcpx.log")
	logged, err := os.ReadFile(file)
	if code != 0 || err != nil || string(logged) != stderr || !strings.Contains(stderr, "no servers are defined") {
		t.Errorf("exit %d, %v: logged %q, stderr %q", code, err, logged, stderr)
	}
	path = h.config(t, map[string]server{}, map[string]any{"log_file": filepath.Join(file, "below.log")})
	if _, stderr, code := h.run(t, "", "--config", path); code != 0 || !strings.Contains(stderr, "mcpx: warning: log_file: ") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
}

// TestServe_LogFolder: a folder that is named in place of a file stays as it is.
func TestServe_LogFolder(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{}, map[string]any{"log_file": "logs"})
	folder := filepath.Join(filepath.Dir(path), "logs")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := h.run(t, "", "--config", path); code != 0 || !strings.Contains(stderr, "mcpx: warning: log_file: "+folder+" is a folder") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	path = h.config(t, map[string]server{}, nil)
	if _, stderr, code := h.run(t, "", "--config", path, "serve", "--trace", folder); code != 1 || !strings.Contains(stderr, "mcpx: error: --trace: "+folder+" is a folder; name a file in") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		t.Errorf("the folder: %v", err)
	}
}

func TestServe_PortInUse(t *testing.T) {
	mcptest.Parallel(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, stderr, code := newHome(t).run(t, "", "serve", "--demo", "--http", listener.Addr().String())
	if code != 1 || !strings.HasPrefix(stderr, "mcpx: error: listening on "+listener.Addr().String()+": ") || !strings.Contains(stderr, "mcpx: hint: take another port, such as 127.0.0.1:") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
}

// TestCheck_Tool: mcpx check says why a tool is not visible, and which patterns match no tool.
func TestCheck_Tool(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	one := fake(t, mcptest.Spec{Tools: json.RawMessage(`[{"name":"get_a","annotations":{"readOnlyHint":true}},{"name":"put_a"},{"name":"get_b","annotations":{"readOnlyHint":true}},
		{"name":"get_app","annotations":{"readOnlyHint":true},"_meta":{"ui":{"visibility":["app"]}}},{"name":"get_c","annotations":{"readOnlyHint":true}}]`)})
	one["tools"] = map[string]any{"deny": []string{"get_b", "gta_a"}}
	one["read_only"], one["verbatim"], one["tool_timeouts"] = true, []string{"get_*"}, map[string]any{"pet_a": 5}
	two := fake(t, mcptest.Spec{Tools: json.RawMessage(`[{"name":"x"},{"name":"y"}]`)})
	two["tools"] = map[string]any{"allow": []string{"x"}}
	path := h.config(t, map[string]server{"one": one, "two": two}, map[string]any{"disabled_tools": []string{"one.get_c", "two.z", "nobody.*"}})
	out, stderr, code := h.run(t, "", "--config", path, "check", "--json")
	var o outcome
	if err := json.Unmarshal([]byte(out), &o); err != nil || code != 0 || stderr != "" || !o.OK || len(o.Servers) != 2 || *o.Servers[0].Tools != 1 || o.Servers[0].Seconds < 0 {
		t.Fatalf("exit %d, %v, %s %s", code, err, out, stderr)
	}
	for _, want := range []string{`disabled_tools: "two.z" matches no tool`, `disabled_tools: "nobody.*" matches no tool`} {
		if !strings.Contains(strings.Join(o.Warnings, "\n"), want) {
			t.Errorf("no %s in %q", want, o.Warnings)
		}
	}
	if len(o.Warnings) != 2 || len(o.Servers[0].Notes) != 2 || !strings.Contains(strings.Join(o.Servers[0].Notes, "\n"), `tool_timeouts: "pet_a" matches no tool; did you mean get_a?`) {
		t.Errorf("warnings %q, notes %q", o.Warnings, o.Servers[0].Notes)
	}
	for name, want := range map[string]string{
		"one.get_a": "visible", "one.put_a": "hidden by one.read_only", "one.get_b": `hidden by one.tools.deny: "get_b"`,
		"one.get_c": `hidden by disabled_tools: "one.get_c"`, "one.get_app": "hidden: its server means it for its own app only",
		"two.y": "hidden: none of two.tools.allow matches it (x)", "two.zz": "the server has no tool of this name",
	} {
		out, stderr, code := h.run(t, "", "--config", path, "check", name)
		if !strings.Contains(out, name+"  "+want) || stderr != "" || (code == 0) != strings.HasPrefix(want, "visible") || !strings.Contains(out, "1 server: 1 ready") {
			t.Errorf("%s: exit %d, %s %s", name, code, out, stderr)
		}
	}
}

// TestCheck_Timeout: servers that have not answered within --timeout are named, and the check fails.
func TestCheck_Timeout(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{"mute": fake(t, mcptest.Spec{NeverInit: true})}, nil)
	out, _, code := h.run(t, "", "--config", path, "check", "--timeout", "300ms")
	if code != 1 || !strings.Contains(out, "mute    connecting") || !strings.Contains(out, "no answer yet") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestCheck_Savings: mcpx check reports the tokens saved with this config, without those for
// other configs. It says nothing where calls have saved nothing.
func TestCheck_Savings(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	// With a short grace period the end of the input would end the call: on a slow machine the server is not ready
	// then.
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, map[string]any{"shutdown_grace": 60})
	call := func(text string) {
		t.Helper()
		input := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":{"server_name":"fake","tool_name":"echo","arguments":` + text + `}}}
`
		if out, stderr, code := h.run(t, input, "--config", path); code != 0 || !strings.Contains(out, `"id":2`) {
			t.Fatalf("exit %d, %s, %s", code, out, stderr)
		}
	}
	call(`{"text":"short"}`)
	if out, _, code := h.run(t, "", "--config", path, "check"); code != 0 || strings.Contains(out, "saved since") {
		t.Errorf("nothing saved: %s", out)
	}
	rows, err := json.Marshal(map[string]string{"text": "[" + strings.Repeat(`{"name": "a", "size": 1}, `, 200) + `{"name": "a", "size": 1}]`})
	if err != nil {
		t.Fatal(err)
	}
	call(string(rows))
	if out, _, _ := h.run(t, "", "--config", path, "check"); !regexp.MustCompile(`tokens saved since \d{4}-\d\d-\d\d: definitions -, compression [\d,]+, left behind a handle -; mcpx stats --config \S+ says more`).MatchString(out) {
		t.Errorf("got %s", out)
	}
	other := h.write(t, "other.json", `{"mcpServers": {"off": {"command": "x", "enabled": false}}}`)
	if out, _, code := h.run(t, "", "--config", other, "check"); code != 0 || strings.Contains(out, "saved since") {
		t.Errorf("another config: %s", out)
	}
}
