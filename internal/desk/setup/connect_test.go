package setup

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"mcpx/internal/desk/config"
)

var update = flag.Bool("update", false, "write the files of testdata anew")

var reading = config.Options{Getenv: func(string) (string, bool) { return "", false }, Executable: "/opt/bin/mcpx"}

// linux returns a Linux system with temporary home and working folders.
func linux(t *testing.T) System {
	t.Helper()
	home := t.TempDir()
	return System{OS: "linux", Dir: t.TempDir(), Getenv: func(name string) (string, bool) {
		if name == "HOME" {
			return home, true
		}
		return "", false
	}}
}

func put(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func client(t *testing.T, id string) Client {
	t.Helper()
	i := slices.IndexFunc(clients, func(c Client) bool { return c.ID == id })
	if i < 0 {
		t.Fatalf("there is no client %s", id)
	}
	return clients[i]
}

// served returns the servers in a config of mcpx with this text.
func served(t *testing.T, text string) []Found {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.json")
	put(t, file, text)
	return ReadFile(linux(t), file, reading).Servers
}

// connect plans a connection and writes it. With move, the servers in own are removed from the client's file.
func connect(t *testing.T, b Backups, c Client, file string, own []Found, move bool) Change {
	t.Helper()
	to := Connection{Command: "/opt/bin/mcpx", Args: []string{"--config", "/etc/mcpx.json"}}
	if move {
		to.Move = own
	}
	change, err := b.Connect(c, file, to, reading)
	if err != nil {
		t.Fatal(err)
	}
	if !change.Nothing() {
		if _, err := b.Write(change); err != nil {
			t.Fatal(err)
		}
	}
	return change
}

func disconnect(t *testing.T, b Backups, c Client, file string) Change {
	t.Helper()
	change, err := b.Disconnect(c, file, reading)
	if err != nil {
		t.Fatal(err)
	}
	if !change.Nothing() {
		if _, err := b.Undo(change); err != nil {
			t.Fatal(err)
		}
	}
	return change
}

// fixture is a file of testdata/connect. Its sections are a client's config file before `mcpx connect` ("before"), after it
// ("after"), and after `mcpx disconnect` if mcpx has lost its record of the file ("entry removed"). The last one is left out if
// it equals "before".
type fixture struct {
	archive          *txtar.Archive
	client           string
	move, crlf, trim bool
	mark             string
}

func readFixture(t *testing.T, name string) fixture {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{archive: archive}
	for line := range strings.Lines(string(archive.Comment)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "client":
			f.client = value
		case "move":
			f.move = true
		case "crlf":
			f.crlf = true
		case "trim":
			f.trim = true
		case "bom":
			f.mark = byteOrderMark
		}
	}
	return f
}

func (f fixture) section(name string) (string, bool) {
	for _, file := range f.archive.Files {
		if file.Name == name {
			text := string(file.Data)
			if f.trim && name == "before" {
				text = strings.TrimSuffix(text, "\n")
			}
			if f.crlf {
				text = strings.ReplaceAll(text, "\n", "\r\n")
			}
			return f.mark + text, true
		}
	}
	return "", false
}

func (f *fixture) setSection(name, text string) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, byteOrderMark), "\r\n", "\n")
	f.archive.Files = slices.DeleteFunc(f.archive.Files, func(file txtar.File) bool { return file.Name == name })
	f.archive.Files = append(f.archive.Files, txtar.File{Name: name, Data: []byte(text)})
}

