package schemats

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/sanitize"
)

// How tightly the place binds that a type is written in.
const (
	loose = iota
	inUnion
	inInter
	inSuffix // before [] or ?
)

const (
	// lineWidth is about how long a line of types may get, in bytes.
	lineWidth = 100
	// maxOutput bounds the text of one schema: what comes after is cut with a comment.
	maxOutput = 256 << 10
	// maxText bounds one description where the caller sets no limit, in runes.
	maxText = 20_000
	indent  = " "
)

// printer writes types. One is used for one text.
type printer struct {
	b []byte
	o Options
	// limit bounds b; at the limit the rest is cut (or, in a trial, given up).
	limit int
	// trial: the text is wanted only if it fits and has no description.
	trial bool
	over  bool
	// plain: types only, nothing named, objects below levels written as "object",
	// long enums as their type (listings).
	plain  bool
	levels int
	// said is what stands above in the same text; nil: nothing is left out for it.
	said *said
	// cut: a description was cut.
	cut bool
	// tight leaves out spaces that cost tokens; for texts of several lines.
	tight bool
	// listed is the number of enum values that a listing spells out.
	listed int
}

func (p *printer) write(parts ...string) {
	for _, s := range parts {
		p.b = append(p.b, s...)
	}
	if len(p.b) > p.limit {
		p.over = true
	}
}

// resolve follows references that are written in place.
func (p *printer) resolve(t *typ) *typ {
	for i := 0; t.kind == tRef && (!t.def.named || p.plain); i++ {
		if i > 100 || p.plain && t.def.recursive {
			if t.def.body.kind == tObject {
				return &typ{kind: tObject}
			}
			return unknownType
		}
		t = t.def.body.withDocs(t.desc, t.notes)
	}
	return t
}

// docs is what a comment says about t: description and notes, those of array
// elements included, since an element has no line of its own.
func (p *printer) docs(t *typ) (desc, notes string) {
	t = p.resolve(t)
	if p.o.Descriptions {
		desc = p.cutText(t.desc)
	}
	notes = noteText(notRepeated(t.notes, desc), p.o.Constraints)
	if t.kind == tTuple && t.lax && len(t.members) > 0 && p.o.Constraints {
		notes = sentence(notes, "usually "+p.outline(t))
	}
	if t.kind == tArray {
		d, n := p.docs(t.elem)
		if d != "" && d != desc {
			desc = joinText(desc, "each: "+d)
		}
		if n != "" {
			if notes != "" {
				notes += "; "
			}
			notes += "each " + n
		}
	}
	return desc, notes
}

// cutText is desc, or its beginning and how much is missing.
func (p *printer) cutText(desc string) string {
	most := maxText
	if m := p.o.MaxDescription; m > 0 && m < most {
		most = m
	}
	short := sanitize.Cut(desc, most, false)
	if short == desc {
		return desc
	}
	p.cut = true
	missing := utf8.RuneCountInString(desc) - utf8.RuneCountInString(short) + len("...")
	return short + " [+" + strconv.Itoa(missing) + "]"
}

func sentence(desc, notes string) string {
	if desc == "" || notes == "" {
		return desc + notes
	}
	if strings.Contains(desc, "\n") {
		return desc + "\n" + notes // not part of the last item of a list
	}
	switch desc[len(desc)-1] {
	case '.', '!', '?', ':':
		return desc + " " + notes
	}
	return desc + "; " + notes
}

// comment is text as a comment that ends its line.
func comment(text string) string {
	if strings.Contains(text, "\n") {
		return "/* " + blockText(text) + " */"
	}
	return "// " + text
}

// comment writes the docs of t behind it, as a block comment.
func (p *printer) comment(t *typ) {
	if p.plain {
		return
	}
	desc, notes := p.docs(t)
	if p.trial && desc != "" {
		p.over = true
	}
	if text := sentence(desc, notes); text != "" {
		p.write(" /* ", blockText(text), " */")
	}
}

// inline writes t without its own docs, on one line.
func (p *printer) inline(t *typ, place int) {
	if p.over {
		if !p.trial {
			p.write("unknown")
		}
		return
	}
	t = p.resolve(t)
	switch t.kind {
	case tUnknown:
		p.write("unknown")
	case tNever:
		p.write("never")
	case tPrim, tLit:
		p.write(t.text)
	case tRef:
		p.write(t.def.name)
	case tArray:
		p.inline(t.elem, inSuffix)
		p.write("[]")
	case tTuple:
		p.tuple(t, func(m *typ, place int) { p.inline(m, place); p.comment(m) })
	case tUnion:
		p.union(t, place, func(m *typ) { p.inline(m, inUnion); p.comment(m) })
	case tInter:
		p.joined(t.members, " & ", place >= inInter, func(m *typ) { p.inline(m, inInter); p.comment(m) })
	case tObject:
		p.object(t)
	}
}

