package executor

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/mcptest"
	"mcpx/internal/registry"
	"mcpx/internal/tokens"
)

// TestMissingServer: if a call names no server, the error names the servers that have the tool, unless they are many.
func TestMissingServer(t *testing.T) {
	mcptest.NoLeaks(t)
	tools := func(names ...string) mcptest.Spec {
		return mcptest.Spec{Tools: json.RawMessage(`[{"name":"` + strings.Join(names, `"},{"name":"`) + `"}]`)}
	}
	var servers []registry.Server
	for name, spec := range map[string]mcptest.Spec{
		"alpha": tools("common", "pair", "only"), "bravo": tools("common", "pair"), "charlie": tools("common"), "delta": tools("common", "l"+strings.Repeat("_", 5000)+"ong", strings.Repeat("x", 5000)),
	} {
		servers = append(servers, piped(t, name, spec))
	}
	e := executing(t, Options{}, nil, servers...)
	for tool, want := range map[string]string{
		"only":   "VALIDATION_ERROR: /server_name: is missing; server alpha has only",
		"ONLY":   "VALIDATION_ERROR: /server_name: is missing; server alpha has only",
		"pair":   "VALIDATION_ERROR: /server_name: is missing; servers alpha, bravo have pair",
		"common": "",
		"nobody": "",
		"long":   "",

		strings.Repeat("x", 5000): "",

		"":            "",
		"read_result": "VALIDATION_ERROR: /server_name: is missing; server mcpx has read_result",
	} {
		failure := e.MissingServer(&Request{Catalogue: e.Catalogue(nil), Tool: tool}, "server_name")
		if failure == nil && want == "" {
			continue
		}
		if failure == nil || textOf(t, failure.Result(true).Content[0]) != want {
			t.Errorf("%s: got %+v, want %s", tool, failure, want)
		}
	}
	seen, alpha, _ := e.FindServer(t.Context(), Request{Catalogue: e.Catalogue(nil), Server: "alpha"})
	if _, _, failure := e.FindServer(t.Context(), Request{Catalogue: seen, Server: "zzz", Tool: "only"}); failure == nil || failure.Text != `SERVER_NOT_FOUND: no server "zzz". Server alpha has only.` {
		t.Errorf("got %+v", failure)
	}
	if failure := e.ToolNotFound(&Request{Catalogue: seen}, alpha, "read_result"); failure.Text != `TOOL_NOT_FOUND: no tool "read_result" on server "alpha". Server mcpx has read_result.` {
		t.Errorf("got %+v", failure)
	}
}

// TestNotFound_Dotted: if a call has a name like "server.tool" as the server or as the tool, the right server and tool are
// found.
func TestNotFound_Dotted(t *testing.T) {
	mcptest.NoLeaks(t)
	tools := func(names ...string) mcptest.Spec {
		return mcptest.Spec{Tools: json.RawMessage(`[{"name":"` + strings.Join(names, `"},{"name":"`) + `"}]`)}
	}
	e := executing(t, Options{}, nil, piped(t, "time", tools("get_current_time", "get_current", "a", "a_b", "whole.name")), piped(t, "time.zone", tools("find")), piped(t, "whole", tools("other", "name")))
	for _, tt := range []struct{ server, tool, want string }{
		{"time", "time.none", `TOOL_NOT_FOUND: no tool "time.none" on server "time". Available: `},
		{"whole", "time.a", `TOOL_NOT_FOUND: no tool "time.a" on server "whole". Server time has a.`},
		{"nobody", "time.a", `SERVER_NOT_FOUND: no server "nobody". Server time has a.`},
		{"nobody", "whole.name", `SERVER_NOT_FOUND: no server "nobody". Server time has whole.name.`},
		{"nobody", "time.zone.find", `SERVER_NOT_FOUND: no server "nobody". Server time.zone has find.`},
		{"nobody", "mcpx.read_result", `SERVER_NOT_FOUND: no server "nobody". Server mcpx has read_result.`},
		{"nobody", "time.none", `SERVER_NOT_FOUND: no server "nobody". Available: `},
		{"time.a", "a", `SERVER_NOT_FOUND: no server "time.a". Server time has a.`},
		{"time.get_current_time", "x", `SERVER_NOT_FOUND: no server "time.get_current_time". Server time has get_current_time.`},
		{"get_current_time", "", `SERVER_NOT_FOUND: no server "get_current_time". Server time has get_current_time.`},
		{"get_current_time", "time", `SERVER_NOT_FOUND: no server "get_current_time". Server time has get_current_time.`},
		{"time.get_current_time", "", `SERVER_NOT_FOUND: no server "time.get_current_time". Server time has get_current_time.`},
	} {
		got := exec(t, e, Request{Server: tt.server, Tool: tt.tool, Format: always})
		if text := textOf(t, got.Content[0]); !strings.HasPrefix(text, tt.want) {
			t.Errorf("%s, %s: got %s, want %s", tt.server, tt.tool, text, tt.want)
		}
	}
	const missing = "VALIDATION_ERROR: /server_name: is missing; server time has get_current_time"
	if got := e.MissingServer(&Request{Catalogue: e.Catalogue(nil), Tool: "time.get_current_time"}, "server_name"); got == nil || got.Said() != missing {
		t.Errorf("got %+v", got)
	}
}