func TestConnect_Files(t *testing.T) {
	names, _ := filepath.Glob("testdata/connect/*.txtar")
	if len(names) < 20 {
		t.Fatalf("only %d fixtures", len(names))
	}
	own := served(t, `{"mcpServers": {
		"m": {"command": "npx", "args": ["-y", "memory"]},
		"in a project": {"command": "npx", "args": ["-y", "memory"], "cwd": "/src/app"}
	}}`)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			f := readFixture(t, name)
			sys, c := linux(t), client(t, f.client)
			file := c.File(sys)
			before, there := f.section("before")
			if there {
				put(t, file, before)
			}
			b := Backups{Dir: filepath.Join(sys.home(), "backups")}
			connect(t, b, c, file, own, f.move)
			after := content(t, file)
			if again := connect(t, b, c, file, own, f.move); !again.Nothing() {
				t.Errorf("connecting again changes the file:\n%s", again.Diff(sys))
			}

			// Without the records, Disconnect removes only the entry of mcpx.
			blind := Backups{Dir: filepath.Join(t.TempDir(), "backups")}
			alone, err := blind.Disconnect(c, file, reading)
			if err != nil || alone.Exact {
				t.Fatalf("got %v, exact: %v", err, alone.Exact)
			}
			if *update {
				f.setSection("after", after)
				if string(alone.After) != before {
					f.setSection("entry removed", string(alone.After))
				}
				if err := os.WriteFile(name, txtar.Format(f.archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if f.trim { // each section of the archive ends with a line break
				after = strings.TrimSuffix(after, "\n") + "\n"
			}
			if want, _ := f.section("after"); after != want {
				t.Errorf("after connect:\n%q\nwant:\n%q", after, want)
			}
			want, ok := f.section("entry removed")
			if !ok {
				want = before
			}
			if string(alone.After) != want {
				t.Errorf("with the entry removed:\n%q\nwant:\n%q", alone.After, want)
			}

			if change := disconnect(t, b, c, file); !change.Exact {
				t.Error("disconnect is not exact")
			}
			if !there {
				if exists(filepath.Dir(file)) {
					t.Errorf("%s is still there", filepath.Dir(file))
				}
			} else if got := content(t, file); got != before {
				t.Errorf("after disconnect:\n%q\nwant:\n%q", got, before)
			}
			if left, _ := os.ReadDir(b.Dir); len(left) != 1 {
				t.Errorf("left in the folder of backups: %v", left)
			}
		})
	}
}

// TestConnect_Changed: if the client changed its file after connect, disconnect removes only the entry of mcpx and adds
// the moved servers again.
func TestConnect_Changed(t *testing.T) {
	own := served(t, `{"mcpServers": {"m": {"command": "npx", "args": ["-y", "memory"]}}}`)
	for _, one := range []struct{ id, before, add, want string }{
		{"cursor", `{
  "mcpServers": {
    "memory": {"command": "npx", "args": ["-y", "memory"]},
    "own": {"command": "own"}
  }
}
`, `{
  "mcpServers": {
    "own": {"command": "own"}, // new comment
    "new": {"command": "new"},
    "mcpx": {"command": "/opt/bin/mcpx", "args": ["--config", "/etc/mcpx.json"], "disabled": false}
  }
}
`, `{
  "mcpServers": {
    "own": {"command": "own"}, // new comment
    "new": {"command": "new"},
    "memory": {
      "command": "npx",
      "args": ["-y", "memory"]
    }
  }
}
`},
		{"codex", `model = "a"

[mcp_servers.memory]
command = "npx"
args = ["-y", "memory"] # all
`, `model = "b"

[mcp_servers.mcpx]
command = "/opt/bin/mcpx"
args = ["--config", "/etc/mcpx.json"]

[mcp_servers.mcpx.tools.exec]
approval_mode = "approve"

[tui]
x = 1
`, `model = "b"

[tui]
x = 1

[mcp_servers.memory]
command = "npx"
args = ["-y", "memory"] # all
`},
		{"goose", `extensions:
  memory:
    enabled: true # always
    type: stdio
    name: memory
    cmd: npx
    args:
    - -y
    - memory
`, `extensions:
    mcpx:
        enabled: true
        type: stdio
        name: mcpx
        cmd: /opt/bin/mcpx
        args:
        - --config
        - /etc/mcpx.json
    new:
        enabled: true
        type: stdio
        name: new
        cmd: new
        args: []
GOOSE_MODE: auto
`, `extensions:
    new:
        enabled: true
        type: stdio
        name: new
        cmd: new
        args: []
    memory:
      enabled: true # always
      type: stdio
      name: memory
      cmd: npx
      args:
      - -y
      - memory
GOOSE_MODE: auto
`},
	} {
		t.Run(one.id, func(t *testing.T) {
			sys, c := linux(t), client(t, one.id)
			file := c.File(sys)
			put(t, file, one.before)
			b := Backups{Dir: filepath.Join(sys.home(), "backups")}
			connect(t, b, c, file, own, true)
			put(t, file, one.add)
			change := disconnect(t, b, c, file)
			if got := content(t, file); got != one.want || change.Exact {
				t.Errorf("got exact: %v\n%s\nwant\n%s", change.Exact, got, one.want)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("got mode %v, %v", info.Mode(), err)
			}
		})
	}
}

