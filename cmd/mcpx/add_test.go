package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestAdd_Tries: mcpx add starts the new server, no other, and prints what it offers.
func TestAdd_Tries(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	spec := mcptest.Spec{Tools: json.RawMessage(`[{"name":"plain"},{"name":"red\u001b[31m\u202e"}]`)}.WithFiles(t)
	other := mcptest.Spec{}.WithFiles(t)
	path := h.config(t, map[string]server{"other": fake(t, other)}, nil)
	entry := fake(t, spec)
	args := []string{"add", "fake", "--config", path}
	for key, value := range entry["env"].(map[string]string) {
		args = append(args, "--env", key+"="+value)
	}
	args = append(append(args, "--", entry["command"].(string)), entry["args"].([]string)...)
	out := h.must(t, 0, args...)
	hasAll(t, out, "added fake to "+path, "fake is ready: 2 tools: plain, red")
	if strings.ContainsAny(out, "\x1b\u202e") {
		t.Errorf("control characters of a server: %q", out)
	}
	if one, others := len(spec.Log(t).Event(mcptest.EventStart)), len(other.Log(t).Event(mcptest.EventStart)); one != 1 || others != 0 {
		t.Errorf("%d starts, %d of the other server", one, others)
	}
	hasAll(t, h.must(t, 0, "inspect", "--config", path, "fake", "plain"), "plain(")
	if one := len(spec.Log(t).Event(mcptest.EventStart)); one != 1 {
		t.Errorf("the catalogue was not kept: %d starts", one)
	}

	// A server that is unavailable is added too. With --no-check, mcpx add does not start the server.
	out = h.must(t, 0, "add", "down", "--config", path, "--", "no-such-program")
	hasAll(t, out, "added down to", "down is unavailable: ", "no-such-program", "try it again: mcpx check down --config "+path)
	out = h.must(t, 0, "add", "my notes", "--config", path, "--", "no-such-program")
	hasAll(t, out, "added my notes to", "my_notes is unavailable: ", "try it again: "+(&cli{Config: path}).hint("check", "my notes"))
	out = h.must(t, 0, "add", "later", "--config", path, "--no-check", "--", "no-such-program")
	hasAll(t, out, "added later to", "try it: mcpx check later")
	if strings.Contains(out, "unavailable") {
		t.Errorf("got %s", out)
	}
	hasAll(t, h.must(t, 0, "add", "remote", "--config", path, mcptest.Spec{}.HTTP(t).URL), "remote is ready: 18 tools: ", " more")
}

// TestAdd_JSON: a user can paste the JSON snippet from a server's README.
func TestAdd_JSON(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	one := strings.TrimSpace(fakeEntry(t))
	for _, test := range []struct{ name, text string }{
		{"entry", one},
		{"wrapped", `{"mcpServers": {"theirs": ` + one + `}}`},
		{"code", `{"inputs": [], "servers": {"theirs": ` + one + `}}`},
		{"named", `"theirs": ` + one + `,`},
		{"map", `{ // a comment
			"theirs": ` + one + `,
		}`},
		{"several", `{"mcpServers": {"another": {"command": "no-such-program"}, "several": ` + one + `}}`},
	} {
		out := h.must(t, 0, "add", test.name, test.text)
		hasAll(t, out, "added "+test.name+" to", test.name+" is ready: 18 tools")
	}
	hasAll(t, h.must(t, 0, "exec", "code", "add", "a=1", "b=2"), `{"sum":3}`)
	h.must(t, 0, "add", "open", "--no-check", `{"type": "local", "command": ["no-such-program", "{file:/tmp/x}"], "environment": {"A": "{env:HOME}"}}`)
	hasAll(t, readFile(t, h.own()), `${file:/tmp/x}`, `"env": {`, `${HOME}`)
	out := h.must(t, 0, "add", "asks", `{"command": "x", "env": {"KEY": "${input:k}"}}`)
	hasAll(t, out, "added asks to", "asks is unavailable: ", "only an editor can fill in")
	hasAll(t, h.must(t, 0, "add", "off", `{"command": "no-such-program", "disabled": true}`), "added off to", "off is disabled")

	before := readFile(t, h.own())
	for _, test := range []struct {
		code int
		want string
		args []string
	}{
		{exitFailed, "has 2 servers: a, b", []string{`{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}`}},
		{exitFailed, "has no server", []string{`{"mcpServers": {}}`}},
		{exitFailed, "line 1, column 22: the text is not valid JSON", []string{`{"command": "hidden" "x"}`}},
		{exitFailed, "put it into single quotes", []string{`{command:`, `npx}`}},
		{exitFailed, `did you mean "command"?`, []string{`{"mcpServers": {"x": {"comand": "x"}}}`}},
		{exitFailed, "is mcpx itself", []string{`{"command": "mcpx", "args": ["serve"]}`}},
		{exitFailed, "cannot change an entry in JSON", []string{"--env", "A=hidden", `{"command": "x"}`}},
		{exitFailed, "cannot change an entry in JSON", []string{"--header", "A=hidden", `{"url": "https://x.example.com"}`}},
		{exitFailed, "is in the config already", []string{`{"command": "x"}`}},
	} {
		name := "x"
		if strings.Contains(test.want, "already") {
			name = "entry"
		}
		out := h.must(t, test.code, append([]string{"add", name}, test.args...)...)
		hasAll(t, out, test.want)
		if strings.Contains(out, "hidden") {
			t.Errorf("a value is on the screen: %s", out)
		}
	}
	if got := readFile(t, h.own()); got != before {
		t.Errorf("something was written:\n%s", got)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "{")); err == nil {
		t.Error("a file was written")
	}
}
