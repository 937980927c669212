package setup

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestConnect_Refused(t *testing.T) {
	for name, one := range map[string]struct{ id, before, want string }{
		"broken JSON":           {"cursor", `{"mcpServers": {`, "line 1, column"},
		"an array":              {"cursor", `[]`, "must hold an object"},
		"millions of brackets":  {"cursor", `{"a":` + strings.Repeat("[", 20_000_000), "nested deeper than 10000 levels"},
		"UTF-16":                {"cursor", "\xff\xfe{\x00}\x00", "not UTF-8"},
		"servers are a string":  {"cursor", `{"mcpServers": "x"}`, "mcpServers is not an object"},
		"another mcpx":          {"cursor", `{"mcpServers": {"mcpx": {"command": "docker", "args": ["run", "mcpx"]}}}`, "another server is called mcpx"},
		"broken TOML":           {"codex", "a = ", "line 1"},
		"an inline TOML table":  {"codex", "mcp_servers = {a = {command = \"a\"}}\n", "mcp_servers is written as one value; write its servers as tables, such as [mcp_servers.NAME]"},
		"an empty TOML table":   {"codex", "mcp_servers = {}\n", "mcp_servers is written as one value"},
		"broken YAML":           {"goose", "a: [", "not valid YAML"},
		"YAML of another kind":  {"goose", "- a\n", "must hold a mapping"},
		"a YAML key twice":      {"goose", "a: 1\na: 2\n", "unique keys"},
		"YAML on one line":      {"goose", "extensions: {a: {cmd: a, args: []}}\n", "cannot be edited safely"},
		"a YAML alias":          {"goose", "a: &a {}\nextensions: *a\n", "cannot be edited safely"},
		"two YAML documents":    {"goose", "a: 1\n---\nb: 2\n", "cannot be edited safely"},
		"lone carriage returns": {"goose", "a: 1\rextensions:\r  a: 1\r", "cannot be edited safely"},
		"another mcpx, in YAML": {"goose", "extensions:\n  mcpx:\n    type: stdio\n    cmd: other\n", "another server is called mcpx"},
		"another mcpx, in TOML": {"codex", "[mcp_servers.mcpx]\nurl = \"https://example.com\"\n", "another server is called mcpx"},
	} {
		t.Run(name, func(t *testing.T) {
			sys, c := linux(t), client(t, one.id)
			file := c.File(sys)
			put(t, file, one.before)
			_, err := Backups{Dir: sys.Dir}.Connect(c, file, Connection{Command: "/opt/bin/mcpx"}, reading)
			if err == nil || !strings.Contains(err.Error(), one.want) || !strings.Contains(err.Error(), file) {
				t.Errorf("got %v", err)
			}
			if content(t, file) != one.before {
				t.Error("the file has changed")
			}
		})
	}
}

// TestDisconnect_List: mcpx does not edit servers in a list, as some people write them into the file of a client that wants an object.
func TestDisconnect_List(t *testing.T) {
	sys, c := linux(t), client(t, "cursor")
	file := c.File(sys)
	const before = `{"mcpServers": [{"name": "mcpx", "command": "mcpx"}]}`
	put(t, file, before)
	_, err := Backups{Dir: sys.Dir}.Disconnect(c, file, reading)
	if err == nil || !strings.Contains(err.Error(), file+": the servers are in a list") || content(t, file) != before {
		t.Errorf("got %v; the file is %s", err, content(t, file))
	}
}

// TestWrite_DamagedRecords: if the records cannot be read, a change is not made, because it could not be undone exactly.
func TestWrite_DamagedRecords(t *testing.T) {
	sys, c := linux(t), client(t, "cursor")
	file, kept := c.File(sys), Backups{Dir: t.TempDir()}
	const before = `{"mcpServers": {}}`
	put(t, file, before)
	put(t, kept.index(), "[{")
	change, err := kept.Connect(c, file, Connection{Command: "/opt/bin/mcpx"}, reading)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = kept.Write(change); err == nil || !strings.Contains(err.Error(), kept.index()) || !strings.Contains(err.Error(), "; nothing was written") {
		t.Errorf("got %v", err)
	}
	left, _ := filepath.Glob(filepath.Join(kept.Dir, "*"))
	if content(t, file) != before || len(left) != 1 {
		t.Errorf("the file is %s; beside it %q", content(t, file), left)
	}
}

