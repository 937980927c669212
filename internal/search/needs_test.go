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

// TestSearch_Needs: queries in plain words find the tools of real servers, or their hits are weak if no tool fits. Each of them
// once failed.
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

// TestSearch_OnlyServer: if a query names a server, and asks for something that none of its tools does, the hits are weak.
// Another server whose tools begin with the same word does not change that.
func TestSearch_OnlyServer(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "git.json"))
	if err != nil {
		t.Fatal(err)
	}
	git := catalog.Server{Name: "git"}
	if err := json.Unmarshal(data, &git); err != nil {
		t.Fatal(err)
	}
	servers := []catalog.Server{git}
	for _, s := range everyday(t).Servers {
		if s.Name == "filesystem" || s.Name == "memory" {
			servers = append(servers, s)
		}
	}
	other := catalog.Server{Name: "x", Tools: []catalog.Tool{{Name: "git_a"}, {Name: "git_b"}, {Name: "git_c"}}}
	for _, snap := range []*catalog.Snapshot{catalog.NewSnapshot(servers), catalog.NewSnapshot(append(slices.Clone(servers), other))} {
		x := New(snap)
		for query, weak := range map[string]bool{
			"git push": true, "push to git": true, "git clone": true, "git stash": true, "play music": true,
			"git": false, "git status": false, "commit with git": false, "show the git log": false, "git checkout branch": false,
		} {
			hits := x.Search(query, Options{})
			if len(hits) == 0 || hits[0].Weak != weak {
				t.Errorf("%s: got %v, want weak: %t", query, hits, weak)
			}
		}
		if hits := x.Search("send an e-mail", Options{}); len(hits) > 0 && !hits[0].Weak {
			t.Errorf("an e-mail: got %v", hits)
		}
	}
}

// TestSearch_NamedServers: a query asks for two things, and names a server for each. The first two hits are the tools of these
// servers that do these things, in whichever order the query has them.
func TestSearch_NamedServers(t *testing.T) {
	var servers []catalog.Server
	for _, name := range []string{"bitbucket", "github", "gitlab"} {
		servers = append(servers, catalog.Server{Name: name, Tools: []catalog.Tool{
			tool("list_issues", "List the issues of a repository on "+name+".", "repo"),
			tool("get_issue", "Get an issue of a repository on "+name+".", "repo number"),
		}})
	}
	for _, name := range []string{"discord", "slack", "teams"} {
		servers = append(servers, catalog.Server{Name: name, Tools: []catalog.Tool{
			tool("post_message", "Post a message to a channel of "+name+".", "channel text"),
			tool("delete_message", "Delete a message of a channel of "+name+".", "channel id"),
		}})
	}
	x := New(catalog.NewSnapshot(servers))
	for _, tt := range []struct{ query, want string }{
		{"list issues with github. post a message with slack", "github.list_issues slack.post_message"},
		{"post a message with slack. list issues with github", "github.list_issues slack.post_message"},
		{"post a message with discord. list issues with bitbucket", "bitbucket.list_issues discord.post_message"},
	} {
		var got []string
		for _, h := range x.Search(tt.query, Options{Limit: 2}) {
			got = append(got, h.Server+"."+h.Tool)
		}
		if slices.Sort(got); strings.Join(got, " ") != tt.want {
			t.Errorf("%s: got %v, want %s", tt.query, got, tt.want)
		}
	}
}
