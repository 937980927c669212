package schemats

import (
	"slices"
	"strconv"
	"strings"
)

// try writes t on the current line and returns true, if t needs at most room bytes there and no type inside t has a description. It
// leaves out the docs (description and notes) of t itself. A room of less than 20 is taken as 20. If t does not fit, try writes
// nothing and returns false.
func (p *printer) try(t *typ, room int) bool {
	at := len(p.b)
	q := *p
	q.limit, q.trial, q.over = at+max(room, 20), true, false
	q.inline(t, loose)
	if q.over {
		p.b = q.b[:at]
		return false
	}
	p.b = q.b
	return true
}

// value writes t on several lines if necessary, but not the docs of t itself. The parameter place says where t is written (see
// loose), and depth how deeply the inner lines are nested. lead is a comment to write after the first brace.
func (p *printer) value(t *typ, place, depth int, lead string) {
	if p.over {
		p.write("unknown /* cut */")
		return
	}
	t = p.resolve(t)
	switch t.kind {
	case tObject:
		if lead != "" || !p.try(t, lineWidth-depth) {
			p.block(t, depth, lead)
		}
	case tArray, tTuple, tUnion, tInter:
		p.composite(t, place, func(m *typ, place int) { p.value(m, place, depth, lead) })
	default:
		p.inline(t, place)
	}
}

// block writes an object with one property per line, or as a Record if it lists no properties.
func (p *printer) block(t *typ, depth int, lead string) {
	if p.record(t, func(m *typ) { p.value(m, loose, depth, ""); p.comment(m) }) {
		return
	}
	p.write("{")
	if lead != "" {
		p.write(" ", comment(lead))
	}
	p.write("\n")
	// Each line begins with one space, however deeply it is nested: the braces show the depth, and spaces cost tokens.
	for i := range t.props {
		if p.over {
			p.write(indent, "// cut: ", strconv.Itoa(len(t.props)-i), " more\n")
			break
		}
		q := &t.props[i]
		p.line(propertyKey(q.key)+p.mark(q.optional), q.t, depth+1, "")
		p.write("\n")
	}
	if t.rest != nil {
		p.write(indent, "[k: string]: ")
		p.value(t.rest, loose, depth+1, "")
		p.comment(t.rest)
		p.write("\n")
	}
	p.write(strings.Repeat(indent, min(depth, 1)), "}")
}

// line writes `key: type<end> // docs`. If the type needs several lines, the docs are written after its first brace, or on a
// line before it.
func (p *printer) line(key string, t *typ, depth int, end string) {
	text := p.above(key, sentence(p.docs(t)))
	at := len(p.b)
	p.write(indent, key)
	room := lineWidth - (len(p.b) - at) - len(end)
	if !p.multiline(t, room) {
		p.inline(t, loose)
		p.write(end) // "," and ",//" are one token each
		if text != "" {
			if end == "" || !p.tight {
				p.write(" ")
			}
			p.write(comment(text))
		}
		return
	}
	if p.braced(t) {
		p.value(t, loose, depth, text)
		p.write(end)
		return
	}
	if text != "" {
		p.b = p.b[:at]
		p.write(indent, comment(text), "\n", indent, key)
	}
	p.value(t, loose, depth, "")
	p.write(end)
}

// above returns text, which has the docs of the property key. But if an earlier property has the same docs, and a reference to that
// property is shorter than text, above returns the reference: "as above" if the last earlier property named key has these docs,
// otherwise "as NAME" with the name of the earlier property.
func (p *printer) above(key, text string) string {
	if p.said == nil || text == "" {
		return text
	}
	key = strings.TrimRight(key, ":? ")
	other := p.said.key[text]
	known := other != "" && p.said.docs[other] == text
	p.said.docs[key], p.said.key[text] = text, key
	switch {
	case known && other == key && len(text) > len("as above"):
		return "as above"
	case known && len(text) > len(other)+8:
		return "as " + other
	}
	return p.said.linked(text)
}

// multiline reports whether t must be written on several lines. This is so if t contains an object and does not fit into room bytes
// on one line.
func (p *printer) multiline(t *typ, room int) bool {
	if p.over || !p.hasObject(t) {
		return false
	}
	q := *p
	at := len(p.b)
	fits := q.try(t, room)
	p.b = q.b[:at]
	return !fits
}

func (p *printer) hasObject(t *typ) bool {
	switch t = p.resolve(t); t.kind {
	case tObject:
		return true
	case tArray, tUnion, tInter, tTuple:
		return slices.ContainsFunc(t.members, p.hasObject) || t.elem != nil && p.hasObject(t.elem)
	}
	return false
}

// braced reports whether the text of t begins with the brace of an object that has properties.
func (p *printer) braced(t *typ) bool {
	for t = p.resolve(t); t.kind == tArray; t = p.resolve(t.elem) {
	}
	return t.kind == tObject && len(t.props) > 0
}

// whole writes t with its docs, after other text on the same line. room is how many bytes are left on that line.
func (p *printer) whole(t *typ, room int) {
	if !p.multiline(t, room) {
		p.inline(t, loose)
		p.comment(t)
		return
	}
	text := sentence(p.docs(t))
	if !p.braced(t) && text != "" {
		p.write("/* ", blockText(text), " */ ")
		text = ""
	}
	p.value(t, loose, 0, text)
}
