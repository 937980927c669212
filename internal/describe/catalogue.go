package describe

import (
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
)

// shape says how the tools of a server are written in the catalogue.
type shape int

const (
	counted shape = iota // only the number of tools, after the name of the server
	topics               // the number of tools, and a line with topics: words that occur in their names
	spelled              // all names on one line
	grouped              // all names on one line; a prefix that several names have is written once
	listed               // one line for each tool
)

// params selects which parameter names are written after the name of a tool.
type params int

const (
	noParams params = iota
	requiredParams
	allParams
)

// detail is how much the catalogue says about one server.
type detail struct {
	purpose int // maximum length of the server's purpose, in runes; 0 leaves it out
	tools   shape
	topics  int
	params  params
	desc    int // maximum length of each tool's description, in runes; 0 leaves it out
}

// form is a way to write the catalogue, which is the list of servers and tools in the description of inspect. The catalogue may
// continue in the description of exec.
type form struct {
	head string
	mark string // is written before the name of each server
	// ladder has the details from the poorest to the richest. If there is less room, a catalogue loses first the descriptions of
	// tools, then the names of optional parameters, the line for each tool, the names of required parameters, the tool names, the
	// topics of a big server, and last the purpose of the server. The steps must be small: the share of the room grows for all
	// servers together (see raise), so room that is not enough for the next step of all servers stays unused.
	ladder []detail
}

// forms are tried in this order. The first lists all tools with their parameters, and writes
// a mark before the name of each server. The second needs less room.
var forms = []form{
	{head: "\n\nAvailable tools:\n", mark: "  Server: ", ladder: lines[2:]},
	{head: "\n\nAvailable tools (where only counted, use query; a_{b, c} means a_b, a_c):\n", ladder: append(rows, lines...)},
}

// briefForms are the forms for [Features.Brief]: of a tool they have at most the name.
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

// forms returns the ways to write the catalogue, in the order in which they are tried.
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

// canvas says how a catalogue is written: in which form, and how much room there is for it.
type canvas struct {
	form *form
	room size
	// pages has the maximum length, in UTF-16 units, of each text over which the catalogue is spread. If it is nil, there is
	// one text, which only room limits.
	pages []int
	// noPurposes leaves out the purposes of the servers, because the instructions have them.
	noPurposes bool
}

