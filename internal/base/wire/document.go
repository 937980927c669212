package wire

import "math"

// Kind is the kind of a JSON value.
type Kind uint8

// These are the kinds of a [Node]. Arrays and objects come last.
const (
	Null Kind = iota
	False
	True
	Number
	String
	Array
	Object
)

// Container reports whether the value is an array or an object.
func (k Kind) Container() bool { return k >= Array }

// Document is a completely read JSON value. Members keep their order, also duplicate members; numbers keep their
// digits; strings are decoded.
type Document struct {
	// Nodes has the values in the order in which they begin in the JSON. The children of Nodes[i] begin at i+1.
	// Nodes[i].Next is the index of the first node after Nodes[i] and its descendants.
	Nodes []Node
	// Depth is how deep arrays and objects are nested: 0 for a scalar, 1 for a flat array or object.
	Depth int
	// Lone means that a string or key contains half a surrogate pair, which is not valid Unicode.
	Lone bool
	UTF8 bool

	json, decoded string
}

// Node is one value of a [Document].
type Node struct {
	Kind  Kind
	Next  int32
	Count int32 // number of members or items
	Text  Span  // digits of a number, or content of a string
	Key   Span  // the key, if the value is a member of an object
}

// Span is a part of the JSON of a [Document]. If that part contains escapes, it is a part of Document.decoded instead,
// and start is stored as its bitwise complement ^start.
type Span struct{ start, end int32 }

// Str returns the text of s: the digits of a number, or a decoded string or key. Half a surrogate pair is encoded as
// three bytes, as if UTF-8 allowed that.
func (d *Document) Str(s Span) string {
	if s.start < 0 {
		return d.decoded[^s.start:s.end]
	}
	return d.json[s.start:s.end]
}

// Read reads text, which must be exactly one JSON value of less than 2 GiB. If it is not, ok is false, and d must not be used.
func Read(text string) (d *Document, ok bool) {
	r := reader{scanner: scanner{src: text}}
	return r.document()
}

// ReadCompact is like [Read], and in the same pass also returns the value without the white space between its tokens. If ok is
// false, compact is empty, and d must not be used.
func ReadCompact(text string) (d *Document, compact string, ok bool) {
	r := reader{scanner: scanner{src: text, compact: true}}
	if d, ok = r.document(); ok {
		compact = r.text()
	}
	return d, compact, ok
}

type reader struct {
	scanner
	doc     Document
	parents []int32 // indexes in Nodes of the open arrays and objects
	decoded []byte
}

func (r *reader) document() (*Document, bool) {
	if len(r.src) > math.MaxInt32 {
		return nil, false
	}
	var key Span
	for t := r.begin(); ; t = r.next() {
		switch t {
		case tokenBad:
			return nil, false
		case tokenKey:
			key = r.span(r.after)
			continue
		case tokenClose:
			last := len(r.parents) - 1
			r.doc.Nodes[r.parents[last]].Next = int32(len(r.doc.Nodes))
			r.parents = r.parents[:last]
		default:
			r.add(t, key)
			key = Span{}
		}
		if len(r.parents) == 0 {
			r.doc.json, r.doc.decoded, r.doc.UTF8 = r.src, view(r.decoded), r.utf8()
			d := r.doc // a copy keeps r off the heap, where each write to it would cost more
			return &d, r.end()
		}
	}
}

func (r *reader) add(t token, key Span) {
	at := int32(len(r.doc.Nodes))
	if len(r.parents) > 0 {
		r.doc.Nodes[r.parents[len(r.parents)-1]].Count++
	}
	if int(at) == cap(r.doc.Nodes) {
		r.grow()
	}
	r.doc.Nodes = r.doc.Nodes[:at+1]
	n := &r.doc.Nodes[at]
	n.Kind, n.Next, n.Key = kinds[t], at+1, key
	switch t {
	case tokenObject, tokenArray:
		r.parents = append(r.parents, at)
		r.doc.Depth = max(r.doc.Depth, len(r.parents))
	case tokenNumber:
		n.Text = Span{int32(r.start), int32(r.pos)}
	case tokenString:
		n.Text = r.span(r.pos)
	}
}

var kinds = [...]Kind{
	tokenObject: Object, tokenArray: Array, tokenString: String, tokenNumber: Number,
	tokenTrue: True, tokenFalse: False, tokenNull: Null,
}

// grow enlarges Nodes to the estimated total number of nodes: the rest of the text is expected to have as many nodes
// per byte as the part read so far.
func (r *reader) grow() {
	n := len(r.doc.Nodes)
	room := 2*n + 16
	if n > 1000 {
		room = n + n/8 + int(float64(n)/float64(r.pos)*float64(len(r.src)-r.pos))
	}
	nodes := make([]Node, n, room)
	copy(nodes, r.doc.Nodes)
	r.doc.Nodes = nodes
}

// span returns the span of the last string or key, which ends at end.
func (r *reader) span(end int) Span {
	start, end := r.start+1, end-1
	if !r.escaped {
		return Span{int32(start), int32(end)}
	}
	from := len(r.decoded)
	decoded, lone, _ := unescape(r.decoded, r.src[start:end])
	r.decoded = decoded
	r.doc.Lone = r.doc.Lone || lone
	return Span{int32(^from), int32(len(decoded))}
}
