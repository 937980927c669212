package describe

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"mcpx/internal/base/catalog"
	"mcpx/internal/tokens"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden compares the texts that a model sees with the files in the archives. In the comment
// of an archive, each line that begins with "> " asks for one text; the file whose name is the
// rest of the line has the expected text. See answer for these lines.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			snap := readServers(t, archive.Files[0])
			// The slice has no spare capacity, so that append does not overwrite the expected files.
			made := &txtar.Archive{Comment: archive.Comment, Files: archive.Files[:1:1]}
			for line := range strings.Lines(string(archive.Comment)) {
				if ask, ok := strings.CutPrefix(strings.TrimSpace(line), "> "); ok {
					text := answer(t, snap, ask)
					made.Files = append(made.Files, txtar.File{Name: ask, Data: fmt.Appendf(nil, "%s\n\n[%d tokens]\n", text, tokens.Count(text))})
				}
			}
			got := txtar.Format(made)
			if *update {
				if err := os.WriteFile(name, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := txtar.Format(archive); !bytes.Equal(got, want) {
				t.Errorf("(-want +got)\n%s", cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")))
			}
		})
	}
}

func readServers(t *testing.T, file txtar.File) *catalog.Snapshot {
	t.Helper()
	if file.Name != "servers.json" {
		t.Fatalf("the first file is %s, want servers.json", file.Name)
	}
	var list []struct {
		Name, Title, Description, Instructions, Reason string
		State                                          catalog.State
		RetryAfter                                     float64
		Unknown                                        bool
		Tools                                          []json.RawMessage
	}
	if err := json.Unmarshal(file.Data, &list); err != nil {
		t.Fatal(err)
	}
	var servers []catalog.Server
	for _, s := range list {
		server := catalog.Server{
			Name: s.Name, Title: s.Title, Description: s.Description, Instructions: s.Instructions,
			State: s.State, Reason: s.Reason, RetryAfter: s.RetryAfter, Known: !s.Unknown,
		}
		if s.State == "" {
			server.State = catalog.Ready
		}
		for _, raw := range s.Tools {
			tool, err := catalog.DecodeTool(raw)
			if err != nil {
				t.Fatal(err)
			}
			server.Tools = append(server.Tools, tool)
		}
		servers = append(servers, server)
	}
	return catalog.NewSnapshot(servers)
}

// answer returns the text that ask asks for. ask consists of the name of a kind of text, such as "inspect" or "server", then
// its arguments, then options as key=value.
func answer(t *testing.T, snap *catalog.Snapshot, ask string) string {
	t.Helper()
	o := Options{TypeScript: true}
	b := Budget{}
	f := Features{}
	var args []string
	for _, word := range strings.Fields(ask) {
		key, value, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "tokens":
			b.Tokens = n
		case "chars":
			b.Chars = n
		case "listing":
			o.ListingTokens = n
		case "max":
			o.MaxDescription = n
		case "json":
			o.TypeScript, f.JSONSchema = false, true
		case "notoon":
			f.NoTOON, f.NoJS = true, true
		default:
			args = append(args, word)
		}
	}
	args = append(args, "", "")
	server, _ := snap.Server(args[1])
	var matches []Match
	var found []*catalog.Tool
	for _, name := range strings.Split(args[2], ",") {
		if server != nil {
			if tool, ok := server.Tool(name); ok {
				found = append(found, tool)
			}
		}
	}
	switch args[0] {
	case "inspect":
		inspect, _ := Descriptions(snap, b, f)
		return inspect
	case "exec":
		_, exec := Descriptions(snap, b, f)
		return exec
	case "instructions":
		return Instructions(snap, b, f)
	case "servers":
		return Servers(snap)
	case "server":
		text, complete := Server(server, o)
		return fmt.Sprintf("%s\n\n[complete: %v]", text, complete)
	case "tool":
		return Tool(server, found[0], o)
	case "tools":
		return Tools(server, found, o)
	case "input":
		return Input(found[0], [][]string{{}}, 400)
	case "declaration":
		return Declaration(found[0])
	case "query":
		for _, full := range strings.Split(args[1], ",") {
			name, tool, _ := strings.Cut(full, ".")
			if s, ok := snap.Server(name); ok {
				if found, ok := s.Tool(tool); ok {
					matches = append(matches, Match{Server: s, Tool: found})
				}
			}
		}
		return Matches(matches, nil, o)
	}
	t.Fatalf("cannot make %q", ask)
	return ""
}
