package setup

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestFiles: three files of each client, with comments, with odd entries and with Windows line ends, have the same bytes as
// before after connect and disconnect. While mcpx is connected they are valid, keep their other servers and their comments, and
// lack the servers that were moved.
func TestFiles(t *testing.T) {
	own := served(t, `{"mcpServers": {
		"memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]},
		"of-kiro": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "tools": {"deny": ["delete_entities"]}},
		"of-windsurf": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "tools": {"deny": ["x"]}},
		"notes": {"command": "npx", "args": ["-y", "notes-server"], "cwd": "/home/me/app"}
	}}`)
	for _, c := range clients {
		if c.Paste == "" {
			t.Run(c.ID, func(t *testing.T) {
				t.Parallel()
				testFiles(t, c, c.ID, own)
			})
		}
	}
	t.Run("vscode.settings", func(t *testing.T) { testFiles(t, client(t, "vscode").Others[0], "vscode.settings", own) })
}

func testFiles(t *testing.T, c Client, name string, own []Found) {
	archive, err := txtar.ParseFile(filepath.Join("testdata", "clients", name+".txtar"))
	if err != nil || len(archive.Files) != 3 {
		t.Fatalf("%d files, %v", len(archive.Files), err)
	}
	for _, one := range archive.Files {
		t.Run(one.Name, func(t *testing.T) {
			before := string(one.Data)
			if one.Name == "windows" {
				before = strings.ReplaceAll(before, "\n", "\r\n")
			}
			sys := linux(t)
			file, b := c.File(sys), Backups{Dir: filepath.Join(sys.home(), "backups")}
			put(t, file, before)
			digest := hash([]byte(before))
			was, err := c.Servers(file, reading)
			if err != nil {
				t.Fatal(err)
			}

			connect(t, b, c, file, own, false)
			checkConnected(t, c, file, before, was)
			if now, _ := c.Servers(file, reading); !slices.Equal(others(now), others(was)) {
				t.Errorf("got the servers %v, want %v", others(now), others(was))
			}
			disconnect(t, b, c, file)
			if now := hash([]byte(content(t, file))); now != digest {
				t.Errorf("after disconnect:\n%q\nwant:\n%q", content(t, file), before)
			}

			change := connect(t, b, c, file, own, true)
			if want := Doubled(was, own); len(want) == 0 || !slices.Equal(change.Moved, want) {
				t.Errorf("moved %v, want %v", change.Moved, want)
			}
			now, err := c.Servers(file, reading)
			if err != nil || len(Doubled(now, own)) > 0 || len(others(now)) != len(others(was))-len(change.Moved) {
				t.Errorf("after the move: %v, %v\n%s", others(now), err, content(t, file))
			}
			if back := disconnect(t, b, c, file); !back.Exact || hash([]byte(content(t, file))) != digest {
				t.Errorf("after disconnect:\n%q\nwant:\n%q", content(t, file), before)
			}

			// If the client has changed its file, Disconnect cannot restore the backup. It adds the entries of the moved servers
			// again.
			change = connect(t, b, c, file, own, true)
			put(t, file, content(t, file)+"\n")
			if back := disconnect(t, b, c, file); back.Exact || len(back.Restored) != len(change.Moved) {
				t.Errorf("restored %v, want %v", back.Restored, change.Moved)
			}
			if now, err := c.Servers(file, reading); err != nil || !slices.Equal(sorted(others(now)), sorted(others(was))) {
				t.Errorf("got the servers %v, %v, want %v\n%s", others(now), err, others(was), content(t, file))
			}
		})
	}
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// others returns all servers but mcpx with their definitions.
func others(servers []Found) (all []string) {
	for _, s := range servers {
		if !s.Self {
			all = append(all, fmt.Sprint(s.path, s.definition(), s.Fault, s.LeftOut))
		}
	}
	return all
}

// checkConnected checks that a file to which mcpx adds an entry has one, and that all words of before are still there, in
// their order.
func checkConnected(t *testing.T, c Client, file, before string, was []Found) {
	t.Helper()
	after := content(t, file)
	if c.format.entry == nil {
		if after != before {
			t.Errorf("has changed without a move:\n%s", after)
		}
		return
	}
	servers, err := c.Servers(file, reading)
	if err != nil || slices.ContainsFunc(was, isSelf) || !slices.ContainsFunc(servers, isSelf) {
		t.Errorf("mcpx is not in the file: %v, %v\n%s", others(servers), err, after)
	}
	words := func(text string) []string {
		return strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune("{}, \t\r\n", c) })
	}
	rest := words(after)
	for _, word := range words(before) {
		at := slices.Index(rest, word)
		if at < 0 {
			t.Fatalf("lost %s:\n%s", word, after)
		}
		rest = rest[at+1:]
	}
	if strings.Contains(before, "\r\n") && strings.Count(after, "\n") != strings.Count(after, "\r\n") {
		t.Errorf("mixed line ends:\n%q", after)
	}
}