func (p *printer) joined(members []*typ, sep string, parens bool, each func(*typ)) {
	if parens {
		p.write("(")
	}
	for i, m := range members {
		if i > 0 {
			p.write(separator(sep, members[i-1], m))
		}
		if p.over {
			p.write("unknown /* cut: ", strconv.Itoa(len(members)-i), " more */")
			break
		}
		each(m)
	}
	if parens {
		p.write(")")
	}
}

// separator is sep, without spaces between two plain literals: `"a"|"b"` is a
// token less than `"a" | "b"`, and enums are long.
func separator(sep string, a, b *typ) string {
	if a.kind == tLit && b.kind == tLit && a.desc == "" && len(a.notes) == 0 {
		return strings.TrimSpace(sep)
	}
	return sep
}

// maxListed is the number of enum values that a listing spells out at most; one
// that is long for other reasons spells out fewer.
const maxListed = 40

func (p *printer) union(t *typ, place int, each func(*typ)) {
	if p.plain && len(t.members) > p.listed && allSimple(t.members) {
		p.write(literalOf(t.members[0].text), " /* ", strconv.Itoa(len(t.members)), " values */")
		return
	}
	p.joined(t.members, " | ", place > inUnion, each)
}

func (p *printer) tuple(t *typ, each func(*typ, int)) {
	p.write("[")
	for i, m := range t.members {
		if p.over {
			p.write("...unknown[] /* cut */]")
			return
		}
		if i > 0 {
			p.write(", ")
		}
		if i < t.required || p.plain && t.lax {
			each(m, loose)
			continue
		}
		each(m, inSuffix)
		p.write("?")
	}
	if t.elem != nil && !(p.plain && t.lax && t.elem.kind == tUnknown) {
		if len(t.members) > 0 {
			p.write(", ")
		}
		p.write("...")
		each(t.elem, inSuffix)
		p.write("[]")
	}
	p.write("]")
}

// record writes an object without listed properties, the type of its values
// with each; false where it has some.
func (p *printer) record(t *typ, each func(*typ)) bool {
	switch {
	case len(t.props) > 0:
		return false
	case t.keys != nil:
		p.write("Partial<Record<")
		p.inline(t.keys, loose)
		p.write(", ")
		if t.rest == nil {
			p.write("unknown>>")
			return true
		}
		each(t.rest)
		p.write(">>")
	case t.rest == nil && t.closed:
		p.write("Record<string, never>")
	case p.plain && (t.rest == nil || t.rest.kind == tUnknown):
		p.write("object")
	case t.rest == nil:
		p.write("Record<string, unknown>")
	case named(p.resolve(t.rest)):
		// A type argument is resolved at once, where a recursive name is not
		// known yet: an index signature is not.
		return false
	default:
		p.write("Record<string, ")
		each(t.rest)
		p.write(">")
	}
	return true
}

// named reports whether t reaches a type's name without an object between.
func named(t *typ) bool {
	switch t.kind {
	case tRef:
		return t.def.named || named(t.def.body)
	case tUnion, tInter, tTuple:
		for _, m := range t.members {
			if named(m) {
				return true
			}
		}
	case tArray:
		return named(t.elem)
	}
	return false
}

// outline is a short form of t for use inside a comment.
func (p *printer) outline(t *typ) string {
	q := &printer{plain: true, levels: 3, listed: maxListed, limit: 400}
	q.inline(t, loose)
	return stripComments(string(q.b))
}

// stripComments keeps a comment inside a comment from ending it.
func stripComments(s string) string {
	return strings.NewReplacer("/* ", "(", " */", ")").Replace(s)
}

func (p *printer) object(t *typ) {
	if p.plain && p.levels <= 0 && len(t.props) > 0 {
		p.write("object")
		return
	}
	each := func(m *typ) { p.inline(m, loose); p.comment(m) }
	if p.record(t, each) {
		return
	}
	p.levels--
	p.write("{")
	for i := range t.props {
		if i > 0 {
			p.write("; ")
		}
		if p.over {
			p.write("/* cut */")
			break
		}
		q := &t.props[i]
		p.write(propertyKey(q.key), p.mark(q.optional))
		each(q.t)
	}
	if t.rest != nil && !(p.plain && len(t.props) > 0) {
		if len(t.props) > 0 {
			p.write("; ")
		}
		p.write("[k: string]: ")
		each(t.rest)
	}
	p.write("}")
	p.levels++
}

// mark is what stands between a key and its type. ":string" is one token where
// ": string" is two; "?: string" gains nothing.
func (p *printer) mark(optional bool) string {
	switch {
	case optional:
		return "?: "
	case p.tight:
		return ":"
	}
	return ": "
}
