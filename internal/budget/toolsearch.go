package budget

import (
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/tokens"
)

// A searcher is a client that searches for tools itself, and shows a model little of
// them before. docs/clients.md has the versions.
type searcher struct {
	client string
	name   string // that it gives as a client
	// loads says that it loads the tools whose _meta asks for that, as those of mcpx do.
	loads bool
	// says is what it shows, in a few words.
	says string
	// shows is what it writes of a server whose tools it has not loaded.
	shows func(s shownServer) string
}

// shownServer is a server as a client sees it.
type shownServer struct {
	name, instructions string
	tools              []Definition
}

// searchers are by what a request to the model had: Claude Code 2.1.330, Codex 0.169
// with its newer models, and Qwen Code 0.24.4.
var searchers = []searcher{
	{"Claude Code", "claude-code", true, "the names of all tools, by default; of mcpx, inspect and exec", func(s shownServer) string {
		text := cut(s.instructions, 2048)
		for _, t := range s.tools {
			text += "\nmcp__" + s.name + "__" + t.Name
		}
		return text
	}},
	{"Codex", "codex-mcp-client", false, "a line for each server, with its newer models", func(s shownServer) string {
		first, _, _ := strings.Cut(strings.TrimSpace(s.instructions), "\n")
		if first != "" {
			first = ": " + cut(first, 250)
		}
		return "- mcp__" + s.name + first
	}},
	{"Qwen Code", "qwen-cli-mcp-client-mcpx", false, "a line for each tool", func(s shownServer) string {
		text := s.instructions + "\n#### " + s.name
		for _, t := range s.tools {
			text += "\n- \"mcp__" + s.name + "__" + t.Name + "\": \"" + cut(sanitize.Line(t.Description, 0), 157) + "\""
		}
		return text
	}},
}

// cut is text or its first n characters.
func cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "..."
	}
	return text
}

// searching measures clients that search for tools themselves.
func (m *Meter) searching(snap *catalog.Snapshot) (list []Search) {
	for _, c := range searchers {
		tools, instructions := m.Surface(snap, c.name)
		one := Search{Client: c.client}
		for i := range snap.Servers {
			s := &snap.Servers[i]
			one.Direct += tokens.Count(c.shows(shownServer{s.Name, s.Instructions, definitions(s)}))
		}
		mcpx := shownServer{"mcpx", instructions, tools}
		if c.loads {
			for _, t := range tools {
				one.Surface += t.Tokens()
			}
			mcpx.tools = nil
		}
		one.Surface += tokens.Count(c.shows(mcpx))
		list = append(list, one)
	}
	return list
}

// definitions are the tools of a server as they stand in a request.
func definitions(s *catalog.Server) []Definition {
	list := make([]Definition, len(s.Tools))
	for i, t := range s.Tools {
		list[i] = Definition{t.Name, t.Description, t.InputSchema}
	}
	return list
}
