package compress

import "mcpx/internal/base/wire"

// A document that exceeds one of these limits is not converted to TOON.
const (
	maxBytes   = 8 << 20 // bytes of its compact JSON
	maxDepth   = 64      // nested containers, for JavaScript too; the bytes of TOON's indentation can grow with the square of the depth
	maxColumns = 256     // columns of one table, since a reader has to count cells
	maxFields  = 512     // columns and groups of columns of one table
)

// document is a JSON value, together with the form in which TOON writes each container (object or array) in it.
type document struct {
	*wire.Document
	forms   []form // one for each node
	columns []column
}

// read reads one JSON value. doc is needed only to write the value as TOON. So it is nil if toon is false, or if the value cannot
// become TOON: it exceeds maxBytes or maxDepth, or it has invalid UTF-8 or half a surrogate pair. compact is the value without
// white space. ok is false if text is not exactly one JSON value.
func read(text string, toon bool) (doc *document, compact string, ok bool) {
	if !toon {
		compact, ok = wire.Compact(text)
		return nil, compact, ok
	}
	var d *wire.Document
	if len(text) <= maxBytes {
		d, compact, ok = wire.ReadCompact(text)
	} else if compact, ok = wire.Compact(text); ok && len(compact) <= maxBytes {
		d, ok = wire.Read(compact)
	}
	if d == nil || !ok || !d.UTF8 || d.Lone || d.Depth > maxDepth {
		return nil, compact, ok
	}
	return &document{Document: d}, compact, true
}

// leaves counts scalars and empty containers.
func (d *document) leaves() int {
	n := 0
	for i := range d.Nodes {
		if d.Nodes[i].Count == 0 {
			n++
		}
	}
	return n
}
