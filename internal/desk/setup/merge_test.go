package setup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"mcpx/internal/desk/config"
)

// found writes client files, keyed by client ID, into a home folder and returns what Find finds there.
func found(t *testing.T, sys System, files map[string]string) []Source {
	t.Helper()
	for id, text := range files {
		put(t, client(t, id).File(sys), text)
	}
	return Find(sys, reading)
}

func TestMerge(t *testing.T) {
	sys := linux(t)
	put(t, filepath.Join(sys.home(), ".config/Code/User/settings.json"), `{
  "editor.fontSize": 12,
  "mcp": {"inputs": [], "servers": {"old": {"type": "stdio", "command": "old"}}}, // until 1.102
}`)
	sources := found(t, sys, map[string]string{
		"claude-code": `{"mcpServers": {
			"github": {"type": "http", "url": "https://one.example.com/mcp"},
			"off": {"command": "off", "disabled": true}
		}, "projects": {"/srv/work": {"mcpServers": {"local": {"command": "./run.sh", "env": {"KEY_SECRET": "s3cr3t-value"}}}}}}`,
		"cursor": `{"mcpServers": {
			"github": {"url": "https://two.example.com/mcp", "headers": {"Authorization": "Bearer abcdefghijklmnop"}, "autoApprove": ["x"]},
			"Memory": {"command": "npx", "args": ["-y", "memory"]},
			"off": {"command": "off"},
			"mcpx": {"command": "/usr/bin/mcpx", "args": ["--config", "/c.json"]},
			"my notes": {"command": "notes"},
			"bad": {"command": "x", "args": "-y"}
		}}`,
		"vscode": `{"servers": {"again": {"type": "stdio", "command": "npx", "args": ["-y", "memory"]}, "gh": {"url": "https://x.example.com", "headers": {"A": "${input:t}"}}}}`,
		"codex":  "[mcp_servers.docs]\nurl = \"https://docs.example.com/mcp\"\nbearer_token_env_var = \"DOCS_TOKEN\"\nenabled_tools = [\"search\"]\nstartup_timeout_sec = 20.5\n[mcp_servers.memory]\ncommand = \"npx\"\nargs = [\"-y\", \"memory\"]\n",
		"zed":    `{"context_servers": {"ext": {"source": "extension", "settings": {}}, "z": {"command": {"path": "z", "args": ["a"], "env": {"B": "c"}}}}}`,
	})
	merged, skipped := Merge(sys, nil, sources)
	var got []string
	for _, m := range merged {
		entry, err := marshal(m.Found.entry)
		if err != nil {
			t.Fatal(err)
		}
		line := m.Name + " " + string(entry) + " " + strings.Join(m.Clients, ",")
		if m.Found.Needs != "" {
			line += " NEEDS " + m.Found.Needs
		}
		if len(m.Found.LeftOut) > 0 {
			line += " WITHOUT " + strings.Join(m.Found.LeftOut, ",")
		}
		got = append(got, line)
	}
	for _, s := range skipped {
		got = append(got, "not "+s.Name+": "+s.Why+" in "+s.From)
	}
	want := []string{
		`github {"type":"http","url":"https://one.example.com/mcp"} Claude Code`,
		`off {"command":"off"} Claude Code,Cursor`,
		`local {"command":"./run.sh","env":{"KEY_SECRET":"s3cr3t-value"},"cwd":"/srv/work"} Claude Code`,
		`github-cursor {"url":"https://two.example.com/mcp","headers":{"Authorization":"Bearer abcdefghijklmnop"}} Cursor WITHOUT autoApprove`,
		`Memory {"command":"npx","args":["-y","memory"]} Cursor,VS Code,Codex`,
		`my_notes {"command":"notes"} Cursor`,
		`gh {"url":"https://x.example.com","headers":{"A":"${input:t}"}} VS Code NEEDS headers.A: only an editor can fill in "${input:t}", use an environment variable`,
		`old {"type":"stdio","command":"old"} VS Code`,
		`z {"command":{"path":"z","args":["a"],"env":{"B":"c"}}} Zed`,
		`docs {"bearer_token_env_var":"DOCS_TOKEN","enabled_tools":["search"],"startup_timeout_sec":20.5,"url":"https://docs.example.com/mcp"} Codex NEEDS bearer_token_env_var: the environment variable that it names is not set`,
		`not mcpx: is mcpx itself in Cursor`,
		`not bad: args: must be an array of strings, not a string in Cursor`,
		`not ext: is an extension of Zed; only Zed can start it in Zed`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := Secrets(merged); n != 2 {
		t.Errorf("%d with secrets", n)
	}

	// The result is a valid config. A comment in each server says which files it comes from.
	text, err := NewConfig(nil, merged)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("config.json", text, reading)
	if err != nil || len(cfg.Servers) != len(merged) || len(cfg.Warnings) > 0 {
		t.Fatalf("got %v, %d servers, %v\n%s", err, len(cfg.Servers), cfg.Warnings, text)
	}
	for _, line := range []string{
		"      // from Cursor, ~/.cursor/mcp.json; VS Code, ~/.config/Code/User/mcp.json; Codex, ~/.codex/config.toml\n",
		"      // from Cursor, ~/.cursor/mcp.json; its name there: \"github\"; left out: autoApprove\n",
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("missing %q in\n%s", line, text)
		}
	}

	// A second Merge finds nothing to add.
	file := filepath.Join(sys.home(), "config.json")
	put(t, file, string(text))
	again, skipped := Merge(sys, ReadFile(sys, file, reading).Servers, sources)
	if len(again) != 0 {
		t.Errorf("again: %v", again)
	}
	if !slices.ContainsFunc(skipped, func(s Skipped) bool { return s.Name == "Memory" && s.Why == "is in the config already" }) {
		t.Errorf("got %v", skipped)
	}
}

