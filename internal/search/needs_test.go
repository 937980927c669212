package search

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/catalog"
)

// everyday returns a catalogue of real servers, such as a developer may have.
func everyday(t *testing.T) *catalog.Snapshot {
	t.Helper()
	var servers []catalog.Server
	files, err := filepath.Glob(filepath.Join("..", "schemats", "testdata", "tools", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	read := func(file string, into any) {
		data, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatal(file, err)
		}
	}
	for _, file := range files {
		var list struct {
			Instructions string
			Tools        []catalog.Tool
		}
		read(file, &list)
		name := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(file), ".json"), "modelcontextprotocol__server-")
		servers = append(servers, catalog.Server{Name: name, Instructions: list.Instructions, Tools: list.Tools})
	}
	var others []struct {
		Server, Title, Description string
		Tools                      []catalog.Tool
	}
	read(filepath.Join("testdata", "needs.json"), &others)
	for _, s := range others {
		servers = append(servers, catalog.Server{Name: s.Server, Title: s.Title, Instructions: s.Description, Tools: s.Tools})
	}
	return catalog.NewSnapshot(servers)
}

// TestSearch_Needs: queries in plain words find the tools of real servers. Each of them once did not.
func TestSearch_Needs(t *testing.T) {
	x := New(everyday(t))
	for _, tt := range []struct {
		query string
		want  []string // each must be within this many first hits
		first int
		weak  bool
	}{
		{"get the text of a web page", []string{"fetch"}, 3, false},
		{"remember a fact about a person", []string{"add_observations", "create_entities"}, 3, false},
		{"open a web page and click a button", []string{"browser_navigate", "browser_click"}, 3, false},
		{"list rows of a table", []string{"read_query", "execute_sql"}, 10, false},
		{"play music", nil, 10, true},
		{"water the plants", nil, 10, true},
		// Queries that name a server.
		{"memory", []string{"read_graph", "create_entities", "search_nodes"}, 9, false},
		{"sqlite", []string{"read_query", "list_tables"}, 25, false},
		{"delete an issue with memory", []string{"delete_entities"}, 5, false},
		{"fetch the issue from github", []string{"get_issue"}, 3, false},
	} {
		hits := x.Search(tt.query, Options{Limit: 30})
		got := first(hits, tt.first)
		for _, want := range tt.want {
			if !slices.Contains(got, want) {
				t.Errorf("%s: no %s in %v", tt.query, want, got)
			}
		}
		for _, h := range hits {
			if h.Weak != tt.weak {
				t.Errorf("%s: %s is weak: %t", tt.query, h.Tool, h.Weak)
				break
			}
		}
	}
	for _, h := range x.Search("memory", Options{Limit: 9}) {
		if h.Server != "memory" {
			t.Errorf("memory: got %s of %s", h.Tool, h.Server)
		}
	}
}
