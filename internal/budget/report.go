package budget

// Report is everything that was measured, and what `mcpx budget --json` prints.
// All figures are tokens of Encoding unless they say otherwise.
type Report struct {
	// Encoding is the vocabulary that the tokens are of: o200k_base.
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
	// Total is all servers together; its name is empty.
	Total Server `json:"total"`
	// Surface is what each of mcpx's own tools costs; the sum is Total.Surface.
	Surface []Part `json:"surface"`
	// Growth is direct against mcpx for the first servers, by name, up to all of them.
	Growth []Step `json:"growth"`
	// ToolSearch is what clients carry that search for tools themselves.
	ToolSearch []Search `json:"tool_search"`
	// Notes are what a reader must know: servers and tools that are not in the figures.
	Notes []string `json:"notes,omitempty"`
}

// Server is the figures of one server, or of all of them together.
type Server struct {
	// Name is the server's name.
	Name string `json:"name,omitempty"`
	// Version is what the server says of itself; may be empty.
	Version string `json:"version,omitempty"`
	// Known is false for a server whose tools were never seen: its figures are not 0, but missing.
	Known bool `json:"known"`
	// Tools is the number of tools. What the config hides is in none of the figures.
	Tools int `json:"tools"`
	// Direct is what a model request carries without mcpx: minified {name, description, inputSchema} of each tool.
	Direct int `json:"direct"`
	// Raw is the whole definitions minified, with output schemas, annotations and whatever else the server sent.
	Raw int `json:"raw"`
	// Surface is what a model request carries of mcpx: its two tools as definitions. For one server, it is mcpx
	// in front of this server alone, so the servers do not add up to the total.
	Surface int `json:"surface"`
	// Definition is what single tools cost without mcpx; the sum is Direct.
	Definition Spread `json:"definition"`
	// Inspect is what looking tools up costs, one at a time.
	Inspect Spread `json:"inspect"`
	// BreakEven is how many tools a conversation can look up before direct would have been cheaper:
	// (Direct - Surface) / Inspect.Median. It is 0 where direct is cheaper anyway.
	BreakEven float64 `json:"break_even"`
	// Cost is of the definitions in 1,000 requests, in dollars, without prompt caching.
	Cost Cost `json:"cost_per_1000_requests"`
}

// Search is what a request of a client carries that searches for tools itself: names or
// lines of tools or servers, their instructions if it shows them, and what it has loaded.
type Search struct {
	// Client is the client's name.
	Client string `json:"client"`
	// Direct is without mcpx.
	Direct int `json:"direct"`
	// Surface is with mcpx.
	Surface int `json:"surface"`
}

// Spread is how the costs of single tools are spread.
type Spread struct {
	// Median is of all tools; between two, their mean, rounded down.
	Median int `json:"median"`
	// P95 is what 95 % of the tools stay within (nearest rank).
	P95 int `json:"p95"`
	// Sum is that of all tools, to be held against Direct.
	Sum int `json:"sum"`
}

// Cost is in dollars.
type Cost struct {
	// Direct is the cost of carrying all definitions.
	Direct float64 `json:"direct"`
	// Surface is the cost of carrying mcpx's two tools.
	Surface float64 `json:"surface"`
	// Inspect is the cost of one looked-up tool (the median) in each request.
	Inspect float64 `json:"inspect"`
}

// Part is one of mcpx's own tools.
type Part struct {
	// Name is the tool's name.
	Name string `json:"name"`
	// Tokens is what its definition costs.
	Tokens int `json:"tokens"`
}

// Step is direct against mcpx for a number of servers.
type Step struct {
	// Servers is the number of servers.
	Servers int `json:"servers"`
	// Tools is the number of their tools.
	Tools int `json:"tools"`
	// Direct is as in [Server].
	Direct int `json:"direct"`
	// Surface is mcpx in front of these servers.
	Surface int `json:"surface"`
}

// Results is what recorded results cost, as received and as mcpx sends them.
type Results struct {
	// Classes are the largest first, by Received.
	Classes []Class `json:"classes"`
	// Total is all classes together; its name is empty.
	Total Class `json:"total"`
}

// Class is the recorded results of one kind: the file name up to "--" if it has that.
type Class struct {
	// Name is that of the class.
	Name string `json:"class,omitempty"`
	// Documents is the number of results.
	Documents int `json:"documents"`
	// Received is the texts as they are in the files.
	Received int `json:"received"`
	// Minified is what mcpx would send with TOON turned off.
	Minified int `json:"minified"`
	// PlainTOON is what toon-go makes of all JSON arrays and objects.
	PlainTOON int `json:"plain_toon"`
	// Sent is what mcpx sends.
	Sent int `json:"sent"`
	// TOON is the number of results that became TOON.
	TOON int `json:"toon"`
}
