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
	// Restart is a text that tells the user how to make the client read its config file again.
	Restart string
	// Paste says where in the client's settings the user adds mcpx by hand. It is set only for clients that have no file which mcpx can
	// write.
	Paste string
	// Others are further files of this client, in older formats. Connect moves servers out of them, but does not add mcpx to them.
	Others []Client

	format format
	// places returns the possible paths of the user's config file; nil means that mcpx does not write the client's file. mcpx uses the
	// first path at which a file exists. If there is none, it uses the first path (for Claude Desktop the last one).
	places func(System) []string
	// project is the path of the client's config file in a project's folder, relative to that folder; empty if the client has no
	// such file.
	project string
	// folder is set by [Client.Editing]. It is the folder of the project to which the edited file belongs. It is empty if the file
	// belongs to no project, for example if it is the user's own file.
	folder string
}

// format describes how a client's file stores servers.
type format struct {
	language language
	// path has the keys that lead to the object with the servers, the outermost first.
	path []string
	// entry returns the entry for a server that is started with a command. It is nil for a file to which mcpx adds no entry.
	entry func(command string, args []string) object
	// variables is the key of an entry that names environment variables. It is set for a client that passes a server only these
	// variables and the ones in passed.
	variables string
}

// passed are the environment variables that Codex passes to every server (codex-rs/rmcp-client/src/utils.rs).
var passed = []string{"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}

type language int

const (
	jsonLanguage language = iota // with comments and trailing commas
	tomlLanguage
	yamlLanguage
)

func plainEntry(command string, args []string) object {
	return object{{"command", command}, {"args", args}}
}

func typedEntry(command string, args []string) object {
	return append(object{{"type", "stdio"}}, plainEntry(command, args)...)
}

// openCodeEntry returns an entry for opencode, in which the command and its arguments are one array. For opencode 2, the function parse
// removes the key enabled.
func openCodeEntry(command string, args []string) object {
	return object{{"type", "local"}, {"command", append([]string{command}, args...)}, {"enabled", true}}
}

func copilotEntry(command string, args []string) object {
	return append(object{{"type", "local"}}, append(plainEntry(command, args), field{"tools", []string{"*"}})...)
}

// gooseEntry returns an entry for Goose, which needs all of these keys except timeout. The value of timeout is in seconds.
func gooseEntry(command string, args []string) object {
	return object{{"enabled", true}, {"type", "stdio"}, {"name", serverName}, {"cmd", command}, {"args", args}, {"timeout", 300}}
}

var claudeFormat = format{path: []string{"mcpServers"}, entry: plainEntry}

// clients are the clients that mcpx supports, in the order of mcpx connect. Many have a comment that names a web page, or a
// repository and files in it, where the paths and the format are documented.
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
		format: format{path: []string{"mcpServers"}, entry: typedEntry},
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
		format: format{path: []string{"context_servers"}, entry: plainEntry},
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
		format: format{language: tomlLanguage, path: []string{"mcp_servers"}, entry: plainEntry, variables: "env_vars"},
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
		format: format{path: []string{"mcp"}, entry: openCodeEntry},
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
	{
		// github.com/block/goose: crates/goose/src/config/paths.rs and extensions.rs, crates/goose/src/agents/extension.rs
		// (the keys of an entry); block.github.io/goose/docs/guides/config-files
		ID: "goose", Name: "Goose", Restart: "start a new session",
		format: format{language: yamlLanguage, path: []string{"extensions"}, entry: gooseEntry},
		places: func(s System) []string {
			usual := s.join(s.xdgConfig(), "goose")
			if s.OS == "windows" {
				usual = s.join(s.appData(), "Block", "goose", "config")
			}
			if root := s.env("GOOSE_PATH_ROOT", ""); root != "" {
				usual = s.join(root, "config")
			}
			return []string{s.join(usual, "config.yaml")}
		},
	},
	{
		// github.com/cline/cline: sdk/packages/shared/src/storage/paths.ts; until 2026 the VS Code extension used the other
		// paths (apps/vscode/src/hosts/vscode/mcp-settings-legacy-migration.ts)
		ID: "cline", Name: "Cline", Restart: "start a new session",
		format: claudeFormat,
		places: func(s System) []string {
			const file = "cline_mcp_settings.json"
			data := s.env("CLINE_DATA_DIR", s.join(s.env("CLINE_DIR", s.join(s.home(), ".cline")), "data"))
			return append([]string{s.env("CLINE_MCP_SETTINGS_PATH", s.join(data, "settings", file))},
				s.extensionFiles("saoudrizwan.claude-dev", file)...)
		},
	},
	{
		// github.com/RooCodeInc/Roo-Code: src/utils/storage.ts, src/shared/globalFileNames.ts, src/services/mcp/McpHub.ts
		ID: "roo", Name: "Roo Code", Restart: "Roo Code reads the file again by itself",
		format:  claudeFormat,
		places:  func(s System) []string { return s.extensionFiles("rooveterinaryinc.roo-cline", "mcp_settings.json") },
		project: ".roo/mcp.json",
	},
	{
		// github.com/github/docs: content/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers.md
		ID: "copilot", Name: "Copilot CLI", Restart: "start a new session",
		format: format{path: []string{"mcpServers"}, entry: copilotEntry},
		places: func(s System) []string {
			return []string{s.join(s.env("COPILOT_HOME", s.join(s.home(), ".copilot")), "mcp-config.json")}
		},
		project: ".github/mcp.json",
	},
	{
		// github.com/QwenLM/qwen-code: packages/core/src/config/storage.ts
		ID: "qwen", Name: "Qwen Code", Restart: "start a new session",
		format: claudeFormat,
		places: func(s System) []string {
			return []string{s.join(s.env("QWEN_HOME", s.join(s.home(), ".qwen")), "settings.json")}
		},
		project: ".qwen/settings.json",
	},
	{
		// lmstudio.ai/docs/app/mcp; the second path: github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1371
		ID: "lmstudio", Name: "LM Studio", Restart: "restart LM Studio",
		format: claudeFormat,
		places: func(s System) []string {
			return []string{s.join(s.home(), ".lmstudio", "mcp.json"), s.join(s.home(), ".cache", "lm-studio", "mcp.json")}
		},
	},
	{
		// kiro.dev/docs/mcp/configuration
		ID: "kiro", Name: "Kiro", Restart: "Kiro reads the file again by itself",
		format:  claudeFormat,
		places:  func(s System) []string { return []string{s.join(s.home(), ".kiro", "settings", "mcp.json")} },
		project: ".kiro/settings/mcp.json",
	},
	{
		// ampcode.com/manual#configuration; %APPDATA%: github.com/sourcegraph/amp-examples-and-guides:
		// guides/mcp/amp-mcp-setup-guide.md
		ID: "amp", Name: "Amp", Restart: "start a new session",
		format: format{path: []string{"amp.mcpServers"}, entry: plainEntry}, // the dot is part of the key
		places: func(s System) []string {
			folder := s.join(s.home(), ".config", "amp")
			places := []string{s.join(folder, "settings.json"), s.join(folder, "settings.jsonc")}
			if s.OS == "windows" {
				places = append(places, s.join(s.appData(), "amp", "settings.json"))
			}
			if file := s.env("AMP_SETTINGS_FILE", ""); file != "" {
				places = []string{file}
			}
			return places
		},
		project: ".amp/settings.json",
	},
	{
		// github.com/warpdotdev/Warp: app/src/ai/mcp/mod.rs, parsing.rs
		ID: "warp", Name: "Warp", Restart: "Warp reads the file again by itself; a version without ~/.warp/.mcp.json takes the same " +
			"JSON under Settings > Agents > MCP servers > Add",
		format:  claudeFormat,
		places:  func(s System) []string { return []string{s.join(s.home(), ".warp", ".mcp.json")} },
		project: ".warp/.mcp.json",
	},
	{
		// junie.jetbrains.com/docs/junie-cli-mcp-configuration.html
		ID: "junie", Name: "JetBrains Junie", Restart: "start a new session",
		format:  claudeFormat,
		places:  func(s System) []string { return []string{s.join(s.home(), ".junie", "mcp", "mcp.json")} },
		project: ".junie/mcp/mcp.json",
	},
	{
		// www.jetbrains.com/help/ai-assistant/mcp.html. Each IDE keeps the servers in an XML file of its own, which it writes
		// again from memory, so that an edit from outside is lost.
		ID: "jetbrains", Name: "JetBrains AI Assistant",
		Paste:  "Settings | Tools | AI Assistant | Model Context Protocol (MCP)",
		format: claudeFormat,
	},
}

