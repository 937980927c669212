package view

import "time"

// knownClients is what is known about clients, by their names. A client that is not listed gets the server's structuredContent, and
// its results are cut at unknownResultChars. The comment above an entry first says what the client's model sees of a result that
// has both structuredContent and a text. In parentheses follows how this is known: from the request to a model of that version of
// the client, from the client's code, or from documentation or issues.
//
// If a model sees only structuredContent, the client gets none, so that the model sees the text, which has fewer tokens. If a model
// sees structuredContent and text, the client gets structuredContent if no text contains the same: such a client escapes the quotes
// in a text, so the same content would cost more there. docs/clients.md has the versions.
//
// ResultChars is a little less than what the client shows before it cuts a result itself.
var knownClients = []ClientRule{
	// The client is another mcpx, which forms, selects and cuts results for its own clients. For that it needs JSON, and results
	// that are not cut: the models behind it have the read_result of the other mcpx, which cannot continue a result that this mcpx
	// has cut. In a session that belongs to one client, the other mcpx sends the name of that client instead, with a suffix.
	{Name: "mcpx", Text: TextJSON, Uncut: true},
	{Name: "*-through-proxy", Structured: StructuredAuto, Text: TextJSON, Uncut: true},
	// The model sees only structuredContent (version 2.1.330; anthropics/claude-code#79944, #41593). The client cuts
	// descriptions and instructions at 2,048 characters without a notice. It cuts results at 500,000 characters if _meta asks
	// for that, as toolMeta does. By default it searches for tools.
	{Name: "claude-code*", Structured: StructuredNever, DescriptionChars: 2000, ResultChars: 500_000, Searches: true},
	// The model sees only the text (documentation). Desktop and claude.ai show 150,000 characters. Desktop stops waiting for a
	// call after 240 s, which cannot be configured (anthropics/claude-code#44032, #65643, #91898).
	{Name: "claude-ai*", ResultChars: 140_000, CallWait: 240 * time.Second},
	// The model sees only structuredContent (version 0.169); in code mode a program gets both. For known models, the client
	// cuts out the middle of a result beyond 10,000 tokens of 4 bytes.
	{Name: "codex*", Structured: StructuredNever, ResultChars: 38_000},
	// The model sees only structuredContent (code; microsoft/vscode#290063). The client shows 8,192 bytes and writes the rest
	// to a file.
	{Name: "visual studio code*", Structured: StructuredNever, ResultChars: 8000},
	{Name: "code - oss*", Structured: StructuredNever, ResultChars: 8000},
	{Name: "vscode*", Structured: StructuredNever, ResultChars: 8000},
	// The model sees structuredContent and text (version 1.0.102; github/copilot-cli#3258, #4515). The client's limit is
	// between 15 and 51 KB; of a longer result it shows 500 characters and writes the rest to a file. It joins text blocks
	// without a separator.
	{Name: "*copilot*", Structured: StructuredOnce, ResultChars: 18_000, LineFirst: true},
	// The model sees structuredContent and text (version 3.0.65). The client shows 8,000 characters of the result as JSON, in
	// which quotes and line ends take two characters; it cuts out the middle.
	{Name: "@cline/*", Structured: StructuredOnce, ResultChars: 6500},
	{Name: "cline*", Structured: StructuredOnce, ResultChars: 6500},
	// The model sees structuredContent and text (version 0.24.4, with the name qwen-cli-mcp-client-SERVER). The client shows
	// 25,000 characters or 1,000 lines; of a longer result it shows 2.5 KB and writes the rest to a file.
	{Name: "qwen*", Structured: StructuredOnce, ResultChars: 24_000, LineFirst: true},
	// The model sees structuredContent and text, unless a text is equal JSON (version 2.1.0). A text in TOON is never equal, so
	// this client gets no structuredContent. The client shows 50,000 characters; of a longer result it shows a preview and
	// writes the rest to a file.
	{Name: "kimi*", Structured: StructuredNever, ResultChars: 48_000},
	// The model sees only the text (version 0.61). The client shows 40,000 characters; of a longer result it shows the first
	// 8,000 and the last 32,000.
	{Name: "gemini-cli*", ResultChars: 38_000},
	// The model sees only the text (version 1.18.33). The client shows 51,200 bytes or 2,000 lines, and keeps the beginning of
	// a longer result.
	{Name: "opencode*", ResultChars: 48_000, LineFirst: true},
	// The model sees structuredContent and text (version 2.13).
	{Name: "google-adk*", Structured: StructuredOnce},
	// The model sees structuredContent and text (version 1.1.4).
	{Name: "@langchain/mcp-adapters*", Structured: StructuredOnce},
	// These clients show results to users and programs.
	{Name: "*inspector*", Text: TextJSON},
	{Name: "mcporter*", Text: TextJSON},
}

// unknownResultChars is for clients for which knownClients has no ResultChars. It is about 10,000 tokens, which most clients
// show.
const unknownResultChars = 38_000
