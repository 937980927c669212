package wire

import (
	"bytes"
	"encoding/json"
)

// Block is one content block of a tool result with its text, if it has one.
type Block struct {
	// Raw is the block as it was written.
	Raw  json.RawMessage
	Text string
	// IsText: a text block. HasText: also an embedded resource with a text.
	IsText, HasText bool

	start, end int // where the text stands in Raw, with its quotes
}

// ReadBlock reads a content block. One that is odd has no text.
func ReadBlock(raw json.RawMessage) Block {
	b := Block{Raw: raw}
	var kind []byte
	var inner [2]int
	_ = FieldsAt(raw, func(key string, start, end int) bool {
		switch key {
		case "type":
			kind = raw[start:end]
		case "text":
			b.start, b.end = start, end
		case "resource":
			inner = [2]int{start, end}
		}
		return true
	})
	switch {
	case isString(kind, "text"):
		b.Text, b.IsText = WholeText(raw[b.start:b.end])
		b.HasText = b.IsText
	case isString(kind, "resource"):
		b.start, b.end = 0, 0
		_ = FieldsAt(raw[inner[0]:inner[1]], func(key string, start, end int) bool {
			if key == "text" {
				b.start, b.end = inner[0]+start, inner[0]+end
			}
			return true
		})
		b.Text, b.HasText = WholeText(raw[b.start:b.end])
	}
	return b
}

// WithText is the block with another text; everything else in it stays.
func (b Block) WithText(text string) json.RawMessage {
	out := make([]byte, 0, len(b.Raw)-(b.end-b.start)+len(text)+len(text)/8+16)
	out = append(out, b.Raw[:b.start]...)
	out = AppendQuoted(out, text)
	return append(out, b.Raw[b.end:]...)
}

// isString reports whether a JSON value is that string.
func isString(value []byte, text string) bool {
	if bytes.IndexByte(value, '\\') < 0 {
		return len(value) == len(text)+2 && value[0] == '"' && string(value[1:len(value)-1]) == text
	}
	decoded, ok := Text(value)
	return ok && decoded == text
}
