package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpx/internal/mcptest"
	"mcpx/internal/tokens"
)

// issueData writes thirty issues, a log and a deep folder, and returns servers that have them, and the folder.
func issueData(t testing.TB, p peers, h *home) (servers map[string]server, folder string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(root, "data")
	labels, people := []string{"login", "search", "export", "mobile"}, []string{"ann", "bob", "cleo", "dan", "eve"}
	for i := range 30 {
		issue := map[string]any{
			"id": 100 + i, "title": fmt.Sprintf("The %s page fails in case %d", labels[i%4], i), "state": []string{"open", "closed"}[i/3%2],
			"labels": []string{labels[i%4], labels[(i/2)%4]}, "assignee": people[i%5], "hours": (i*37)%50 + 1,
			"body": strings.Repeat(fmt.Sprintf("Step %d: open the page, enter the value and press the button. ", i), 4+i%7),
		}
		h.write(t, fmt.Sprintf("data/issues/%d.json", 100+i), string(mustJSON(t, issue)))
	}
	for page := 1; page <= 4; page++ {
		var log strings.Builder
		for line := range 250 / (1 + page/4*2) {
			level := "INFO"
			if line%90 == 17 {
				level = "ERROR"
			}
			fmt.Fprintf(&log, "2026-11-23T0%d:%02d:%02d %s request %d took %d ms\n", page, line/60, line%60, level, line, line*7%300)
		}
		h.write(t, fmt.Sprintf("data/logs/%d.log", page), log.String())
	}
	for _, name := range []string{"a/1.txt", "a/2.txt", "a/b/3.txt", "a/b/c/4.txt", "d/5.txt", "d/e/6.txt"} {
		h.write(t, "data/deep/"+name, "x")
	}
	h.write(t, "data/deep/a/b/app.json", `{"port":8080}`)
	var graph strings.Builder
	for i, name := range append(people[:4:4], "fay") {
		fmt.Fprintf(&graph, `{"type":"entity","name":%q,"entityType":"person","observations":["team %d"]}`+"\n", name, i%2)
	}
	fmt.Fprintf(&graph, `{"type":"entity","name":"eve","entityType":"person","observations":["team 2"]}`+"\n")
	h.write(t, "graph.jsonl", graph.String())
	return map[string]server{
		"everything": p.server("everything", nil),
		"filesystem": p.server("filesystem", nil, folder),
		"memory":     p.server("memory", map[string]string{"MEMORY_FILE_PATH": filepath.Join(root, "graph.jsonl")}),
	}, folder
}

// step is one exec that a model makes without programs; the field each has the arguments of several calls in one exec.
type step struct {
	server, tool string
	arguments    map[string]any
	each         []map[string]any
}

// singles are the calls that do the work of the ten programs, without a program. The model must read their results.
func singles(folder string) (all [][]step) {
	files := func(names []string, tool string) (steps step) {
		steps = step{server: "filesystem", tool: tool}
		for _, name := range names {
			steps.each = append(steps.each, map[string]any{"path": folder + "/" + name})
		}
		return steps
	}
	var issues, logs []string
	for i := range 30 {
		issues = append(issues, fmt.Sprintf("issues/%d.json", 100+i))
	}
	for page := 1; page <= 4; page++ {
		logs = append(logs, fmt.Sprintf("logs/%d.log", page))
	}
	list := step{server: "filesystem", tool: "list_directory", arguments: map[string]any{"path": folder + "/issues"}}
	read, graph := files(issues, "read_text_file"), step{server: "memory", tool: "read_graph"}
	observations := []map[string]any{}
	for i := range 15 {
		observations = append(observations, map[string]any{"entityName": "ann", "contents": []string{fmt.Sprintf("has the issue %d: The login page fails in case %d", 100+i, i)}})
	}
	return [][]step{
		{list, read, graph},
		{files(logs, "read_text_file")},
		{files([]string{"deep", "deep/a", "deep/d", "deep/a/b", "deep/d/e", "deep/a/b/c"}, "list_directory")},
		{list, files(issues, "get_file_info")},
		{files([]string{"etc/app.json", "conf/app.json", "config/app.json", "settings/app.json", "deep/a/b/app.json"}, "read_text_file")},
		{list, read},
		{list, graph, {server: "everything", tool: "get-sum", arguments: map[string]any{"a": 17, "b": 25}}},
		{list, read, {server: "memory", tool: "add_observations", arguments: map[string]any{"observations": observations}}},
		{list, read, graph},
		{list, read},
	}
}

// spent counts what execs cost.
type spent struct {
	calls, tokens int
	took          time.Duration
}

func (s *spent) exec(t *testing.T, c *client, server, tool string, arguments any, each []map[string]any) string {
	t.Helper()
	sent := map[string]any{"server_name": server, "tool_name": tool}
	if arguments != nil {
		sent["arguments"] = arguments
	}
	if each != nil {
		sent["each"] = each
	}
	began := time.Now()
	result := c.result(t, "tools/call", `{"name":"exec","arguments":`+string(mustJSON(t, sent))+`}`)
	s.took += time.Since(began)
	var got struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &got); err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, block := range got.Content {
		text += block.Text + "\n"
	}
	s.calls++
	s.tokens += tokens.Count(string(mustJSON(t, sent))) + tokens.Count(text)
	return text
}