// TestNotFound_LongNames: a server may choose long names for its tools. Then the error lists only few of them, and stays short.
func TestNotFound_LongNames(t *testing.T) {
	on := &catalog.Server{Name: "s"}
	known := []string{"short", strings.Repeat("x", maxListedBytes), strings.Repeat("y", 1<<20)}
	f := (&notFoundError{server: on, name: "z", known: known}).failure()
	if len(f.Text) > 300 || !strings.Contains(f.Text, "Available: short and 2 more") {
		t.Errorf("got %.400s", f.Text)
	}
	if f = (&notFoundError{server: on, name: "xxx", known: known}).failure(); len(f.Text) > 300 {
		t.Errorf("got %d bytes: %.400s", len(f.Text), f.Text)
	}
}

// TestNotFound_Guesses: for a wrong name, the error suggests a name with a similar spelling, or one whose words mean the same.
// The suggestion must be short. Without a suggestion, the error lists the nearest names.
func TestNotFound_Guesses(t *testing.T) {
	github := &catalog.Server{Name: "github", Known: true}
	for _, name := range strings.Fields("create_issue create_branch create_pull_request get_file_contents get_me list_branches list_commits list_issues list_tags merge_pull_request search_code search_repositories update_issue") {
		github.Tools = append(github.Tools, catalog.Tool{Name: name, Description: strings.ReplaceAll(name, "_", " "), InputSchema: json.RawMessage(`{}`)})
	}
	e := executing(t, Options{}, nil)
	for name, want := range map[string]string{
		"create_pr":     "create_pull_request",
		"createIssue":   "Did you mean create_issue?",
		"search_repos":  "Did you mean search_repositories?",
		"github.get_me": "Did you mean get_me?",
		"modify_issue":  "update_issue",
		"zzz":           "Available: get_me, list_tags, list_issues, search_code, create_issue, list_commits, update_issue, create_branch and 5 more (inspect with server_name github lists them).",
	} {
		f := e.ToolNotFound(&Request{Catalogue: catalog.NewSnapshot([]catalog.Server{*github})}, github, name)
		guess := strings.Contains(f.Text, " Did you mean")
		if n := tokens.Count(f.Text); !strings.HasPrefix(f.Text, `TOOL_NOT_FOUND: no tool "`+name+`" on server "github". `) || !strings.Contains(f.Text, want) || guess && n > maxGuess || n > 80 {
			t.Errorf("%s: got %s (%d tokens)", name, f.Text, n)
		}
		if data := string(f.Data()); strings.Contains(data, "did_you_mean") != guess || strings.Contains(data, "available_tools") == guess {
			t.Errorf("%s: got %s", name, data)
		}
	}
	// A name that is found in both ways is suggested only once.
	both := &catalog.Server{Name: "github", Known: true, Tools: []catalog.Tool{{Name: "list_tags"}, {Name: "list_issues"}, {Name: "get_me"}}}
	for _, name := range []string{"list_isues", "list_taags"} {
		f := e.ToolNotFound(&Request{Catalogue: catalog.NewSnapshot([]catalog.Server{*both})}, both, name)
		for _, one := range both.ToolNames() {
			if strings.Count(f.Text, one) > 1 {
				t.Errorf("%s: got %s", name, f.Text)
			}
		}
	}
}

