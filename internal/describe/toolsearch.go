package describe

import (
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
)

// A Searcher is a client with a tool search of its own: it loads the definition of a tool only when
// the model needs it. docs/clients.md has the versions.
type Searcher struct {
	// Client is the name of the client that people know. Name is the name that it sends in clientInfo. In all versions of the
	// client, this name begins with prefix.
	Client, Name string
	prefix       string // in lower case
	// Loads is true if the client gives the model the full definition of each tool that has "anthropic/alwaysLoad" in its
	// _meta, even if the model does not search for the tool. The tools inspect, exec and exec_read have this member.
	Loads bool
	// Says describes in a few words what the client shows to the model before a search.
	Says string
	// Shows returns the text that the client shows to the model about a server whose tools are not loaded.
	Shows func(s Unloaded) string
}

// Unloaded is a server whose tools the client has not loaded, so that the model does not have their definitions. Of the tools,
// only the names and descriptions are used.
type Unloaded struct {
	Name, Instructions string
	Tools              []catalog.Tool
}

// Searchers are the known clients with a tool search. What each client shows was recorded from requests to the model by Claude
// Code 2.1.330, by Codex 0.169 with its newer models, and by Qwen Code 0.24.4.
var Searchers = []Searcher{
	{"Claude Code", "claude-code", "claude-code", true, "the names of all tools, by default; of mcpx, inspect and exec", func(s Unloaded) string {
		text := cutAt(s.Instructions, 2048)
		for _, t := range s.Tools {
			text += "\nmcp__" + s.Name + "__" + t.Name
		}
		return text
	}},
	{"Codex", "codex-mcp-client", "codex", false, "a line for each server, with its newer models", func(s Unloaded) string {
		first, _, _ := strings.Cut(strings.TrimSpace(s.Instructions), "\n")
		if first != "" {
			first = ": " + cutAt(first, 250)
		}
		return "- mcp__" + s.Name + first
	}},
	{"Qwen Code", "qwen-cli-mcp-client-mcpx", "qwen", false, "a line for each tool", func(s Unloaded) string {
		text := s.Instructions + "\n#### " + s.Name
		for _, t := range s.Tools {
			text += "\n- \"mcp__" + s.Name + "__" + t.Name + "\": \"" + cutAt(sanitize.Line(t.Description, 0), 157) + "\""
		}
		return text
	}},
}

// SearcherNamed returns the client that sends this name in clientInfo, or nil if the client is not known to search for tools.
func SearcherNamed(name string) *Searcher {
	for i := range Searchers {
		if strings.HasPrefix(strings.ToLower(name), Searchers[i].prefix) {
			return &Searchers[i]
		}
	}
	return nil
}

// cutAt returns text or, if it is longer than n characters, its first n characters and "...".
func cutAt(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "..."
	}
	return text
}