// TestMerge_Filters: several clients have the same server, but some of them hide one of its tools. Merge adds the server twice,
// with and without the hidden tool, so that no client gets a tool that it has hidden, or loses one.
func TestMerge_Filters(t *testing.T) {
	sys := linux(t)
	sources := found(t, sys, map[string]string{
		"cursor":  `{"mcpServers": {"s": {"command": "s"}}}`,
		"gemini":  `{"mcpServers": {"s": {"command": "s", "excludeTools": ["delete"]}}}`,
		"kiro":    `{"mcpServers": {"s": {"command": "s", "disabledTools": ["delete"]}}}`,
		"roo":     `{"mcpServers": {"s": {"command": "s", "disabledTools": []}}}`,
		"copilot": `{"mcpServers": {"s": {"command": "s", "tools": ["*"]}}}`,
	})
	merged, _ := Merge(sys, nil, sources)
	var got []string
	for _, m := range merged {
		got = append(got, m.Name+" "+strings.Join(m.Clients, ",")+" "+strings.Join(m.Found.Server.Tools.Deny, ","))
	}
	if want := []string{"s Cursor,Roo Code,Copilot CLI ", "s-gemini Gemini CLI,Kiro delete"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	// A server of the config that hides no tools does not replace a client's entry that hides some. A server of the config that
	// hides tools does replace an entry that hides none.
	all, filtered := sources[0].Servers, sources[1].Servers
	if got := Doubled(filtered, all); len(got) > 0 {
		t.Errorf("moved %v", got)
	}
	if got := Doubled(all, filtered); !slices.Equal(got, []string{"s"}) {
		t.Errorf("moved %v", got)
	}
	if merged, _ := Merge(sys, filtered, sources[:1]); len(merged) > 0 {
		t.Errorf("added %v", merged)
	}
}

// TestMerge_Existing: an existing config keeps its content and gets the servers that it lacks.
func TestMerge_Existing(t *testing.T) {
	sys := linux(t)
	const before = "// mine\n{\n\t\"mcpServers\": {\n\t\t// the token is in the environment\n\t\t\"github\": {\"url\": \"https://other.example.com\"}, // keep\n\t},\n\t\"log_level\": \"debug\",\n}\n"
	file := filepath.Join(sys.home(), "config.json")
	put(t, file, before)
	sources := found(t, sys, map[string]string{"cursor": `{"mcpServers": {"github": {"url": "https://x.example.com"}, "new": {"command": "new"}}}`})
	merged, skipped := Merge(sys, ReadFile(sys, file, reading).Servers, sources)
	if len(merged) != 1 || len(skipped) != 1 || !strings.Contains(skipped[0].Why, "another server with this name") {
		t.Fatalf("got %v, %v", merged, skipped)
	}
	text, err := AddToConfig([]byte(before), merged)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(before, "// keep\n", "// keep\n\t\t\"new\": {\n\t\t\t// from Cursor, ~/.cursor/mcp.json\n\t\t\t\"command\": \"new\"\n\t\t},\n", 1)
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

// TestFind_Formats: the entries of each client have the same meaning in mcpx's config.
func TestFind_Formats(t *testing.T) {
	for name, one := range map[string]struct{ id, text, want string }{
		"gemini":                 {"gemini", `{"mcpServers": {"s": {"httpUrl": "https://x.example.com", "headers": {"A": "$TOKEN"}, "trust": true, "includeTools": ["a"], "excludeTools": ["b"], "timeout": 60000}}}`, `{"type":"http","url":"https://x.example.com","headers":{"A":"${TOKEN}"},"tools":{"allow":["a"],"deny":["b"]},"timeout":60000}`},
		"windsurf":               {"windsurf", `{"mcpServers": {"s": {"serverUrl": "https://x.example.com", "disabledTools": ["b"], "disabled": true}}}`, `{"url":"https://x.example.com","enabled":false,"tools":{"deny":["b"]}}`},
		"opencode, local":        {"opencode", `{"mcp": {"s": {"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": "{env:HOME}"}, "enabled": true, "timeout": 5000, "cwd": "/w"}}}`, `{"command":"npx","args":["-y","x"],"env":{"A":"${HOME}"},"cwd":"/w"}`},
		"opencode, files":        {"opencode", `{"mcp": {"s": {"type": "local", "command": ["x", "${file:/tok/a}"], "environment": {"A": "Bearer {file:/tok/a}", "B": "{file:~/b}", "C": "{file:c}"}}}}`, `{"command":"x","args":["${file:/tok/a}"],"env":{"A":"Bearer ${file:/tok/a}","B":"${file:~/b}","C":"${file:FOLDER/c}"}}`},
		"files elsewhere":        {"cursor", `{"mcpServers": {"s": {"command": "x", "env": {"A": "{file:/tok/a}"}}}}`, `{"command":"x","env":{"A":"{file:/tok/a}"}}`},
		"opencode, remote":       {"opencode", `{"mcp": {"s": {"type": "remote", "url": "https://x.example.com", "headers": {"A": "b"}, "oauth": false}}}`, `{"url":"https://x.example.com","headers":{"A":"b"}}`},
		"opencode 2":             {"opencode", `{"mcp": {"timeout": {"startup": 1}, "servers": {"s": {"type": "local", "command": ["x"], "disabled": true}}}}`, `{"command":"x","enabled":false}`},
		"cline's timeout":        {"cursor", `{"mcpServers": {"s": {"command": "x", "timeout": 60, "alwaysAllow": []}}}`, `{"command":"x","timeout":60}`},
		"copilot's tools":        {"cursor", `{"mcpServers": {"s": {"type": "local", "command": "x", "tools": ["*"]}}}`, `{"command":"x","tools":{"allow":["*"]}}`},
		"codex, all":             {"codex", "[mcp_servers.s]\nurl='https://x.example.com'\nhttp_headers={A='b'}\nenv_http_headers={C='D'}\nenabled=false\ntool_timeout_sec=9\ndisabled_tools=['q']\nrequired=true\n", `{"url":"https://x.example.com","headers":{"A":"b","C":"${D}"},"enabled":false,"tools":{"deny":["q"]},"call_timeout":9}`},
		"codex, env_vars":        {"codex", "[mcp_servers.s]\ncommand='x'\nenv_vars=['A']\n[mcp_servers.s.env]\nB='1'\n", `{"command":"x","env":{"B":"1"},"env_vars":["A"]}`},
		"a null, a comment":      {"cursor", "{\"mcpServers\": {\"s\": {\"command\": \"x\", /* no */ \"env\": null, \"cwd\": \"\"}}}", `{"command":"x","cwd":""}`},
		"twice, the last counts": {"cursor", `{"mcpServers": {"s": {"command": "no"}}, "mcpServers": {"s": {"command": "x"}}}`, `{"command":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			sources := found(t, linux(t), map[string]string{one.id: one.text})
			if len(sources) != 1 || sources[0].Err != nil || len(sources[0].Servers) != 1 {
				t.Fatalf("got %+v", sources)
			}
			text, err := NewConfig(nil, []Merged{{Name: "s", Found: sources[0].Servers[0]}})
			if err != nil {
				t.Fatal(err)
			}
			o := reading
			o.Getenv = func(name string) (string, bool) { return "value of " + name, true }
			o.ReadFile = func(name string) ([]byte, error) { return []byte("content of " + name), nil }
			one.want = strings.ReplaceAll(one.want, "FOLDER", filepath.Dir(sources[0].File))
			var servers []config.Server
			for _, text := range []string{string(text), `{"mcpServers": {"s": ` + one.want + `}}`} {
				cfg, err := config.Parse("", []byte(text), o)
				if err != nil || len(cfg.Servers) != 1 || cfg.Servers[0].Fault != "" || len(cfg.Warnings) > 0 {
					t.Fatalf("%s: %v, %+v", text, err, cfg)
				}
				servers = append(servers, cfg.Servers[0])
			}
			if diff := cmp.Diff(servers[1], servers[0], cmpopts.IgnoreUnexported(config.Server{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n%s", text, diff)
			}
		})
	}
}

// TestFind_LeftOut: LeftOut has the keys of a client's entry that mcpx does not support, or that mean something else in that client.
// It has no key whose value is null, and not Zed's source.
func TestFind_LeftOut(t *testing.T) {
	for id, one := range map[string]struct {
		text string
		want []string
	}{
		"opencode": {`{"mcp": {"s": {"type": "remote", "url": "https://x.example.com", "timeout": 5000, "oauth": {"scope": "a"}, "codemode": true}}}`, []string{"timeout", "oauth", "codemode"}},
		"zed":      {`{"context_servers": {"s": {"source": "custom", "command": "x", "timeout": 5}}}`, []string{"timeout"}},
		"cursor":   {`{"mcpServers": {"s": {"command": "x", "timeout": 60, "alwaysAllow": [], "icon": null}}}`, []string{"alwaysAllow"}},
	} {
		sources := found(t, linux(t), map[string]string{id: one.text})
		if len(sources) != 1 || len(sources[0].Servers) != 1 || !slices.Equal(sources[0].Servers[0].LeftOut, one.want) {
			t.Errorf("%s: got %+v, want %q", id, sources, one.want)
		}
	}
}

// TestFind_Faulty: Find returns an error for each file that cannot be read, and reads the other files.
func TestFind_Faulty(t *testing.T) {
	sys := linux(t)
	sources := found(t, sys, map[string]string{"cursor": "{", "codex": "x", "gemini": `{"mcpServers": {"g": {"command": "g"}}}`})
	if len(sources) != 3 || sources[0].Err == nil || sources[1].Err == nil || len(sources[2].Servers) != 1 {
		t.Errorf("got %+v", sources)
	}
	put(t, filepath.Join(sys.Dir, ".mcp.json"), "{}")
	put(t, filepath.Join(sys.Dir, ".vscode/mcp.json"), "{}")
	if got := FindProject(sys); !slices.Equal(got, []string{".mcp.json", ".vscode/mcp.json"}) {
		t.Errorf("got %v", got)
	}
}

// TestReadFile: relative paths in a project's file are resolved, and the servers run in the project's folder.
func TestReadFile(t *testing.T) {
	sys, dir := linux(t), t.TempDir()
	file := filepath.Join(dir, ".vscode", "mcp.json")
	put(t, file, `{"servers": {"s": {"command": "x", "args": ["${workspaceFolder}/a"], "envFile": ".env"}}}`)
	if err := os.WriteFile(filepath.Join(dir, ".vscode", ".env"), []byte("A=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := ReadFile(sys, file, reading).Servers
	if len(got) != 1 || got[0].Needs != "" || got[0].Server.Env["A"] != "1" ||
		got[0].Server.Cwd != dir || got[0].Server.Args[0] != dir+"/a" {
		t.Errorf("got %+v, %s", got, got[0].Server.Args)
	}
	// A server in the user's own file does not run in a project's folder.
	file = client(t, "cursor").File(sys)
	put(t, file, `{"mcpServers": {"s": {"command": "x"}}}`)
	if got := ReadFile(sys, file, reading).Servers; len(got) != 1 || got[0].Server.Cwd != "" {
		t.Errorf("got %+v", got)
	}
}

// TestReadFile_Foreign: of a file without servers that is known to be something else, the error says what it is, as for --config.
func TestReadFile_Foreign(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"x.conf":            {"[section]\nkey = 1\n", "looks like TOML or INI"},
		"mcp.cfg":           {"\ufeff; mine\n[server]\nkey = 1\n", "mcp-endpoint-server"},
		"proxy_config.json": {`{"mcpProxies": {"a": {"server_id": "b", "exposed_tools": ["c"]}}}`, "mcpProxies holds proxies of MCP-Dock; load its mcp.config.json"},
		"config.toml":       {"model = 'x'\n", ""},
		"settings.json":     {`{"proxies": {"http": 1}, "mcpServers": {"a": {"command": "a"}}}`, ""},
	} {
		sys := linux(t)
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := ReadFile(sys, file, reading).Err
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRuns(t *testing.T) {
	for text, want := range map[string]string{
		`{"command": "/usr/bin/npx", "args": ["-y", "@scope/pkg@1.0", "secret"]}`:                                 "npx @scope/pkg@1.0",
		`{"command": "C:\\x\\uvx.exe", "args": ["--from", "git+https://t:x@h/r", "a-tool"]}`:                      "uvx.exe a-tool",
		`{"command": "uvx", "args": ["--with", "mcp<2", "--python=3.12", "mcp-server-sqlite", "--db-path", "x"]}`: "uvx mcp-server-sqlite",
		`{"command": "npx", "args": ["-y", "-p", "a-package", "a-program"]}`:                                      "npx a-program",
		`{"command": "python", "args": ["-m", "a_module", "hidden"]}`:                                             "python a_module",
		`{"command": "uv", "args": ["--directory", "/home/me/x", "run", "server.py"]}`:                            "uv server.py",
		`{"command": "npx", "args": ["ghp_hidden1hidden1hidden1hidden1"]}`:                                        "npx",
		`{"command": "docker", "args": ["run", "-i", "--rm", "-e", "TOKEN=abc", "img"]}`:                          "docker",
		`{"url": "https://user:pass@x.example.com/mcp?key=1"}`:                                                    "http x.example.com",
		`{"url": "https://x.example.com/sse"}`:                                                                    "sse x.example.com",
		`{"command": "notes", "args": ["hidden"]}`:                                                                "notes",
		`{"command": "pnpm", "args": ["dlx", "pkg"]}`:                                                             "pnpm pkg",
	} {
		got := served(t, `{"mcpServers": {"s": `+text+`}}`)
		if len(got) != 1 || got[0].Runs() != want {
			t.Errorf("%s: got %q, want %q", text, got[0].Runs(), want)
		}
	}
}