var programOf = regexp.MustCompile("(?s)### \\d+\\. ([^\n]*)\n.*?```js\n(.*?)\n```")

// TestProgramsTable runs the programs of docs/programs.md against real servers, and compares what they cost with the same work
// by single calls and by lists of calls (each). With MCPX_PROGRAMS=write it writes the table there.
func TestProgramsTable(t *testing.T) {
	mcptest.Parallel(t)
	p, h := findPeers(t), newHome(t)
	path := filepath.Join("..", "..", "docs", "programs.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := programOf.FindAllStringSubmatch(string(data), -1)
	servers, folder := issueData(t, p, h)
	tasks := singles(folder)
	if len(found) != len(tasks) {
		t.Fatalf("%d programs and %d tasks", len(found), len(tasks))
	}
	c, _ := openOver(t, h, "stdio", "--config", h.config(t, servers, patient))
	has := []string{
		`"team":"team`, "ERROR request 17", "7 files, the deepest: /deep/a/b/c/4.txt", `"size":`, `"place":"deep/a/b"`, `"login":`, "issues: 30\npeople: 6\ncheck: 42",
		"bob: 3", `"idle":["fay"]`, `"median":`,
	}
	var table strings.Builder
	table.WriteString("| task | single calls | tokens | with `each` | tokens | program | tokens | of single calls |\n|---|---|---|---|---|---|---|---|\n")
	var sums [3]spent
	for i, steps := range tasks {
		var by [3]spent
		for _, s := range steps {
			for _, one := range s.each {
				by[0].exec(t, c, s.server, s.tool, one, nil)
			}
			if s.each == nil {
				by[0].exec(t, c, s.server, s.tool, s.arguments, nil)
			}
			by[1].exec(t, c, s.server, s.tool, s.arguments, s.each)
		}
		code := strings.ReplaceAll(found[i][2], "FOLDER", `"`+folder+`"`)
		text := by[2].exec(t, c, "mcpx", "run", map[string]any{"code": code}, nil)
		if !strings.Contains(strings.ReplaceAll(text, " ", ""), strings.ReplaceAll(has[i], " ", "")) {
			t.Errorf("%s: no %s in %s", found[i][1], has[i], text)
		}
		t.Logf("%s: %v %v %v\n%s", found[i][1], by[0].took, by[1].took, by[2].took, text)
		row(&table, found[i][1], by[:])
		for n := range sums {
			sums[n].calls, sums[n].tokens, sums[n].took = sums[n].calls+by[n].calls, sums[n].tokens+by[n].tokens, sums[n].took+by[n].took
		}
	}
	row(&table, "all", sums[:])
	if ratio := float64(sums[2].tokens) / float64(sums[0].tokens); ratio > 0.4 {
		t.Errorf("programs need %.2f of the tokens of single calls", ratio)
	}
	mcptest.TableIn(t, path, "programs", table.String(), os.Getenv("MCPX_PROGRAMS") == "write")
}

func row(table *strings.Builder, name string, by []spent) {
	fmt.Fprintf(table, "| %s | %d | %d | %d | %d | %d | %d | %.2f |\n", name, by[0].calls, by[0].tokens, by[1].calls, by[1].tokens,
		by[2].calls, by[2].tokens, float64(by[2].tokens)/float64(by[0].tokens))
}

// TestPrograms_Reload: a stored program is a tool soon after its file is there, and clients are notified.
func TestPrograms_Reload(t *testing.T) {
	mcptest.Parallel(t)
	h := newHome(t)
	config := h.config(t, map[string]server{"keep": fake(t, mcptest.Spec{})}, nil)
	folder := filepath.Join(filepath.Dir(config), "programs")
	put := func(name, code string) {
		t.Helper()
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("first.js", "/** Says one. */\nreturn 1")
	c, _ := openOver(t, h, "stdio", "--config", config)
	run := func(name string) string {
		var s spent
		return strings.TrimSpace(s.exec(t, c, "mcpx", name, nil, nil))
	}
	if got := run("first"); got != "1" {
		t.Errorf("got %s", got)
	}
	known := len(c.notes("notifications/tools/list_changed"))
	put("second.js", "/** Says a word.\n * @param {string} [word=\"two\"]\n */\nreturn word")
	mcptest.WaitFor(t, "the new program", patience, func() bool { return run("second") == "two" })
	mcptest.WaitFor(t, "a notification", patience, func() bool { return len(c.notes("notifications/tools/list_changed")) > known })
	list := string(c.result(t, "tools/list", `{}`))
	if !strings.Contains(list, "second") || slices.Contains([]string{run("none")}, "two") {
		t.Errorf("the catalogue does not have the program: %s", list)
	}
	put("first.js", "return 1")
	mcptest.WaitFor(t, "the broken program to be gone", patience, func() bool { return strings.HasPrefix(run("first"), "TOOL_NOT_FOUND") })
}