// TestUndo_DamagedRecords: if the records cannot be read, Undo still undoes a change, and leaves the records as they are.
func TestUndo_DamagedRecords(t *testing.T) {
	sys, c := linux(t), client(t, "cursor")
	file, kept := c.File(sys), Backups{Dir: t.TempDir()}
	put(t, file, `{"mcpServers": {"mcpx": {"command": "/opt/bin/mcpx"}, "a": {"command": "x"}}}`)
	put(t, kept.index(), "[{")
	change, err := kept.Disconnect(c, file, reading)
	if err != nil || change.Unrecorded == nil {
		t.Fatalf("%v, unrecorded: %v", err, change.Unrecorded)
	}
	backup, err := kept.Undo(change)
	if err != nil || !exists(backup) {
		t.Errorf("backup %q, %v", backup, err)
	}
	if got := content(t, file); strings.Contains(got, "mcpx") || !strings.Contains(got, `"a"`) || content(t, kept.index()) != "[{" {
		t.Errorf("the file is %s", got)
	}
}

// TestConnect_Anchor: a server cannot be moved out of a YAML file while another value refers to it.
func TestConnect_Anchor(t *testing.T) {
	sys, c := linux(t), client(t, "goose")
	file := c.File(sys)
	const before = "extensions:\n  a: &a\n    cmd: npx\n    args: [-y, memory]\n    type: stdio\n  b:\n    <<: *a\n    timeout: 5\n"
	put(t, file, before)
	own := served(t, `{"mcpServers": {"m": {"command": "npx", "args": ["-y", "memory"]}}}`)
	_, err := Backups{Dir: sys.Dir}.Connect(c, file, Connection{Command: "/opt/bin/mcpx", Move: own}, reading)
	if !errors.Is(err, ErrUnsafe) || content(t, file) != before {
		t.Errorf("got %v", err)
	}
}

// TestConnect_Project: the servers in a project's file run in the project's folder, so they are equal to servers of mcpx
// that do too.
func TestConnect_Project(t *testing.T) {
	sys := linux(t)
	file := filepath.Join(sys.Dir, ".mcp.json")
	const before = `{"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes"]}, "other": {"command": "other"}}}`
	put(t, file, before)
	own := served(t, `{"mcpServers": {"n": {"command": "npx", "args": ["-y", "notes"], "cwd": "`+filepath.ToSlash(sys.Dir)+`"}}}`)
	b, c := Backups{Dir: filepath.Join(sys.home(), "backups")}, client(t, "claude-code").Editing(sys, file)
	if change := connect(t, b, c, file, own, true); !slices.Equal(change.Moved, []string{"notes"}) {
		t.Errorf("moved %v", change.Moved)
	}
	if change := disconnect(t, b, c, file); !change.Exact || content(t, file) != before {
		t.Errorf("got %s", content(t, file))
	}
}

// TestConnect_Others: mcpx adds no entry to some files of a client ([Client.Others]), but moves servers out of them. Servers that
// were moved in two steps all come back.
func TestConnect_Others(t *testing.T) {
	own := served(t, `{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}`)
	sys, c := linux(t), client(t, "vscode").Others[0]
	file, b := c.File(sys), Backups{Dir: filepath.Join(sys.home(), "backups")}
	put(t, file, `{"mcp": {"servers": {"a": {"command": "a"}}}}`)
	connect(t, b, c, file, own, true)
	put(t, file, `{"mcp": {"servers": {"b": {"command": "b"}}}, "new": true}`)
	connect(t, b, c, file, own, true)
	if change := disconnect(t, b, c, file); !slices.Equal(change.Restored, []string{"a", "b"}) {
		t.Errorf("restored %v", change.Restored)
	}
	if got := content(t, file); !strings.Contains(got, `"new": true`) || !strings.Contains(got, `"b"`) {
		t.Errorf("got %s", got)
	}
	put(t, file, `{"mcp": "broken"`)
	if change := disconnect(t, b, c, file); !change.Nothing() {
		t.Error("a file without a record changes")
	}
}
