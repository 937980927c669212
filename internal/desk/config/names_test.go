package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// parsed parses a config and returns it with its servers by name. The test fails if Parse returns an error.
func parsed(t *testing.T, text string) (*Config, map[string]Server) {
	t.Helper()
	cfg, err := Parse("c.json", []byte(text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]Server)
	for _, s := range cfg.Servers {
		all[s.Name] = s
	}
	return cfg, all
}

// TestSafeNames: servers whose names have characters that are not allowed are renamed, and disabled_tools is changed
// accordingly.
func TestSafeNames(t *testing.T) {
	cfg, all := parsed(t, `{"mcpServers": {"my server #1": {"command": "a"}, "my_server__1": {"command": "b"}, "Сервер": {"command": "c"}, "mcpх": {"command": "d"}},
		"disabled_tools": ["my server #1.delete_*", "my_server__1.x"]}`)
	for name, command := range map[string]string{"my_server__1": "b", "my_server__1_2": "a", "______": "c", "mcp_": "d"} {
		if all[name].Command != command {
			t.Errorf("%s is %q, want %q", name, all[name].Command, command)
		}
	}
	if want := []string{"my_server__1_2.delete_*", "my_server__1.x"}; !slices.Equal(cfg.DisabledTools, want) {
		t.Errorf("disabled: %q", cfg.DisabledTools)
	}
	if len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0], `"my server #1" as my_server__1_2`) || !strings.Contains(cfg.Warnings[0], "as ______") {
		t.Errorf("warnings: %q", cfg.Warnings)
	}
	// As parts of a path, such as /mcp/servers/.., these would name a folder.
	if _, all = parsed(t, `{"mcpServers": {"..": {"command": "a"}, ".": {"command": "b"}, "..a": {"command": "c"}}}`); all["__"].Command != "a" || all["_"].Command != "b" || all["..a"].Command != "c" {
		t.Errorf("names of dots: %v", slices.Sorted(maps.Keys(all)))
	}
	cfg, _ = parsed(t, `{"mcpServers": {"time": {"command": "a"}, "Time": {"command": "b"}}}`)
	if len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0], `"time" and "Time" differ only in case`) {
		t.Errorf("warnings: %q", cfg.Warnings)
	}
}

// TestSafeNames_Filters: filters of tools may name a renamed server as the file does, with its whole name.
func TestSafeNames_Filters(t *testing.T) {
	const file = `{"mcpServers": {"my notes": {"command": "a"}, "my.git": {"command": "b"}, "my_notes": {"command": "c"}, "a [x]/y": {"command": "d"}}, "disabled_tools": [%[1]s],
		"groups": {"g": {"tools": {"allow": [%[1]s], "deny": [%[1]s]}}, "all": {"tools": {"deny": []}}}}`
	for globs, want := range map[string][]string{
		`"my notes.delete_*"`: {"my_notes_2.delete_*"},
		`"my.git.x"`:          {"my.git.x"},
		`"*.x", "my_notes.y"`: {"*.x", "my_notes.y"},
		`"none.x"`:            {"none.x"},
		`"a [x]/y.delete"`:    {"a__x__y.delete"},
	} {
		cfg, _ := parsed(t, fmt.Sprintf(file, globs))
		g := cfg.Group("g").Tools
		for _, got := range [][]string{cfg.DisabledTools, g.Allow, g.Deny} {
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", globs, got, want)
			}
		}
		if all := cfg.Group("all").Tools; all.Allow != nil {
			t.Errorf("%s: allow is %q without the key", globs, all.Allow)
		}
	}
}

// TestValidName: a name is valid if a server of the file could have it and would not be renamed.
func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "..a": true, "A.b_c-1": true, strings.Repeat("n", 64): true,
		"": false, ".": false, "..": false, "a b": false, "MCPX": false, strings.Repeat("n", 65): false,
	} {
		if got := ValidName(name); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
}

func TestCommand_HoldsArguments(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	program := filepath.ToSlash(filepath.Join(folder, "server"))
	if err := os.WriteFile(program, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		entry, command string
		args           []string
		warned         bool
	}{
		{`"command": "npx -y pkg", "args": ["x"]`, "npx", []string{"-y", "pkg", "x"}, true},
		{`"command": "sh -c 'exec a b'"`, "sh", []string{"-c", "exec a b"}, true},
		{`"command": " npx ", "args": ["x"]`, " npx ", []string{"x"}, false},
		{`"command": "` + program + `"`, program, nil, false},
		{`"command": "/no/such folder/server"`, "/no/such folder/server", nil, false},
		{`"command": {"path": "npx", "args": ["x"], "env": {"A": "1"}}`, "npx", []string{"x"}, false},
	} {
		cfg, all := parsed(t, `{"mcpServers": {"a": {`+test.entry+`}}}`)
		if a := all["a"]; a.Command != test.command || !slices.Equal(a.Args, test.args) || a.Fault != "" || (len(cfg.Warnings) > 0) != test.warned {
			t.Errorf("%s: %q %q, fault %q, warnings %q", test.entry, a.Command, a.Args, a.Fault, cfg.Warnings)
		}
	}
	// What looks secret in the arguments becomes a secret too.
	if _, all := parsed(t, `{"mcpServers": {"a": {"command": "x --token=abcdefgh"}}}`); !slices.Contains(all["a"].Secrets, "abcdefgh") {
		t.Errorf("secrets: %q", all["a"].Secrets)
	}
	for _, runner := range []string{"npx", "/usr/bin/uvx", "bunx"} {
		if _, all := parsed(t, `{"mcpServers": {"a": {"command": "`+runner+`"}}}`); !strings.Contains(all["a"].Fault, "needs the name of a package") {
			t.Errorf("%s alone: fault %q", runner, all["a"].Fault)
		}
	}
}

