package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	work, user, empty := t.TempDir(), t.TempDir(), t.TempDir()
	t.Chdir(work)
	userFile := filepath.Join(user, "mcpx", "config.json")
	named := filepath.Join(work, "named.json")
	for _, path := range []string{userFile, named, "config.json"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const demo = `run "mcpx init" to make one from the files of your MCP clients, "mcpx demo" to try mcpx without a config, or copy config.example.json to `
	const local = "; ./config.json is used only from a terminal or when --config names it"
	nowhere := filepath.Join(empty, "mcpx", "config.json")
	for _, tt := range []struct {
		name, flag, env string
		tty             bool
		dir             string
		want, err, hint string
	}{
		{"flag wins", named, "other.json", true, user, named, "", ""},
		{"flag is missing", "no.json", named, true, user, "no.json", "config file not found: no.json", strings.Replace(demo, "init", "init --config no.json", 1) + "no.json"},
		{"variable", "", named, true, user, named, "", ""},
		{"variable is missing", "", "no.json", true, user, "no.json", "config file not found: no.json", strings.Replace(demo, "init", "init --config no.json", 1) + "no.json"},
		{"user folder", "", "", true, user, userFile, "", ""},
		{"local file on a terminal", "", "", true, empty, "config.json", "", ""},
		{"local file under an editor", "", "", false, empty, "", "config file not found: " + nowhere, demo + nowhere + local},
		{"no user folder", "", "", false, "", "", "config file not found: there is no user configuration folder to look in", demo + "a file named with --config" + local},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Find(tt.flag, envOf("MCPX_CONFIG="+tt.env), tt.tty, tt.dir)
			text, hint := "", ""
			var withHint interface{ Hint() string }
			if errors.As(err, &withHint) {
				text, hint = err.Error(), withHint.Hint()
			} else if err != nil {
				t.Fatalf("error without a hint: %v", err)
			}
			if got != tt.want || text != tt.err || hint != tt.hint {
				t.Errorf("got  %q, %q, hint %q\nwant %q, %q, hint %q", got, text, hint, tt.want, tt.err, tt.hint)
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.json")
	f, err := os.Create(large)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(maxFileBytes+1), f.Close()); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing.json")
	for path, want := range map[string]string{
		missing: "config file not found: " + missing,
		dir:     "reading config " + dir + ": is a folder, not a file",
		large:   "reading config " + large + ": is larger than 8 MiB",
	} {
		_, err := Load(path, Options{})
		var e *Error
		if !errors.As(err, &e) || e.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestFind_DanglingLink: the error about a link to a file that does not exist names that file, also if it is behind several links.
func TestFind_DanglingLink(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "mcpx", "config.json")
	if err := os.Mkdir(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", "gone.json"), link); err != nil {
		t.Skip(err) // Windows permits links only to some users
	}
	second := filepath.Join(dir, "second.json")
	if err := os.Symlink(link, second); err != nil {
		t.Fatal(err)
	}
	_, named := Find(link, envOf(""), false, "")
	_, ofUser := Find("", envOf(""), false, dir)
	_, loaded := Load(link, Options{})
	_, chain := Load(second, Options{})
	for path, errs := range map[string][]error{link: {named, ofUser, loaded}, second: {chain}} {
		want := "config file not found: " + path + " is a symbolic link to " + filepath.Join(dir, "gone.json") + ", where no file is"
		for _, err := range errs {
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		}
	}
}

// TestEnvFileIsRead: the path of an envFile is relative to the folder of the config file, not to the working folder.
func TestEnvFileIsRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.env", "KEY='v a l'\r\nOTHER=${X}\n")
	write("config.json", `{"mcpServers": {
		"a": {"command": "x", "envFile": "a.env"},
		"b": {"command": "x", "envFile": "."}
	}}`)
	c, err := Load(filepath.Join(dir, "config.json"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	env := c.Servers[0].Env
	if env["KEY"] != "v a l" || env["OTHER"] != "${X}" || len(env) != 2 {
		t.Errorf("env %q", env)
	}
	if got, want := c.Servers[1].Fault, "mcpServers.b.envFile: cannot be read: is a folder, not a file"; got != want {
		t.Errorf("fault %q, want %q", got, want)
	}
	if runtime.GOOS != "windows" && strings.Contains(c.Servers[1].Fault, dir) {
		t.Errorf("fault %q holds the folder", c.Servers[1].Fault)
	}
}
