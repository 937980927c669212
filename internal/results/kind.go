package results

import (
	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// Kind is what the texts of results are. The kinds of several results are combined with |.
type Kind uint8

const (
	KindText Kind = 1 << iota // plain text
	KindJSON                  // an array or object, whatever form of it the model sees
)

// String returns the kinds in words; empty if nothing is known.
func (k Kind) String() string {
	return [...]string{"", "text", "JSON", "text or JSON"}[k&(KindText|KindJSON)]
}

// maxKind bounds the texts that are read to learn their kind, in bytes.
const maxKind = 64 << 10

// kindOf returns the kind of a result, as `select` reads it: JSON if one of its texts is. It is 0 without texts, and for texts that
// are too long to read twice.
func kindOf(blocks []wire.Block) (k Kind) {
	for _, b := range blocks {
		switch {
		case !b.IsText || b.Text == "":
			continue
		case len(b.Text) > maxKind:
			return 0
		}
		k = KindText
		if value, _, ok := compress.Value(b.Text); ok {
			if value = unquoted(value); value[0] == '{' || value[0] == '[' {
				return KindJSON
			}
		}
	}
	return k
}
