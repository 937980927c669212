package setup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConnect_ReadOnly: if the client's folder is read-only, Write changes nothing: the file stays the same, and there is
// neither a backup nor a record.
func TestConnect_ReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	sys, c := linux(t), client(t, "cursor")
	file := c.File(sys)
	put(t, file, "{}\n")
	if err := os.Chmod(filepath.Dir(file), 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(file), 0o700) })
	b := Backups{Dir: filepath.Join(sys.home(), "backups")}
	change, err := b.Connect(c, file, Connection{Command: "/opt/bin/mcpx"}, reading)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(change); err == nil || content(t, file) != "{}\n" || !strings.Contains(err.Error(), file+", which was not changed") {
		t.Errorf("got %v: %s", err, content(t, file))
	}
	if left, _ := os.ReadDir(b.Dir); len(left) != 0 {
		t.Errorf("left in the folder of backups: %v", left)
	}
	if _, known, _ := b.record(file); known {
		t.Error("there is a record of what was not done")
	}
}

// TestWrite_Failed: a write that fails leaves neither a backup nor a folder that was made for it.
func TestWrite_Failed(t *testing.T) {
	sys, c := linux(t), client(t, "cursor")
	file := c.File(sys)
	b := Backups{Dir: filepath.Join(sys.home(), "config", "mcpx", "backups")}
	const before = `{"mcpServers": {"mcpx": {"command": "/old/bin/mcpx"}, "a": {"command": "x"}}}`
	put(t, file, before)
	connected, err := b.Connect(c, file, Connection{Command: "/opt/bin/mcpx"}, reading)
	if err != nil {
		t.Fatal(err)
	}
	disconnected, err := b.Disconnect(c, file, reading)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o400); err != nil {
		t.Fatal(err)
	}
	_, failed := b.Write(connected)
	_, undo := b.Undo(disconnected)
	if failed == nil || undo == nil || content(t, file) != before {
		t.Errorf("got %v, %v: %s", failed, undo, content(t, file))
	}
	if left, err := os.ReadDir(sys.home()); err != nil || len(left) != 1 {
		t.Errorf("left in the home: %v, %v", left, err)
	}
}

// TestWrite_Meanwhile: if another process changes the file after mcpx has read it, that change is not lost.
func TestWrite_Meanwhile(t *testing.T) {
	sys, c := linux(t), client(t, "cursor")
	file := c.File(sys)
	put(t, file, "{}\n")
	b := Backups{Dir: filepath.Join(sys.home(), "backups")}
	change, err := b.Connect(c, file, Connection{Command: "/opt/bin/mcpx"}, reading)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, `{"new": 1}`)
	if _, err := b.Write(change); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("got %v", err)
	}
	if got := content(t, file); got != `{"new": 1}` {
		t.Errorf("got %s", got)
	}
}

func TestDiff_Secrets(t *testing.T) {
	change := Change{File: "/f", Before: []byte("{}\n"), After: []byte(`{
  "GH_TOKEN": "hid\"den", "Authorization": "Bearer hidden",
  "args": ["--api-key", "hidden", "--token=hidden", "-H", "X: Bearer hidden"],
  "url": "https://example.com/?key=hidden&path=seen", "path": "seen"
}
secret = 'hidden'
"dsn": "postgresql://user:hidden@host/db", "git": "https://hidden@example.com/x/@scope/y", "hook": "ws://a:hid@den@example.com"
`)}
	got := change.Diff(linux(t))
	if strings.Contains(got, "hid") || strings.Count(got, "seen") != 2 || strings.HasPrefix(got, "diff ") {
		t.Errorf("got %s", got)
	}
}

// TestDiff_Servers: the diff hides the credentials in a server's arguments, environment and URLs, in the files of all
// clients.
func TestDiff_Servers(t *testing.T) {
	const entry = `{"command": "x", "args": ["mongodb+srv://me:hidden-1@db/x", "--key", "hidden-22", "X-Api-Key:hidden-3",
		"ghp_hidden4hidden4hidden4hidden4", "{\"password\": \"hidden-5\"}", "seen-1"],
		"env": {"PLAIN": "sk-proj-hidden6hidden6hidden6", "SESSION_SECRET": "hidden\n-7-\"hidden", "MODE": "seen-2"}},
		"web": {"url": "https://mcp.example.com/s/hidden8Hidden8hidden8Hidden8/mcp?sig=1&access_token=hidden-9"}`
	for id, text := range map[string]string{
		"cursor": `{"mcpServers": {"s": ` + entry + `}}`,
		"vscode": `{"servers": {"s": ` + entry + `}}`,
		"codex": "[mcp_servers.s]\ncommand = 'x'\nargs = ['mongodb://me:hidden-1@db/x', '--key', 'hidden-22', 'seen-1']\n" +
			"[mcp_servers.s.env]\nMODE = 'seen-2'\nPLAIN = 'glpat-hidden2hidden2hidden2'\n",
	} {
		for _, change := range []Change{
			{Client: client(t, id), File: "/f", Before: []byte(text + "\n")},
			{Client: client(t, id), File: "/f", After: []byte(text + "\n")},
		} {
			got := change.Diff(linux(t))
			if strings.Contains(strings.ToLower(got), "hidden") || strings.Count(got, "seen-") != 2 || !strings.Contains(got, "://me:…@db/x") {
				t.Errorf("%s: got %s", id, got)
			}
		}
	}
}

// TestConnect_Unrecorded: if the file is written, but the record of the change cannot be stored, the error says that the file was
// changed, and names the backup with its old content.
func TestConnect_Unrecorded(t *testing.T) {
	const before = "{}\n"
	sys, c := linux(t), client(t, "cursor")
	file, b := c.File(sys), Backups{Dir: filepath.Join(sys.home(), "backups")}
	put(t, file, before)
	put(t, b.index(), "[]")
	locked := func(mode os.FileMode) {
		if err := os.Chmod(b.index(), mode); err != nil {
			t.Fatal(err)
		}
	}
	said := func(err error, of ...string) {
		t.Helper()
		for _, want := range append(of, file+" was changed, but that could not be recorded: ", b.index()+" is read-only") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in %v", want, err)
			}
		}
	}
	locked(0o400)
	change, err := b.Connect(c, file, Connection{Command: "mcpx"}, reading)
	if err != nil {
		t.Fatal(err)
	}
	backup, err := b.Write(change)
	said(err, "; as it was: "+backup)
	if content(t, backup) != before || !strings.Contains(content(t, file), "mcpx") {
		t.Errorf("got %s, and %s as it was", content(t, file), content(t, backup))
	}
	if change, err = b.Disconnect(c, file, reading); err != nil {
		t.Fatal(err)
	}
	backup, err = b.Undo(change)
	said(err, "; as it was: "+backup)
	locked(0o600)
}
