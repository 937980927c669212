package describe

import (
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
)

// shape is the form of a list of tools.
type shape int

const (
	counted shape = iota // their number, after the name of the server
	topics               // their topics and their number
	spelled              // all names on one line
	grouped              // all names on one line, a common prefix once
	listed               // a line for each tool
)

// params selects the parameters of a tool that its line names.
type params int

const (
	noParams params = iota
	requiredParams
	allParams
)

// detail is the amount of text about one server.
type detail struct {
	purpose int // runes; 0 for none
	tools   shape
	topics  int
	params  params
	desc    int // runes of each tool's description; 0 for none
}

// form is a way to write a catalogue.
type form struct {
	head string
	mark string // before the name of a server
	// ladder has the details from the poorest to the richest. A poorer catalogue lacks
	// first the descriptions, then the names of optional parameters, the line for each
	// tool, the names of required parameters, the tool names, the topics of a big server,
	// and last the purpose of the server. The steps are small, as all servers take a step
	// together and smaller room stays unused.
	ladder []detail
}

// forms are in the order in which they are tried. The first has all tools with parameters
// and marks the servers; the second is for less room.
var forms = []form{
	{head: "\n\nAvailable tools:\n", mark: "  Server: ", ladder: lines[2:]},
	{head: "\n\nAvailable tools (where only counted, use query; a_{b, c} means a_b, a_c):\n", ladder: append(rows, lines...)},
}

// briefForms have the names of tools alone.
var briefForms = []form{
	{head: forms[0].head, ladder: []detail{
		{tools: spelled},
		{purpose: 24, tools: spelled},
		{purpose: 40, tools: spelled},
		{purpose: 60, tools: spelled},
		{purpose: 80, tools: spelled},
		{purpose: 100, tools: spelled},
	}},
	{head: forms[1].head, ladder: rows[:len(rows)-1]},
}

// forms are the ways to write the catalogue.
func (f Features) forms() []form {
	if f.Brief {
		return briefForms
	}
	return forms
}

var rows = []detail{
	{},
	{purpose: 24},
	{purpose: 32},
	{purpose: 40},
	{purpose: 50},
	{purpose: 60},
	{purpose: 80},
	{purpose: 80, tools: topics, topics: 3},
	{purpose: 80, tools: topics, topics: 5},
	{purpose: 80, tools: topics, topics: 8},
	{purpose: 80, tools: topics, topics: 12},
	{purpose: 80, tools: topics, topics: 18},
	{purpose: 80, tools: topics, topics: 27},
	{purpose: 80, tools: topics, topics: 40},
	{purpose: 80, tools: topics, topics: maxTopics},
	{purpose: 80, tools: grouped},
	{purpose: 100, tools: grouped},
	{purpose: 100, tools: grouped, params: requiredParams},
}

var lines = []detail{
	{purpose: 100, tools: listed, params: requiredParams},
	{purpose: 120, tools: listed, params: requiredParams},
	{purpose: 120, tools: listed, params: allParams},
	{purpose: 120, tools: listed, params: allParams, desc: 32},
	{purpose: 120, tools: listed, params: allParams, desc: 40},
	{purpose: 120, tools: listed, params: allParams, desc: 48},
	{purpose: 120, tools: listed, params: allParams, desc: 56},
	{purpose: 160, tools: listed, params: allParams, desc: 64},
	{purpose: 200, tools: listed, params: allParams, desc: 72},
	{purpose: 240, tools: listed, params: allParams, desc: 80},
	{purpose: 300, tools: listed, params: allParams, desc: 80},
}

// canvas is the room for a catalogue.
type canvas struct {
	form *form
	room size
	// pages are the UTF-16 units of each text that the catalogue goes on in; nil for one
	// text that only room limits.
	pages []int
	// noPurposes says that another text has the purposes of the servers.
	noPurposes bool
}

// start has each server in the poorest detail; ok is false if that does not fit.
func (c *canvas) start(servers []*catalog.Server) (steps []step, ok bool) {
	steps = make([]step, len(servers))
	total := size{}
	for i, server := range servers {
		// A marked tool has at least 4 tokens: a dash, a name, brackets and a line end.
		if c.form.mark != "" && 4*len(server.Tools) > c.room.tokens {
			return nil, false
		}
		steps[i] = makeStep(&source{server: server}, c, 0)
		total = total.plus(steps[i].size)
		if !c.room.fits(total) {
			return nil, false
		}
	}
	return steps, c.fits(steps)
}

// fits reports whether the steps are within the room.
func (c *canvas) fits(steps []step) bool {
	total := size{}
	for i := range steps {
		total = total.plus(steps[i].size)
	}
	if !c.room.fits(total) || len(c.pages) < 2 {
		return c.room.fits(total)
	}
	_, ok := c.pack(steps)
	return ok
}

// whole is the unit of shares: a block with this share fills the room.
const whole = 1 << 16

// fill is the catalogue with as much detail as the room allows, one text for each page. It
// adds tool names to all servers before parameters to any, and parameters before
// descriptions. ok is false if not even the poorest detail fits.
func (c *canvas) fill(servers []*catalog.Server) (texts []string, ok bool) {
	steps, ok := c.start(servers)
	if !ok {
		return nil, false
	}
	for most := names; most <= described; most++ {
		steps = c.raise(steps, most)
	}
	return c.pack(steps)
}

