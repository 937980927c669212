package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/tokens"
)

// TestTwoTools_Searched: for a client that searches for tools itself, a request through mcpx has at most 272 tokens more than a
// request without mcpx. Without mcpx, the request contains the names of all tools, as mcp__SERVER__TOOL, and the instructions
// of the servers, which the test does not count.
func TestTwoTools_Searched(t *testing.T) {
	var servers []catalog.Server
	files, err := filepath.Glob("../schemats/testdata/tools/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no tools", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		page, err := catalog.ReadPage(catalog.Tools, data)
		if err != nil {
			t.Fatal(err)
		}
		tools, _ := catalog.DecodeTools(page.Items)
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		servers = append(servers, catalog.Server{Name: name[strings.LastIndex(name, "_")+1:], Known: true, State: catalog.Ready, Tools: tools})
	}
	v, settings := &TwoTools{}, NewSettings(Options{})
	v.current = func() *Settings { return settings }
	most := 0
	check := func(list []catalog.Server) {
		t.Helper()
		var names strings.Builder
		for _, s := range list {
			for _, tool := range s.Tools {
				names.WriteString("\nmcp__" + s.Name + "__" + tool.Name)
			}
		}
		defs, instructions := v.Surface(catalog.NewSnapshot(list), "claude-code")
		more := tokens.Count(instructions) - tokens.Count(names.String())
		for _, d := range defs {
			more += tokens.Count(string(wire.Encode(d)))
		}
		most = max(most, more)
		if more > 272 { // 200, 45 for the argument each and for JavaScript (issue 24), and 27 for programs (issue 25)
			t.Errorf("%d tokens more with %d servers: %s", more, len(list), names.String())
		}
	}
	for i, s := range servers {
		for _, n := range []int{1, 2, 3, 5, 10, 20, 40} {
			check([]catalog.Server{s.WithTools(s.Tools[:min(n, len(s.Tools))])})
		}
		var mix []catalog.Server
		for _, s := range append(servers[i:len(servers):len(servers)], servers[:i]...) {
			mix = append(mix, s.WithTools(s.Tools[:min(4, len(s.Tools))]))
			check(append([]catalog.Server(nil), mix...))
		}
	}
	t.Logf("at most %d tokens more", most)
}
