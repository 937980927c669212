package setup

import (
	"path/filepath"
	"testing"
)

// TestPlaces checks the paths of all clients' config files on each operating system.
func TestPlaces(t *testing.T) {
	systems := map[string]map[string]string{
		"linux": {"HOME": "/home/u"},
		"xdg": {"HOME": "/home/u", "XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/cx", "CLAUDE_CONFIG_DIR": "/cl", "GEMINI_CLI_HOME": "/g",
			"GOOSE_PATH_ROOT": "/gr", "CLINE_DIR": "/cd", "COPILOT_HOME": "/co", "QWEN_HOME": "/q", "AMP_SETTINGS_FILE": "/a/amp.json"},
		"darwin":  {"HOME": "/Users/u"},
		"windows": {"USERPROFILE": `C:\Users\u`, "APPDATA": `C:\Users\u\AppData\Roaming`, "HOME": "/ignored"},
		"bare":    {},
	}
	want := map[string][]string{
		"claude-desktop": {"/home/u/.config/Claude/claude_desktop_config.json", "/x/Claude/claude_desktop_config.json",
			"/Users/u/Library/Application Support/Claude/claude_desktop_config.json", `C:\Users\u\AppData\Roaming\Claude\claude_desktop_config.json`},
		"claude-code": {"/home/u/.claude.json", "/cl/.claude.json", "/Users/u/.claude.json", `C:\Users\u\.claude.json`},
		"cursor":      {"/home/u/.cursor/mcp.json", "/home/u/.cursor/mcp.json", "/Users/u/.cursor/mcp.json", `C:\Users\u\.cursor\mcp.json`},
		"vscode": {"/home/u/.config/Code/User/mcp.json", "/x/Code/User/mcp.json",
			"/Users/u/Library/Application Support/Code/User/mcp.json", `C:\Users\u\AppData\Roaming\Code\User\mcp.json`},
		"vscode-insiders": {"/home/u/.config/Code - Insiders/User/mcp.json", "/x/Code - Insiders/User/mcp.json",
			"/Users/u/Library/Application Support/Code - Insiders/User/mcp.json", `C:\Users\u\AppData\Roaming\Code - Insiders\User\mcp.json`},
		"zed":    {"/home/u/.config/zed/settings.json", "/x/zed/settings.json", "/Users/u/.config/zed/settings.json", `C:\Users\u\AppData\Roaming\Zed\settings.json`},
		"codex":  {"/home/u/.codex/config.toml", "/cx/config.toml", "/Users/u/.codex/config.toml", `C:\Users\u\.codex\config.toml`},
		"gemini": {"/home/u/.gemini/settings.json", "/g/.gemini/settings.json", "/Users/u/.gemini/settings.json", `C:\Users\u\.gemini\settings.json`},
		"opencode": {"/home/u/.config/opencode/opencode.json", "/x/opencode/opencode.json",
			"/Users/u/.config/opencode/opencode.json", `C:\Users\u\.config\opencode\opencode.json`},
		"windsurf": {"/home/u/.codeium/windsurf/mcp_config.json", "/home/u/.codeium/windsurf/mcp_config.json",
			"/Users/u/.codeium/windsurf/mcp_config.json", `C:\Users\u\.codeium\windsurf\mcp_config.json`},
		"goose": {"/home/u/.config/goose/config.yaml", "/gr/config/config.yaml",
			"/Users/u/.config/goose/config.yaml", `C:\Users\u\AppData\Roaming\Block\goose\config\config.yaml`},
		"cline": {"/home/u/.cline/data/settings/cline_mcp_settings.json", "/cd/data/settings/cline_mcp_settings.json",
			"/Users/u/.cline/data/settings/cline_mcp_settings.json", `C:\Users\u\.cline\data\settings\cline_mcp_settings.json`},
		"roo": {"/home/u/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
			"/x/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
			"/Users/u/Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
			`C:\Users\u\AppData\Roaming\Code\User\globalStorage\rooveterinaryinc.roo-cline\settings\mcp_settings.json`},
		"copilot":  {"/home/u/.copilot/mcp-config.json", "/co/mcp-config.json", "/Users/u/.copilot/mcp-config.json", `C:\Users\u\.copilot\mcp-config.json`},
		"qwen":     {"/home/u/.qwen/settings.json", "/q/settings.json", "/Users/u/.qwen/settings.json", `C:\Users\u\.qwen\settings.json`},
		"lmstudio": {"/home/u/.lmstudio/mcp.json", "/home/u/.lmstudio/mcp.json", "/Users/u/.lmstudio/mcp.json", `C:\Users\u\.lmstudio\mcp.json`},
		"kiro": {"/home/u/.kiro/settings/mcp.json", "/home/u/.kiro/settings/mcp.json",
			"/Users/u/.kiro/settings/mcp.json", `C:\Users\u\.kiro\settings\mcp.json`},
		"amp": {"/home/u/.config/amp/settings.json", "/a/amp.json",
			"/Users/u/.config/amp/settings.json", `C:\Users\u\.config\amp\settings.json`},
		"warp":      {"/home/u/.warp/.mcp.json", "/home/u/.warp/.mcp.json", "/Users/u/.warp/.mcp.json", `C:\Users\u\.warp\.mcp.json`},
		"junie":     {"/home/u/.junie/mcp/mcp.json", "/home/u/.junie/mcp/mcp.json", "/Users/u/.junie/mcp/mcp.json", `C:\Users\u\.junie\mcp\mcp.json`},
		"jetbrains": {"", "", "", ""}, // see Client.Paste
	}
	for _, c := range Clients() {
		for i, name := range []string{"linux", "xdg", "darwin", "windows"} {
			os := name
			if name == "xdg" {
				os = "linux"
			}
			sys := System{OS: os, Getenv: func(key string) (string, bool) {
				value, ok := systems[name][key]
				return value, ok
			}}
			if got := c.File(sys); len(want[c.ID]) != 4 || got != want[c.ID][i] {
				t.Errorf("%s on %s: got %s", c.ID, name, got)
			}
		}
		if got := c.File(System{OS: "linux", Getenv: func(string) (string, bool) { return "", false }}); got != "" {
			t.Errorf("%s without a home: got %q", c.ID, got)
		}
	}
}

