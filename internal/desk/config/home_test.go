package config

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"
)

// TestHome_Unknown: a path in the home folder is a fault of its key if the home folder is unknown, as in a service without HOME.
func TestHome_Unknown(t *testing.T) {
	const why = "the home folder is unknown, because neither HOME nor USERPROFILE is set: set HOME, or write the whole path"
	of := func(text string) (*Config, []string) {
		cfg, err := Parse(filepath.Join(t.TempDir(), "c.json"), []byte(text), Options{})
		var all []string
		if faults, ok := errors.AsType[*Faults](err); ok {
			for _, one := range faults.List {
				all = append(all, one.String())
			}
		}
		return cfg, all
	}
	cfg, faults := of(`{"mcpServers":{"s":{"command":"x","args":["${userHome}/a"],"env":{"KEY":"${file:~/key}"}}}}`)
	if want := "mcpServers.s.args[0]: " + why + "; mcpServers.s.env.KEY: " + why; cfg == nil || cfg.Servers[0].Fault != want {
		t.Errorf("got %v, faults %q, want a server with the fault %q", cfg, faults, want)
	}
	cfg, faults = of(`{"mcpServers":{"s":{"command":"x","cwd":"~/a"}}}`)
	if want := "mcpServers.s.cwd: " + why; cfg == nil || cfg.Servers[0].Fault != want {
		t.Errorf("got %v, faults %q, want a server with the fault %q", cfg, faults, want)
	}
	_, faults = of(`{"mcpServers":{},"files":["~/a","b"],"log_file":"~/log"}`)
	if want := []string{"files[0]: " + why, "log_file: " + why}; !slices.Equal(faults, want) {
		t.Errorf("got  %q\nwant %q", faults, want)
	}
}

// TestHome_Cwd: a cwd that begins with ~/ is in the home folder. Another relative cwd stays as it is.
func TestHome_Cwd(t *testing.T) {
	home := t.TempDir()
	o := Options{Getenv: func(name string) (string, bool) { return home, name == "HOME" }}
	for written, want := range map[string]string{"~/a b": filepath.Join(home, "a b"), "a/b": "a/b", "~other": "~other", "": ""} {
		for _, key := range []string{"cwd", "working_directory"} {
			text := `{"mcpServers":{"s":{"command":"x","` + key + `":"` + written + `"}}}`
			cfg, err := Parse("/etc/c.json", []byte(text), o)
			if err != nil {
				t.Fatal(err)
			}
			if s := cfg.Servers[0]; s.Cwd != want || s.Fault != "" {
				t.Errorf("%s: got %q, fault %q", text, s.Cwd, s.Fault)
			}
		}
	}
}
