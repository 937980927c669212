package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// own returns the path of the config in the user's configuration folder.
func (h *home) own() string {
	if runtime.GOOS == "darwin" {
		return filepath.Join(h.dir, "Library", "Application Support", "mcpx", "config.json")
	}
	return filepath.Join(h.dir, "config", "mcpx", "config.json")
}

// must runs mcpx and returns its output. It fails the test unless mcpx exits with this code.
func (h *home) must(t *testing.T, code int, args ...string) string {
	t.Helper()
	out, stderr, got := h.run(t, "", args...)
	if got != code {
		t.Fatalf("mcpx %q: exit %d\n%s%s", args, got, out, stderr)
	}
	return out + stderr
}

func hasAll(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fakeEntry returns the JSON config entry of a fake upstream server.
func fakeEntry(t *testing.T) string {
	t.Helper()
	h := newHome(t)
	text := readFile(t, h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil))
	_, text, _ = strings.Cut(text, `"fake":`)
	return text[:strings.LastIndex(text[:strings.LastIndex(text, "}")], "}")]
}

// TestConnect_Variables: the entry in Codex's file names the variables that the config and mcpx itself use, but no word in place of
// a name, which may be a token.
func TestConnect_Variables(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	h.extra = append(h.extra, "FIRST=1", "SECOND=2")
	own := h.write(t, "config.json", `{"mcpServers": {
		"a": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer ${SECOND}", "X": "${UNSET:-x}"}},
		"b": {"url": "http://127.0.0.1:9/mcp", "bearer_token_env_var": "FIRST"},
		"c": {"url": "http://127.0.0.1:9/mcp", "bearer_token_env_var": "ghp_token"},
		"d": {"command": "d", "args": ["${HOME}"]}
	}}`)
	h.must(t, 0, "connect", "codex", "--yes", "--config", own)
	h.must(t, 0, "connect", "cursor", "--yes", "--config", own)
	hasAll(t, readFile(t, filepath.Join(h.dir, ".codex/config.toml")), "\nenv_vars = ['FIRST', 'SECOND', ", "'XDG_CONFIG_HOME'")
	if got := readFile(t, filepath.Join(h.dir, ".cursor/mcp.json")); strings.Contains(got, "FIRST") {
		t.Errorf("got %s", got)
	}
}

