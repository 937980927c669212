package compress

import (
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/base/wire"
)

// indentation is the indentation of one level: the default of the reference encoder, which its decoder expects.
const indentation = "  "

// encode writes a document whose layouts were chosen by plan. size is the expected number of bytes. As soon as the text has
// more than limit bytes, encode stops and returns false; a limit of 0 means no limit.
func (d *document) encode(size, limit int) (string, bool) {
	e := encoder{doc: d, limit: limit, out: make([]byte, 0, size)}
	root := &d.Nodes[0]
	switch {
	case root.Kind == wire.Array && root.Count == 0:
		return "[]", true
	case root.Kind == wire.Array:
		e.array(0, 0)
	case e.doc.forms[0].layout == layoutKeyed:
		e.table(0, 0)
	default:
		e.members(0, 0)
	}
	return string(e.out), !e.over
}

type encoder struct {
	doc   *document
	out   []byte
	limit int
	over  bool // the text is longer than limit; nothing more is written
}

// text appends s. Unlike append, it does not store the pointer in e.out again; while the garbage collector runs, that would
// cost time for a write barrier.
func (e *encoder) text(s string) {
	n := len(e.out)
	if n+len(s) > cap(e.out) {
		e.out = slices.Grow(e.out, max(len(s), n))
	}
	e.out = e.out[:n+len(s)]
	copy(e.out[n:], s)
}

// line begins a new line. It sets over if the text is longer than the limit.
func (e *encoder) line(depth int) {
	if e.limit > 0 && len(e.out) > e.limit {
		e.over = true
	}
	if len(e.out) > 0 {
		e.out = append(e.out, '\n')
	}
	for range depth {
		e.text(indentation)
	}
}

// members writes the members of object i, each on new lines.
func (e *encoder) members(i int32, depth int) {
	end := e.doc.Nodes[i].Next
	for c := i + 1; c < end && !e.over; c = e.doc.Nodes[c].Next {
		e.line(depth)
		e.field(c, depth)
	}
}

// field writes the member c of an object on the current line.
func (e *encoder) field(c int32, depth int) {
	n := &e.doc.Nodes[c]
	e.key(n.Key)
	switch {
	case n.Kind == wire.Array && n.Count == 0:
		e.text(": []")
	case n.Kind == wire.Array:
		e.array(c, depth)
	case n.Kind == wire.Object && e.doc.forms[c].layout == layoutKeyed:
		e.table(c, depth)
	case n.Kind == wire.Object:
		e.out = append(e.out, ':')
		e.members(c, depth+1)
	default:
		e.text(": ")
		e.scalar(n)
	}
}

// array writes the header of array i on the current line, and then its items.
func (e *encoder) array(i int32, depth int) {
	n, layout := &e.doc.Nodes[i], e.doc.forms[i].layout
	if layout == layoutTable {
		e.table(i, depth)
		return
	}
	e.out = append(e.out, '[')
	e.out = strconv.AppendInt(e.out, int64(n.Count), 10)
	e.text("]:")
	if layout == layoutBlock {
		for c := i + 1; c < n.Next && !e.over; c = e.doc.Nodes[c].Next {
			e.item(c, depth+1)
		}
		return
	}
	for c := i + 1; c < n.Next; c++ {
		if c == i+1 {
			e.out = append(e.out, ' ')
		} else {
			e.out = append(e.out, ',')
		}
		e.scalar(&e.doc.Nodes[c])
	}
}

// item writes the item c of a list.
func (e *encoder) item(c int32, depth int) {
	n := &e.doc.Nodes[c]
	e.line(depth)
	e.out = append(e.out, '-')
	if n.Kind == wire.Object && n.Count == 0 {
		return
	}
	e.out = append(e.out, ' ')
	switch n.Kind {
	case wire.Array:
		e.array(c, depth)
	case wire.Object:
		// The first member is on the line of the hyphen, the others below it.
		for m := c + 1; m < n.Next && !e.over; m = e.doc.Nodes[m].Next {
			if m > c+1 {
				e.line(depth + 1)
			}
			e.field(m, depth+1)
		}
	default:
		e.scalar(n)
	}
}

