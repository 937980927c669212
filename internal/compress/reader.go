package compress

import (
	"strings"
	"unicode/utf8"
)

// Limits of what is read for TOON. What is beyond stays JSON.
const (
	maxBytes   = 8 << 20 // of compact JSON
	maxDepth   = 64      // nested containers; TOON's indentation is quadratic in it
	maxColumns = 256     // of a table; a reader has to count cells
	maxFields  = 512     // of a table: columns and groups of columns
)

type kind uint8

const (
	kindNull kind = iota
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindArray
	kindObject
)

// node is a JSON value. A tree is one slice of them in the order of the text; the children of
// nodes[i] start at i+1, and the sibling after nodes[i] is nodes[nodes[i].next].
type node struct {
	kind   kind
	layout layout
	next   int32
	count  int32 // members or items
	table  int32 // of layoutTable and layoutKeyed: index of the header's first column
	text   span  // of a number or a string
	key    span  // in an object
}

func (n *node) container() bool { return n.kind >= kindArray }

// span is a decoded piece of text: a part of the document's JSON, or, where that has escapes, of
// its decoded strings (start is then ^start).
type span struct{ start, end int32 }

// document is a JSON value that was read: ordered, with literals as written and strings decoded.
type document struct {
	json    string
	decoded string
	nodes   []node
	columns []column
	leaves  int // scalars and empty containers
}

func (d *document) str(s span) string {
	if s.start < 0 {
		return d.decoded[^s.start:s.end]
	}
	return d.json[s.start:s.end]
}

// reader builds a document from JSON that [minify] has checked and compacted.
type reader struct {
	doc     *document
	pos     int
	depth   int // containers that may still open
	decoded strings.Builder
	lone    bool // a lone surrogate was met
}

// read builds the document of compact JSON. It reports false where TOON could not say the same:
// over the limits, invalid UTF-8, lone surrogates.
func read(compact string) (*document, bool) {
	if len(compact) > maxBytes || !utf8.ValidString(compact) {
		return nil, false
	}
	doc, lone := readDepth(compact, maxDepth)
	return doc, doc != nil && !lone
}

// readAll builds the document of any compact JSON, which must be shorter than 2 GB.
func readAll(compact string) *document {
	doc, _ := readDepth(compact, maxNesting)
	return doc
}

// readDepth builds a document, nil where it is nested deeper than depth. lone says whether it has
// lone surrogates.
func readDepth(compact string, depth int) (doc *document, lone bool) {
	r := reader{depth: depth, doc: &document{json: compact, nodes: make([]node, 0, len(compact)/16+4)}}
	if !r.value(span{}) {
		return nil, false
	}
	r.doc.decoded = r.decoded.String()
	return r.doc, r.lone
}

// value appends the value at pos. It reports false where it is nested too deeply.
func (r *reader) value(key span) bool {
	s := r.doc.json
	at := len(r.doc.nodes)
	r.doc.nodes = append(r.doc.nodes, node{key: key})
	n := &r.doc.nodes[at]
	switch c := s[r.pos]; c {
	case '{', '[':
		if r.depth == 0 {
			return false
		}
		r.depth--
		count, ok := r.children(c)
		if !ok {
			return false
		}
		r.depth++
		n = &r.doc.nodes[at] // may have moved
		n.kind = kindArray
		if c == '{' {
			n.kind = kindObject
		}
		n.count = int32(count)
	case '"':
		n.kind, n.text = kindString, r.str()
	case 't':
		n.kind = kindTrue
		r.pos += 4
	case 'f':
		n.kind = kindFalse
		r.pos += 5
	case 'n':
		n.kind = kindNull
		r.pos += 4
	default:
		start := r.pos
		for r.pos < len(s) && s[r.pos] != ',' && s[r.pos] != '}' && s[r.pos] != ']' {
			r.pos++
		}
		n.kind, n.text = kindNumber, span{int32(start), int32(r.pos)}
	}
	if n.count == 0 {
		r.doc.leaves++
	}
	n.next = int32(len(r.doc.nodes))
	return true
}

// children appends the members or items of the container that opens at pos.
func (r *reader) children(open byte) (count int, ok bool) {
	r.pos++
	for r.doc.json[r.pos] != open+2 {
		if r.doc.json[r.pos] == ',' {
			r.pos++
		}
		var key span
		if open == '{' {
			key = r.str()
			r.pos++ // the colon
		}
		if !r.value(key) {
			return 0, false
		}
		count++
	}
	r.pos++
	return count, true
}

// str reads the string whose opening quote is at pos.
func (r *reader) str() span {
	s := r.doc.json
	start := r.pos + 1
	i := start
	for s[i] != '"' && s[i] != '\\' {
		i++
	}
	if s[i] == '"' {
		r.pos = i + 1
		return span{int32(start), int32(i)}
	}
	end := i
	for s[end] != '"' {
		if s[end] == '\\' {
			end++
		}
		end++
	}
	r.pos = end + 1
	from := r.decoded.Len()
	if !unescape(&r.decoded, s[start:end]) {
		r.lone = true
	}
	return span{int32(^from), int32(r.decoded.Len())}
}

// unescape writes what the inside of a JSON string stands for. A lone surrogate is written as the
// three bytes that UTF-8 would have for it, and false is returned.
func unescape(out *strings.Builder, s string) (ok bool) {
	ok = true
	for {
		i := strings.IndexByte(s, '\\')
		if i < 0 {
			out.WriteString(s)
			return ok
		}
		out.WriteString(s[:i])
		c := s[i+1]
		s = s[i+2:]
		switch c {
		case 'n':
			out.WriteByte('\n')
		case 't':
			out.WriteByte('\t')
		case 'r':
			out.WriteByte('\r')
		case 'b':
			out.WriteByte('\b')
		case 'f':
			out.WriteByte('\f')
		case 'u':
			var whole bool
			s, whole = unescapeRune(out, s)
			ok = ok && whole
		default: // " \ /
			out.WriteByte(c)
		}
	}
}

// unescapeRune writes the character of a \u escape whose digits s starts with, and gives the rest.
func unescapeRune(out *strings.Builder, s string) (rest string, ok bool) {
	r, n, ok := escapedRune(s)
	if ok {
		out.WriteRune(r)
	} else {
		out.Write([]byte{0xe0 | byte(r>>12), 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f})
	}
	return s[n:], ok
}

// escapedRune gives the character of a \u escape whose digits s starts with, and the bytes it takes:
// four, or ten with the second half of a surrogate pair. A lone surrogate is given as it is, with false.
func escapedRune(s string) (r rune, n int, ok bool) {
	const high, low, end = 0xd800, 0xdc00, 0xe000
	r, _ = hex4(s, 0)
	if r < high || r >= end {
		return r, 4, true
	}
	if r < low && strings.HasPrefix(s[4:], `\u`) {
		if second, _ := hex4(s, 6); second >= low && second < end {
			return (r-high)<<10 | (second - low) + 0x10000, 10, true
		}
	}
	return r, 4, false
}