// TestInit_Unasked: with --yes, mcpx init makes a config from the files of clients and connects the clients
// without a question. Then everything is undone.
func TestInit_Unasked(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	cursor := "{\n  // mine\n  \"mcpServers\": {\n    \"fake\": " + fakeEntry(t) + ",\n  },\n}\n"
	codex := "model = \"gpt-5\" # fast\n\n[mcp_servers.down]\ncommand = \"no-such-program-here\"\nenv = {DOWN_TOKEN = \"hidden-from-the-screen\"}\n"
	cursorFile, codexFile := h.write(t, ".cursor/mcp.json", cursor), h.write(t, ".codex/config.toml", codex)

	// Without a terminal the user cannot be asked.
	out := h.must(t, exitFailed, "init")
	hasAll(t, out, "fake", "Cursor", "Codex", "to take", "nothing was written", "mcpx init --yes")
	if _, err := os.Stat(h.own()); err == nil {
		t.Fatal("a config was written")
	}

	out = h.must(t, 0, "init", "--yes")
	hasAll(t, out, "SERVER", "ready", "unavailable", "1 server came with a token", "connected Cursor", "connected Codex",
		"Cursor still has fake itself", "mcpx connect cursor --move")
	if strings.Contains(out, "hidden-from-the-screen") {
		t.Errorf("a secret is on the screen:\n%s", out)
	}
	hasAll(t, readFile(t, h.own()), "// from Cursor", "hidden-from-the-screen")
	if info, err := os.Stat(h.own()); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	hasAll(t, readFile(t, cursorFile), "// mine", `"mcpx": {`, "--config")
	hasAll(t, readFile(t, codexFile), "# fast", "[mcp_servers.mcpx]")
	hasAll(t, h.must(t, 0, "connect"), "cursor", "connected; 1 other server", "no file")

	// A second run has nothing to do.
	hasAll(t, h.must(t, 0, "init", "--yes", "--no-check"), "is in the config already", "has all of them", "Cursor is connected already")

	// Undoing the config leaves the clients connected to a file that is gone. A client of another config is not named.
	own := readFile(t, h.own())
	h.write(t, ".gemini/settings.json", `{"mcpServers": {"mcpx": {"command": "mcpx", "args": ["--config", "/elsewhere/config.json"]}}}`)
	out = h.must(t, 0, "init", "--undo", "--yes")
	hasAll(t, out, "is gone, as before", "Cursor still starts mcpx with this config; to undo that too: mcpx disconnect cursor",
		"Codex still starts mcpx with this config; to undo that too: mcpx disconnect codex")
	if strings.Contains(out, "Gemini") {
		t.Errorf("a client of another config is named:\n%s", out)
	}
	if err := os.WriteFile(h.own(), []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}

	h.must(t, 0, "connect", "cursor", "--move", "--yes")
	if got := readFile(t, cursorFile); strings.Contains(got, `"fake"`) {
		t.Errorf("got %s", got)
	}
	hasAll(t, h.must(t, 0, "disconnect", "cursor", "--yes"), "byte for byte")
	hasAll(t, h.must(t, 0, "disconnect", "codex", "--yes"), "byte for byte")
	if got := readFile(t, cursorFile); got != cursor {
		t.Errorf("got %q, want %q", got, cursor)
	}
	if got := readFile(t, codexFile); got != codex {
		t.Errorf("got %q, want %q", got, codex)
	}
	hasAll(t, h.must(t, 0, "disconnect", "codex", "--yes"), "mcpx is not in")

	// With damaged records, disconnect takes mcpx out, and warns.
	h.must(t, 0, "connect", "codex", "--yes")
	records := filepath.Join(filepath.Dir(h.own()), "backups", "connected.json")
	if err := os.WriteFile(records, []byte("[{"), 0o600); err != nil {
		t.Fatal(err)
	}
	hasAll(t, h.must(t, 0, "disconnect", "codex", "--yes"), "disconnected Codex", "mcpx: warning: "+records, "is damaged")
	if got := readFile(t, codexFile); strings.Contains(got, "mcpx") {
		t.Errorf("got %q", got)
	}
}

// TestInit_Existing: mcpx init adds to an existing config, and keeps a backup of it.
func TestInit_Existing(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	before := "{\n  // mine\n  \"mcpServers\": {},\n}\n"
	file := h.write(t, "mine.json", before)
	from := h.write(t, "theirs.json", `{"context_servers": {"theirs": {"command": "no-such-program"}}}`)
	out := h.must(t, 0, "init", "--config", file, "--from", from, "--yes", "--no-check")
	hasAll(t, out, "the config as it was", "wrote ~/mine.json", "mcpx connect")
	hasAll(t, readFile(t, file), "// mine", "theirs", "no-such-program")
	copies, err := filepath.Glob(filepath.Join(filepath.Dir(h.own()), "backups", "config-*"))
	if err != nil || len(copies) != 1 || readFile(t, copies[0]) != before {
		t.Errorf("got %v, %v", copies, err)
	}
	hasAll(t, h.must(t, exitFailed, "init", "--from", "nowhere.json"), "there is no such file")
	older := h.write(t, "older.json", `{"mcpServers": {"a": {"command": "a"}}, "disabled_tools": ["a.b"], "auth_token": "x", "confirm": "off"}`)
	hasAll(t, h.must(t, 0, "init", "--config", h.dir+"/taken.json", "--from", older, "--yes", "--no-check"),
		"not taken, as only servers are: disabled_tools, auth_token; write them into the config of mcpx")
	hasAll(t, h.must(t, exitFailed, "init"), "no servers were found", "mcpx add")
	hasAll(t, h.must(t, exitConfig, "init", "--yes", "--config", h.write(t, "bad.json", `{"mcpServers": {"x": {"comand": "y"}}}`)), `did you mean "command"?`)
}