// table writes the header of a table or keyed table on the current line, and then its rows.
func (e *encoder) table(i int32, depth int) {
	n, form := &e.doc.Nodes[i], e.doc.forms[i]
	e.out = append(e.out, '[')
	e.out = strconv.AppendInt(e.out, int64(n.Count), 10)
	if form.layout == layoutKeyed {
		e.out = append(e.out, ':')
	}
	e.out = append(e.out, ']')
	e.columns(form.header, e.doc.Nodes[i+1].Count)
	e.out = append(e.out, ':')
	for c := i + 1; c < n.Next && !e.over; c = e.doc.Nodes[c].Next {
		e.line(depth + 1)
		if form.layout == layoutKeyed {
			e.key(e.doc.Nodes[c].Key)
			e.text(": ")
		}
		e.row(c)
	}
}

// columns writes count columns, beginning with the column at index f. A group of columns is written with the columns in it.
func (e *encoder) columns(f, count int32) {
	for i := range count {
		if i == 0 {
			e.out = append(e.out, '{')
		} else {
			e.out = append(e.out, ',')
		}
		col := e.doc.columns[f]
		e.key(col.key)
		if col.fields > 0 {
			e.columns(f+1, col.fields)
		}
		f = col.next
	}
	e.out = append(e.out, '}')
}

// row writes the cells of object i: its scalars, and the scalars of nested objects.
func (e *encoder) row(i int32) {
	for c := i + 1; c < e.doc.Nodes[i].Next; c++ {
		n := &e.doc.Nodes[c]
		if n.Kind == wire.Object {
			continue
		}
		e.scalar(n)
		if c+1 < e.doc.Nodes[i].Next {
			e.out = append(e.out, ',')
		}
	}
}

func (e *encoder) scalar(n *wire.Node) {
	switch n.Kind {
	case wire.Null:
		e.text("null")
	case wire.False:
		e.text("false")
	case wire.True:
		e.text("true")
	case wire.Number:
		e.text(e.doc.Str(n.Text))
	case wire.String:
		if s := e.doc.Str(n.Text); unquoted(s) {
			e.text(s)
		} else {
			e.quote(s)
		}
	}
}

func (e *encoder) key(k wire.Span) {
	if s := e.doc.Str(k); unquotedKey(s) {
		e.text(s)
	} else {
		e.quote(s)
	}
}

func (e *encoder) quote(s string) {
	e.out = append(e.out, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		e.text(s[from:i])
		from = i + 1
		switch c {
		case '\n':
			e.text(`\n`)
		case '\r':
			e.text(`\r`)
		case '\t':
			e.text(`\t`)
		case '"', '\\':
			e.out = append(e.out, '\\', c)
		default:
			const digits = "0123456789abcdef"
			e.text(`\u00`)
			e.out = append(e.out, digits[c>>4], digits[c&15])
		}
	}
	e.text(s[from:])
	e.out = append(e.out, '"')
}

// unquoted reports whether a string needs no quotes: it cannot be confused with another type, and has no character that would
// end a cell, a key or a header.
func unquoted(s string) bool {
	if s == "" || s[0] == ' ' || s[len(s)-1] == ' ' || s[0] == '-' || s[0] == '#' ||
		s == "true" || s == "false" || s == "null" {
		return false
	}
	if strings.ContainsAny(s[:1], "+0123456789") && numeric(s) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || syntax[c] {
			return false
		}
	}
	return true
}

// syntax has the characters that are part of the syntax of TOON.
var syntax = [256]bool{'"': true, '\\': true, ':': true, ',': true, '[': true, ']': true, '{': true, '}': true}

// numeric reports whether s looks like a number: [+-]?\d+(\.\d+)?([eE][+-]?\d+)?
func numeric(s string) bool {
	i := 0
	if s[0] == '+' || s[0] == '-' {
		i++
	}
	start := i
	if i = skipDigits(s, i); i == start {
		return false
	}
	if i < len(s) && s[i] == '.' {
		start = i + 1
		if i = skipDigits(s, start); i == start {
			return false
		}
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		start = i
		if i = skipDigits(s, i); i == start {
			return false
		}
	}
	return i == len(s)
}

func skipDigits(s string, i int) int {
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}

// unquotedKey reports whether a key needs no quotes: [A-Za-z_][A-Za-z0-9_.]*
func unquotedKey(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || c != '.' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}