// TestNotFound_Recorded: with recorded tools, the right name is suggested for a name that is nearly right.
func TestNotFound_Recorded(t *testing.T) {
	mcptest.OneGoroutine(t)
	tools := mcptest.Part(t, recordedTools(t), 80)
	e := executing(t, Options{}, nil)
	for _, wrong := range []struct {
		name  string
		least float64 // the share of names for which the right name is suggested
		make  func(name string) string
	}{
		{"a letter less", 0.95, func(name string) string { return name[:len(name)/2] + name[len(name)/2+1:] }},
		{"other case", 1, strings.ToUpper},
		{"half of it", 0.4, func(name string) string { return name[:len(name)/2] }},
		{"other order", 0.9, func(name string) string {
			words := strings.Split(name, "_")
			slices.Reverse(words)
			return strings.Join(words, " ")
		}},
		{"another word in front", 0.85, func(name string) string { return "do_" + name }},
		{"nonsense", 0, func(name string) string { return "qqqq" }},
	} {
		right, asked, most, mostOfNone := 0, 0, 0, 0
		for at := 0; at < len(tools); at += 40 {
			s := &catalog.Server{Name: "server", Known: true, Tools: tools[at:min(at+40, len(tools))]}
			for _, name := range s.ToolNames()[:min(5, len(s.Tools))] {
				f := e.ToolNotFound(&Request{Catalogue: catalog.NewSnapshot([]catalog.Server{*s})}, s, wrong.make(name))
				n := tokens.Count(f.Text)
				if !strings.Contains(f.Text, "Did you mean") {
					mostOfNone = max(mostOfNone, n)
				} else if most = max(most, n); n > maxGuess {
					t.Errorf("%d tokens: %s", n, f.Text)
				}
				asked++
				if strings.Contains(f.Text, "mean "+name) || strings.Contains(f.Text, "or "+name) {
					right++
				}
			}
		}
		t.Logf("%-22s %.2f of %d guessed, at most %d tokens with a guess, %d without", wrong.name, float64(right)/float64(asked), asked, most, mostOfNone)
		if float64(right) < wrong.least*float64(asked) || mostOfNone > 160 {
			t.Errorf("%s: %d of %d guessed, want at least %v; %d tokens without a guess", wrong.name, right, asked, wrong.least, mostOfNone)
		}
	}
}

// TestToolNotFound_Busy: searches for the words of wrong names run one at a time. However many searches of one caller wait, the
// search of another caller waits for one of them at most. If too many searches wait, or one waits too long, the answer has only
// the names with a similar spelling.
func TestToolNotFound_Busy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := chained(registry.New(nil, registry.Options{}), Options{})
		s := &catalog.Server{Name: "github", Known: true, Tools: []catalog.Tool{{Name: "merge_pull_request"}, {Name: "list_branches"}}}
		seen := catalog.NewSnapshot([]catalog.Server{*s})
		s, _ = seen.Server("github")
		wrong := func(who string) string {
			return e.ToolNotFound(new(as(who, Request{Catalogue: seen})), s, "do_the_pull_merge").Text
		}
		said := make(chan string, 100)
		hold := func(n int) {
			if err := e.guessing.Enter(t.Context(), "mallory"); err != nil {
				t.Fatal(err)
			}
			for range n {
				go func() { said <- wrong("mallory") }() // ends with its turn, or when it has waited too long
			}
			synctest.Wait()
		}
		hold(100)
		if _, waiting := e.guessing.Use(); waiting != 64 || len(said) != 36 {
			t.Errorf("%d wait, %d have an answer", waiting, len(said))
		}
		go func() { said <- "alice: " + wrong("alice") }() // ends with its turn
		synctest.Wait()
		e.guessing.Leave("mallory")
		synctest.Wait()
		found := 0
		for range 101 {
			if one := <-said; strings.Contains(one, "merge_pull_request or") || strings.Contains(one, "mean merge_pull_request") {
				found++
			} else if strings.HasPrefix(one, "alice") {
				t.Error(one)
			}
		}
		if found != 64 { // 63 searches of mallory, and the search of alice, for which the last one that waited was dropped
			t.Errorf("%d were found", found)
		}
		hold(1)
		time.Sleep(time.Second) // fake time
		if one := <-said; !strings.HasPrefix(one, "TOOL_NOT_FOUND") {
			t.Error(one)
		}
		e.guessing.Leave("mallory")
	})
}
