package schemats

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mcpx/internal/base/sanitize"
)

// These constants say where a type is written, which decides whether it needs parentheses.
const (
	loose    = iota // where no parentheses are needed
	inUnion         // as a member of a union
	inInter         // as a member of an intersection
	inSuffix        // before [] or ?
)

const (
	// lineWidth is the preferred length of a line, in bytes.
	lineWidth = 100
	// maxOutput is the maximum length of the text of one schema, in bytes. A longer text is cut,
	// and a comment says so.
	maxOutput = 256 << 10
	// maxText is the maximum length of a description, in runes. Options can only lower it.
	maxText = 20_000
	indent  = " "
)

// printer writes one text with TypeScript types, such as a signature or a declaration.
type printer struct {
	b []byte
	o Options
	// noDescriptions leaves descriptions out, but not constraints.
	noDescriptions bool
	// limit is the maximum length of b, in bytes. When b is longer, over is set, and what follows is
	// left out.
	limit int
	over  bool
	// trial means that the text is only written to see whether it fits on one line. In a trial, the field over is also set when
	// there is a description, because descriptions need more lines.
	trial bool
	// plain is for texts on one line, such as listings. They have no descriptions, constraints or named types. Objects that are
	// nested more than levels deep become "object", and an enum of more than listed values becomes the type of its values.
	plain          bool
	levels, listed int
	// said records what the answer already contains, which is not repeated. It is nil if the text is not a part of an answer.
	said *said
	// cut is set if a description was shortened.
	cut bool
	// tight leaves out spaces that cost tokens. It is used for texts of several lines.
	tight bool
}

func (p *printer) write(parts ...string) {
	for _, s := range parts {
		p.b = append(p.b, s...)
	}
	if len(p.b) > p.limit {
		p.over = true
	}
}

// resolve returns the target of t if t is a reference to a type that is written in place, not by
// name. It follows references to references. Other types are returned unchanged.
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

// docs returns the description and the notes of t. For an array they include the description
// and the notes of its elements, which have no line of their own.
func (p *printer) docs(t *typ) (desc, notes string) {
	t = p.resolve(t)
	if !p.noDescriptions {
		desc = p.cutText(t.desc)
	}
	notes = noteText(notRepeated(t.notes, desc))
	if t.kind == tTuple && t.lax && len(t.members) > 0 {
		notes = sentence(notes, "usually "+outline(t))
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

// cutText returns desc. If desc is too long, it returns its beginning and the number of missing
// characters, as in "beginning... [+10]".
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
		return desc + "\n" + notes // on a line of its own, since desc may end with the item of a list
	}
	switch desc[len(desc)-1] {
	case '.', '!', '?', ':':
		return desc + " " + notes
	}
	return desc + "; " + notes
}

// comment returns text as a comment that can be the end of a line.
func comment(text string) string {
	if strings.Contains(text, "\n") {
		return "/* " + blockText(text) + " */"
	}
	return "// " + text
}

// comment writes the docs of t, which are its description and notes, as a block comment.
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

// inline writes t on one line, without the docs of t itself. place says where t is written.
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
	case tObject:
		p.object(t)
	default:
		p.composite(t, place, p.inline)
	}
}

// composite writes an array, tuple, union or intersection. It calls the function part to write each inner type, without the docs of
// the inner type.
func (p *printer) composite(t *typ, place int, part func(t *typ, place int)) {
	documented := func(m *typ, place int) { part(m, place); p.comment(m) }
	switch {
	case t.kind == tArray:
		part(t.elem, inSuffix)
		p.write("[]")
	case t.kind == tTuple:
		p.tuple(t, documented)
	case t.kind == tInter:
		p.joined(t.members, " & ", inInter, place >= inInter, documented)
	case p.plain && len(t.members) > p.listed && allSimple(t.members):
		p.write(literalOf(t.members[0].text), " /* ", strconv.Itoa(len(t.members)), " values */")
	default:
		members := p.oneObject(t.members)
		p.joined(members, " | ", inUnion, place > inUnion && len(members) > 1, documented)
	}
}

// oneObject returns the members of a union. If each object would be written as "object", it leaves out all objects but the first.
func (p *printer) oneObject(members []*typ) []*typ {
	if !p.plain || p.levels > 0 {
		return members
	}
	var some []*typ
	seen := false
	for _, m := range members {
		r := p.resolve(m)
		object := r.kind == tObject && len(r.props) > 0
		if !object || !seen {
			some = append(some, m)
		}
		seen = seen || object
	}
	return some
}

func (p *printer) joined(members []*typ, sep string, place int, parens bool, each func(*typ, int)) {
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
		each(m, place)
	}
	if parens {
		p.write(")")
	}
}

// separator returns sep, or sep without spaces if a and b are literals and no comment follows a: `"a"|"b"` has one token less
// than `"a" | "b"`, and enums are long.
func separator(sep string, a, b *typ) string {
	if a.kind == tLit && b.kind == tLit && a.desc == "" && len(a.notes) == 0 {
		return strings.TrimSpace(sep)
	}
	return sep
}

// maxListed is the maximum number of values that a listing writes for an enum. If the listing is
// too long, it writes fewer.
const maxListed = 40

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

// record writes an object type that lists no properties, for example as a Record, and returns true. It calls writeValue to write
// the type of the values. For an object with properties, or whose values have a named type, it writes nothing and returns false.
func (p *printer) record(t *typ, writeValue func(*typ)) bool {
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
		writeValue(t.rest)
		p.write(">>")
	case t.rest == nil && t.closed:
		p.write("Record<string, never>")
	case p.plain && (t.rest == nil || t.rest.kind == tUnknown):
		p.write("object")
	case t.rest == nil:
		p.write("Record<string, unknown>")
	case named(p.resolve(t.rest)):
		// The values have a named type, which may be recursive. TypeScript refuses a recursive type as an argument of Record, so
		// the caller writes an index signature instead.
		return false
	default:
		p.write("Record<string, ")
		writeValue(t.rest)
		p.write(">")
	}
	return true
}

// named reports whether t is a named type, or contains one that is not inside an object.
func named(t *typ) bool {
	switch t.kind {
	case tRef:
		return t.def.named || named(t.def.body)
	case tUnion, tInter, tTuple:
		return slices.ContainsFunc(t.members, named)
	case tArray:
		return named(t.elem)
	}
	return false
}

// outline returns a short form of t without comments, for use within a comment.
func outline(t *typ) string {
	p := &printer{plain: true, levels: 3, listed: maxListed, limit: 400}
	p.inline(t, loose)
	return strings.NewReplacer("/* ", "(", " */", ")").Replace(string(p.b))
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

// mark returns the text between a key and its type. ":string" has one token less than
// ": string", but "?:string" has as many as "?: string".
func (p *printer) mark(optional bool) string {
	switch {
	case optional:
		return "?: "
	case p.tight:
		return ":"
	}
	return ": "
}
