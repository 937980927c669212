package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// configIs returns the end of a hint for a user who has given this config file.
func configIs(file string) string { return " --config '" + file + "'" }

// hinted returns the home for a test of hints. It skips the test on Windows, because the quotes in the tests are for Unix shells.
func hinted(t *testing.T) *home {
	t.Helper()
	mcptest.Parallel(t)
	if runtime.GOOS == "windows" {
		t.Skip("other quotes")
	}
	return newHome(t)
}

// challenging returns the URL of a server that wants a login.
func challenging(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://127.0.0.1:9/none"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestHint_Config: the commands that mcpx suggests act on the config that the user gave, and keep the user's other flags. The
// folder has a space in its name, so paths are quoted.
func TestHint_Config(t *testing.T) {
	h := hinted(t)
	registry := mcptest.ServeRegistry(t, registryAnswers)
	text := fmt.Sprintf(`{"registry": %q, "mcpServers": {"off": {"command": "no-such-program"}}}`, registry)
	file := h.write(t, "my files/mcp.json", text)
	guarded := h.write(t, "my files/guarded.json", fmt.Sprintf(`{"mcpServers": {"my notes": {"url": %q}}}`, challenging(t)))
	from := h.write(t, "my files/theirs.json", `{"mcpServers": {"theirs": {"command": "no-other-program", "enabled": false}}}`)
	cursor := h.write(t, "my files/cursor.json", `{"mcpServers": {"off": {"command": "no-such-program"}}}`)
	empty, missing := filepath.Join(h.dir, "my files", "none.json"), filepath.Join(h.dir, "my files", "missing.json")
	ask := "run: mcpx "
	for _, test := range []struct {
		config string
		code   int
		want   string
		args   []string
	}{
		{file, exitFailed, ask + "init --yes --move --no-check --from '" + from + "'", []string{"init", "--no-check", "--move", "--from", from}},
		{file, exitOK, "undo: mcpx init --undo", []string{"init", "--yes", "--no-check", "--from", from}},
		{file, exitOK, "    mcpx connect", []string{"init", "--no-check", "--from", from}},
		{file, exitFailed, ask + "init --undo --yes", []string{"init", "--undo"}},
		{empty, exitFailed, "mcpx find WORD", []string{"init"}},
		{empty, exitOK, "mcpx init", []string{"connect", "cursor", "--yes"}},
		{file, exitFailed, ask + "connect cursor --yes --move --file '" + cursor + "'", []string{"connect", "cursor", "--move", "--file", cursor}},
		{file, exitOK, "mcpx check", []string{"connect", "cursor", "--file", cursor, "--yes"}},
		{file, exitOK, "add one: mcpx add SERVER", []string{"find", "github"}},
		{file, exitFailed, ask + "add io.github.Softeria/ms-365-mcp-server --as 'my 365' --yes --no-check", []string{
			"add", "ms-365-mcp-server", "--as", "my 365", "--no-check"}},
		{file, exitFailed, "mcpx remove off", []string{"add", "ms-365-mcp-server", "--as", "off"}},
		{file, exitOK, "try it: mcpx check 'my notes'", []string{"add", "my notes", "--no-check", "--", "no-such-program"}},
		{file, exitUsage, "write the name first: mcpx add NAME", []string{"add", "{}"}},
		{file, exitUsage, "mcpx exec off TOOL", []string{"exec", "off."}},
		{file, exitFailed, "mcpx token list", []string{"token", "delete", "nobody"}},
		{missing, exitConfig, "mcpx init", []string{"check"}},
		{guarded, exitFailed, "needs mcpx login my_notes", []string{"check"}},
		{guarded, exitOK, "needs mcpx login second", []string{"add", "second", challenging(t)}},
		{file, exitFailed, "remove it first: mcpx remove off", []string{"add", "off", "--", "no-such-program"}},
		{file, exitFailed, "make a token, mcpx token new NAME", []string{"serve", "--http", "0.0.0.0:0"}},
		{file, exitFailed, "KEY=VALUE needs no quotes: mcpx exec off tool KEY=VALUE", []string{"exec", "off", "tool", "{"}},
	} {
		want := test.want + configIs(test.config)
		hasAll(t, h.must(t, test.code, append([]string{"--config", test.config}, test.args...)...), want)
	}
	for _, test := range [][2]string{
		{"mcpx add x" + configIs(file) + " -- npx -y pkg", "npx -y pkg"}, {"mcpx add x https://HOST/PATH" + configIs(file), "ftp://x.example.com"},
	} {
		hasAll(t, h.must(t, exitFailed, "add", "x", test[1], "--config", file), test[0])
	}
	if out := h.must(t, exitFailed, "init", "--from", from); strings.Contains(out, "--config") {
		t.Errorf("the user gave no config, got\n%s", out)
	}
	out := h.must(t, exitOK, "init", "--from", guarded, "--yes")
	hasAll(t, out, "needs mcpx login my_notes (", "mcpx check my_notes; ")
	if strings.Contains(out, "mcpx login my_notes --config") {
		t.Errorf("the user gave no config, got\n%s", out)
	}
}

// TestHint_Serve: what mcpx suggests to a user who started it in a terminal acts on the config that the user gave.
func TestHint_Serve(t *testing.T) {
	h := hinted(t)
	file := h.write(t, "my files/mcp.json", `{"mcpServers": {}}`)
	var out lockedBuffer
	run(t.Context(), []string{"--config", file, "--no-daemon"}, streams{in: strings.NewReader(""), out: io.Discard, err: &out, terminal: true, getenv: os.LookupEnv})
	hasAll(t, out.String(), "mcpx check"+configIs(file)+", mcpx inspect"+configIs(file)+", or mcpx serve --http 127.0.0.1:8080"+configIs(file)+". Ctrl-C ends.")
}

// TestHint_Clients: the commands that connect a client keep --move and --file, and name the config.
func TestHint_Clients(t *testing.T) {
	h := hinted(t)
	entry := `{"mcpServers": {"fake": ` + fakeEntry(t) + `}}`
	file, cursor := h.write(t, "my files/mcp.json", entry), h.write(t, ".cursor/mcp.json", entry)
	h.must(t, 0, "init", "--yes", "--config", h.write(t, "seen.json", entry)) // mcpx sees the server work
	h.must(t, 0, "disconnect", "cursor", "--yes")
	out := h.must(t, 0, "init", "--move", "--config", file)
	hasAll(t, out, "    mcpx connect cursor --move"+configIs(file), "    mcpx connect"+configIs(file), "carry less: mcpx budget"+configIs(file))
	project := h.write(t, "my files/project.json", entry)
	out = h.must(t, 0, "connect", "cursor", "--yes", "--file", project, "--config", file)
	hasAll(t, out, "mcpx connect cursor --move --file '"+project+"'"+configIs(file), "undo: mcpx disconnect cursor --file '"+project+"'")
	hasAll(t, h.must(t, exitFailed, "disconnect", "cursor", "--file", project), "run: mcpx disconnect cursor --yes --file '"+project+"'")
	if got := readFile(t, cursor); got != entry {
		t.Errorf("got %s", got)
	}
}

// TestHint_AuditForget: the command that needs no terminal has the keys, the anchor and the config that the user gave.
func TestHint_AuditForget(t *testing.T) {
	h := hinted(t)
	trail, key := h.write(t, "my files/audit.jsonl", ""), h.write(t, "my files/key", "0123456789abcdef0123456789abcdef")
	file, anchor := h.write(t, "my files/mcp.json", `{"mcpServers": {}}`), filepath.Join(h.dir, "anchor")
	flags := []string{"audit", "forget", trail, "--user", "ann b", "--key-file", key, "--key-file", key, "--anchor", anchor, "--config", file}
	hasAll(t, h.must(t, exitFailed, flags...), "run: mcpx audit forget '"+trail+"' --user 'ann b' --yes --key-file '"+key+"' --key-file '"+key+
		"' --anchor "+anchor+configIs(file))
}

// TestHint_Dashes: a hint says where -- belongs, and repeats what the user wrote.
func TestHint_Dashes(t *testing.T) {
	h := hinted(t)
	file := filepath.Join(h.dir, "my files", "mcp.json")
	hasAll(t, h.must(t, exitUsage, "add", "--config", file, "--", "npx", "a b"), "mcpx add NAME"+configIs(file)+" -- npx 'a b'")
	hasAll(t, h.must(t, exitUsage, "--config="+file, "add", "my x", "npx", "-y", "a b"),
		"put -- before npx: mcpx '--config="+file+"' add 'my x' -- npx -y 'a b'\n")
	hasAll(t, h.must(t, exitUsage, "add", "x", "npx", "-y", "pkg", "--config", file),
		"put -- before npx: mcpx add x -- npx -y pkg --config '"+file+"'; if --config is for mcpx, put it before --\n")
	hasAll(t, h.must(t, exitUsage, "add", "x", "npx", "-y", "pkg", "--env=A=b", "--port=1"), " -- npx -y pkg --env=A=b --port=1; if --env is for mcpx, put it before --\n")
	hasAll(t, h.must(t, exitUsage, "--config", file, "add", "x", "npx", "-y", "pkg"), "put -- before npx: mcpx --config '"+file+"' add x -- npx -y pkg\n")
	hasAll(t, h.must(t, exitUsage, "add", "--env", "A=b", "x", "npx", "-y", "pkg"), "put -- before npx: mcpx add --env A=b x -- npx -y pkg\n")
	hasAll(t, h.must(t, exitUsage, "--config", file, "chek"), "did you mean mcpx check?")
}

// TestHint_FlagsOfTheProgram: flags that follow a program without -- may be meant for the program, so mcpx does not take them for its own
// and writes nothing.
func TestHint_FlagsOfTheProgram(t *testing.T) {
	h := hinted(t)
	file := h.write(t, "theirs.json", `{"theirs": true}`)
	before := readFile(t, file)
	for _, test := range []struct{ words, want string }{
		{"no-such-program pkg --config " + file, "; if --config is for mcpx, put it before --\n"},
		{"no-such-program pkg -y", "\n"},
		{"no-such-program --env A=b --no-check", "; if --env is for mcpx, put it before --\n"},
	} {
		out := h.must(t, exitUsage, append([]string{"add", "notes"}, strings.Fields(test.words)...)...)
		hasAll(t, out, "flags after the program may be meant for it", "put -- before no-such-program: mcpx add notes -- "+test.words+test.want)
	}
	if _, err := os.Stat(h.own()); readFile(t, file) != before || err == nil {
		t.Errorf("got %s, %v", readFile(t, file), err)
	}
	hasAll(t, h.must(t, 0, "add", "notes", "--no-check", "no-such-program", "pkg"), "added notes")
}