// TestConnect_TOMLLine: a server that was written in one line of a TOML file, or with dotted keys, comes back as a table of its own:
// at the end of the file, these lines would belong to another table.
func TestConnect_TOMLLine(t *testing.T) {
	own := served(t, `{"mcpServers": {"m": {"command": "npx", "args": ["-y", "memory"], "env": {"A.B": "c"}}}}`)
	for _, before := range []string{
		"[mcp_servers]\n\"me mory\" = {command = \"npx\", args = [\"-y\", \"memory\"], env = {\"A.B\" = \"c\"}} # one line\n",
		"[mcp_servers]\n\"me mory\".command = \"npx\"\n\"me mory\".args = [\"-y\", \"memory\"]\n[mcp_servers.\"me mory\".env]\n\"A.B\" = \"c\"\n",
	} {
		sys, c := linux(t), client(t, "codex")
		file, b := c.File(sys), Backups{Dir: filepath.Join(sys.home(), "backups")}
		put(t, file, before)
		if change := connect(t, b, c, file, own, true); !slices.Equal(change.Moved, []string{"me mory"}) {
			t.Errorf("moved %q from\n%s", change.Moved, before)
		}
		put(t, file, content(t, file)+"\n[tui]\nx = 1\n")
		disconnect(t, b, c, file)
		const want = "\n[tui]\nx = 1\n\n[mcp_servers.\"me mory\"]\nargs = ['-y', 'memory']\ncommand = 'npx'\nenv = {'A.B' = 'c'}\n"
		if got := content(t, file); !strings.HasSuffix(got, want) {
			t.Errorf("got\n%s\nfrom\n%s", got, before)
		}
	}
}

// TestProjectServers_Many: the work for the projects in a file of Claude Code grows with their number, not with its square. Of a project
// that is there twice, the last one counts.
func TestProjectServers_Many(t *testing.T) {
	allocations := func(projects int) float64 {
		var b strings.Builder
		b.WriteString(`{"projects": {"/p0": {"mcpServers": {"old": {"command": "old"}}}`)
		for i := range projects {
			fmt.Fprintf(&b, `, "/p%d": {"mcpServers": {}}`, i)
		}
		d, err := parseJSONText([]byte(b.String() + `, "/last": {"mcpServers": {"a": {"command": "a"}}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		return testing.AllocsPerRun(1, func() {
			found := origin{client: "claude-code", reading: reading}.projectServers(d)
			if len(found) != 1 || found[0].Name != "a" || !slices.Equal(found[0].path, []string{"projects", "/last", "mcpServers", "a"}) {
				t.Errorf("found %v", found)
			}
		})
	}
	if few, many := allocations(500), allocations(1000); many > 3*few {
		t.Errorf("%v allocations for 500 projects, %v for 1000", few, many)
	}
}
