package view

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mcpx/internal/base/catalog"
	"mcpx/internal/describe"
	"mcpx/internal/search"
	"mcpx/internal/tokens"
)

// TestInspect_QueryTokens measures the answers to a public set of tasks: the tokens of each answer, the share of the wanted
// tools that the answer describes or names, and the share that are among its first three tools. MCPX_RETRIEVAL is the folder
// with catalogue.json and tasks.jsonl, as in the tests of package search.
func TestInspect_QueryTokens(t *testing.T) {
	dir := os.Getenv("MCPX_RETRIEVAL")
	if dir == "" {
		t.Skip("MCPX_RETRIEVAL is not set: no folder with catalogue.json and tasks.jsonl to measure with")
	}
	snap := readCatalogue(t, filepath.Join(dir, "catalogue.json"))
	index := search.New(snap)
	f, err := os.Open(filepath.Join(dir, "tasks.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type id struct{ Server, Tool string }
	var costs []int
	var complete, named, wanted float64
	weakly := 0
	for d := json.NewDecoder(f); d.More(); {
		var task struct {
			Query    string
			Relevant []struct {
				id
				Alt []id
			}
		}
		if err := d.Decode(&task); err != nil {
			t.Fatal(err)
		}
		found, more, weak := findTools(snap, index, Query{Text: task.Query})
		text := describe.Matches(found, more, describe.Options{TypeScript: true})
		if weak {
			text = describe.Nearest(task.Query, found)
			weakly++
		}
		costs = append(costs, tokens.Count(text))
		found = append(found, more...)
		for _, r := range task.Relevant {
			at := slices.IndexFunc(found, func(m describe.Match) bool {
				one := id{m.Server.Name, m.Tool.Name}
				return one == r.id || slices.Contains(r.Alt, one)
			})
			share := 1 / float64(len(task.Relevant))
			wanted += share
			if at >= 0 {
				named += share
			}
			if at >= 0 && at < 3 {
				complete += share
			}
		}
	}
	slices.Sort(costs)
	median, p95 := costs[len(costs)/2], costs[len(costs)*95/100]
	t.Logf("%d queries: median %d tokens, p95 %d, most %d; of the tools wanted %.3f are there, %.3f among the first three", len(costs), median, p95, costs[len(costs)-1], named/wanted, complete/wanted)
	t.Logf("%d queries without a tool that fits", weakly)
	if median > 600 || named/wanted < 0.80 {
		t.Errorf("want a median of at most 600 tokens, and 0.80 of the tools")
	}
}

func readCatalogue(t *testing.T, name string) *catalog.Snapshot {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Server, Title, Description string
		Tools                      []json.RawMessage
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	var servers []catalog.Server
	for _, s := range list {
		tools, _ := catalog.DecodeTools(s.Tools)
		servers = append(servers, catalog.Server{Name: s.Server, Title: s.Title, Instructions: s.Description, State: catalog.Ready, Known: true, Tools: tools})
	}
	return catalog.NewSnapshot(servers)
}
