package budget

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/terminal"
)

// The layout of the chart, in pixels. The background is transparent, and the colours have about the
// same contrast on white and on black: an image in a README does not know the theme of its page.
const (
	chartWidth = 760
	barsLeft   = 168
	barsWidth  = 430
	labelGap   = 8
	barHeight  = 14
	maxClasses = 12
	maxLabel   = 20 // length of the label of a class, in runes

	inkColour    = "#777f8a"
	directColour = "#d1771f"
	mcpxColour   = "#2a9d8f"
	plainColour  = "#5b8fd6"
)

// chart is an SVG image that is drawn from the top to the bottom.
type chart struct {
	body strings.Builder
	y    int // where the next part begins
}

// Chart draws r as an SVG image without scripts or external resources. The same report gives the
// same bytes.
func Chart(r *Report) []byte {
	c := &chart{y: 8}
	if r.Catalogue != nil {
		c.catalogue(r)
	}
	if r.Results != nil {
		if r.Catalogue != nil {
			c.y += 10
		}
		c.results(r)
	}
	c.y += 20
	c.text(0, 0, style{size: 11}, footer(r))
	height := c.y + 10
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-labelledby="title desc"`+
		` font-family="ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" fill="%s">`+"\n",
		chartWidth, height, chartWidth, height, inkColour)
	fmt.Fprintf(&out, "<title id=\"title\">Tokens with and without mcpx</title>\n<desc id=\"desc\">%s</desc>\n", escape(summary(r)))
	out.WriteString(c.body.String() + "</svg>\n")
	return []byte(out.String())
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

// catalogue compares direct and mcpx, for more and more servers and for clients with a tool search.
func (c *chart) catalogue(r *Report) {
	keys := []key{{directColour, "connected directly"}, {mcpxColour, "through mcpx"}}
	c.heading("Tool definitions in every request", keys)
	largest := 1 // the largest figure of both parts, so that their bars can be compared
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
	c.y += 10
	c.heading("The same servers in clients with a tool search of their own", keys)
	for _, s := range r.Catalogue.ToolSearch {
		c.pair(s.Client, terminal.Count(r.Catalogue.Total.Tools, "tool"), s.Direct, s.Surface, largest)
	}
}

// pair draws two bars: the cost with servers connected directly, and the cost with mcpx.
func (c *chart) pair(first, second string, direct, surface, largest int) {
	const extra = 64 // bars can be longer here, because their labels are shorter than in the results
	c.rowLabel(first, second, 2*barHeight+2)
	for _, one := range []struct {
		colour string
		n      int
		note   string
	}{
		{directColour, direct, ""},
		{mcpxColour, surface, " (" + terminal.Change(direct, surface) + ")"},
	} {
		width := c.bar(one.colour, one.n, largest, barsWidth+extra, barHeight)
		c.label(barsLeft+width+labelGap, 0, terminal.Number(one.n)+one.note)
		c.y += barHeight + 2
	}
	c.y += 10
}

// results draws a row for each class, with bars relative to the tokens received.
func (c *chart) results(r *Report) {
	c.heading("Tool results, in parts of what was received", []key{
		{directColour, "received"}, {plainColour, "minified"}, {mcpxColour, "sent"},
	})
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
		c.y += 6
		c.class("all", r.Results.Total)
	}
}

func (c *chart) class(name string, class Class) {
	const length, gap, space = barsWidth - 40, 1, 12
	top := c.y
	c.rowLabel(terminal.ClipMiddle(sanitize.Line(name, 0), maxLabel), terminal.Count(class.Documents, "result"), 28)
	whole := max(class.Received, class.Minified, class.Sent, 1)
	for _, one := range []struct {
		colour    string
		n, height int
	}{{directColour, class.Received, 7}, {plainColour, class.Minified, 7}, {mcpxColour, class.Sent, 12}} {
		c.bar(one.colour, one.n, whole, length, one.height)
		c.y += one.height + gap
	}
	c.label(barsLeft+length+labelGap, top-c.y, terminal.Number(class.Received)+" to "+terminal.Number(class.Sent))
	c.label(barsLeft+length+labelGap, top-c.y+barHeight, terminal.Change(class.Received, class.Sent))
	c.y += space
}

type key struct{ colour, name string }

// heading starts a part of the chart, and explains its colours.
func (c *chart) heading(title string, keys []key) {
	c.y += 16
	c.text(0, 0, style{size: 16, bold: true}, title)
	c.y += 22
	x := 0
	for _, k := range keys {
		fmt.Fprintf(&c.body, `<rect x="%d" y="%d" width="11" height="11" rx="2" fill="%s"/>`+"\n", x, c.y-10, k.colour)
		c.text(x+17, 0, style{size: 13}, k.name)
		x += 17 + 7*utf8.RuneCountInString(k.name) + 22
	}
	c.y += 16
}

// rowLabel writes two lines to the left of the row that begins at c.y.
func (c *chart) rowLabel(first, second string, height int) {
	c.text(barsLeft-12, height/2-2, style{size: 13, bold: true, toLeft: true}, first)
	c.text(barsLeft-12, height/2+12, style{size: 11, toLeft: true}, second)
}

// bar draws n of whole and returns its width, which is at least 2.
func (c *chart) bar(colour string, n, whole, length, height int) int {
	width := max(2, n*length/whole)
	fmt.Fprintf(&c.body, `<rect x="%d" y="%d" width="%d" height="%d" rx="2" fill="%s"/>`+"\n", barsLeft, c.y, width, height, colour)
	return width
}

// label writes a figure beside a bar. below is the distance of the bar from c.y.
func (c *chart) label(x, below int, text string) {
	c.text(x, below+barHeight-3, style{size: 12}, text)
}

// style is how a text looks.
type style struct {
	size   int // in pixels
	bold   bool
	toLeft bool // the text ends at x instead of beginning there
}

// text writes a line. below is the distance of its base line from c.y.
func (c *chart) text(x, below int, s style, text string) {
	anchor, weight := "start", ""
	if s.toLeft {
		anchor = "end"
	}
	if s.bold {
		weight = ` font-weight="600"`
	}
	fmt.Fprintf(&c.body, `<text x="%d" y="%d" font-size="%d" text-anchor="%s"%s>%s</text>`+"\n",
		x, c.y+below, s.size, anchor, weight, escape(text))
}

// escape escapes text for an element. Characters that XML does not allow become U+FFFD.
func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // writing to a Builder cannot fail
	return b.String()
}
