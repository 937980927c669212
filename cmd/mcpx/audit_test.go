package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"mcpx/internal/mcptest"
)

// auditLine has the members of an audit trail line that the tests use.
type auditLine struct {
	Event, Principal, Client, Method, Server, Tool, Item, Outcome, Trace string

	Call, Status int
	Known        bool
	ReadOnly     bool `json:"read_only"`
	Received     int  `json:"bytes_received"`
	Sent         int  `json:"bytes_sent"`
	Upstream     float64
}

var auditTools = json.RawMessage(`[{"name":"echo"},{"name":"look","annotations":{"readOnlyHint":true}},{"name":"slow"}]`)

// TestAudit_http: the trail has refused requests, a line before each call that may write, and a line after each call. None of
// them is lost when mcpx gets TERM. While mcpx runs, no other process may write to the file. mcpx audit verify finds a changed
// line.
func TestAudit_http(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	const token = "mcpx_canary_0123456789abcdefghij"
	digest := sha256.Sum256([]byte(token))
	h.extra = append(h.extra, "AUDIT_KEY=a key of the tests, canary")
	config := h.config(t, map[string]server{"s": fake(t, mcptest.Spec{Tools: auditTools})}, map[string]any{
		"audit": map[string]any{"file": "audit.jsonl", "key": "${AUDIT_KEY}"},
		"auth":  map[string]any{"tokens": map[string]any{"ann": map[string]any{"sha256": fmt.Sprintf("%x", digest)}}},
	})
	trail := filepath.Join(h.dir, "audit.jsonl")
	d := h.serveHTTP(t, "--config", config)
	fetch(t, http.MethodPost, d.url, `{}`)
	fetch(t, http.MethodPost, d.url, `{}`, bearer("mcpx_wrong_canary"))
	p := d.peer(t)
	p.header.Set("Authorization", "Bearer "+token)
	c := &client{peer: p, era: modern, name: "e2e"}
	c.open(t)
	c.exec(t, "s", "echo", `{"text":"canary of an argument"}`)
	c.exec(t, "s", "look", `{"x":"canary of an argument"}`)
	c.exec(t, "s", "canary tool", `{}`)
	c.start(t, "tools/call", `{"name":"exec","arguments":`+execArgs("s", "slow", `{"ms":600000}`)+`}`, "")
	mcptest.WaitFor(t, "the slow call", patience, func() bool { return strings.Contains(readFile(t, trail), `"tool":"slow"`) })

	second := h.command(t, "--config", config, "serve", "--http", "127.0.0.1:0")
	if out, err := second.CombinedOutput(); err == nil || !strings.Contains(string(out), "another process writes to") || !strings.Contains(string(out), "hint: give each mcpx its own file") {
		t.Errorf("%v: %s", err, out)
	}
	out := h.must(t, 0, "--config", config, "audit", "verify", trail)
	hasAll(t, out, "1 calls began and have no end", "1 runs of mcpx have no end", "as it was written")

	terminate(d.cmd)
	d.wait(t)
	if runtime.GOOS == "windows" {
		return // Windows has no TERM
	}
	var got []string
	for _, line := range linesOf[auditLine](t, trail) {
		got = append(got, strings.Join(strings.Fields(fmt.Sprint(line.Event, line.Status, " ", line.Principal, " ", line.Tool, " ", line.Outcome)), " "))
	}
	want := []string{
		"opened0", "config_loaded0", "request_refused401", "request_refused401",
		"call_began0 ann echo", "call_ended0 ann echo RESULT", "call_ended0 ann look RESULT",
		"call_ended0 ann canary tool TOOL_NOT_FOUND", "call_began0 ann slow", "call_ended0 ann slow CANCELLED", "closed0",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	out = h.must(t, 0, "--config", config, "audit", "verify", trail)
	if !strings.HasPrefix(out, "11 lines in 1 files, number 1 to 11\nas it was written; the last line is number 11, HMAC ") {
		t.Error(out)
	}
	text := strings.ReplaceAll(readFile(t, trail), "canary tool", "")
	if strings.Contains(text, "canary") || strings.Contains(d.stderr.String(), "canary of") || strings.Contains(d.stderr.String(), token) {
		t.Errorf("trail:\n%s\nlog:\n%s", text, d.stderr.String())
	}

	h.write(t, "audit.jsonl", strings.Replace(readFile(t, trail), `"tool":"look"`, `"tool":"peek"`, 1))
	out, _, code := h.run(t, "", "--config", config, "audit", "verify", trail)
	if code != 1 || !regexp.MustCompile(`audit\.jsonl:7: the line was changed[\s\S]*NOT as it was written: 1 faults`).MatchString(out) {
		t.Errorf("%d: %s", code, out)
	}
	if _, errors, code := h.run(t, "", "audit", "verify", trail); code != 1 || !strings.Contains(errors, "give --key-file") {
		t.Errorf("%d: %s", code, errors)
	}
	key := h.write(t, "key", "a key of the tests, canary\n")
	if out, _, _ := h.run(t, "", "audit", "verify", trail, "--key-file", key); !strings.Contains(out, "audit.jsonl:7: the line was changed") {
		t.Error(out)
	}
}

// TestAudit_fullDisk: if the trail is required and the disk is full, mcpx refuses calls, and /readyz reports
// it. Once there is space again, calls work, and the trail records which lines are missing.
func TestAudit_fullDisk(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	disk := filepath.Join(h.dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	mount := fmt.Sprintf("mount -t tmpfs -o size=64k tmpfs %q", disk)
	if out, err := exec.Command("unshare", "-rm", "sh", "-c", mount).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be mounted here: %v: %s", err, out)
	}
	config := h.config(t, map[string]server{"s": fake(t, mcptest.Spec{Tools: auditTools})}, map[string]any{
		"audit": map[string]any{"file": "disk/audit.jsonl", "required": true},
	})
	cmd := h.command(t, "--config", config, "--log-level", "info", "serve", "--http", "127.0.0.1:0")
	args := append([]string{"-rm", "sh", "-c", mount + ` && head -c 60000 /dev/zero > ` + disk + `/filler && exec "$0" "$@"`}, cmd.Args...)
	wrapped := exec.Command("unshare", args...)
	wrapped.Env, wrapped.Dir = cmd.Env, cmd.Dir
	d := h.serving(t, wrapped)
	seen := fmt.Sprintf("/proc/%d/root%s", wrapped.Process.Pid, disk)
	c := &client{peer: d.peer(t), era: modern, name: "e2e"}
	c.open(t)
	refused := false
	for range 200 {
		r := c.exec(t, "s", "look", `{}`)
		if refused = r.IsError; refused {
			checkFault(t, "a full disk", r, "EXECUTION_ERROR", "the call was not made: the audit trail cannot be written")
			break
		}
	}
	if !refused {
		t.Fatalf("the disk is not full: %s", readFile(t, seen+"/audit.jsonl"))
	}
	ready := func() (int, string) {
		response, err := http.Get(strings.TrimSuffix(d.url, "mcp") + "readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var content struct{ Degraded []string }
		_ = json.NewDecoder(response.Body).Decode(&content)
		return response.StatusCode, strings.Join(content.Degraded, " ")
	}
	if status, degraded := ready(); status != 503 || degraded != "audit" {
		t.Errorf("%d %s", status, degraded)
	}
	const fault = "the audit trail cannot be written"
	mcptest.WaitFor(t, "the log to say it", patience, func() bool { return d.logged(fault) > 0 })
	if err := os.Remove(seen + "/filler"); err != nil {
		t.Fatal(err)
	}
	mcptest.WaitFor(t, "mcpx to be ready again", patience, func() bool { status, _ := ready(); return status == 200 })
	if r := c.exec(t, "s", "look", `{}`); r.IsError {
		t.Error(r.text(t))
	}
	trail := h.write(t, "copy.jsonl", readFile(t, seen+"/audit.jsonl"))
	out := h.must(t, 0, "audit", "verify", trail)
	hasAll(t, out, "records could not be written", "no line is missing")
	if n := d.logged(fault); n != 1 {
		t.Errorf("said %d times: %s", n, d.stderr.String())
	}
}

// TestAudit_removed: mcpx audit verify finds that lines were removed from the beginning of a trail, or that
// the whole file was removed while mcpx ran, also after a restart. An operator who removed them can accept the
// loss.
func TestAudit_removed(t *testing.T) {
	mcptest.Parallel(t)
	if runtime.GOOS == "windows" {
		t.Skip("has no TERM, and removes no open file")
	}
	for _, keep := range []int{0, 2} {
		h := newHome(t)
		config := h.config(t, map[string]server{}, map[string]any{
			"audit": map[string]any{"file": "logs/audit.jsonl", "keep": keep},
			"auth":  map[string]any{"tokens": map[string]any{"ann": map[string]any{"sha256": strings.Repeat("0", 64)}}},
		})
		trail := filepath.Join(h.dir, "logs", "audit.jsonl")
		run := func(while func()) {
			d := h.serveHTTP(t, "--config", config)
			for range 5 {
				fetch(t, http.MethodPost, d.url, `{}`)
			}
			while()
			terminate(d.cmd)
			d.wait(t)
		}
		verify := func(want int, text string, more ...string) {
			t.Helper()
			out, errors, code := h.run(t, "", append([]string{"--config", config, "audit", "verify", trail}, more...)...)
			if code != want || !strings.Contains(out, text) {
				t.Errorf("keep %d: %d, %s %s, want %d, %s", keep, code, out, errors, want, text)
			}
		}
		run(func() {})
		verify(0, "no line is missing")
		lines := strings.SplitAfter(readFile(t, trail), "\n")
		h.write(t, "logs/audit.jsonl", strings.Join(lines[3:], ""))
		verify(1, "audit.jsonl:1: lines number 1 to 3 are missing before it")
		run(func() {})
		verify(1, "audit.jsonl:1: lines number 1 to 3 are missing before it")
		verify(0, "no line is missing", "--accept")

		run(func() {
			if err := os.Remove(trail); err != nil {
				t.Fatal(err)
			}
			verify(1, "")
		})
		verify(1, "are missing")
		run(func() {})
		verify(1, "are missing")
		verify(0, "no line is missing", "--accept")
		verify(0, "no line is missing")
	}
}
