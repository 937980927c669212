package compress

import (
	"strconv"

	"mcpx/internal/base/wire"
)

// layout is how a container is written in TOON.
type layout uint8

const (
	layoutBlock  layout = iota // each member or item on one or more lines
	layoutInline               // an array of scalars on one line
	layoutTable                // an array of uniform objects, one row each
	layoutKeyed                // an object of uniform objects, one row each
)

// form is the layout of a container, with its columns.
type form struct {
	layout layout
	header int32 // the first column, for layoutTable and layoutKeyed
}

// column is a column of a table, or a group of columns. A group stands for a member that is an object in every row, and has a
// column for each member of this object. The columns of one table are in depth-first order.
type column struct {
	key    wire.Span
	fields int32 // number of columns directly in this group; 0 if this is a column of scalars
	next   int32 // index of the first column after this one that is not inside it
}

// planner chooses the layout of every container in the same way as the reference encoder of TOON 4, with one exception: objects
// with their members in different orders are not written as a table.
type planner struct {
	doc      *document
	inTables int  // leaves in tables of at least two rows and in arrays of scalars
	refuse   bool // TOON cannot represent this document
}

// plan chooses the layouts, and counts the leaves that are in tables of at least two rows or in arrays of scalars. ok is false
// if TOON cannot represent the document, or if a table would be too wide.
func (d *document) plan() (inTables int, ok bool) {
	d.forms = make([]form, len(d.Nodes))
	p := planner{doc: d}
	p.value(0, false)
	return p.inTables, !p.refuse
}

// value chooses the layouts of node i and of all nodes inside it. listed means that the node is an item of a list, where TOON
// allows no table.
func (p *planner) value(i int32, listed bool) {
	if p.refuse {
		return
	}
	switch n := &p.doc.Nodes[i]; n.Kind {
	case wire.Array:
		p.array(i, n, listed)
	case wire.Object:
		if p.duplicates(i) {
			p.refuse = true
			return
		}
		if !listed && n.Count >= 2 && p.table(i, n) {
			p.doc.forms[i].layout = layoutKeyed
			return
		}
		for c := i + 1; c < n.Next; c = p.doc.Nodes[c].Next {
			p.value(c, false)
		}
	case wire.Number:
		p.number(n)
	}
}

func (p *planner) array(i int32, n *wire.Node, listed bool) {
	if p.scalars(i, n) {
		p.doc.forms[i].layout = layoutInline
		p.inTables += int(n.Count)
		return
	}
	if !listed && p.table(i, n) {
		p.doc.forms[i].layout = layoutTable
		return
	}
	for c := i + 1; c < n.Next; c = p.doc.Nodes[c].Next {
		p.value(c, true)
	}
}

// scalars reports whether the array i holds only scalars. If so, it also checks whether TOON can represent the numbers among
// them.
func (p *planner) scalars(i int32, n *wire.Node) bool {
	if n.Next != i+1+n.Count { // some item has children
		return false
	}
	for c := i + 1; c < n.Next; c++ {
		if p.doc.Nodes[c].Kind.Container() {
			return false
		}
	}
	p.numbers(i, n)
	return true
}

// table reports whether the children of node i can be written as rows of a table. If so, it adds the columns of the table, which
// are the keys of the first child.
func (p *planner) table(i int32, n *wire.Node) bool {
	first := &p.doc.Nodes[i+1]
	for c := i + 1; c < n.Next; c = p.doc.Nodes[c].Next {
		if m := &p.doc.Nodes[c]; m.Kind != wire.Object || m.Count != first.Count {
			return false
		}
	}
	start := int32(len(p.doc.columns))
	ok := first.Count > 0 && p.header(i+1, start)
	end := int32(len(p.doc.columns))
	for c := first.Next; ok && c < n.Next; c = p.doc.Nodes[c].Next {
		ok = p.row(c, start, end)
	}
	if !ok {
		p.doc.columns = p.doc.columns[:start]
		return false
	}
	p.doc.forms[i].header = start
	leaves := 0
	for _, c := range p.doc.columns[start:] {
		if c.fields == 0 {
			leaves++
		}
	}
	if leaves > maxColumns {
		p.refuse = true
	}
	if n.Count >= 2 {
		p.inTables += int(n.Count) * leaves
	}
	p.numbers(i, n)
	return true
}

