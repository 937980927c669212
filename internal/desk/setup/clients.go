package setup

import (
	"os"
	"slices"
)

// Client is a program that reads MCP servers from a config file.
type Client struct {
	// ID is the client's name on the command line: mcpx connect ID.
	ID string
	// Name is the client's display name.
	Name string
	// Restart tells the user how to make the client read its config file again.
	Restart string

	format format
	// places returns the possible paths of the user's config file. The first path that exists is used; if none exists, the
	// first path.
	places func(System) []string
	// project is the path of the client's config file for a project, relative to the project's folder; empty if the client
	// has none.
	project string
	// others returns the paths of further files with servers; may be nil. mcpx reads these files, but never changes them.
	others func(System) []string
}

// format describes how a client's file stores servers.
type format struct {
	// toml is true if the file is TOML, false if it is JSON with comments.
	toml bool
	// at is the path of the object that contains the servers.
	at []string
	// entry returns the entry for a server that is started with a command.
	entry func(command string, args []string) object
}

func plainEntry(command string, args []string) object {
	return object{{"command", command}, {"args", args}}
}

func typedEntry(command string, args []string) object {
	return append(object{{"type", "stdio"}}, plainEntry(command, args)...)
}

// openCodeEntry returns an entry for opencode, which has the command and its arguments in one array. parse adapts it for
// opencode 2.
func openCodeEntry(command string, args []string) object {
	return object{{"type", "local"}, {"command", append([]string{command}, args...)}, {"enabled", true}}
}

var claudeFormat = format{at: []string{"mcpServers"}, entry: plainEntry}

// clients are the clients that mcpx supports, in the order in which mcpx connect lists them.
var clients = []Client{
	{
		ID: "claude-desktop", Name: "Claude Desktop", Restart: "quit and start Claude Desktop",
		format: claudeFormat,
		places: func(s System) []string {
			const file = "claude_desktop_config.json"
			usual := s.join(s.appData(), "Claude", file)
			if s.OS != "windows" {
				return []string{usual}
			}
			// The version from the Microsoft Store keeps its settings in the folder of its package.
			return []string{s.join(s.env("LOCALAPPDATA", s.join(s.home(), "AppData", "Local")),
				"Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude", file), usual}
		},
	},
	{
		ID: "claude-code", Name: "Claude Code", Restart: "start a new session, or type /mcp",
		format: format{at: []string{"mcpServers"}, entry: typedEntry},
		places: func(s System) []string {
			return []string{s.join(s.env("CLAUDE_CONFIG_DIR", s.home()), ".claude.json")}
		},
		project: ".mcp.json",
	},
	{
		ID: "cursor", Name: "Cursor", Restart: "Cursor reads the file again by itself",
		format:  claudeFormat,
		places:  func(s System) []string { return []string{s.join(s.home(), ".cursor", "mcp.json")} },
		project: ".cursor/mcp.json",
	},
	codeClient("vscode", "VS Code", "Code"),
	codeClient("vscode-insiders", "VS Code Insiders", "Code - Insiders"),
	{
		ID: "zed", Name: "Zed", Restart: "Zed reads the file again by itself",
		format: format{at: []string{"context_servers"}, entry: plainEntry},
		places: func(s System) []string {
			switch s.OS {
			case "windows":
				return []string{s.join(s.appData(), "Zed", "settings.json")}
			case "darwin":
				return []string{s.join(s.home(), ".config", "zed", "settings.json")}
			}
			return []string{s.join(s.xdgConfig(), "zed", "settings.json")}
		},
		project: ".zed/settings.json",
	},
	{
		ID: "codex", Name: "Codex", Restart: "start a new session",
		format: format{toml: true, at: []string{"mcp_servers"}, entry: plainEntry},
		places: func(s System) []string {
			return []string{s.join(s.env("CODEX_HOME", s.join(s.home(), ".codex")), "config.toml")}
		},
		project: ".codex/config.toml",
	},
	{
		ID: "gemini", Name: "Gemini CLI", Restart: "start a new session",
		format: claudeFormat,
		places: func(s System) []string {
			return []string{s.join(s.env("GEMINI_CLI_HOME", s.home()), ".gemini", "settings.json")}
		},
		project: ".gemini/settings.json",
	},
	{
		ID: "opencode", Name: "opencode", Restart: "start a new session",
		format: format{at: []string{"mcp"}, entry: openCodeEntry},
		places: func(s System) []string {
			folder := s.join(s.xdgConfig(), "opencode")
			return []string{s.join(folder, "opencode.json"), s.join(folder, "opencode.jsonc"), s.join(folder, "config.json")}
		},
		project: "opencode.json",
	},
	{
		ID: "windsurf", Name: "Windsurf", Restart: "press Refresh in Windsurf's list of MCP servers",
		format: claudeFormat,
		places: func(s System) []string {
			return []string{s.join(s.home(), ".codeium", "windsurf", "mcp_config.json")}
		},
	},
}

// codeClient returns the client for VS Code or a variant of it. Until version 1.102, VS Code had the servers in
// settings.json.
func codeClient(id, name, folder string) Client {
	file := func(file string) func(System) []string {
		return func(s System) []string { return []string{s.join(s.appData(), folder, "User", file)} }
	}
	return Client{
		ID: id, Name: name, Restart: name + " reads the file again by itself",
		format: format{at: []string{"servers"}, entry: typedEntry},
		places: file("mcp.json"), others: file("settings.json"),
		project: ".vscode/mcp.json",
	}
}

// Snippet returns JSON with the entry of mcpx in the form that most clients use.
func Snippet(command string, args []string) string {
	text, _ := marshal(nest(plainEntry(command, args), []string{"mcpServers", serverName})) // encoding strings cannot fail
	return string(text)
}

// Clients returns the clients that mcpx supports.
func Clients() []Client { return slices.Clone(clients) }

// File returns the path of the user's config file, even if the file does not exist. The path is empty if the home folder
// is unknown.
func (c Client) File(s System) string {
	places := c.places(s)
	for _, place := range places {
		if exists(place) {
			return place
		}
	}
	if c.ID == "claude-desktop" {
		return places[len(places)-1] // the folder of the Microsoft Store package exists only if the user installed that version
	}
	return places[0]
}

func exists(file string) bool {
	if file == "" {
		return false
	}
	_, err := os.Lstat(file)
	return err == nil
}
