package compress

import (
	"strconv"
	"strings"
)

// indentation of one level; the reference's default, and what its decoder expects.
const indentation = "  "

// Encode is the TOON text (version 4, comma delimiter, indent 2) of a JSON value, as the reference
// encoder writes it except that numbers stay as they are written. It reports false where raw is no
// JSON array or object, or TOON cannot say it faithfully: more than 64 nested containers, 256 columns
// or 8 MB, duplicate keys, lone surrogates, invalid UTF-8, numbers beyond float64 such as 1e400.
func Encode(raw []byte) (text string, ok bool) {
	compact, ok := minify(string(raw))
	if !ok || compact[0] != '{' && compact[0] != '[' {
		return "", false
	}
	doc, ok := read(compact)
	if !ok {
		return "", false
	}
	if _, ok := doc.plan(); !ok {
		return "", false
	}
	return doc.encode(0)
}

// encode writes the planned document. It reports false as soon as the text has more than limit
// bytes; 0 is no limit.
func (d *document) encode(limit int) (string, bool) {
	e := encoder{doc: d, limit: limit, out: make([]byte, 0, len(d.json))}
	root := &d.nodes[0]
	switch {
	case root.kind == kindArray && root.count == 0:
		return "[]", true
	case root.kind == kindArray:
		e.array(0, 0)
	case root.layout == layoutKeyed:
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
	over  bool // limit was passed; nothing more is written
}

// line begins a line, and gives up where the limit has been passed.
func (e *encoder) line(depth int) {
	if e.limit > 0 && len(e.out) > e.limit {
		e.over = true
	}
	if len(e.out) > 0 {
		e.out = append(e.out, '\n')
	}
	for range depth {
		e.out = append(e.out, indentation...)
	}
}

// members writes the members of object i, each from a line of its own.
func (e *encoder) members(i int32, depth int) {
	end := e.doc.nodes[i].next
	for c := i + 1; c < end && !e.over; c = e.doc.nodes[c].next {
		e.line(depth)
		e.field(c, depth)
	}
}

// field writes the member c of an object; the line has begun.
func (e *encoder) field(c int32, depth int) {
	n := &e.doc.nodes[c]
	e.key(n.key)
	switch {
	case n.kind == kindArray && n.count == 0:
		e.out = append(e.out, ": []"...)
	case n.kind == kindArray:
		e.array(c, depth)
	case n.kind == kindObject && n.layout == layoutKeyed:
		e.table(c, depth)
	case n.kind == kindObject:
		e.out = append(e.out, ':')
		e.members(c, depth+1)
	default:
		e.out = append(e.out, ": "...)
		e.scalar(n)
	}
}

// array writes the header of array i and its items; the line has begun.
func (e *encoder) array(i int32, depth int) {
	n := &e.doc.nodes[i]
	if n.layout == layoutTable {
		e.table(i, depth)
		return
	}
	e.out = append(e.out, '[')
	e.out = strconv.AppendInt(e.out, int64(n.count), 10)
	e.out = append(e.out, "]:"...)
	if n.layout == layoutBlock {
		for c := i + 1; c < n.next && !e.over; c = e.doc.nodes[c].next {
			e.item(c, depth+1)
		}
		return
	}
	for c := i + 1; c < n.next; c++ {
		if c == i+1 {
			e.out = append(e.out, ' ')
		} else {
			e.out = append(e.out, ',')
		}
		e.scalar(&e.doc.nodes[c])
	}
}

// item writes the item c of a list.
func (e *encoder) item(c int32, depth int) {
	n := &e.doc.nodes[c]
	e.line(depth)
	e.out = append(e.out, '-')
	if n.kind == kindObject && n.count == 0 {
		return
	}
	e.out = append(e.out, ' ')
	switch n.kind {
	case kindArray:
		e.array(c, depth)
	case kindObject:
		// The first member stands on the line of the hyphen, the others below it.
		for m := c + 1; m < n.next && !e.over; m = e.doc.nodes[m].next {
			if m > c+1 {
				e.line(depth + 1)
			}
			e.field(m, depth+1)
		}
	default:
		e.scalar(n)
	}
}

// table writes the header and the rows of a table or a keyed table; the line has begun.
func (e *encoder) table(i int32, depth int) {
	n := &e.doc.nodes[i]
	e.out = append(e.out, '[')
	e.out = strconv.AppendInt(e.out, int64(n.count), 10)
	if n.layout == layoutKeyed {
		e.out = append(e.out, ':')
	}
	e.out = append(e.out, ']')
	e.columns(n.table, e.doc.nodes[i+1].count)
	e.out = append(e.out, ':')
	for c := i + 1; c < n.next && !e.over; c = e.doc.nodes[c].next {
		e.line(depth + 1)
		if n.layout == layoutKeyed {
			e.key(e.doc.nodes[c].key)
			e.out = append(e.out, ": "...)
		}
		e.row(c)
	}
}

// columns writes count columns from f, with their groups.
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

// row writes the cells of object i: its scalars, those of nested objects in their place.
func (e *encoder) row(i int32) {
	for c := i + 1; c < e.doc.nodes[i].next; c++ {
		n := &e.doc.nodes[c]
		if n.kind == kindObject {
			continue
		}
		e.scalar(n)
		if c+1 < e.doc.nodes[i].next {
			e.out = append(e.out, ',')
		}
	}
}

func (e *encoder) scalar(n *node) {
	switch n.kind {
	case kindNull:
		e.out = append(e.out, "null"...)
	case kindFalse:
		e.out = append(e.out, "false"...)
	case kindTrue:
		e.out = append(e.out, "true"...)
	case kindNumber:
		e.out = append(e.out, e.doc.str(n.text)...)
	case kindString:
		if s := e.doc.str(n.text); bare(s) {
			e.out = append(e.out, s...)
		} else {
			e.quote(s)
		}
	}
}

func (e *encoder) key(k span) {
	if s := e.doc.str(k); bareKey(s) {
		e.out = append(e.out, s...)
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
		e.out = append(e.out, s[from:i]...)
		from = i + 1
		switch c {
		case '\n':
			e.out = append(e.out, `\n`...)
		case '\r':
			e.out = append(e.out, `\r`...)
		case '\t':
			e.out = append(e.out, `\t`...)
		case '"', '\\':
			e.out = append(e.out, '\\', c)
		default:
			const digits = "0123456789abcdef"
			e.out = append(e.out, `\u00`...)
			e.out = append(e.out, digits[c>>4], digits[c&15])
		}
	}
	e.out = append(e.out, s[from:]...)
	e.out = append(e.out, '"')
}

// bare says whether a string can stand without quotes: it is not read as anything else, and has
// nothing that ends a cell, a key or a header.
func bare(s string) bool {
	if s == "" || s[0] == ' ' || s[len(s)-1] == ' ' || s[0] == '-' || s[0] == '#' ||
		s == "true" || s == "false" || s == "null" {
		return false
	}
	if strings.ContainsAny(s[:1], "+0123456789") && numeric(s) {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ':
			return false
		case c == '"', c == '\\', c == ':', c == ',', c == '[', c == ']', c == '{', c == '}':
			return false
		}
	}
	return true
}

// numeric says whether s looks like a number: [+-]?\d+(\.\d+)?([eE][+-]?\d+)?
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

// bareKey says whether a key can stand without quotes: [A-Za-z_][A-Za-z0-9_.]*
func bareKey(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || c != '.' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != ""
}