// header appends the columns of a table: the members of object i, which is the first row. It returns false if the object cannot be
// a row. For a group of columns, header calls itself. start is the first column of the whole table. If the table is too wide,
// header refuses the whole document, because the planner would otherwise compare wide rows at every level of nesting.
func (p *planner) header(i, start int32) bool {
	n := &p.doc.Nodes[i]
	if n.Count == 0 {
		return false
	}
	if int(n.Count) > maxFields {
		p.refuse = true
		return false
	}
	if p.duplicates(i) {
		return false
	}
	for c := i + 1; c < n.Next; c = p.doc.Nodes[c].Next {
		m := &p.doc.Nodes[c]
		at := len(p.doc.columns)
		p.doc.columns = append(p.doc.columns, column{key: m.Key})
		if len(p.doc.columns)-int(start) > maxFields {
			p.refuse = true
			return false
		}
		switch m.Kind {
		case wire.Array:
			return false
		case wire.Object:
			p.doc.columns[at].fields = m.Count
			if !p.header(c, start) {
				return false
			}
		}
		p.doc.columns[at].next = int32(len(p.doc.columns))
	}
	return true
}

// row reports whether object i can be a row of the columns from start to end-1: its members must have the keys of these columns, in
// the same order, and values of the right kind. The order matters, because compression must not change it.
func (p *planner) row(i, start, end int32) bool {
	n := &p.doc.Nodes[i]
	if n.Kind != wire.Object || n.Count == 0 {
		return false
	}
	c := i + 1
	for f := start; f < end; f = p.doc.columns[f].next {
		if c == n.Next {
			return false
		}
		m, col := &p.doc.Nodes[c], &p.doc.columns[f]
		if p.doc.Str(m.Key) != p.doc.Str(col.key) {
			return false
		}
		if col.fields == 0 {
			if m.Kind.Container() {
				return false
			}
		} else if !p.row(c, f+1, col.next) {
			return false
		}
		c = m.Next
	}
	return c == n.Next
}

// numbers refuses the document if TOON cannot represent one of the numbers in node i (see number).
func (p *planner) numbers(i int32, n *wire.Node) {
	for c := i + 1; c < n.Next; c++ {
		if m := &p.doc.Nodes[c]; m.Kind == wire.Number {
			p.number(m)
		}
	}
}

// number refuses the document if a number is beyond the range of float64, such as 1e400, since TOON decoders read it as a
// string.
func (p *planner) number(n *wire.Node) {
	s := p.doc.Str(n.Text)
	if len(s) < 308 {
		plain := true
		for _, c := range []byte(s) { // faster than package strings for short texts
			if c|0x20 == 'e' {
				plain = false
				break
			}
		}
		if plain {
			return
		}
	}
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		p.refuse = true
	}
}

// duplicates reports whether object i has two members with the same key.
func (p *planner) duplicates(i int32) bool {
	n := &p.doc.Nodes[i]
	if n.Count > 16 {
		seen := make(map[string]struct{}, n.Count)
		for c := i + 1; c < n.Next; c = p.doc.Nodes[c].Next {
			seen[p.doc.Str(p.doc.Nodes[c].Key)] = struct{}{}
		}
		return len(seen) < int(n.Count)
	}
	for c := i + 1; c < n.Next; c = p.doc.Nodes[c].Next {
		key := p.doc.Str(p.doc.Nodes[c].Key)
		for b := i + 1; b < c; b = p.doc.Nodes[b].Next {
			if p.doc.Str(p.doc.Nodes[b].Key) == key {
				return true
			}
		}
	}
	return false
}
