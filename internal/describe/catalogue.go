package describe

import (
	"fmt"
	"strings"

	"mcpx/internal/catalog"
	"mcpx/internal/plain"
)

// shape is the form of a list of tools.
type shape int

const (
	counted  shape = iota // their number, after the server
	firstFew              // the first few names on one line, and their number
	grouped               // all names on one line
	listed                // a line for each
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
	first   int // names, for firstFew
	hint    bool
	params  params
	desc    int // runes of each tool's description; 0 for none
}

// ladder has the details from the poorest to the richest. Downwards the catalogue loses
// first descriptions, then the names of optional parameters, the line for each tool, the
// names of required parameters (a line with only a tool's name is no better than the
// name in a row), the tool names, and last the purpose of the server. The steps are
// small: all servers move up together, and room for less than a step stays unused.
var ladder = []detail{
	{},
	{purpose: 24},
	{purpose: 32},
	{purpose: 40},
	{purpose: 50},
	{purpose: 60},
	{purpose: 80},
	{purpose: 80, hint: true},
	{purpose: 80, tools: firstFew, first: 3},
	{purpose: 80, tools: firstFew, first: 5},
	{purpose: 80, tools: firstFew, first: 8},
	{purpose: 80, tools: firstFew, first: 13},
	{purpose: 80, tools: firstFew, first: 20},
	{purpose: 80, tools: firstFew, first: 32},
	{purpose: 80, tools: firstFew, first: 50},
	{purpose: 80, tools: firstFew, first: 80},
	{purpose: 80, tools: firstFew, first: 120},
	{purpose: 80, tools: firstFew, first: 180},
	{purpose: 80, tools: firstFew, first: 270},
	{purpose: 80, tools: firstFew, first: 400},
	{purpose: 80, tools: grouped},
	{purpose: 100, tools: grouped},
	{purpose: 100, tools: grouped, params: requiredParams},
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

// catalogue lists all servers within room, with a block of lines for each. It is empty
// if not even one name fits.
func catalogue(snap *catalog.Snapshot, room size) string {
	if text, ok := complete(snap, room); ok {
		return text
	}
	steps := make([]step, len(snap.Servers))
	total := size{}
	for i := range steps {
		steps[i] = newStep(&snap.Servers[i], room)
		total = total.plus(steps[i].size)
	}
	if !room.fits(total) {
		return namesOnly(snap, room)
	}
	steps = fill(steps, room)
	blocks := make([]string, len(steps))
	for i := range steps {
		blocks[i] = steps[i].text
	}
	return strings.Join(blocks, "\n")
}

// complete is the catalogue in full detail, if that fits.
func complete(snap *catalog.Snapshot, room size) (string, bool) {
	blocks := make([]string, len(snap.Servers))
	total := size{}
	for i := range snap.Servers {
		s := source{server: &snap.Servers[i]}
		if s.least() > room.tokens {
			return "", false
		}
		blocks[i] = s.block(ladder[len(ladder)-1])
		total = total.plus(measure(blocks[i] + "\n"))
		if !room.fits(total) {
			return "", false
		}
	}
	return strings.Join(blocks, "\n"), true
}

// whole is the share of a block that fills the room.
const whole = 1 << 16

// fill raises the detail of all servers as far as room allows. Each server gets
// the richest detail whose block is within the same share of the room, so that
// small servers are complete while large ones keep their names. The share grows
// in steps, not to the last token: then a change of one server mostly leaves the
// lines of the others as they are.
func fill(steps []step, room size) []step {
	for share := whole >> 12; ; share = min(share+share/24+1, whole) {
		next := make([]step, len(steps))
		total, done := size{}, true
		for i := range steps {
			next[i] = steps[i].upgrade(share)
			total = total.plus(next[i].size)
			done = done && next[i].above == nil
		}
		if !room.fits(total) {
			return steps
		}
		steps = next
		if done || share == whole {
			return steps
		}
	}
}

// step is one server in one detail, with the next step up.
type step struct {
	source *source
	room   size
	level  int
	text   string
	size   size
	share  int
	above  *step // nil at the top
}

// newStep is the server in the poorest detail.
func newStep(server *catalog.Server, room size) step {
	s := makeStep(&source{server: server}, room, 0)
	s.findAbove()
	return s
}

func makeStep(src *source, room size, level int) step {
	s := step{source: src, room: room, level: level, text: src.block(ladder[level])}
	s.size = measure(s.text + "\n")
	s.share = room.share(s.size)
	return s
}

// findAbove finds the next step up. If a richer block is no larger, it replaces s at
// once. A block larger than the whole room ends the search.
func (s *step) findAbove() {
	s.above = nil
	for level := s.level + 1; level < len(ladder); level++ {
		if s.source.skips(ladder[level]) {
			continue
		}
		next := makeStep(s.source, s.room, level)
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

// upgrade is the richest step within share of the room.
func (s step) upgrade(share int) step {
	for s.above != nil && s.above.share <= share {
		s = *s.above
		s.findAbove()
	}
	return s
}

// namesOnly is the catalogue of servers whose poorest blocks do not fit: their names with
// the numbers of their tools, else as many names as fit.
func namesOnly(snap *catalog.Snapshot, room size) string {
	const head = "  Servers: "
	var b strings.Builder
	for i := range snap.Servers {
		if i > 0 {
			b.WriteString(", ")
		}
		s := &snap.Servers[i]
		b.WriteString(plain.Line(s.Name, 0))
		if n := len(s.Tools); n > 0 || s.Known {
			fmt.Fprintf(&b, " (%d)", n)
		}
	}
	if text := head + b.String(); room.fits(measure(text)) {
		return text
	}
	if list := nameList(snap, room.minus(measure(head))); list != "" {
		return head + list
	}
	return ""
}

// nameList is the names of all servers, or the first that fit into room with the number
// of the rest, or empty.
func nameList(snap *catalog.Snapshot, room size) string {
	names := make([]string, len(snap.Servers))
	for i := range names {
		names[i] = plain.Line(snap.Servers[i].Name, 0)
	}
	list := strings.Join(names, ", ")
	if room.fits(measure(list)) {
		return list
	}
	fits, over := 0, len(names)
	text := ""
	for over-fits > 1 {
		n := (fits + over) / 2
		try := fmt.Sprintf("%s and %d more: inspect {}", strings.Join(names[:n], ", "), len(names)-n)
		if room.fits(measure(try)) {
			fits, text = n, try
		} else {
			over = n
		}
	}
	return text
}