// codeClient returns the client for VS Code or a variant of it. VS Code before version 1.102 has the servers in settings.json.
func codeClient(id, name, folder string) Client {
	file := func(file string) func(System) []string {
		return func(s System) []string { return []string{s.join(s.appData(), folder, "User", file)} }
	}
	restart := name + " reads the file again by itself"
	return Client{
		ID: id, Name: name, Restart: restart,
		format: format{path: []string{"servers"}, entry: typedEntry},
		places: file("mcp.json"), project: ".vscode/mcp.json",
		Others: []Client{{
			ID: id, Name: name, Restart: restart,
			format: format{path: []string{"mcp", "servers"}}, places: file("settings.json"),
		}},
	}
}

// extensionFiles returns the possible paths of a settings file of a VS Code extension, in VS Code and the editors derived from it.
func (s System) extensionFiles(extension, file string) (places []string) {
	for _, editor := range []string{"Code", "Code - Insiders", "Cursor", "Windsurf", "VSCodium"} {
		places = append(places, s.join(s.appData(), editor, "User", "globalStorage", extension, "settings", file))
	}
	return places
}

// Snippet returns JSON that a user can add to the file of most clients, so that the client starts mcpx with command and args.
func Snippet(command string, args []string) string {
	text, _ := marshal(nest(plainEntry(command, args), []string{"mcpServers", serverName})) // encoding strings cannot fail
	return string(text)
}

// Snippet returns the entry of mcpx in the form of the client's file, for a user who adds it by hand. It is empty if mcpx adds no
// entry to this file.
func (c Client) Snippet(command string, args []string) string {
	if c.format.entry == nil {
		return ""
	}
	empty, err := parse(c.format, nil)
	if err == nil {
		err = empty.start(c.format.entry(command, args), empty.keys(serverName)...)
	}
	if err != nil {
		return Snippet(command, args)
	}
	return string(empty.data())
}

// Clients returns the clients that mcpx supports, in the order in which mcpx connect lists them.
func Clients() []Client { return slices.Clone(clients) }

// Editing returns a copy of the client that knows to which project the file belongs. Edits of the file must use this copy. The file
// is the user's own file of this client, or a file in a project.
func (c Client) Editing(s System, file string) Client {
	c.folder = projectOf(s, file)
	return c
}

// File returns the path of the user's config file, even if the file does not exist. The path is empty if the home folder
// is unknown, or if mcpx does not write the client's file.
func (c Client) File(s System) string {
	if c.places == nil {
		return ""
	}
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
