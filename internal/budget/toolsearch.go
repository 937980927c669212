package budget

import (
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/tokens"
)

// A searcher is a client with a tool search of its own: it loads the definition of a tool only when
// the model needs it. docs/clients.md has the versions.
type searcher struct {
	client string
	name   string // the client's name in clientInfo
	// loads is true if the client always loads tools whose _meta says so, as mcpx's own tools do.
	loads bool
	// says describes in a few words what the client shows.
	says string
	// shows returns the text with which the client shows a server whose tools are not loaded.
	shows func(s shownServer) string
}

// shownServer is a server as a client sees it.
type shownServer struct {
	name, instructions string
	tools              []Definition
}

// searchers were taken from recorded requests to the model, by Claude Code 2.1.330, Codex 0.169
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

// cut returns at most n characters of text.
func cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return string(runes[:n]) + "..."
	}
	return text
}

// searching measures the clients with a tool search of their own.
func (m *Meter) searching(snap *catalog.Snapshot) (list []Search) {
	for _, c := range searchers {
		tools, instructions := m.Surface(snap, c.name)
		one := Search{Client: c.client}
		for i := range snap.Servers {
			s := &snap.Servers[i]
			one.Direct += tokens.Count(c.shows(shownServer{s.Name, s.Instructions, Definitions(s.Tools)}))
		}
		mcpx := shownServer{"mcpx", instructions, tools}
		if c.loads {
			one.Surface, mcpx.tools = sumTokens(tools), nil
		}
		one.Surface += tokens.Count(c.shows(mcpx))
		list = append(list, one)
	}
	return list
}

// Definitions returns tools as they are in a request to a model.
func Definitions(tools []catalog.Tool) []Definition {
	list := make([]Definition, len(tools))
	for i, t := range tools {
		list[i] = Definition{t.Name, t.Description, t.InputSchema}
	}
	return list
}