// TestInit_Comments: the comments of a config that has nothing else stay.
func TestInit_Comments(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	const mine = "// mine\n/* too */ // and this"
	file := h.write(t, "mine.json", mine)
	h.must(t, 0, "init", "--config", file, "--yes", "--no-check")
	if got := readFile(t, file); !strings.HasPrefix(got, mine+"\n") || !strings.Contains(got, `"mcpServers": {}`) {
		t.Errorf("got\n%s", got)
	}
	hasAll(t, h.must(t, 0, "check", "--config", file), "no servers")
}

// TestInit_Schema: mcpx init writes the JSON schema into the folder of the config, so that editors find it.
// Undo removes only what mcpx has written.
func TestInit_Schema(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	from := h.write(t, "theirs.json", `{"mcpServers": {"theirs": {"command": "no-such-program"}}}`)
	init := func(file string, more ...string) string {
		return h.must(t, 0, slices.Concat([]string{"init", "--config", file, "--from", from, "--yes", "--no-check"}, more)...)
	}
	undo := func(file string) string { return h.must(t, 0, "init", "--config", file, "--undo", "--yes") }
	there := func(file string) bool { _, err := os.Stat(file); return err == nil }

	// First the config is new, then it exists already.
	const named = `"$schema": "./config.schema.json",`
	file := filepath.Join(h.dir, "new", "mine.json")
	schema := filepath.Join(h.dir, "new", "config.schema.json")
	hasAll(t, init(file), "wrote ~/new/mine.json", "wrote ~/new/config.schema.json", "mcpx init --undo")
	hasAll(t, readFile(t, file), "{\n  "+named+"\n  \"mcpServers\": {")
	if out := h.must(t, 0, "schema"); readFile(t, schema) != out {
		t.Error("the schema beside the config is another one than mcpx schema prints")
	}
	hasAll(t, undo(file), "is gone, as before")
	if there(file) || there(schema) {
		t.Error("what init has written is left")
	}
	const before = "// mine\r\n{\r\n\t/* all */ \"mcpServers\": {} // none\r\n}\r\n"
	file, schema = h.write(t, "old.json", before), filepath.Join(h.dir, "config.schema.json")
	init(file)
	hasAll(t, readFile(t, file), "// mine\r\n{\r\n\t"+named+"\r\n\t/* all */ \"mcpServers\": {", "} // none\r\n}")
	hasAll(t, undo(file), "byte for byte")
	if readFile(t, file) != before || there(schema) {
		t.Errorf("got %q, and a schema: %t", readFile(t, file), there(schema))
	}
	hasAll(t, undo(file), "has written nothing")

	// If the config was changed after init, undo removes only the name of the schema.
	init(file)
	h.must(t, 0, "add", "--config", file, "more", "--", "no-such-program", "more")
	hasAll(t, init(file), "has all of them")
	hasAll(t, undo(file), "names no schema any more")
	if text := readFile(t, file); strings.Contains(text, "$schema") || there(schema) {
		t.Errorf("got %s, and a schema: %t", text, there(schema))
	}
	hasAll(t, readFile(t, file), "// none", `"theirs"`, `"more"`)

	// mcpx does not touch a file that has the schema's name but another content, or a schema that the user has
	// named in the config.
	h.write(t, "config.schema.json", `{"title": "theirs"}`)
	hasAll(t, init(file), "is not a schema that mcpx wrote")
	if strings.Contains(readFile(t, file), "$schema") || readFile(t, schema) != `{"title": "theirs"}` {
		t.Error("another file was taken for the schema")
	}
	own := h.write(t, "own/own.json", `{"$schema": "https://example.com/mine.json", "mcpServers": {}}`)
	init(own)
	hasAll(t, readFile(t, own), `{"$schema": "https://example.com/mine.json", "mcpServers": {`)
}