// TestEditors: in a settings file of VS Code or Zed, the servers are read, and all other settings are ignored, except keys of mcpx
// that promise a protection.
func TestEditors(t *testing.T) {
	for _, text := range []string{
		`{"mcp": {"inputs": [], "servers": {"a": {"command": "x"}}}, "editor.fontSize": 12, "server": {"command": "no"}}`,
		`{"context_servers": {"a": {"source": "custom", "command": "x", "enabled": true}}, "log_levels": 5, "theme": "x"}`,
	} {
		cfg, all := parsed(t, text)
		if len(all) != 1 || all["a"].Command != "x" || !all["a"].Enabled {
			t.Errorf("%s: %+v, %q", text, all, cfg.Warnings)
		}
		if len(cfg.Warnings) != 1 || !strings.HasPrefix(cfg.Warnings[0], "keys of other clients") {
			t.Errorf("%s: warnings %q", text, cfg.Warnings)
		}
	}
	// Keys of the editor that have the name of one of mcpx's own keys are ignored, too.
	cfg, all := parsed(t, `{"$schema": "zed://schemas/settings", "context_servers": {"a": {"command": "x"}}, "telemetry": {"metrics": false}, "pin": "off", "auth": 5}`)
	if len(all) != 1 || !cfg.Telemetry.Metrics || !slices.Equal(cfg.Warnings, []string{"keys of other clients that mean nothing here, ignored: telemetry, pin, auth"}) {
		t.Errorf("metrics %v, warnings %q", cfg.Telemetry.Metrics, cfg.Warnings)
	}
	// Keys that promise a protection are faults.
	for _, key := range []string{
		`"auth": {"tokens": {"me": "x"}}`, `"auth": {}`, `"auth_token": "x"`, `"tls": {"cert": "c", "key": "k"}`, `"audit": {"file": "f"}`, `"limits": {"principal": {"calls_per_minute": 5}}`,
		`"groups": {"g": ["a"]}`, `"rate_limit_per_minute": 5`, `"confirm": "all"`, `"pin": "block"`, `"disabled_tools": ["a.b"]`,
	} {
		name, _, _ := strings.Cut(key[1:], `"`)
		for _, servers := range []string{`"context_servers": {"a": {"command": "x"}}`, `"mcp": {"servers": {"a": {"command": "x"}}}`} {
			_, err := Parse("c.json", []byte(`{`+key+`, `+servers+`}`), Options{})
			if got := fmt.Sprint(err); !strings.HasPrefix(got, "c.json: "+name+": is not read from an editor's settings; ") || strings.Contains(got, "\n") {
				t.Errorf("%s: %s", key, got)
			}
		}
	}
	for _, key := range []string{"auth", "tls", "audit", "limits"} {
		cfg, _ := parsed(t, `{"context_servers": {"a": {"command": "x"}}, "`+key+`": {"enabled": false, "x": 1}}`)
		if want := []string{"keys of other clients that mean nothing here, ignored: " + key}; !slices.Equal(cfg.Warnings, want) {
			t.Errorf("%s is off: warnings %q", key, cfg.Warnings)
		}
	}
	if _, all := parsed(t, `{"context_servers": {"a": {"source": "extension", "settings": {}}}}`); !strings.Contains(all["a"].Fault, "only Zed can start") {
		t.Errorf("fault %q", all["a"].Fault)
	}
	// The key mcp of Gemini CLI contains no servers.
	cfg, _ = parsed(t, `{"mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "x"}}}`)
	if len(cfg.Servers) != 1 {
		t.Errorf("%d servers", len(cfg.Servers))
	}
}

func TestStandardJSON(t *testing.T) {
	got, err := StandardJSON("arguments", []byte("{\"a\": [1.10, 2,], // note\n}"))
	if text := strings.Join(strings.Fields(string(got)), ""); err != nil || text != `{"a":[1.10,2]}` {
		t.Errorf("%s, %v", text, err)
	}
	if got, err := StandardJSON("arguments", []byte("\xEF\xBB\xBF{}")); err != nil || strings.TrimSpace(string(got)) != "{}" {
		t.Errorf("a byte order mark: %q, %v", got, err)
	}
	if _, err := StandardJSON("arguments", []byte(`{timezone: UTC}`)); err == nil || err.Error() != `arguments:1:2: invalid JSON: keys need double quotes ("); put them around this one` {
		t.Errorf("got %v", err)
	}
}

func TestLoad_Folder(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "config.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(folder, Options{})
	hinted, ok := err.(*Error)
	if !ok || !strings.Contains(err.Error(), "is a folder") || hinted.Hint() != "did you mean "+file+"?" {
		t.Errorf("got %v, %+v", err, hinted)
	}
}
