package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
)

// TestExec_Whole: mcpx exec prints the whole result, because the handle of a stored result would be useless
// after the command has ended.
func TestExec_Whole(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	rows := make([]map[string]any, 2000)
	for i := range rows {
		rows[i] = map[string]any{"number": i, "text": strings.Repeat("word ", i%7)}
	}
	data, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, map[string]any{"result_token_limit": 500, "toon_compression_enabled": false})
	for _, text := range []string{string(data), strings.Repeat("a line of prose\n", 2000)} {
		arguments, err := json.Marshal(map[string]any{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		out, stderr, code := h.run(t, string(arguments), "--config", path, "exec", "fake", "echo", "-")
		if code != 0 || stderr != "" || strings.TrimSpace(out) != strings.TrimSpace(text) {
			t.Errorf("exit %d, stderr %q, %d bytes of %d, at the end %q", code, stderr, len(out), len(text), out[max(0, len(out)-150):])
		}
	}
}

// TestExec_Patient: with mcpx exec the servers are always just starting, so the call waits for them, even if
// exec_wait is short.
func TestExec_Patient(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{InitDelay: time.Second})}, map[string]any{"exec_wait": 0})
	if out, stderr, code := h.run(t, "", "--config", path, "exec", "fake", "echo", `{"text":"x"}`); code != 0 || out != "x\n" {
		t.Errorf("exec: exit %d, %q, %q", code, out, stderr)
	}
}

func TestExec_Select(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{"fake": fake(t, mcptest.Spec{})}, nil)
	const arguments = `{"text":"{\"items\":[{\"id\":1.10},{\"id\":9007199254740993}],\"name\":\"a b\"}"}`
	for _, test := range []struct {
		flags []string
		code  int
		want  string
	}{
		{[]string{"--select", ".items[1].id"}, 0, "9007199254740993\n"},
		{[]string{"--select", ".name"}, 0, "a b\n"},
		{[]string{"--select", ".name", "--json"}, 0, `"a b"` + "\n"},
		{[]string{"--select", ".items", "--json"}, 0, `[{"id":1.10},{"id":9007199254740993}]` + "\n"},
		{[]string{"--select", ".items[]", "--json"}, 0, `[{"id":1.10},{"id":9007199254740993}]` + "\n"},
	} {
		out, stderr, code := h.run(t, "", append([]string{"--config", path, "exec", "fake", "echo", arguments}, test.flags...)...)
		if code != test.code || stderr != "" || out != test.want {
			t.Errorf("%q: exit %d, stderr %q\ngot  %q\nwant %q", test.flags, code, stderr, out, test.want)
		}
	}
	for _, flags := range [][]string{{"--select", ".items ["}, {"--select", ".items [", "--json"}} {
		out, _, code := h.run(t, "", append([]string{"--config", path, "exec", "fake", "echo", arguments}, flags...)...)
		if code != 1 || !strings.Contains(out, "VALIDATION_ERROR") || !strings.Contains(out, "/select") || !strings.Contains(out, "items") || strings.Contains(out, "read_result") || strings.Contains(out, "handle") {
			t.Errorf("%q: exit %d: %s", flags, code, out)
		}
	}
	if out, _, code := h.run(t, "", "--config", path, "exec", "fake", "echo", `{"text":5}`, "--select", ".x"); code != 1 || !strings.Contains(out, "VALIDATION_ERROR") || !strings.Contains(out, "/text") {
		t.Errorf("invalid arguments: exit %d: %s", code, out)
	}
}

// TestCheck_Slow: if a check takes long, it prints which servers it is waiting for, and what to do if a
// download did not finish in time.
func TestCheck_Slow(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a script of a shell")
	}
	mcptest.Parallel(t)
	h := newHome(t)
	npx := fake(t, mcptest.Spec{NeverInit: true})
	script := h.write(t, "bin/npx", "#!/bin/sh\nexec '"+npx["command"].(string)+"' \"$@\"\n")
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	npx["command"], npx["connect_timeout"] = filepath.Join(h.dir, "bin", "npx"), 3.5
	other := fake(t, mcptest.Spec{NeverInit: true})
	other["connect_timeout"] = 0.2
	servers := map[string]server{"packaged": npx, "other": other}
	path := h.config(t, servers, nil)
	out, stderr, code := h.run(t, "", "--config", path, "check")
	if code != 1 || strings.Contains(out, "waiting") {
		t.Errorf("exit %d:\n%s", code, out)
	}
	const reason = "as connect_timeout says; the command installs what it runs: raise that, or leave it out"
	if strings.Count(out, reason) != 1 {
		t.Errorf("no reason:\n%s", out)
	}
	if stderr != "mcpx: waiting for packaged (npx installs it, for 3.5s at most)\n" {
		t.Errorf("stderr:\n%s", stderr)
	}
	npx["connect_timeout"] = 0.3
	h.config(t, servers, nil)
	for _, args := range [][]string{{"exec", "packaged", "echo"}, {"inspect", "packaged"}} {
		out, stderr, code := h.run(t, "", append([]string{"--config", path}, args...)...)
		if code != 1 || stderr != "" || !strings.Contains(out, "no answer to initialize within 300ms, "+reason) {
			t.Errorf("%q: exit %d, stderr %q\n%s", args, code, stderr, out)
		}
	}
	npx["connect_timeout"] = 2.5
	h.config(t, servers, nil)
	if _, stderr, _ := h.run(t, "", "--config", path, "exec", "packaged", "echo"); stderr != "mcpx: waiting for packaged (npx installs it, for 2.5s at most)\n" {
		t.Errorf("exec: stderr %q", stderr)
	}
	other["connect_timeout"] = 2.5
	h.config(t, servers, nil)
	out, stderr, code = h.run(t, "", "--config", path, "exec", "other", "echo")
	if code != 1 || strings.Contains(out, "install") || stderr != "mcpx: waiting for other\n" {
		t.Errorf("a server of another kind: exit %d, stderr %q\n%s", code, stderr, out)
	}
}