// TestConnect_Asked: a user at the terminal is asked once for each file.
func TestConnect_Asked(t *testing.T) {
	h := newHome(t)
	for _, pair := range h.env() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	file := h.write(t, ".cursor/mcp.json", "{}\n")
	h.write(t, ".codex/config.toml", "")
	say := func(answers string, args ...string) (string, int) {
		var out lockedBuffer
		code := run(context.Background(), args, streams{in: strings.NewReader(answers), out: &out, err: &out, terminal: true, getenv: os.LookupEnv})
		return out.String(), code
	}
	out, code := say("\n", "connect", "cursor")
	hasAll(t, out, "+    \"mcpx\": {", "Write this to ~/.cursor/mcp.json? [y/N]", "there is no config at")
	if code != 0 || readFile(t, file) != "{}\n" {
		t.Errorf("exit %d, %s", code, readFile(t, file))
	}
	out, code = say("y\n", "connect", "cursor")
	hasAll(t, out, "connected Cursor", "undo: mcpx disconnect cursor")
	if code != 0 || !strings.Contains(readFile(t, file), "mcpx") {
		t.Errorf("exit %d, %s", code, readFile(t, file))
	}
	// The first question is about the config, the second about Codex. Cursor is already connected.
	from := h.write(t, "from.json", `{"mcpServers": {"a": {"command": "a"}}}`)
	h.write(t, ".cursor/mcp.json", strings.Replace(readFile(t, file), "{\n", "{\n    \"mcpServers_\": 1,\n", 1))
	out, code = say("yes\n", "init", "--no-check", "--from", from)
	hasAll(t, out, "Write ~", "wrote ~", "now connect a client", "mcpx connect")
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	out, code = say("n\nn\n", "init", "--no-check")
	hasAll(t, out, "has all of them", "Codex", "Write this to ~/.codex/config.toml? [y/N]")
	if code != 0 || readFile(t, filepath.Join(h.dir, ".codex/config.toml")) != "" {
		t.Errorf("exit %d", code)
	}
	out, code = say("", "connect", "cursr")
	hasAll(t, out, `there is no client "cursr"; did you mean cursor?`, "cursor, vscode")
	if code != exitUsage {
		t.Errorf("exit %d", code)
	}
}

// TestConnect_Keeps: after a move, mcpx names every server that is left in the client's file and why.
func TestConnect_Keeps(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	const off = `"off": {"command": "no-such-program"}`
	h.write(t, ".cursor/mcp.json", `{"mcpServers": {"fake": `+fakeEntry(t)+`, "other": {"command": "no-such-program", "args": ["a"]}, `+off+`}}`)
	h.must(t, 0, "init", "--yes")
	h.must(t, 0, "disable", "off")
	h.must(t, 0, "remove", "other")
	h.must(t, 0, "add", "other", "--no-check", "--", "no-such-program", "b")
	const kept = "Cursor keeps other, off: mcpx has no enabled server with the same definition"
	hasAll(t, h.must(t, 0, "connect", "cursor", "--move", "--yes"), kept)
	hasAll(t, h.must(t, 0, "connect", "cursor", "--move", "--yes"), "connected already", kept)
}

