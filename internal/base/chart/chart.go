// Package chart draws bar charts as SVG images, without scripts or external resources. The same calls give the same bytes.
package chart

import (
	"encoding/xml"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The layout, in pixels.
const (
	width    = 760
	Left     = 168 // where bars begin, unless Column says otherwise
	Length   = 430 // the usual length of the longest bars
	labelGap = 8
)

// The colours have about the same contrast on white and on black, and the background is transparent: an image in a README does
// not know the theme of its page.
const (
	Orange = "#d1771f"
	Green  = "#2a9d8f"
	Blue   = "#5b8fd6"
	ink    = "#777f8a"
)

// Chart is an image that is drawn from the top to the bottom.
type Chart struct {
	body strings.Builder
	y    int // where the next part begins
	left int // where bars begin
}

// New returns an empty image.
func New() *Chart { return &Chart{y: 8, left: Left} }

// Down leaves space, in pixels, before the next part.
func (c *Chart) Down(pixels int) { c.y += pixels }

// SVG ends the image with a footer and returns it. title and summary are for screen readers.
func (c *Chart) SVG(title, summary, footer string) []byte {
	c.y += 20
	c.text(0, 0, style{size: 11}, footer)
	height := c.y + 10
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-labelledby="title desc"`+
		` font-family="ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" fill="%s">`+"\n",
		width, height, width, height, ink)
	fmt.Fprintf(&out, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n", escape(title), escape(summary))
	out.WriteString(c.body.String() + "</svg>\n")
	return []byte(out.String())
}

// Key says what a colour means.
type Key struct{ Colour, Name string }

// Heading starts a part of the chart, and explains its colours.
func (c *Chart) Heading(title string, keys ...Key) {
	c.y += 16
	c.text(0, 0, style{size: 16, bold: true}, title)
	c.y += 22
	x := 0
	for _, k := range keys {
		fmt.Fprintf(&c.body, `<rect x="%d" y="%d" width="11" height="11" rx="2" fill="%s"/>`+"\n", x, c.y-10, k.Colour)
		c.text(x+17, 0, style{size: 13}, k.Name)
		x += 17 + 7*utf8.RuneCountInString(k.Name) + 22
	}
	c.y += 16
}

// Row writes two lines of text to the left of the next bars. height is the height of these bars together, in pixels.
func (c *Chart) Row(first, second string, height int) {
	c.text(Left-12, height/2-2, style{size: 13, bold: true, toLeft: true}, first)
	c.text(Left-12, height/2+12, style{size: 11, toLeft: true}, second)
}

// Column sets x as the place where the next bars, labels and notes begin, until the next call of Column.
func (c *Chart) Column(x int) { c.left = x }

// Bar draws a bar and returns its width in pixels. The width is n/whole of the parameter length, but at least 2 pixels. Bar does
// not move down: the next part begins at the same height unless the caller calls Down.
func (c *Chart) Bar(colour string, n, whole, length, height int) int {
	width := max(2, n*length/whole)
	fmt.Fprintf(&c.body, `<rect x="%d" y="%d" width="%d" height="%d" rx="2" fill="%s"/>`+"\n", c.left, c.y, width, height, colour)
	return width
}

// Label writes text beside a bar of this width and of the height Thick. below is the distance in pixels from c.y down to the
// top of the bar.
func (c *Chart) Label(width, below int, text string) {
	c.text(c.left+width+labelGap, below+Thick-3, style{size: 12}, text)
}

// Note writes a line of text at the place where bars begin.
func (c *Chart) Note(text string) { c.text(c.left, Thick-3, style{size: 12}, text) }

// Thick is the height of a bar that has a number beside it.
const Thick = 14

// style is how a text looks.
type style struct {
	size   int // in pixels
	bold   bool
	toLeft bool // the text ends at x instead of beginning there
}

// text writes a line of text. below is the distance in pixels from c.y down to the base line of the text.
func (c *Chart) text(x, below int, s style, text string) {
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