// TestInspect_Installs: mcpx inspect waits until servers have finished installing, whatever startup_wait says.
func TestInspect_Installs(t *testing.T) {
	mcptest.Parallel(t)
	if runtime.GOOS == "windows" {
		t.Skip("a script of a shell")
	}
	h := newHome(t)
	npx := fake(t, mcptest.Spec{InitDelay: 500 * time.Millisecond})
	script := h.write(t, "bin/npx", "#!/bin/sh\nexec '"+npx["command"].(string)+"' \"$@\"\n")
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	npx["command"] = script
	path := h.config(t, map[string]server{"packaged": npx}, map[string]any{"startup_wait": 0})
	out, stderr, code := h.run(t, "", "--config", path, "inspect")
	if code != 0 || stderr != "" || !strings.Contains(out, "echo(") {
		t.Errorf("exit %d, stderr %q\n%s", code, stderr, out)
	}
}

// TestLazy: if the catalogue of a lazy server is on disk, the server runs only for calls. mcpx check starts it
// too.
func TestLazy(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	spec := mcptest.Spec{}.WithFiles(t)
	lazy := fake(t, spec)
	lazy["start"] = "lazy"
	path := h.config(t, map[string]server{"lazy": lazy}, nil)
	run := func(want string, starts int, args ...string) {
		t.Helper()
		out, stderr, code := h.run(t, "", append([]string{"--config", path}, args...)...)
		if code != 0 || stderr != "" || !strings.Contains(out, want) {
			t.Errorf("%q: exit %d, stderr %q\n%s", args, code, stderr, out)
		}
		if n := len(spec.Log(t).Event(mcptest.EventStart)); n != starts {
			t.Errorf("%q: %d starts, want %d", args, n, starts)
		}
	}
	run("1 ready", 1, "check")
	run("echo(", 1, "inspect", "lazy")
	run("echo", 1, "inspect")
	run("hello", 2, "exec", "lazy", "echo", `{"text":"hello"}`)
	run("1 ready", 3, "check")
}

// TestCheck_Secrets: mcpx check also hides secrets that are written literally in the config.
func TestCheck_Secrets(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	dying := fake(t, mcptest.Spec{ExitAtOnce: true, ExitCode: 3, StderrLines: []string{"no rights for hush-1111, hush-2222 at postgres://me:hush-3333@db"}})
	dying["args"] = append(dying["args"].([]string), "--api-key=hush-1111", "--token", "hush-2222", "postgres://me:hush-3333@db")
	path := h.config(t, map[string]server{"dying": dying}, nil)
	for _, args := range [][]string{{"check"}, {"exec", "dying", "echo"}, {"--log-level", "debug", "check"}} {
		out, stderr, _ := h.run(t, "", append([]string{"--config", path}, args...)...)
		if strings.Contains(out+stderr, "hush-") || !strings.Contains(out, "no rights for [secret], [secret] at postgres://me:[secret]@db") {
			t.Errorf("%q:\n%s\n%s", args, out, stderr)
		}
	}
}

// TestCheck_SameReason: every command gives the same one-sentence reason why a server is unavailable, and the
// sentence begins with the cause.
func TestCheck_SameReason(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	lines := []string{"npm warn Unknown user config \"nodedir\".", "Error: unable to create a provider: " + strings.Repeat("long ", 30) + "end", "Usage:", "  server [flags]", "", "Flags:", "  --log-level string   the level"}
	path := h.config(t, map[string]server{"dying": fake(t, mcptest.Spec{ExitAtOnce: true, ExitCode: 1, StderrLines: lines})}, nil)
	want := lines[1] + " (the process ended: exit status 1)"
	for _, args := range [][]string{{"check"}, {"inspect", "dying"}, {"exec", "dying", "echo"}} {
		if out, _, _ := h.run(t, "", append([]string{"--config", path}, args...)...); !strings.Contains(strings.Join(strings.Fields(out), " "), want) || strings.Contains(out, "npm warn") {
			t.Errorf("%q:\n%s", args, out)
		}
	}
}

// TestInspect_Learned: inspect shows the keys and types of earlier results, of other runs of mcpx too. A key that was in one
// result alone is not shown, and with learn: false nothing is.
func TestInspect_Learned(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	servers := map[string]server{"fake": fake(t, mcptest.Spec{})}
	path := h.config(t, servers, nil)
	inspect := func(path string) string {
		out, stderr, code := h.run(t, "", "--config", path, "inspect", "fake", "echo")
		if code != 0 || stderr != "" {
			t.Errorf("inspect: exit %d, stderr %q", code, stderr)
		}
		return out
	}
	before := inspect(path)
	for _, text := range []string{`{"id":1,"tags":["secret"],"alice":"x"}`, `{"id":2,"tags":["v"],"bob":{}}`} {
		arguments, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		if out, stderr, code := h.run(t, "", "--config", path, "exec", "fake", "echo", string(arguments)); code != 0 || !strings.Contains(out, "id") {
			t.Errorf("exec: exit %d, %q, %q", code, out, stderr)
		}
	}
	if got, want := inspect(path), strings.TrimSuffix(before, "\n")+"\n// seen: {id: number, tags: string[] /*…*/}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if off := h.config(t, servers, map[string]any{"learn": false}); inspect(off) != before {
		t.Errorf("with learn: false: %q, before %q", inspect(off), before)
	}
}
