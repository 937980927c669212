package budget

import (
	"fmt"
	"slices"
	"strings"

	"mcpx/internal/base/chart"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
)

const (
	maxClasses = 12
	maxLabel   = 20 // the maximum length of the label of a class, in runes
)

// image is the chart while it is drawn: each method adds a part of the report below the last one.
type image struct{ *chart.Chart }

// Chart draws r as an SVG image. The same report gives the same bytes.
func Chart(r *Report) []byte {
	c := image{chart.New()}
	if r.Catalogue != nil {
		c.catalogue(r)
	}
	if r.Results != nil {
		if r.Catalogue != nil {
			c.Down(10)
		}
		c.results(r)
	}
	return c.SVG("Tokens with and without mcpx", summary(r), footer(r))
}

func footer(r *Report) string {
	text := fmt.Sprintf("Tokens of %s, counted by mcpx budget.", r.Encoding)
	if r.Catalogue != nil && len(r.Catalogue.Growth) > 1 {
		text += " Servers are added in the order of their names."
	}
	return text
}

// summary describes the chart in words, for screen readers.
func summary(r *Report) string {
	var parts []string
	if c := r.Catalogue; c != nil {
		parts = append(parts, fmt.Sprintf("Tool definitions of %s in every request: %s tokens connected directly, %s through mcpx.",
			terminal.Count(len(c.Servers), "server"), terminal.Number(c.Total.Direct), terminal.Number(c.Total.Surface)))
		for _, s := range c.ToolSearch {
			parts = append(parts, fmt.Sprintf("%s, which searches for tools itself: %s directly, %s through mcpx.",
				s.Client, terminal.Number(s.Direct), terminal.Number(s.Surface)))
		}
	}
	if t := r.Results; t != nil {
		parts = append(parts, fmt.Sprintf("%s: %s tokens received, %s minified, %s sent.",
			terminal.Count(t.Total.Documents, "tool result"), terminal.Number(t.Total.Received),
			terminal.Number(t.Total.Minified), terminal.Number(t.Total.Sent)))
	}
	return strings.Join(parts, " ")
}

// catalogue draws the costs of tool definitions without and with mcpx: first for growing numbers of servers, then for each client
// that searches for tools itself.
func (c image) catalogue(r *Report) {
	keys := []chart.Key{{Colour: chart.Orange, Name: "connected directly"}, {Colour: chart.Green, Name: "through mcpx"}}
	c.Heading("Tool definitions in every request", keys...)
	largest := 1 // the largest cost in the chart, so that all bars have the same scale
	for _, step := range r.Catalogue.Growth {
		largest = max(largest, step.Direct, step.Surface)
	}
	for _, s := range r.Catalogue.ToolSearch {
		largest = max(largest, s.Direct, s.Surface)
	}
	for _, step := range r.Catalogue.Growth {
		c.pair(terminal.Count(step.Servers, "server"), terminal.Count(step.Tools, "tool"), step.Direct, step.Surface, largest)
	}
	if len(r.Catalogue.ToolSearch) == 0 {
		return
	}
	c.Down(10)
	c.Heading("The same servers in clients with a tool search of their own", keys...)
	for _, s := range r.Catalogue.ToolSearch {
		c.pair(s.Client, terminal.Count(r.Catalogue.Total.Tools, "tool"), s.Direct, s.Surface, largest)
	}
}

// pair draws two bars: the cost with servers connected directly, and the cost with mcpx. first and second are the two lines of the
// label. largest is the cost whose bar has the full length.
func (c image) pair(first, second string, direct, surface, largest int) {
	const extra = 64 // bars can be longer here, because their labels are shorter than in the results
	c.Row(first, second, 2*chart.Thick+2)
	for _, one := range []struct {
		colour string
		n      int
		note   string
	}{
		{chart.Orange, direct, ""},
		{chart.Green, surface, " (" + terminal.Change(direct, surface) + ")"},
	} {
		width := c.Bar(one.colour, one.n, largest, chart.Length+extra, chart.Thick)
		c.Label(width, 0, terminal.Number(one.n)+one.note)
		c.Down(chart.Thick + 2)
	}
	c.Down(10)
}

// results draws a row for each class of results. The bars show the tokens received, minified and sent, relative to the tokens
// received.
func (c image) results(r *Report) {
	c.Heading("Tool results, in parts of what was received",
		chart.Key{Colour: chart.Orange, Name: "received"}, chart.Key{Colour: chart.Blue, Name: "minified"}, chart.Key{Colour: chart.Green, Name: "sent"})
	classes := r.Results.Classes
	if len(classes) > maxClasses {
		others := Class{Name: "others"}
		for _, class := range classes[maxClasses-1:] {
			others.add(class)
		}
		classes = append(slices.Clone(classes[:maxClasses-1]), others)
	}
	for _, class := range classes {
		c.class(class.Name, class)
	}
	if len(r.Results.Classes) > 1 {
		c.Down(6)
		c.class("all", r.Results.Total)
	}
}

func (c image) class(name string, class Class) {
	const length, gap, space = chart.Length - 40, 1, 12
	high := 0
	c.Row(terminal.ClipMiddle(sanitize.Line(name, 0), maxLabel), terminal.Count(class.Documents, "result"), 28)
	whole := max(class.Received, class.Minified, class.Sent, 1)
	for _, one := range []struct {
		colour    string
		n, height int
	}{{chart.Orange, class.Received, 7}, {chart.Blue, class.Minified, 7}, {chart.Green, class.Sent, 12}} {
		c.Bar(one.colour, one.n, whole, length, one.height)
		c.Down(one.height + gap)
		high += one.height + gap
	}
	c.Label(length, -high, terminal.Number(class.Received)+" to "+terminal.Number(class.Sent))
	c.Label(length, -high+chart.Thick, terminal.Change(class.Received, class.Sent))
	c.Down(space)
}
