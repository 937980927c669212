package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/app"
	"mcpx/internal/mcptest"
)

// TestReading_Unset: a command needs only those secrets of the service that it uses itself. If one of these is missing, it
// names the key.
func TestReading_Unset(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	front := map[string]any{"issuer": "https://login.example.com", "client_id": "mcpx", "client_secret": "${MCPX_TEST_UNSET}"}
	keys := map[string]any{
		"auth":  map[string]any{"resource": "https://mcp.example.com/mcp", "front": front},
		"audit": map[string]any{"file": "audit.jsonl"},
	}
	config := h.config(t, map[string]server{"box": fake(t, mcptest.Spec{})}, keys)
	h.write(t, "audit.jsonl", "")
	for _, args := range [][]string{
		{"token", "list"}, {"logins"}, {"logins", "list", "--json"}, {"lock", "--yes"}, {"audit", "verify", "audit.jsonl"}, {"audit", "report"},
	} {
		if _, stderr, code := h.run(t, "", append([]string{"--config", config}, args...)...); code != 0 || strings.Contains(stderr, "MCPX_TEST_UNSET") {
			t.Errorf("%q: exit %d %s", args, code, stderr)
		}
	}
	front["key"] = "${MCPX_TEST_UNSET_TOO}"
	keys["audit"].(map[string]any)["key"] = []string{"${MCPX_TEST_UNSET_TOO}"}
	h.config(t, map[string]server{"box": fake(t, mcptest.Spec{})}, keys)
	for name, args := range map[string][]string{
		"auth.front.key": {"logins", "end", "ann@login.example.com"}, "audit.key": {"audit", "verify", "audit.jsonl"},
	} {
		if _, stderr, code := h.run(t, "", append([]string{"--config", config}, args...)...); code == 0 || !strings.Contains(stderr, name+" has no value") {
			t.Errorf("%q: exit %d %s", args, code, stderr)
		}
	}
}

// TestServe_Unwritable: if mcpx cannot write its audit trail or the key of auth.front, it does not start, and names the config
// key to set.
func TestServe_Unwritable(t *testing.T) {
	mcptest.Parallel(t)
	for name, test := range map[string]struct {
		keys  map[string]any
		block string // a file where a folder must be
		want  []string
	}{
		"audit.file": {map[string]any{"audit": map[string]any{"file": "state/audit.jsonl"}}, "state", []string{"audit.file: ", "state/audit.jsonl", "set audit.file to a file in a folder"}},
		"auth.front.key": {map[string]any{"auth": map[string]any{
			"resource": "https://mcp.example.com/mcp", "front": map[string]any{"issuer": "https://login.example.com", "client_id": "mcpx", "client_secret": "x"},
		}}, "config", []string{"auth.front", "set auth.front.key"}},
	} {
		h := newHome(t)
		config := h.config(t, map[string]server{"box": fake(t, mcptest.Spec{})}, test.keys)
		_ = os.RemoveAll(filepath.Join(h.dir, test.block))
		h.write(t, test.block, "no folder")
		_, stderr, code := h.run(t, "", "--config", config, "serve", "--http", "127.0.0.1:0", "--insecure")
		if code == 0 {
			t.Errorf("%s: mcpx has started", name)
		}
		hasAll(t, stderr, test.want...)
	}
}

// TestReport_Formulas: no name that a client or an issuer has chosen becomes a formula, or a further cell, in a spreadsheet.
func TestReport_Formulas(t *testing.T) {
	for name, want := range map[string]string{
		"ann@example.com": `"ann@example.com"`, `=HYPERLINK("http://x")`: `"'=HYPERLINK(""http://x"")"`, "+1": `"'+1"`, "-1": `"'-1"`, "@SUM(1)": `"'@SUM(1)"`,
		"\t=1": `"'=1"`, "\u200b=1": `"'=1"`, " =1": `"'=1"`, "\uff1d1": "\"'\uff1d1\"", "|calc": `"'|calc"`, "a;=1": `"a;=1"`, "a\t=1": `"a =1"`, "a\n=1": `"a =1"`, "": `""`,
	} {
		var out bytes.Buffer
		cmd := &auditReportCommand{By: "user"}
		used := &app.AuditUsed{}
		used.Usage = slices.Grow(used.Usage, 1)[:1]
		used.Usage[0].Name, used.Usage[0].Display, used.Usage[0].Calls = name, name, 1
		if err := cmd.csv(used, streams{out: &out}); err != nil {
			t.Fatal(err)
		}
		if _, row, _ := strings.Cut(out.String(), "\n"); !strings.HasPrefix(row, want+","+want+",1,0,") {
			t.Errorf("%q: %s", name, row)
		}
		if _, err := csv.NewReader(&out).ReadAll(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
