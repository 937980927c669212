package results

import (
	"bytes"
	"encoding/json"
	"strings"

	"mcpx/internal/base/wire"
)

const (
	// A sample has at most maxSample bytes, and comes from a result of at most maxSampled blocks.
	maxSample  = 64 << 10
	maxSampled = 1_000
)

// Sample is a copy of the part of a result that a filter would be applied to. Of a long part, it is a copy of the beginning. The
// type of a tool's results is learned from samples (see package learned).
type Sample struct {
	structured json.RawMessage
	blocks     []wire.Block
	cut        bool
}

// sampleOf copies the parts of a result that a filter may be applied to. Of a long result it copies the beginning. ok is false if
// there is nothing to copy, or if the result is long and it is not clear which part a filter would be applied to.
func sampleOf(structured json.RawMessage, blocks []wire.Block) (s Sample, ok bool) {
	if len(blocks) > maxSampled {
		return s, false
	}
	size, texts := len(structured), 0
	for i := range blocks {
		if blocks[i].IsText {
			size += len(blocks[i].Text)
			texts++
		}
	}
	if s.cut = size > maxSample; s.cut && (texts > 1 || texts == 1 && structured != nil) {
		return s, false
	}
	s.structured = bytes.Clone(structured[:min(len(structured), maxSample)])
	for i := range blocks {
		if b := &blocks[i]; b.IsText {
			s.blocks = append(s.blocks, wire.Block{Text: strings.Clone(b.Text[:min(len(b.Text), maxSample)]), IsText: true})
		}
	}
	return s, texts > 0 || structured != nil
}

// Value returns the JSON that a filter would be applied to, or nil if there is none. If cut is true, value is only the
// beginning of the JSON and may be invalid. For a long text that is not JSON, Value returns an empty JSON string.
func (s Sample) Value() (value json.RawMessage, cut bool) {
	switch {
	case !s.cut:
		value, _ = selectable("", Untyped, s.structured, s.blocks)
	case s.structured != nil:
		value = s.structured
	default:
		if value = bytes.TrimSpace([]byte(s.blocks[0].Text)); len(value) > 0 && value[0] != '{' && value[0] != '[' {
			return json.RawMessage(`""`), false // the text is not JSON
		}
	}
	return value, s.cut
}