// TestInit_Move: --move removes from a client's file only the servers that mcpx is known to have served.
// Without the flag, a user at the terminal can choose this. If the file was edited afterwards, disconnect
// prints what it has put back.
func TestInit_Move(t *testing.T) {
	h := newHome(t)
	binary(t) // built in the user's own environment, where the build cache is
	for _, pair := range h.env() {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
	served := fakeEntry(t)
	const unserved = `"b": {"command": "no-such-program"}, "k": {"command": "no-other-program", "env": {"K": "${input:k}"}}`
	before := `{"mcpServers": {"a": ` + served + `, ` + unserved + `}}`
	file := h.write(t, ".cursor/mcp.json", before)
	code := h.write(t, "config/Code/User/mcp.json", `{"servers": {"a": `+served+`, `+unserved+`, "m": {"command": "another-program"}}}`)
	stays := func(file, name string, want bool) {
		t.Helper()
		if got := readFile(t, file); strings.Contains(got, `"`+name+`": {`) != want {
			t.Errorf("%s is there: %t, in %s", name, !want, got)
		}
	}

	out := h.must(t, 0, "init", "--move", "--yes")
	hasAll(t, out, "connected Cursor", "connected VS Code", "Cursor keeps b, k: mcpx was not seen to serve them", "VS Code keeps b, k, m: ", "mcpx check")
	for _, file := range []string{file, code} {
		stays(file, "a", false)
		stays(file, "b", true)
		stays(file, "k", true)
	}
	h.write(t, ".cursor/mcp.json", strings.Replace(readFile(t, file), "{", `{"mine": 1, `, 1))
	out = h.must(t, 0, "disconnect", "cursor", "--yes")
	hasAll(t, out, "took out mcpx, and put back a; the rest stays")
	hasAll(t, readFile(t, file), `"a": {`, `"mine": 1`)

	// A later mcpx knows from the disk which servers were served before.
	h.must(t, 0, "connect", "cursor", "--move", "--yes")
	stays(file, "a", false)
	stays(file, "b", true)
	h.must(t, 0, "disconnect", "cursor", "--yes")

	// A check that has just failed overrides the catalogue on disk. Here the server needs a file that is missing.
	if err := os.Remove(specOf(t, served)); err != nil {
		t.Fatal(err)
	}
	hasAll(t, h.must(t, 0, "init", "--move", "--yes"), "Cursor keeps b, k, a: ")
	stays(file, "a", true)
	h.must(t, 0, "disconnect", "cursor", "--yes")

	// In this process mcpx would take the command of the fakes for itself, because it is the same executable.
	served = `{"url": "` + mcptest.Spec{}.HTTP(t).URL + `"}`
	for _, test := range []struct {
		answers string
		moved   bool
	}{{"y\nn\ny\n", false}, {"y\ny\ny\n", true}} {
		if err := os.RemoveAll(filepath.Dir(h.own())); err != nil {
			t.Fatal(err)
		}
		h.write(t, ".cursor/mcp.json", `{"mcpServers": {"a": `+served+`, `+unserved+`}}`)
		if err := os.RemoveAll(filepath.Dir(code)); err != nil {
			t.Fatal(err)
		}
		var out lockedBuffer
		code := run(context.Background(), []string{"init"}, streams{in: strings.NewReader(test.answers), out: &out, err: &out, terminal: true, getenv: os.LookupEnv})
		hasAll(t, out.String(), "mcpx serves a now. Take it out of Cursor? [y/N]")
		if got := readFile(t, file); code != 0 || !strings.Contains(got, "mcpx") {
			t.Errorf("exit %d, %s\n%s", code, got, out.String())
		}
		stays(file, "a", !test.moved)
		stays(file, "b", true)
		h.must(t, 0, "disconnect", "cursor", "--yes")
	}
}

// specOf returns the path of the file that a fake upstream server needs.
func specOf(t *testing.T, entry string) string {
	t.Helper()
	var one struct{ Env map[string]string }
	if err := json.Unmarshal([]byte(entry), &one); err != nil || one.Env["MCPX_MCPTEST_SPEC"] == "" {
		t.Fatalf("%v in %s", err, entry)
	}
	return one.Env["MCPX_MCPTEST_SPEC"]
}

// TestInit_Unread: if a client's file cannot be read, mcpx init does not exit with success.
func TestInit_Unread(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	file := h.write(t, "mine.json", `{"mcpServers": {}}`)
	h.write(t, ".cursor/mcp.json", "{bad")
	out := h.must(t, exitFailed, "init", "--yes", "--no-check", "--config", file)
	hasAll(t, out, "mine.json has all that could be read", "error: cannot be read", "~/.cursor/mcp.json")
}

// TestNames: commands accept the name of a server in the file, and the name that clients see.
func TestNames(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	none := h.write(t, "none.json", `{"mcpServers": {}}`)
	hasAll(t, h.must(t, 0, "check", "--json", "--config", none), `"servers": []`)
	hasAll(t, h.must(t, 0, "budget", "--json", "--config", none), `"growth": []`)
	file := h.write(t, "mine.json", `{"mcpServers": {"my server": `+fakeEntry(t)+`, "git": {"command": "x", "enabled": false}}}`)
	mcpx := func(code int, args ...string) string { return h.must(t, code, append(args, "--config", file)...) }
	hasAll(t, mcpx(0, "check", "my server"), "my_server", "1 ready")
	hasAll(t, mcpx(0, "exec", "my server", "add", "a=1", "b=2"), `{"sum":3}`)
	hasAll(t, mcpx(0, "exec", "my_server.add", "a=1", "b=2"), `{"sum":3}`)
	hasAll(t, mcpx(0, "exec", "my_server.add", `{"a":1,"b":2}`), `{"sum":3}`)
	hasAll(t, mcpx(exitFailed, "exec", "my_server.nothing"), "TOOL_NOT_FOUND")
	hasAll(t, mcpx(exitFailed, "exec", "your_server.add"), "it has git, my_server")
	hasAll(t, mcpx(0, "inspect", "my server"), "add(")
	mcpx(0, "disable", "my_server")
	hasAll(t, mcpx(0, "disable", "my server"), "disabled already")
	hasAll(t, mcpx(exitFailed, "disable", "git.git_status"), `"disabled_tools": ["git.git_status"]`)
	mcpx(0, "remove", "my_server")
	if got := readFile(t, file); strings.Contains(got, "my server") {
		t.Errorf("got %s", got)
	}
}

// TestAdd: mcpx add makes the config if there is none, and later adds to it.
func TestAdd(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	hasAll(t, h.must(t, exitConfig, "disable", "files"), "config file not found: "+h.own())
	hasAll(t, h.must(t, 0, "add", "files", "--no-check", "--env", "A=b=c", "--env", "D=${HOME}", "--", "npx", "-y", "fs", "--flag"), "added files to "+h.own())
	h.must(t, 0, "add", "github", "--no-check", "https://api.example.com/mcp", "--header", "Authorization=Bearer ${TOKEN:-}", "--header", "X-A: b: c")
	want := `{
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "fs", "--flag"],
      "env": {
        "A": "b=c",
        "D": "${HOME}"
      }
    },
    "github": {
      "url": "https://api.example.com/mcp",
      "headers": {
        "Authorization": "Bearer ${TOKEN:-}",
        "X-A": "b: c"
      }
    }
  }
}
`
	if got := readFile(t, h.own()); got != want {
		t.Errorf("got\n%s", got)
	}
	if info, err := os.Stat(h.own()); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	hasAll(t, h.must(t, 0, "disable", "github"), "github is disabled in")
	hasAll(t, h.must(t, 0, "disable", "github"), "disabled already")
	hasAll(t, readFile(t, h.own()), `"enabled": false`)
	h.must(t, 0, "enable", "github")
	h.must(t, 0, "remove", "github")
	h.must(t, 0, "add", "ws", "--no-check", "wss://x.example.com")
	hasAll(t, readFile(t, h.own()), `"url": "wss://x.example.com"`)
	h.must(t, 0, "remove", "ws")
	h.must(t, 0, "add", "ws", "--no-check", "--type", "websocket", "ws://x.example.com")
	hasAll(t, readFile(t, h.own()), `"type": "websocket"`)
	h.must(t, 0, "remove", "ws")
	if got := readFile(t, h.own()); strings.Contains(got, "github") || !strings.Contains(got, "files") {
		t.Errorf("got\n%s", got)
	}
	for _, one := range []struct {
		code int
		want string
		args []string
	}{
		{exitFailed, "is in the config already", []string{"add", "files", "--", "x"}},
		{exitFailed, "it has files", []string{"remove", "nothing"}},
		{exitFailed, "it has files", []string{"enable", "nothing"}},
		{exitFailed, "mcpx add x -- npx -y pkg", []string{"add", "x", "npx -y pkg"}},
		{exitFailed, "--header is for a remote server", []string{"add", "x", "--header", "A=b", "--", "y"}},
		{exitFailed, "--env is for a program", []string{"add", "x", "--env", "A=b", "https://x.example.com"}},
		{exitFailed, "the program is an empty word", []string{"add", "x", "--", ""}},
		{exitUsage, "argument 4 is not UTF-8", []string{"add", "x", "--env", "A=hidden\xe9", "--", "y"}},
		{exitFailed, "--env needs KEY=VALUE", []string{"add", "x", "--env", "hidden", "--", "y"}},
		{exitConfig, "nothing was written: " + h.own() + ": mcpServers.mcpx: the name", []string{"add", "mcpx", "--", "y"}},
		{exitUsage, "mcpx add NAME -- npx foo", []string{"add", "--", "npx", "foo"}},
		{exitUsage, "put -- before npx: mcpx add fs -- npx -y pkg", []string{"add", "fs", "npx", "-y", "pkg"}},
		{exitUsage, "mcpx help add shows its usage", []string{"add", "x", "--hedaer", "A=b", "https://x.example.com"}},
		{exitFailed, "not ftp", []string{"add", "x", "ftp://x.example.com"}},
		{exitFailed, "mcpx add x http://localhost:8080/mcp", []string{"add", "x", "localhost:8080/mcp"}},
		{exitFailed, "a name has no spaces", []string{"add", "x", "--env", "A B=hidden", "--", "y"}},
	} {
		out := h.must(t, one.code, one.args...)
		hasAll(t, out, one.want)
		if strings.Contains(out, "hidden") {
			t.Errorf("a value is on the screen: %s", out)
		}
	}
	if got := readFile(t, h.own()); strings.Count(got, "command") != 1 {
		t.Errorf("got\n%s", got)
	}

	// mcpx does not edit a config that has a fault, and prints the fault.
	bad := h.write(t, "bad.json", "{\n  \"mcpServers\": {\"a\": {\"comand\": \"x\"}},\n}\n")
	hasAll(t, h.must(t, exitConfig, "add", "b", "--config", bad, "--", "y"), `did you mean "command"?`)
	grouped := h.write(t, "grouped.json", `{"mcpServers":{"a":{"command":"x"}},"groups":{"g":{"servers":["a"]}}}`)
	hasAll(t, h.must(t, exitConfig, "remove", "a", "--config", grouped), "nothing was written: "+grouped+`: groups.g.servers[0]: there is no server "a"`)
	broken := h.write(t, "broken.json", "{\n  \"mcpServers\" {}\n}\n")
	hasAll(t, h.must(t, exitConfig, "add", "b", "--config", broken, "--", "y"), "broken.json:2:")
	empty := h.write(t, "empty.json", "// nothing yet\n")
	hasAll(t, h.must(t, 0, "add", "b", "--config", empty, "--", "y", ".", "./nowhere"), "b is unavailable: ", "try it again: mcpx check b --config "+empty)
	var written struct {
		Servers map[string]struct{ Args []string } `json:"mcpServers"`
	}
	text, ok := strings.CutPrefix(readFile(t, empty), "// nothing yet\n")
	if err := json.Unmarshal([]byte(text), &written); err != nil || !ok {
		t.Fatalf("%v in %s", err, text)
	}
	// Paths are stored as absolute paths, because a client starts mcpx in another folder.
	if args := written.Servers["b"].Args; len(args) != 2 || !filepath.IsAbs(args[0]) || args[1] != "./nowhere" {
		t.Errorf("got %q", args)
	}
}
