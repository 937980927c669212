package setup

import "testing"

// TestPlaces checks the paths of all clients' config files on each operating system.
func TestPlaces(t *testing.T) {
	systems := map[string]map[string]string{
		"linux":   {"HOME": "/home/u"},
		"xdg":     {"HOME": "/home/u", "XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/cx", "CLAUDE_CONFIG_DIR": "/cl", "GEMINI_CLI_HOME": "/g"},
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
