package schemats

import (
	"strconv"
	"strings"
)

// try writes t inline if that fits on the line and loses no description. room is
// what is left of the line.
func (p *printer) try(t *typ, room int) bool {
	if room < 20 {
		room = 20
	}
	at := len(p.b)
	q := *p
	q.limit, q.trial, q.over = at+room, true, false
	q.inline(t, loose)
	if q.over {
		p.b = q.b[:at]
		return false
	}
	p.b = q.b
	return true
}

// value writes t without its own docs, on several lines where it must. lead is
// written behind the first brace. depth is the indentation of the lines inside.
func (p *printer) value(t *typ, place, depth int, lead string) {
	if p.over {
		p.write("unknown /* cut */")
		return
	}
	t = p.resolve(t)
	switch t.kind {
	case tObject:
		at := len(p.b)
		if lead == "" && p.try(t, lineWidth-depth) {
			return
		}
		p.b = p.b[:at]
		p.block(t, depth, lead)
	case tArray:
		p.value(t.elem, inSuffix, depth, lead)
		p.write("[]")
	case tTuple:
		p.tuple(t, func(m *typ, place int) { p.value(m, place, depth, ""); p.comment(m) })
	case tUnion:
		p.union(t, place, func(m *typ) { p.value(m, inUnion, depth, ""); p.comment(m) })
	case tInter:
		p.joined(t.members, " & ", place >= inInter, func(m *typ) { p.value(m, inInter, depth, ""); p.comment(m) })
	default:
		p.inline(t, place)
	}
}

// block writes an object with one property a line.
func (p *printer) block(t *typ, depth int, lead string) {
	if p.record(t, func(m *typ) { p.value(m, loose, depth, ""); p.comment(m) }) {
		return
	}
	p.write("{")
	if lead != "" {
		p.write(" ", comment(lead))
	}
	p.write("\n")
	// The braces show how deep a line is: more spaces would only cost.
	inner := indent
	for i := range t.props {
		if p.over {
			p.write(inner, "// cut: ", strconv.Itoa(len(t.props)-i), " more\n")
			break
		}
		q := &t.props[i]
		p.line(inner, propertyKey(q.key)+p.mark(q.optional), q.t, depth+1, "")
		p.write("\n")
	}
	if t.rest != nil {
		p.write(inner, "[k: string]: ")
		p.value(t.rest, loose, depth+1, "")
		p.comment(t.rest)
		p.write("\n")
	}
	p.write(strings.Repeat(indent, min(depth, 1)), "}")
}

// line writes `key: type<end> // docs`. Where the type takes several lines, the
// docs stand behind its first brace, or on a line before.
func (p *printer) line(inner, key string, t *typ, depth int, end string) {
	text := p.above(key, sentence(p.docs(t)))
	at := len(p.b)
	p.write(inner, key)
	room := lineWidth - (len(p.b) - at) - len(end)
	if !p.multiline(t, room) {
		p.inline(t, loose)
		p.write(end) // ",//" is one token too
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
		p.write(inner, comment(text), "\n", inner, key)
	}
	p.value(t, loose, depth, "")
	p.write(end)
}

// above is text, or where the same docs stand above: at the property of the same
// name that came last, or at another.
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

// multiline reports whether t has an object that must be written as a block.
func (p *printer) multiline(t *typ, room int) bool {
	if p.over || !p.hasObject(t, 0) {
		return false
	}
	q := *p
	at := len(p.b)
	fits := q.try(t, room)
	p.b = q.b[:at]
	return !fits
}

func (p *printer) hasObject(t *typ, depth int) bool {
	t = p.resolve(t)
	switch t.kind {
	case tObject:
		return true
	case tArray:
		return p.hasObject(t.elem, depth)
	case tUnion, tInter, tTuple:
		for _, m := range t.members {
			if p.hasObject(m, depth+1) {
				return true
			}
		}
		return t.elem != nil && p.hasObject(t.elem, depth)
	}
	return false
}

// braced reports whether the text of t begins with the brace of an object whose
// properties have lines of their own.
func (p *printer) braced(t *typ) bool {
	for t = p.resolve(t); t.kind == tArray; t = p.resolve(t.elem) {
	}
	return t.kind == tObject && len(t.props) > 0
}

// whole writes t with its docs, for a place that has no line of its own.
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
