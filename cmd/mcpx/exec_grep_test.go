package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// TestExec_Grep: mcpx exec with a grep prints only the matching lines of a text, or of a selection.
func TestExec_Grep(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	const lines, rows = "text=first line\nthe second\nthird line\nlast", `text=[{"a":1},{"a":22},{"a":221}]`
	for _, test := range []struct {
		code int
		want string
		args []string
	}{
		{0, "1:first line\n3:third line\n[2 of 4 lines match]\n", []string{lines, "--grep", "line$"}},
		{0, "[0 of 4 lines match]\n", []string{lines, "--grep", "nothing"}},
		{0, "first line\nthe second\nthird line\nlast\n", []string{lines, "--grep", "."}},
		{0, "[22,221]\n[2 of 3 items match]\n", []string{rows, "--grep", "2", "--select", ".[].a"}},
		{0, "[{\"a\":22},{\"a\":221}]\n[2 of 3 items match]\n", []string{rows, "--grep", "2"}},
		{0, "{\"result\":[{\"a\":22},{\"a\":221}]}\n", []string{rows, "--grep", "2", "--json"}},
		{0, "[22,221]\n", []string{rows, "--grep", "2", "--json", "--select", ".[].a"}},
		{0, `{"content":[{"type":"text","text":"1:one\n[1 of 2 lines match]"}]}` + "\n", []string{"text=one\ntwo", "--grep", "one", "--json"}},
		{exitFailed, "VALIDATION_ERROR: /grep: missing closing ) `(`\n", []string{`{"text":"x"}`, "--grep", "("}},
	} {
		out, stderr, code := h.run(t, "", append([]string{"--config", path, "exec", "fake", "echo"}, test.args...)...)
		if code != test.code || out != test.want || stderr != "" {
			t.Errorf("%q: exit %d, stderr %q, got\n%s", test.args, code, stderr, out)
		}
	}
	out := h.must(t, 0, "--config", path, "exec", "fake", "content", "--grep", "annotated")
	if strings.Contains(out, "handle") {
		t.Errorf("a handle that ends with the command:\n%s", out)
	}
	hasAll(t, out, "annotated\n", "[1 of 6 text blocks match]\n")

	long := strings.Repeat("another line\n", 2000)
	calls := `[{"text":` + strconv.Quote(long+"the one") + `},{"text":` + strconv.Quote("the one\n"+long) + `}]`
	out = h.must(t, 0, "--config", path, "exec", "fake", "echo", "--each", calls, "--grep", "the one")
	if want := "#1\n2001:the one\n[1 of 2001 lines match]\n#2\n1:the one\n[1 of 2001 lines match]\n"; out != want {
		t.Errorf("got\n%s", out)
	}
}

// TestExec_Each: mcpx exec --each makes several calls, whose results are numbered. Further arguments of the command line apply to
// all calls.
func TestExec_Each(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	for _, test := range []struct {
		code int
		want string
		args []string
	}{
		{0, "#1 one\n#2 two\n", []string{"--each", `[{"text":"one"},{"text":"two"}]`}},
		{0, "#1 all\n#2 two\n", []string{"text=all", "--each", `[{},{"text":"two"}]`}},
		{0, "#1 1\n#2 2\n", []string{"--each", `[{"text":"{\"a\":1}"},{"text":"{\"a\":2}"}]`, "--select", ".a"}},
		{0, `[{"result":1},{"result":2}]` + "\n", []string{"--each", `[{"text":"{\"a\":1}"},{"text":"{\"a\":2}"}]`, "--select", ".a", "--json"}},
		{0, `{"result":[{"content":[{"type":"text","text":"one"}]},{"a":1}]}` + "\n", []string{"--each", `[{"text":"one"},{"text":"{\"a\":1}"}]`, "--json"}},
	} {
		out, stderr, code := h.run(t, "", append([]string{"--config", path, "exec", "fake", "echo"}, test.args...)...)
		if code != test.code || out != test.want || stderr != "" {
			t.Errorf("%q: exit %d, stderr %q, got\n%s", test.args, code, stderr, out)
		}
	}
	for _, list := range []string{`{"text":"x"}`, "[", "[]"} {
		if _, stderr, code := h.run(t, "", "--config", path, "exec", "fake", "echo", "--each", list); code != exitFailed || !strings.Contains(stderr, "list of 1 to 50 calls") {
			t.Errorf("%s: exit %d, %s", list, code, stderr)
		}
	}
}

// TestExec_File: an argument can be the text of a file in a folder of the config key files, as in the exec of a model. A file
// outside is refused, and no call is made.
func TestExec_File(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	folder := filepath.Join(h.dir, "open")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "a.txt"), []byte("one\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, map[string]any{"files": []string{folder}})
	if out, stderr, code := h.run(t, "", "--config", path, "exec", "fake", "echo", `{"text":{"$file":"a.txt"}}`); code != 0 || strings.TrimSpace(out) != "one" {
		t.Errorf("exit %d, %s, %s", code, out, stderr)
	}
	if out, stderr, code := h.run(t, "", "--config", path, "exec", "fake", "echo", `{"text":{"$file":"../a.txt"}}`); code == 0 || !strings.Contains(out+stderr, "VALIDATION_ERROR: /text") {
		t.Errorf("exit %d, %s, %s", code, out, stderr)
	}
}
