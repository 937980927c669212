package view

import "time"

// knownClients is what is known about clients, by their names. A client that is not in it gets the upstream's structuredContent,
// and unknownResultChars. The letter of a row says what the client's model sees of a result that has both parts: S only
// structuredContent, B both, D both unless a text is equal JSON, C only the content. The next word says how that is known: run =
// seen in a request to a model, read = in the client's code, told = in docs or issues. Where the model sees structuredContent, it
// is omitted, as it would cost again the tokens that the text has saved; B clients get it if no text contains the same, because
// it would cost more in a text, whose quotes they escape. docs/clients.md has the versions.
//
// ResultChars is a little less than what the client shows before it cuts a result itself.
var knownClients = []ClientRule{
	// S, run, 2.1.330 (anthropics/claude-code#79944, #41593). It cuts descriptions and
	// instructions at 2,048 characters without a word, and results at 500,000 where
	// _meta asks for it, as toolMeta does. By default it searches for tools.
	{Name: "claude-code*", Structured: StructuredNever, DescriptionChars: 2000, ResultChars: 500_000, Searches: true},
	// C, told. Desktop and claude.ai: 150,000 characters; Desktop gives a call up after 240 s,
	// which nothing sets (anthropics/claude-code#44032, #65643, #91898).
	{Name: "claude-ai*", ResultChars: 140_000, CallWait: 240 * time.Second},
	// S, run, 0.169; in code mode a program gets both. Known models: the middle is cut
	// out beyond 10,000 tokens of 4 bytes.
	{Name: "codex*", Structured: StructuredNever, ResultChars: 38_000},
	// S, read (microsoft/vscode#290063). 8,192 bytes, the rest in a file.
	{Name: "visual studio code*", Structured: StructuredNever, ResultChars: 8000},
	{Name: "code - oss*", Structured: StructuredNever, ResultChars: 8000},
	{Name: "vscode*", Structured: StructuredNever, ResultChars: 8000},
	// B, run, 1.0.102 (github/copilot-cli#3258, #4515). Between 15 and 51 KB, then 500
	// characters and a file. It joins text blocks without a separator.
	{Name: "*copilot*", Structured: StructuredOnce, ResultChars: 18_000, LineFirst: true},
	// B, run, 3.0.65. 8,000 characters of the result as JSON, where quotes and line ends
	// take two; the middle is cut out.
	{Name: "@cline/*", Structured: StructuredOnce, ResultChars: 6500},
	{Name: "cline*", Structured: StructuredOnce, ResultChars: 6500},
	// B, run, 0.24.4, by the name qwen-cli-mcp-client-SERVER. 25,000 characters or 1,000
	// lines, then 2.5 KB and a file.
	{Name: "qwen*", Structured: StructuredOnce, ResultChars: 24_000, LineFirst: true},
	// D, run, 2.1.0; TOON is never equal. 50,000 characters, then a preview and a file.
	{Name: "kimi*", Structured: StructuredNever, ResultChars: 48_000},
	// C, run, 0.61. 40,000 characters: the first 8,000 and the last 32,000.
	{Name: "gemini-cli*", ResultChars: 38_000},
	// C, run, 1.18.33. 51,200 bytes or 2,000 lines, the beginning is kept.
	{Name: "opencode*", ResultChars: 48_000, LineFirst: true},
	// B, run, 2.13.
	{Name: "google-adk*", Structured: StructuredOnce},
	// B, run, 1.1.4.
	{Name: "@langchain/mcp-adapters*", Structured: StructuredOnce},
	// These show results to users and programs.
	{Name: "*inspector*", Text: TextJSON},
	{Name: "mcporter*", Text: TextJSON},
}

// unknownResultChars is for clients that are not in knownClients: about 10,000 tokens, which most of them show.
const unknownResultChars = 38_000
