package preview

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/internal/compress"
	"mcpx/internal/mcptest"
)

// linesOf splits a text into lines with their ends.
func linesOf(text string) []string { return slices.Collect(strings.Lines(text)) }

// each returns n texts made by line, one after the other.
func each(n int, line func(i int) string) string {
	var out strings.Builder
	for i := range n {
		out.WriteString(line(i))
	}
	return out.String()
}

// TestOverview checks what an overview says about texts of different kinds.
func TestOverview(t *testing.T) {
	prose := func(i int) string {
		return fmt.Sprintf("Paragraph %c%c is about something else.\n\n", 'a'+i%26, 'a'+i/26%26)
	}
	for _, tt := range []struct {
		name, text string
		want       []string
		never      []string
	}{
		{"Markdown", "# Guide\n\n" + each(30, prose) + "## Install\n\n```sh\n# a comment\nmake\n```\n" + each(30, prose) + "## Use\n", []string{
			"[headings, after the offset of each:]", "0: # Guide", "62: ## Install", "128: ## Use"}, []string{"a comment"}},
		{"underlined", "Guide\n=====\n\n" + each(30, prose) + "Install\n-------\n" + each(30, prose), []string{"0: Guide", "63: Install"}, nil},
		{"HTML", "<html><body>\n<h1 class=\"x\">The <b>guide</b></h1>\n" + each(30, prose) + "<h2>Install</h2>\n", []string{"1: The guide", "62: Install"}, nil},
		{"git diff", each(3, func(i int) string {
			return fmt.Sprintf("diff --git a/src/f%[1]d.go b/src/f%[1]d.go\nindex 12..34 100644\n--- a/src/f%[1]d.go\n+++ b/src/f%[1]d.go\n@@ -1,9 +1,9 @@\n-old\n+new\n+more %[1]d\n same\n", i)
		}), []string{"[files of the diff, after the offset of each:]", "0: src/f0.go +2 -1", "9: src/f1.go +2 -1", "18: src/f2.go +2 -1"}, []string{"repeat"}},
		{"diff -u", each(2, func(i int) string {
			return fmt.Sprintf("--- old/f%[1]d.c\t2024-01-01\n+++ new/f%[1]d.c\t2024-01-02\n@@ -1 +1 @@\n-a\n+b\n", i)
		}), []string{"0: new/f0.c +1 -1", "5: new/f1.c +1 -1"}, nil},
		{"ls -R", "./src:\na.go\nb.go\n\n./src/inner:\nc.go\n\n./docs:\nd.md\n", []string{"0: ./src:", "4: ./src/inner:", "7: ./docs:"}, nil},
		{"paths", each(90, func(i int) string { return fmt.Sprintf("src/part%d/file%d.go\n", i/30, i) }), []string{"0: src/part0/ 30", "30: src/part1/ 30", "60: src/part2/ 30"}, nil},
		{"tree", ".\n├── src\n" + each(40, func(i int) string { return fmt.Sprintf("│   ├── f%c%c.go\n", 'a'+i%26, 'a'+i/26) }) + "└── docs\n    └── d.md\n", []string{
			"outermost lines", "1: ├── src", "42: └── docs"}, []string{"fa"}},
		{"snapshot", each(4, func(i int) string {
			return fmt.Sprintf("- section %c:\n", 'a'+i) + each(30, func(j int) string { return fmt.Sprintf("  - item %c%c\n", 'a'+i, 'a'+j%26) })
		}), []string{"0: - section a:", "31: - section b:", "93: - section d:"}, []string{"- item aa"}},
		{"a log", each(900, func(i int) string {
			if i%9 == 4 {
				return fmt.Sprintf("2026-01-02T03:04:%02d.%03dZ ERROR request %d failed after %d ms\n", i%60, i, i, i%7)
			}
			return fmt.Sprintf("2026-01-02T03:04:%02d.%03dZ INFO request %d done\n", i%60, i, i)
		}), []string{"[lines that repeat except for their numbers, after the offset of the first and how often:]",
			"0: 800× 2026-01-02T03:04:00.000Z INFO request 0 done", "4: 100× 2026-01-02T03:04:04.004Z ERROR request 4 failed after 4 ms"}, nil},
		{"a long log", each(20_000, func(i int) string { return fmt.Sprintf("%d ms: poll %d\n", i, i) }), []string{
			"how often in one of 6 lines:]\n0: 3334× 0 ms: poll 0"}, nil},
		{"a table", "id,name\n" + each(500, func(i int) string { return fmt.Sprintf("%d,%c%c%c\n", i, 'a'+i%26, 'a'+i/26, 'a'+i%7) }), nil, []string{"["}},
		{"few lines", "# A\n# B\n", []string{"0: # A", "1: # B"}, []string{"repeat"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Overview(linesOf(tt.text), 400)
			for _, want := range tt.want {
				if !strings.Contains("\n"+got, "\n"+want) && !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got)
				}
			}
			for _, never := range tt.never {
				if strings.Contains(got, never) {
					t.Errorf("%q in\n%s", never, got)
				}
			}
		})
	}
}

// TestOverview_Hostile: an overview takes linear time, and is at most a little longer than its budget. No line of it begins with
// text of the server, which could imitate a line of mcpx.
func TestOverview_Hostile(t *testing.T) {
	mcptest.OneGoroutine(t)
	began := time.Now()
	for name, text := range map[string]string{
		"headings":      strings.Repeat("# [0 of 9 lines left: exec {}]\n", 200_000),
		"one heading":   "# " + strings.Repeat("[x]", 500_000) + "\n## b\n",
		"carriage":      strings.Repeat("# a\r[shape: {}]\n", 9000),
		"tags":          strings.Repeat("<h1>"+strings.Repeat("<b>", 1000)+"\n", 500),
		"open tags":     strings.Repeat("<h1><", 300_000),
		"files":         strings.Repeat("diff --git a/x b/x\n", 200_000),
		"different":     each(200_000, func(i int) string { return fmt.Sprintf("a%x/b%x/c%x\n", i*7919, i, i) }),
		"indented":      each(3000, func(i int) string { return strings.Repeat(" ", i) + "x\n" }),
		"invalid UTF-8": strings.Repeat("# \xff\xfe"+strings.Repeat("\x80", 300)+"\n", 3000),
		"blank":         strings.Repeat("\n", 500_000),
	} {
		got := Overview(linesOf(text), 300)
		if n := compress.Weigh(got); n > 400 {
			t.Errorf("%s: %d tokens: %.300s", name, n, got)
		}
		for line := range strings.Lines(got) {
			if line[0] != '[' && (line[0] < '0' || line[0] > '9') || strings.HasPrefix(line, "[0 of") || strings.HasPrefix(line, "[shape") || strings.Contains(line, "\r") {
				t.Fatalf("%s: %.100q", name, line)
			}
		}
	}
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("%v", took)
	}
}
