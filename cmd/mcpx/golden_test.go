package main

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/conf"
	"mcpx/internal/base/terminal"
	"mcpx/internal/desk/savings"
	"mcpx/internal/mcptest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sized returns a terminal screen of this size.
func sized(columns, rows int, colour bool) terminal.Screen {
	return terminal.New(func() (int, int) { return columns, rows }, colour, true)
}

// golden compares the output of print, on a pipe and on terminals of two sizes, with a file. On a terminal the
// output must have at most lines(height) lines; 0 means no limit.
func golden(t *testing.T, file string, lines func(height int) int, print func(s streams)) {
	t.Helper()
	archive := &txtar.Archive{}
	for _, one := range []struct {
		name string
		s    terminal.Screen
	}{
		{"piped", terminal.Screen{}},
		{"80x24", sized(80, 24, false)},
		{"100x30", sized(100, 30, false)},
		{"100x30 in colour", sized(100, 30, true)},
	} {
		var out bytes.Buffer
		print(streams{out: &out, screen: one.s})
		text := out.String()
		if n := strings.Count(text, "\n"); lines != nil && one.s.Height() > 0 && n > lines(one.s.Height()) {
			t.Errorf("%s: %d lines", one.name, n)
		}
		for line := range strings.Lines(text) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); one.s.Height() > 0 && !strings.Contains(text, "\x1b") && n > one.s.Width() {
				t.Errorf("%s: %d columns: %s", one.name, n, line)
			}
		}
		archive.Files = append(archive.Files, txtar.File{Name: one.name, Data: []byte(strings.ReplaceAll(text, "\x1b", "ESC"))})
	}
	got := txtar.Format(archive)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestDemo_Golden: the output of mcpx demo fits on one screen, together with the shell prompt.
func TestDemo_Golden(t *testing.T) {
	mcptest.Parallel(t)
	golden(t, "testdata/demo.txtar", func(height int) int { return height - 1 }, func(s streams) {
		if err := (&demoCommand{}).Run(t.Context(), &cli{}, s); err != nil {
			t.Error(err)
		}
	})
}

func TestCheck_Golden(t *testing.T) {
	mcptest.Parallel(t)
	number := func(n int) *int { return &n }
	o := &outcome{
		Config:   "/home/me/.config/mcpx/config.json",
		Warnings: []string{`disabled_tools: "github.delete_repo" matches no tool; did you mean github.delete_repository?`},
		Servers: []checkedServer{
			{Name: "docker", State: catalog.Unavailable, Transport: "stdio", Notes: []string{"the process ended: exit status 1; stderr: docker.errors.DockerException: Error while fetching server API version: " + strings.Repeat("no such file or directory, ", 6)}},
			{Name: "filesystem", State: catalog.Ready, Share: conf.ShareSession, Protocol: "2025-11-25", Transport: "stdio", Tools: number(14), Seconds: 0.864},
			{Name: "github", State: catalog.Degraded, Share: conf.ShareUser, Protocol: "2026-07-28", Transport: "http", Tools: number(42), Seconds: 62.451, Notes: []string{"health check failed", `tools.allow: "get_isue" matches no tool; did you mean get_issue?`}},
			{Name: "off", State: catalog.Disabled, Transport: "stdio"},
			{Name: strings.Repeat("a-long-name-", 5), State: catalog.Connecting, Transport: "websocket", Notes: []string{"no answer yet"}},
		},
		Tools:   []checkedTool{{"github", "get_issue", true, "visible"}, {"github", "delete_issue", false, `hidden by github.tools.deny: "delete_*"`}},
		Savings: &savings.Report{Since: "2026-11-01", Total: savings.Figures{Definitions: 48_211, Compression: 12_904, Cut: -304}},
	}
	golden(t, "testdata/check.txtar", nil, o.print)
	golden(t, "testdata/check_none.txtar", nil, (&outcome{}).print)
}

// TestCheck_Names: the names of servers may have dots. For a wrong name the error suggests the most similar
// one.
func TestCheck_Names(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	path := h.config(t, map[string]server{"a.b": {"command": "x", "enabled": false}, "git": {"command": "x", "enabled": false}}, nil)
	for _, test := range []struct {
		name, out, stderr string
		code              int
	}{
		{"a.b", "1 server: 1 disabled", "", 0},
		{"a.b.c", "a.b.c  the tools of this server are not known, as it is disabled", "", 1},
		{"gti", "", `mcpx: error: the config has no server "gti"; did you mean git?`, 1},
		{"gti.log", "", `did you mean git?`, 1},
		{"zzzzzz", "", `it has a.b, git`, 1},
	} {
		out, stderr, code := h.run(t, "", "--config", path, "check", test.name)
		if code != test.code || !strings.Contains(out, test.out) || !strings.Contains(stderr, test.stderr) || (stderr == "") != (test.stderr == "") {
			t.Errorf("%s: exit %d, %q, stderr %q", test.name, code, out, stderr)
		}
	}
}
