package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// sources is a fake keyring and fake commands. asked has each call of them.
type sources struct {
	mu    sync.Mutex
	asked []string
}

func (s *sources) options() Options {
	note := func(what string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked = append(s.asked, what)
	}
	return Options{
		Getenv: envOf("HOME=/home/me"),
		Keyring: func(name string) (string, error) {
			note("keyring " + name)
			if name == "none" {
				return "", errors.New("there is no secret none")
			}
			return "ring-" + name, nil
		},
		Run: func(argv []string) (string, error) {
			note(fmt.Sprintf("run %q", argv))
			switch argv[0] {
			case "fails":
				return "", errors.New("the command fails failed")
			case "silent":
				return "\n", nil
			}
			return "ran-" + strings.Join(argv, "+") + "\r\n", nil
		},
	}
}

// TestElsewhere: references to the keyring, files and commands are expanded in the same keys of servers as variables are, and
// their values are secrets. If a value cannot be fetched, this is a fault of the server with the reference, and of no other.
func TestElsewhere(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := []byte(`{"mcpServers": {
		"all": {"command": "${keyring:cmd}", "args": ["--x=${command:op read x}", "${file:token}"], "env": {"E": "${command:[\"op\", \"a b\"]}-${keyring:e}"}, "cwd": "/${keyring:e}"},
		"web": {"url": "https://x/${file:` + filepath.ToSlash(filepath.Join(dir, "token")) + `}", "headers": {"Authorization": "Bearer ${keyring:e}"}, "oauth": {"client_id": "i", "client_secret": "${command:op read x}"}},
		"no-secret": {"command": "x", "env": {"E": "${keyring:none}"}},
		"no-command": {"command": "x", "args": ["${command:fails hush}"]},
		"no-words": {"command": "x", "args": ["${command: }"]},
		"silent": {"command": "x", "args": ["${command:silent}"]},
		"no-file": {"command": "x", "args": ["${file:none}"]},
		"off": {"command": "${command:never}", "disabled": true, "env": {"//": "x", "X": "${keyring:never}"}, "//": "${command:never}"}
	}, "//": "${command:never}"}`)
	s := &sources{}
	c, err := Parse(filepath.Join(dir, "c.json"), file, s.options())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Server{}
	for _, server := range c.Servers {
		all[server.Name] = server
	}
	a, w := all["all"], all["web"]
	if a.Command != "ring-cmd" || !slices.Equal(a.Args, []string{"--x=ran-op+read+x", "from-file"}) || a.Env["E"] != "ran-op+a b-ring-e" || a.Cwd != "/ring-e" {
		t.Errorf("%q %q %q %q", a.Command, a.Args, a.Env, a.Cwd)
	}
	if w.URL != "https://x/from-file" || w.Headers["Authorization"] != "Bearer ring-e" || w.OAuth.ClientSecret != "ran-op+read+x" {
		t.Errorf("%q %q %q", w.URL, w.Headers, w.OAuth.ClientSecret)
	}
	for _, secret := range []string{"ring-cmd", "ran-op+read+x", "from-file", "ran-op+a b", "ring-e"} {
		if !slices.Contains(a.Secrets, secret) || !slices.Contains(a.Credentials, secret) {
			t.Errorf("%s is not among the secrets: %q", secret, a.Secrets)
		}
	}
	for name, want := range map[string]string{
		"all": "", "web": "", "off": "",
		"no-secret":  "mcpServers.no-secret.env.E: there is no secret none",
		"no-command": "mcpServers.no-command.args[0]: the command fails failed",
		"no-words":   "mcpServers.no-words.args[0]: ${command:} needs a program",
		"silent":     "mcpServers.silent.args[0]: the value of ${command:} is empty",
		"no-file":    "mcpServers.no-file.args[0]: file ",
	} {
		if fault := all[name].Fault; want == "" && fault != "" || !strings.HasPrefix(fault, want) || strings.Contains(fault, "hush") {
			t.Errorf("%s: fault %q, want %q", name, fault, want)
		}
	}
	slices.Sort(s.asked)
	if want := []string{"keyring cmd", "keyring e", "keyring none", `run ["fails" "hush"]`, `run ["op" "a b"]`, `run ["op" "read" "x"]`, `run ["silent"]`}; !slices.Equal(s.asked, want) {
		t.Errorf("looked up %q, want each once: %q", s.asked, want)
	}
	if !slices.Equal(c.Commands, []string{"fails", "op", "silent"}) {
		t.Errorf("commands %q", c.Commands)
	}
	if again, _ := Parse(filepath.Join(dir, "c.json"), file, s.options()); !reflect.DeepEqual(c, again) {
		t.Error("the same file gives another config")
	}
}

// TestElsewhere_Structure: if the file has a fault of structure, neither the keyring nor commands are used.
func TestElsewhere_Structure(t *testing.T) {
	s := &sources{}
	if _, err := Parse("c.json", []byte(`{"mcpServers": {"a": {"command": "${command:x}", "args": 1}}}`), s.options()); err == nil || len(s.asked) > 0 {
		t.Errorf("%v, asked %q", err, s.asked)
	}
}

// TestElsewhere_Unused: if Keyring and Run are nil, their references are not expanded.
func TestElsewhere_Unused(t *testing.T) {
	c, err := Parse("c.json", []byte(`{"mcpServers": {"a": {"command": "${command:x}", "args": ["${keyring:y}"]}}}`), Options{})
	if err != nil || c.Servers[0].Command != "${command:x}" || c.Servers[0].Args[0] != "${keyring:y}" || c.Servers[0].Fault != "" {
		t.Errorf("%v %+v", err, c.Servers)
	}
}

// TestElsewhere_Only: only the references of the servers in Options.Only are fetched. If one of the names is not a server of
// the file, all references are fetched.
func TestElsewhere_Only(t *testing.T) {
	file := []byte(`{"mcpServers": {"a": {"command": "x", "args": ["${command:a}"]}, "b": {"command": "x", "args": ["${keyring:b}"]}}}`)
	for only, want := range map[string][]string{
		"a": {`run ["a"]`}, "b": {"keyring b"}, "a b": {"keyring b", `run ["a"]`}, "": {"keyring b", `run ["a"]`}, "a A": {"keyring b", `run ["a"]`},
	} {
		s := &sources{}
		o := s.options()
		o.Only = strings.Fields(only)
		c, err := Parse("c.json", file, o)
		slices.Sort(s.asked)
		if err != nil || !slices.Equal(s.asked, want) {
			t.Errorf("%q: looked up %q, %v", only, s.asked, err)
			continue
		}
		if b := c.Servers[1]; only == "a" && (b.Fault != "" || b.Args[0] != "${keyring:b}") || only == "b" && b.Args[0] != "ring-b" {
			t.Errorf("%q: %q, %q", only, b.Args, b.Fault)
		}
	}
}
