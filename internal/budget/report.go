package budget

// Report is everything that was measured, and what `mcpx budget --json` prints. All figures are tokens of Encoding unless their
// comments say otherwise.
type Report struct {
	// Encoding is the encoding that tokens are counted with: o200k_base.
	Encoding string `json:"encoding"`
	// Price is in dollars per million input tokens.
	Price float64 `json:"price"`
	// Catalogue is about tool definitions; absent where none were measured.
	Catalogue *Catalogue `json:"catalogue,omitempty"`
	// Results is about recorded results; absent where none were measured.
	Results *Results `json:"results,omitempty"`
}

// Catalogue is what tool definitions cost, with and without mcpx.
type Catalogue struct {
	// Servers are sorted by name.
	Servers []Server `json:"servers"`
	// Total has the figures of all servers together; its name is empty.
	Total Server `json:"total"`
	// Surface has the cost of each of mcpx's own tools; the sum of these costs is Total.Surface.
	Surface []Part `json:"surface"`
	// Growth compares the costs without and with mcpx for growing numbers of servers: 1, 5, 10 and so on, up to all servers.
	// Servers are added in the order of their names.
	Growth []Step `json:"growth"`
	// ToolSearch has the size of the requests of clients that search for tools themselves, and so do not send all
	// definitions.
	ToolSearch []Search `json:"tool_search"`
	// Notes name servers and tools that are not in the figures.
	Notes []string `json:"notes,omitempty"`
}

// Server contains the figures of one server, or of all servers together.
type Server struct {
	// Name is the server's name.
	Name string `json:"name,omitempty"`
	// Version is the server's version; it may be empty.
	Version string `json:"version,omitempty"`
	// Known is false for a server whose tools were never seen: its figures are missing, not 0.
	Known bool `json:"known"`
	// Tools is the number of tools. Tools that the config hides are in none of the figures.
	Tools int `json:"tools"`
	// Direct is what a model request carries without mcpx: minified {name, description, inputSchema} of each tool.
	Direct int `json:"direct"`
	// Raw is the cost of the complete definitions as minified JSON, with output schemas, annotations and all else that
	// the server sent.
	Raw int `json:"raw"`
	// Surface is what a model request carries with mcpx: the definitions of mcpx's own tools. For one server, it is measured as
	// if mcpx had only this server. So the figures of the servers do not add up to the total.
	Surface int `json:"surface"`
	// Definition is the cost of the definition of a single tool without mcpx; its sum over all tools is Direct.
	Definition Spread `json:"definition"`
	// Inspect is the cost of looking up a single tool with inspect.
	Inspect Spread `json:"inspect"`
	// BreakEven is how many tools a conversation can look up before mcpx costs as much as the direct connection: (Direct -
	// Surface) / Inspect.Median. It is 0 if mcpx costs more even without looking up a tool, and if there are no tools.
	BreakEven float64 `json:"break_even"`
	// Cost is the cost of the definitions in 1,000 requests, without prompt caching.
	Cost Cost `json:"cost_per_1000_requests"`
}

// Search is the size of a request of a client that searches for tools itself. Such a request contains the definitions that the
// client has loaded. It also contains, depending on the client, the name of each tool, a line for each tool, or a line for each
// server. If the client shows the servers' instructions, the request contains these too.
type Search struct {
	// Client is the client's name.
	Client string `json:"client"`
	// Direct is the number of tokens without mcpx.
	Direct int `json:"direct"`
	// Surface is the number of tokens with mcpx.
	Surface int `json:"surface"`
}

// Spread is the distribution of the costs of single tools.
type Spread struct {
	// Median is the median cost. If the number of tools is even, it is the mean of the two costs in the middle, rounded down.
	Median int `json:"median"`
	// P95 is the 95th percentile (nearest rank).
	P95 int `json:"p95"`
	// Sum is the cost of all tools together.
	Sum int `json:"sum"`
}

// Cost is what 1,000 requests cost, in dollars.
type Cost struct {
	// Direct is the cost of the definitions of all tools, as the requests have them without mcpx.
	Direct float64 `json:"direct"`
	// Surface is the cost of the definitions of mcpx's own tools.
	Surface float64 `json:"surface"`
	// Inspect is the additional cost if each of the requests also contains the answer of inspect about one tool, with the median
	// number of tokens.
	Inspect float64 `json:"inspect"`
}

// Part is one of mcpx's own tools.
type Part struct {
	// Name is the tool's name.
	Name string `json:"name"`
	// Tokens is the cost of the tool's definition.
	Tokens int `json:"tokens"`
}

// Step compares the costs without and with mcpx for a number of servers.
type Step struct {
	// Servers is the number of servers.
	Servers int `json:"servers"`
	// Tools is the number of tools that the servers have together.
	Tools int `json:"tools"`
	// Direct is what a model request carries without mcpx.
	Direct int `json:"direct"`
	// Surface is what a model request carries with mcpx.
	Surface int `json:"surface"`
}

// Results is what recorded results cost, as received and as mcpx sends them.
type Results struct {
	// Classes are sorted by Received, the largest first.
	Classes []Class `json:"classes"`
	// Total is all classes together; its name is empty.
	Total Class `json:"total"`
}

// Class contains the figures of recorded results of one kind. Results are of one kind if the names of their files are the same up
// to "--".
type Class struct {
	// Name is the name of the class.
	Name string `json:"class,omitempty"`
	// Documents is the number of results.
	Documents int `json:"documents"`
	// Received is the number of tokens in the texts of the files.
	Received int `json:"received"`
	// Minified is the number of tokens that mcpx would send without TOON and JavaScript.
	Minified int `json:"minified"`
	// PlainTOON is the number of tokens if the library toon-go writes each result that is a JSON array or object, and mcpx writes
	// the others as for Minified.
	PlainTOON int `json:"plain_toon"`
	// Sent is the number of tokens that mcpx sends.
	Sent int `json:"sent"`
	// TOON is the number of results that became TOON.
	TOON int `json:"toon"`
}