// raise gives every server the richest detail, up to a kind, whose block fits into the same
// share of the room. So small servers are complete while large ones have their topics. The
// share grows in steps: then a change of one server mostly does not change the others.
func (c *canvas) raise(steps []step, most kind) []step {
	left := c.room.tokens
	for i := range steps {
		left -= steps[i].size.tokens
	}
	for i := range steps {
		steps[i].above = nil
		if most == names || len(steps[i].source.server.Tools) <= left { // a tool adds at least a token
			steps[i].findAbove(most)
		}
	}
	for share := whole >> 12; ; share = min(share+share/8+1, whole) {
		next := make([]step, len(steps))
		done := true
		for i := range steps {
			next[i] = steps[i].upgrade(share, most)
			done = done && next[i].above == nil
		}
		if !c.fits(next) {
			return steps
		}
		steps = next
		if done || share == whole {
			return steps
		}
	}
}

// kind is the amount of text about each tool.
type kind int

const (
	names kind = iota // or less
	parameters
	described
)

func (d detail) kind() kind {
	switch {
	case d.desc > 0:
		return described
	case d.params > noParams:
		return parameters
	}
	return names
}

// step is one server in one detail, with the next step up.
type step struct {
	source *source
	canvas *canvas
	level  int
	text   string
	size   size
	share  int
	above  *step // nil at the top, or before findAbove
}

func makeStep(src *source, c *canvas, level int) step {
	d := c.form.ladder[level]
	if c.noPurposes {
		d.purpose = 0
	}
	s := step{source: src, canvas: c, level: level, text: src.block(d, c.form.mark)}
	s.size = measure(s.text + "\n")
	s.share = c.room.share(s.size)
	return s
}

// findAbove finds the next step up, up to a kind. A richer block that is no larger replaces
// s at once. A block larger than the whole room ends the search.
func (s *step) findAbove(most kind) {
	s.above = nil
	ladder := s.canvas.form.ladder
	for level := s.level + 1; level < len(ladder) && ladder[level].kind() <= most; level++ {
		if s.source.skips(ladder[level]) {
			continue
		}
		next := makeStep(s.source, s.canvas, level)
		if next.share > whole {
			return
		}
		if next.share > s.share {
			s.above = &next
			return
		}
		*s = next
	}
}

// upgrade is the richest step within share of the room, up to a kind.
func (s step) upgrade(share int, most kind) step {
	for s.above != nil && s.above.share <= share {
		s = *s.above
		s.findAbove(most)
	}
	return s
}

// pack joins the blocks to one text for each page. A block at the end of a page is cut
// between two lines, or between two tools of a long line.
func (c *canvas) pack(steps []step) (texts []string, ok bool) {
	p := packer{left: slices.Clone(c.pages)}
	for i := range steps {
		p.owner = c.form.mark + sanitize.Line(steps[i].source.server.Name, 0)
		for n, line := range strings.Split(steps[i].text, "\n") {
			if !p.add(line, n > 0) {
				return nil, false
			}
		}
	}
	return p.done(), true
}

// packer puts lines on pages.
type packer struct {
	left  []int // UTF-16 units left on the current page and the next ones; nil = no limit
	owner string
	page  strings.Builder
	texts []string
}

// add puts a line on the current page or the next, and returns false if neither has room.
// inside means that the line belongs to owner, whose name a new page repeats.
func (p *packer) add(line string, inside bool) bool {
	if p.left == nil {
		p.write(line)
		return true
	}
	for n := units(line) + 1; n > p.left[0]; n = units(line) + 1 {
		if len(p.left) == 1 {
			return false
		}
		if end := cutTools(line, p.left[0]); end > 0 {
			p.write(line[:end])
			line, inside = line[end+1:], true
		}
		p.texts = append(p.texts, p.page.String())
		p.page.Reset()
		p.left = p.left[1:]
		if inside {
			head := p.owner + ", continued:"
			p.left[0] -= units(head) + 1
			p.write(head)
		}
	}
	p.left[0] -= units(line) + 1
	p.write(line)
	return true
}

func (p *packer) write(line string) {
	if p.page.Len() > 0 {
		p.page.WriteByte('\n')
	}
	p.page.WriteString(line)
}

func (p *packer) done() []string { return append(p.texts, p.page.String()) }

// cutTools is the length of the longest start of line in most UTF-16 units that ends with a
// comma between two tools, outside brackets; 0 if there is none.
func cutTools(line string, most int) (end int) {
	depth, n := 0, 0
	for i, r := range line {
		if n++; r > 0xffff {
			n++
		}
		switch r {
		case '{', '(':
			depth++
		case '}', ')':
			depth--
		case ',':
			if depth == 0 && n < most && strings.HasPrefix(line[i:], ", ") {
				end = i + 1
			}
		}
	}
	return end
}

// units is the length of s in UTF-16.
func units(s string) (n int) {
	for _, r := range s {
		if n++; r > 0xffff {
			n++
		}
	}
	return n
}

// nameRows is the catalogue if there is room only for the names of the servers, or for the
// first names and the number of the others. named is the number of names, 0 if none fits.
func (c *canvas) nameRows(servers []*catalog.Server) (texts []string, named int) {
	line := func(n int) string { return "Servers: " + nameRow(servers, n, " more: inspect {}") }
	named = mostOf(len(servers), func(n int) bool {
		p := packer{left: slices.Clone(c.pages)}
		return c.room.fits(measure(line(n))) && p.add(line(n), false)
	})
	if named == 0 {
		return nil, 0
	}
	p := packer{left: slices.Clone(c.pages)}
	p.add(line(named), false)
	return p.done(), named
}

// nameRow has the first n names and the number of the others, followed by rest.
func nameRow(servers []*catalog.Server, n int, rest string) string {
	names := make([]string, n)
	for i, s := range servers[:n] {
		names[i] = sanitize.Line(s.Name, 0)
	}
	text := strings.Join(names, ", ")
	if more := len(servers) - n; more > 0 {
		text += " and " + strconv.Itoa(more) + rest
	}
	return text
}