// TestPlaces_Second: if a client's file exists only at a place that an earlier version of the client used, mcpx uses the file at
// this place.
func TestPlaces_Second(t *testing.T) {
	for id, place := range map[string]string{
		"cline":    ".config/Code - Insiders/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
		"roo":      ".config/Cursor/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
		"lmstudio": ".cache/lm-studio/mcp.json",
		"amp":      ".config/amp/settings.jsonc",
	} {
		sys := linux(t)
		file := filepath.Join(sys.home(), filepath.FromSlash(place))
		put(t, file, "{}\n")
		if got := client(t, id).File(sys); got != file {
			t.Errorf("%s: got %s", id, got)
		}
	}
}

// TestProjectOf: the file of a project belongs to the project's folder, the user's own file to none.
func TestProjectOf(t *testing.T) {
	sys := linux(t)
	for file, want := range map[string]string{
		"/src/app/.mcp.json":               "/src/app",
		"/src/app/.warp/.mcp.json":         "/src/app",
		"/src/app/.kiro/settings/mcp.json": "/src/app",
		sys.home() + "/.warp/.mcp.json":    "",
		sys.home() + "/.cursor/mcp.json":   "",
		"/src/app/servers.json":            "",
	} {
		if got := projectOf(sys, file); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}

// TestSnippet: what a user pastes is a valid file of the client, and its only server is mcpx.
func TestSnippet(t *testing.T) {
	for _, c := range Clients() {
		got := c.Snippet("/opt/bin/mcpx", []string{"--config", "/etc/mcpx.json"})
		_, servers, err := c.parse([]byte(got), "", reading)
		if err != nil || len(servers) != 1 || !servers[0].Self {
			t.Errorf("%s: %v, %v\n%s", c.ID, servers, err, got)
		}
		for _, other := range c.Others {
			if got := other.Snippet("mcpx", nil); got != "" {
				t.Errorf("%s: got %s", c.ID, got)
			}
		}
	}
}
