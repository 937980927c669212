package view

import "time"

// knownClients is what is known about clients, by their names. A client that is not listed gets the server's structuredContent,
// and unknownResultChars. The letter at the beginning of each comment says what the client's model sees of a result with both
// parts: S means only structuredContent; B means both; D means both, unless a text is equal JSON; C means only the content. The
// next word says how this is known: "run" from a request to a model, "read" from the client's code, "told" from documentation
// or issues. For S and D clients, structuredContent is omitted, because it would use again the tokens that the text saves. B
// clients get it if no text contains the same, because these clients escape the quotes in a text, so that it would cost more
// there. docs/clients.md has the versions.
//
// ResultChars is a little less than what the client shows before it cuts a result itself.
var knownClients = []ClientRule{
	// S, run, 2.1.330 (anthropics/claude-code#79944, #41593). It cuts descriptions and instructions at 2,048 characters without
	// a notice. It cuts results at 500,000 characters if _meta asks for that, as toolMeta does. By default it searches for
	// tools.
	{Name: "claude-code*", Structured: StructuredNever, DescriptionChars: 2000, ResultChars: 500_000, Searches: true},
	// C, told. Desktop and claude.ai show 150,000 characters. Desktop stops waiting for a call after 240 s, which cannot be
	// configured (anthropics/claude-code#44032, #65643, #91898).
	{Name: "claude-ai*", ResultChars: 140_000, CallWait: 240 * time.Second},
	// S, run, 0.169; in code mode a program gets both. For known models, it cuts out the middle of a result beyond 10,000
	// tokens of 4 bytes.
	{Name: "codex*", Structured: StructuredNever, ResultChars: 38_000},
	// S, read (microsoft/vscode#290063). It shows 8,192 bytes and writes the rest to a file.
	{Name: "visual studio code*", Structured: StructuredNever, ResultChars: 8000},
	{Name: "code - oss*", Structured: StructuredNever, ResultChars: 8000},
	{Name: "vscode*", Structured: StructuredNever, ResultChars: 8000},
	// B, run, 1.0.102 (github/copilot-cli#3258, #4515). Its limit is between 15 and 51 KB; of a longer result it shows 500
	// characters and writes the rest to a file. It joins text blocks without a separator.
	{Name: "*copilot*", Structured: StructuredOnce, ResultChars: 18_000, LineFirst: true},
	// B, run, 3.0.65. It shows 8,000 characters of the result as JSON, in which quotes and line ends take two characters; it
	// cuts out the middle.
	{Name: "@cline/*", Structured: StructuredOnce, ResultChars: 6500},
	{Name: "cline*", Structured: StructuredOnce, ResultChars: 6500},
	// B, run, 0.24.4, with the name qwen-cli-mcp-client-SERVER. It shows 25,000 characters or 1,000 lines; of a longer result
	// it shows 2.5 KB and writes the rest to a file.
	{Name: "qwen*", Structured: StructuredOnce, ResultChars: 24_000, LineFirst: true},
	// D, run, 2.1.0; a text in TOON is never equal JSON. It shows 50,000 characters; of a longer result it shows a preview and
	// writes the rest to a file.
	{Name: "kimi*", Structured: StructuredNever, ResultChars: 48_000},
	// C, run, 0.61. It shows 40,000 characters; of a longer result it shows the first 8,000 and the last 32,000.
	{Name: "gemini-cli*", ResultChars: 38_000},
	// C, run, 1.18.33. It shows 51,200 bytes or 2,000 lines, and keeps the beginning of a longer result.
	{Name: "opencode*", ResultChars: 48_000, LineFirst: true},
	// B, run, 2.13.
	{Name: "google-adk*", Structured: StructuredOnce},
	// B, run, 1.1.4.
	{Name: "@langchain/mcp-adapters*", Structured: StructuredOnce},
	// These clients show results to users and programs.
	{Name: "*inspector*", Text: TextJSON},
	{Name: "mcporter*", Text: TextJSON},
}

// unknownResultChars is for clients that are not in knownClients. It is about 10,000 tokens, which most clients show.
const unknownResultChars = 38_000
