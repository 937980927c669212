// Package budget measures what tool definitions and tool results cost a model in tokens, with and without mcpx. It
// opens no sessions; the caller provides the tools of the servers and what mcpx shows to a client.
package budget

import (
	"encoding/json"
	"fmt"
	"slices"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
	"mcpx/internal/describe"
	"mcpx/internal/tokens"
)

// Definition is a tool as it is in the request to a model.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// Tokens counts the tokens of the definition as minified JSON. A schema that is not JSON is counted as {}.
func (d Definition) Tokens() int {
	if !json.Valid(d.InputSchema) {
		d.InputSchema = json.RawMessage("{}")
	}
	return tokens.Count(string(wire.Encode(d)))
}

func sumTokens(list []Definition) (n int) {
	for _, d := range list {
		n += d.Tokens()
	}
	return n
}

// Meter measures costs, with the settings in its fields.
type Meter struct {
	// Price is in dollars per million input tokens.
	Price float64
	// Surface returns the tools and instructions that mcpx would show to a client of this name, if mcpx had the servers in snap.
	// An empty name means a client without special limits. Only [Meter.Catalogue] and Meter.Totals need it.
	Surface func(snap *catalog.Snapshot, client string) ([]Definition, string)
	// Describe are the options for the text that inspect returns about a tool.
	Describe describe.Options
	// Compress are the options for results.
	Compress compress.Options
}

// Report returns an empty report. The caller stores the results of [Meter.Catalogue] and [Meter.Results] in its fields.
func (m *Meter) Report() *Report { return &Report{Encoding: "o200k_base", Price: m.Price} }

// Catalogue measures the definitions of all tools in snap. The result has the given notes, and a further note for each server that
// is not in the figures.
func (m *Meter) Catalogue(snap *catalog.Snapshot, notes []string) *Catalogue {
	c := &Catalogue{Servers: make([]Server, 0, len(snap.Servers)), Growth: []Step{}, Notes: notes}
	var bare, lookups []int
	for i := range snap.Servers {
		s := &snap.Servers[i]
		if !s.Known {
			c.Notes = append(c.Notes, missing(s))
			c.Servers = append(c.Servers, Server{Name: s.Name})
			continue
		}
		server, defined, looked := m.server(s)
		bare, lookups = append(bare, defined...), append(lookups, looked...)
		c.Servers = append(c.Servers, server)
		c.Total.Tools += server.Tools
		c.Total.Direct += server.Direct
		c.Total.Raw += server.Raw
	}
	tools, _ := m.Surface(snap, "")
	for _, d := range tools {
		c.Surface = append(c.Surface, Part{d.Name, d.Tokens()})
		c.Total.Surface += c.Surface[len(c.Surface)-1].Tokens
	}
	c.Total.Known = slices.ContainsFunc(c.Servers, func(s Server) bool { return s.Known })
	m.derive(&c.Total, bare, lookups)
	m.growth(c, snap)
	c.ToolSearch = m.searching(snap)
	return c
}

// Totals returns two numbers of tokens: direct for the definitions of all tools in snap, and surface for the definitions of the
// tools that mcpx shows in their place.
func (m *Meter) Totals(snap *catalog.Snapshot) (direct, surface int) {
	for i := range snap.Servers {
		direct += sumTokens(Definitions(snap.Servers[i].Tools))
	}
	tools, _ := m.Surface(snap, "")
	return direct, sumTokens(tools)
}

// missing returns the note about a server without known tools.
func missing(s *catalog.Server) string {
	note := fmt.Sprintf("%s: %s, its tools are not known and not counted", s.Name, s.State)
	if reason := sanitize.Line(s.Reason, 200); reason != "" {
		note += " (" + reason + ")"
	}
	return note
}

// server measures one server. bare and lookups have a number of tokens for each tool: bare that of the tool's definition, lookups
// that of the answer of inspect about the tool.
func (m *Meter) server(s *catalog.Server) (out Server, bare, lookups []int) {
	alone := *s
	alone.State, alone.Reason = catalog.Ready, "" // the state must not affect the length of the text that inspect returns
	out = Server{Name: s.Name, Version: s.Version, Known: true, Tools: len(s.Tools)}
	for i, d := range Definitions(s.Tools) {
		t := &s.Tools[i]
		bare = append(bare, d.Tokens())
		out.Direct += bare[i]
		out.Raw += tokens.Count(string(t.Raw))
		lookups = append(lookups, tokens.Count(describe.Tool(&alone, t, m.Describe)))
	}
	out.Surface = m.surface([]catalog.Server{alone})
	m.derive(&out, bare, lookups)
	return out, bare, lookups
}

// surface returns how many tokens the definitions of mcpx's own tools would have if mcpx had only these servers.
func (m *Meter) surface(servers []catalog.Server) int {
	tools, _ := m.Surface(catalog.NewSnapshot(servers), "")
	return sumTokens(tools)
}

// derive computes those fields of s that follow from the tokens of single tools. bare and lookups are as in the method server.
func (m *Meter) derive(s *Server, bare, lookups []int) {
	s.Definition, s.Inspect = spread(bare), spread(lookups)
	if s.Inspect.Median > 0 {
		s.BreakEven = max(0, float64(s.Direct-s.Surface)/float64(s.Inspect.Median))
	}
	s.Cost = Cost{m.dollars(s.Direct), m.dollars(s.Surface), m.dollars(s.Inspect.Median)}
}

// dollars returns the cost of 1,000 requests with n tokens each.
func (m *Meter) dollars(n int) float64 { return float64(n) * 1000 * m.Price / 1e6 }

func spread(costs []int) Spread {
	n := len(costs)
	if n == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(costs))
	out := Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, P95: sorted[(n*95+99)/100-1]}
	for _, cost := range sorted {
		out.Sum += cost
	}
	return out
}

// growth fills c.Growth. For each number that the function steps returns, it adds a Step with the figures of this many servers.
// These are the first servers in the order of their names.
func (m *Meter) growth(c *Catalogue, snap *catalog.Snapshot) {
	n := len(snap.Servers)
	for _, upTo := range steps(n) {
		step := Step{Servers: upTo}
		for _, s := range c.Servers[:upTo] {
			step.Tools += s.Tools
			step.Direct += s.Direct
		}
		if upTo == n {
			step.Surface = c.Total.Surface
		} else {
			step.Surface = m.surface(slices.Clone(snap.Servers[:upTo]))
		}
		c.Growth = append(c.Growth, step)
	}
}

// steps returns the numbers of servers 1, 5, 10, 50, 100 and so on up to three quarters of n, and then n itself.
func steps(n int) (list []int) {
	for scale := 1; scale < n; scale *= 10 {
		for _, step := range []int{scale, 5 * scale} {
			if 4*step <= 3*n {
				list = append(list, step)
			}
		}
	}
	if n > 0 {
		list = append(list, n)
	}
	return list
}