// start returns one step for each server: the server's block (its lines in the catalogue) with the least detail. ok is false if even
// these blocks do not fit.
func (c *canvas) start(servers []*catalog.Server) (steps []step, ok bool) {
	steps = make([]step, len(servers))
	total := size{}
	for i, server := range servers {
		// A form with a mark has a line for each tool. Such a line takes at least 4 tokens: a dash,
		// a name, brackets and a line end.
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

// fits reports whether the blocks of all servers fit into the room and on the pages.
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

// A share says how much of the room a block takes. The value whole means the whole room, whole/2 means half of the room, and
// so on.
const whole = 1 << 16

// fill returns the catalogue with as much detail as the room allows, one text for each page that it needs. The room is used
// first for tool names, then for parameters, then for descriptions of tools: the parameters of a server only get room that the
// names of tools have left over. ok is false if the blocks do not fit even with the least detail.
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

// raise gives the servers more detail, but no detail of a kind above highest. At each share of the room, every server gets the
// richest detail that takes no more than this share, or keeps what it has. So all tools of small servers may be listed, while large
// ones have only topics. The share grows in fixed steps, as long as all blocks fit together. Since the steps are fixed, a change of
// one server mostly does not change the blocks of the others.
func (c *canvas) raise(steps []step, highest kind) []step {
	left := c.room.tokens
	for i := range steps {
		left -= steps[i].size.tokens
	}
	for i := range steps {
		steps[i].above = nil
		if highest == names || len(steps[i].source.server.Tools) <= left { // a higher kind adds at least one token for each tool
			steps[i].findAbove(highest)
		}
	}
	for share := whole >> 12; ; share = min(share+share/8+1, whole) {
		next := make([]step, len(steps))
		done := true
		for i := range steps {
			next[i] = steps[i].upgrade(share, highest)
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

// kind says how much a detail says about each tool.
type kind int

const (
	names kind = iota // at most the name
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

// step is the block of one server in one detail (ladder[level]), with a pointer to the next larger block of this server.
type step struct {
	source *source
	canvas *canvas
	level  int
	text   string
	size   size
	share  int
	above  *step // the next larger block; nil if findAbove found none that it may use, or was not called yet
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

// findAbove sets s.above to the next larger block of the server, or to nil if there is none. The detail of that block must not
// be of a kind above highest. If a richer block is not larger, it replaces s at once. The search ends at a block that is
// larger than the whole room.
func (s *step) findAbove(highest kind) {
	s.above = nil
	ladder := s.canvas.form.ladder
	for level := s.level + 1; level < len(ladder) && ladder[level].kind() <= highest; level++ {
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

// upgrade returns the richest block of the server that takes no more than the given share of the room, and whose detail is not
// of a kind above highest. If no block above s is small enough, it returns s, even if s takes more than the share.
func (s step) upgrade(share int, highest kind) step {
	for s.above != nil && s.above.share <= share {
		s = *s.above
		s.findAbove(highest)
	}
	return s
}

// pack joins the blocks to one text for each page that they need. A second page is for the description of exec, where the
// catalogue continues. A block that does not fit on the rest of a page is split between two lines, or between two tools of a
// long line. ok is false if the blocks do not fit on the pages.
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

// packer splits the lines of a catalogue into pages.
type packer struct {
	left  []int  // UTF-16 units that are free on the current page and on each later page; nil means one page without limit
	owner string // the mark and name of the server whose block is being added, or what a list of names begins with
	page  strings.Builder
	texts []string
}

// add puts a line on the current page or on a later page, and returns false if there is no room. The parameter inside means that
// the line is not the first line of its block. A page that begins inside a block, even inside a line, first repeats the name of the
// server (owner).
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

// cutTools returns the length in bytes of the longest beginning of line that can end a page. It ends with a comma outside brackets,
// as between two tools, and has fewer than limit UTF-16 units, since a line end follows. If there is no such comma, cutTools
// returns 0.
func cutTools(line string, limit int) (end int) {
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
			if depth == 0 && n < limit && strings.HasPrefix(line[i:], ", ") {
				end = i + 1
			}
		}
	}
	return end
}

// units returns the length of s in UTF-16 units.
func units(s string) (n int) {
	for _, r := range s {
		if n++; r > 0xffff {
			n++
		}
	}
	return n
}

// nameRows returns the catalogue for very little room: the names of all servers or, if there is no room for them, the first
// names and the number of the other servers. named is how many names the catalogue has; 0 means that not even one name fits.
func (c *canvas) nameRows(servers []*catalog.Server) (texts []string, named int) {
	line := func(n int) string { return "Servers: " + nameRow(servers, n, " more: inspect {}") }
	pages := func() *packer { return &packer{left: slices.Clone(c.pages), owner: "Servers"} }
	named = mostOf(len(servers), func(n int) bool {
		p := pages()
		return c.room.fits(measure(line(n))) && p.add(line(n), false)
	})
	if named == 0 {
		return nil, 0
	}
	p := pages()
	p.add(line(named), false)
	return p.done(), named
}

// nameRow returns the names of the first n servers. If there are more servers, the number of the others and the text suffix
// follow.
func nameRow(servers []*catalog.Server, n int, suffix string) string {
	names := make([]string, n)
	for i, s := range servers[:n] {
		names[i] = sanitize.Line(s.Name, 0)
	}
	text := strings.Join(names, ", ")
	if more := len(servers) - n; more > 0 {
		text += " and " + strconv.Itoa(more) + suffix
	}
	return text
}
