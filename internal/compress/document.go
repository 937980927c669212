package compress

import "mcpx/internal/base/wire"

// A document over one of these limits stays JSON.
const (
	maxBytes   = 8 << 20 // of compact JSON
	maxDepth   = 64      // nested containers; the size of TOON's indentation is quadratic in it
	maxColumns = 256     // of a table, as a reader has to count cells
	maxFields  = 512     // of a table: columns and groups of columns
)

// document is a JSON value, with the form of each container in it.
type document struct {
	*wire.Document
	forms   []form // of each node
	columns []column
}

// read reads one JSON value. doc is nil without toon, and if TOON cannot hold the value: it is
// over the limits, or has invalid UTF-8 or half a surrogate pair. compact is the value without
// white space. ok is false if text is not exactly one value.
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