// TestConnect_MovedLater: disconnect also adds a server again that only a second connect has moved.
func TestConnect_MovedLater(t *testing.T) {
	own := served(t, `{"mcpServers": {"m": {"command": "npx", "args": ["-y", "memory"]}}}`)
	sys, c := linux(t), client(t, "cursor")
	file := c.File(sys)
	put(t, file, "{}\n")
	b := Backups{Dir: filepath.Join(sys.home(), "backups")}
	connect(t, b, c, file, nil, false)
	put(t, file, strings.Replace(content(t, file), `"mcpServers": {`, `"mcpServers": {
    "later": {"command": "npx", "args": ["-y", "memory"]},`, 1))
	if change := connect(t, b, c, file, own, true); !slices.Equal(change.Moved, []string{"later"}) {
		t.Errorf("moved %v", change.Moved)
	}
	if strings.Contains(content(t, file), "later") {
		t.Errorf("got %s", content(t, file))
	}
	disconnect(t, b, c, file)
	if got := content(t, file); !strings.Contains(got, `"later": {`) || strings.Contains(got, "mcpx") {
		t.Errorf("got %s", got)
	}
}

// TestConnect_Twice: after two connects, disconnect restores the file from before the first one. If the client changed the
// file in between, its change stays.
func TestConnect_Twice(t *testing.T) {
	const before = "{\n  \"mcpServers\": {\"a\": {\"command\": \"a\"}}\n}\n"
	sys, c := linux(t), client(t, "cursor")
	file := c.File(sys)
	put(t, file, before)
	b := Backups{Dir: filepath.Join(sys.home(), "backups")}
	connect(t, b, c, file, nil, false)
	change, err := b.Connect(c, file, Connection{Command: "/usr/local/bin/mcpx"}, reading)
	if err != nil || change.Nothing() {
		t.Fatalf("got %v, nothing: %v", err, change.Nothing())
	}
	if _, err := b.Write(change); err != nil {
		t.Fatal(err)
	}
	if got := content(t, file); !strings.Contains(got, "/usr/local/bin/mcpx") || strings.Contains(got, "/opt/") {
		t.Errorf("got %s", got)
	}
	disconnect(t, b, c, file)
	if got := content(t, file); got != before {
		t.Errorf("got %q", got)
	}

	connect(t, b, c, file, nil, false)
	put(t, file, strings.Replace(content(t, file), `"a"`, `"b"`, 1))
	change, err = b.Connect(c, file, Connection{Command: "/usr/local/bin/mcpx"}, reading)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(change); err != nil {
		t.Fatal(err)
	}
	if change := disconnect(t, b, c, file); change.Exact {
		t.Error("the client's own change would be lost")
	}
	if got, want := content(t, file), strings.Replace(before, `"a"`, `"b"`, 1); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestConnect_KeepsAdded: connect keeps what the user added to the entry of mcpx.
func TestConnect_KeepsAdded(t *testing.T) {
	for id, one := range map[string]struct{ before, old, new string }{
		"cursor": {`{"mcpServers": {"mcpx": {"command": "mcpx", "timeout": 60, /* yes */ "autoApprove": ["inspect"]}}}`,
			`"mcpx", "timeout": 60, /* yes */ "autoApprove": ["inspect"]`, `"/opt/bin/mcpx", "timeout": 60, /* yes */ "autoApprove": ["inspect"], "args": ["--config","/etc/mcpx.json"]`},
		"codex": {"[mcp_servers.mcpx]\nargs = [\n  'serve', # old\n]\nstartup_timeout_sec = 60 # slow\ncommand = 'mcpx'\n\n[mcp_servers.mcpx.tools.exec]\napproval_mode = 'approve'\n",
			"args = [\n  'serve', # old\n]\nstartup_timeout_sec = 60 # slow\ncommand = 'mcpx'\n", "startup_timeout_sec = 60 # slow\ncommand = '/opt/bin/mcpx'\nargs = ['--config', '/etc/mcpx.json']\n"},
		"goose": {"extensions:\n  Mcpx:\n    args:\n    - serve\n    timeout: 60 # slow\n    cmd: mcpx\n    enabled: false\n    name: Mcpx\n    type: stdio\nx: 1\n",
			"args:\n    - serve\n    timeout: 60 # slow\n    cmd: mcpx\n", "args: [\"--config\", \"/etc/mcpx.json\"]\n    timeout: 60 # slow\n    cmd: \"/opt/bin/mcpx\"\n"},
		"cline": {`{"mcpServers":{"mcpx":{"transport":{"type":"stdio","command":"mcpx"}}}}`, `{"transport":{"type":"stdio","command":"mcpx"}}`,
			`{"command":"/opt/bin/mcpx","args":["--config","/etc/mcpx.json"]}`},
		"gemini": {`{"mcpServers":{"gateway":{"command":"/old/mcpx","args":[]}}}`, `"/old/mcpx","args":[]`, `"/opt/bin/mcpx","args":["--config","/etc/mcpx.json"]`},
	} {
		t.Run(id, func(t *testing.T) {
			sys, c := linux(t), client(t, id)
			file := c.File(sys)
			put(t, file, one.before)
			connect(t, Backups{Dir: filepath.Join(sys.home(), "backups")}, c, file, nil, false)
			if got, want := content(t, file), strings.Replace(one.before, one.old, one.new, 1); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestConnect_Variables: the entry for Codex, which passes few environment variables to servers, names those that mcpx's config uses.
// Names that the user added stay.
func TestConnect_Variables(t *testing.T) {
	const wanted = "[mcp_servers.mcpx]\ncommand = '/opt/bin/mcpx'\nargs = ['--config', '/etc/mcpx.json']\n"
	for name, one := range map[string]struct{ before, after string }{
		"new":   {"", wanted + "env_vars = ['A', 'B']\n"},
		"again": {wanted + "env_vars = ['A', 'B']\n", wanted + "env_vars = ['A', 'B']\n"},
		"older": {wanted, wanted + "env_vars = ['A', 'B']\n"},
		"added": {wanted + "# mine\nenv_vars = [\n  'B', 'C',\n]\ntool_timeout_sec = 9\n", wanted + "env_vars = ['B', 'C', 'A']\n# mine\ntool_timeout_sec = 9\n"},
	} {
		t.Run(name, func(t *testing.T) {
			sys, c := linux(t), client(t, "codex")
			file := c.File(sys)
			put(t, file, one.before)
			b := Backups{Dir: filepath.Join(sys.home(), "backups")}
			change, err := b.Connect(c, file, Connection{Command: "/opt/bin/mcpx", Args: []string{"--config", "/etc/mcpx.json"},
				Variables: []string{"A", "B", "HOME", "PATH"}}, reading)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(change.After); got != one.after {
				t.Errorf("got\n%s\nwant\n%s", got, one.after)
			}
		})
	}
}

// TestConnect_ByHand: disconnect removes an entry of mcpx that the user wrote by hand, with or without a connect before.
func TestConnect_ByHand(t *testing.T) {
	const before = "{\"mcpServers\": {\"mcpx\": {\"command\": \"mcpx\"}, \"a\": {\"command\": \"a\"}}}\n"
	for _, first := range []bool{true, false} {
		sys, c := linux(t), client(t, "cursor")
		file := c.File(sys)
		put(t, file, before)
		b := Backups{Dir: filepath.Join(sys.home(), "backups")}
		if first {
			connect(t, b, c, file, nil, false)
		}
		if change := disconnect(t, b, c, file); change.Exact {
			t.Error("it is back")
		}
		if got, want := content(t, file), "{\"mcpServers\": { \"a\": {\"command\": \"a\"}}}\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestConnect_Link: a symbolic link remains a symbolic link, even if its target does not exist.
func TestConnect_Link(t *testing.T) {
	for _, there := range []bool{true, false} {
		t.Run(fmt.Sprintf("there=%v", there), func(t *testing.T) {
			sys, c := linux(t), client(t, "cursor")
			file, dotfiles := c.File(sys), filepath.Join(sys.Dir, "mcp.json")
			if there {
				put(t, dotfiles, "{}\n")
			}
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(dotfiles, file); err != nil {
				t.Skip(err)
			}
			b := Backups{Dir: filepath.Join(sys.home(), "backups")}
			connect(t, b, c, file, nil, false)
			if got := content(t, dotfiles); !strings.Contains(got, "/opt/bin/mcpx") {
				t.Errorf("got %s", got)
			}
			disconnect(t, b, c, file)
			if info, err := os.Lstat(file); err != nil || info.Mode()&fs.ModeSymlink == 0 {
				t.Errorf("no link any more: %v, %v", info, err)
			}
			if there != exists(dotfiles) {
				t.Errorf("the file is there: %v", exists(dotfiles))
			}
		})
	}
}
