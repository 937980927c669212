package results

import (
	"encoding/json"
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// minMerged is the least number of blocks that are taken for a list.
const minMerged = 3

// Lines are blocks as JSON Lines, if each is an object of a list: the Python SDK writes
// the items of a list as text blocks of their own.
func Lines(blocks []wire.Block) (text string, ok bool) {
	if len(blocks) < minMerged {
		return "", false
	}
	var out strings.Builder
	for i, b := range blocks {
		compact, ok := wire.Compact(b.Text)
		if !ok || compact[0] != '{' || !bare(b) {
			return "", false
		}
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(compact)
	}
	return out.String(), true
}

// bare reports whether a block is a text and nothing else.
func bare(b wire.Block) bool {
	if !b.IsText {
		return false
	}
	only := true
	_ = wire.Fields(b.Raw, func(key string, _ []byte) bool { // read before
		only = only && (key == "type" || key == "text")
		return only
	})
	return only
}

// Merged is a result whose blocks are the items of a list as one with the list in a block.
func (p Pages) Merged(s Shown) (list Shown, ok bool) {
	if s.Verbatim {
		return s, false
	}
	text, ok := Lines(s.Received)
	if !ok {
		return s, false
	}
	block, shown := wire.ReadBlock(wire.TextBlock(text)), compress.Text(text, p.Texts).Text
	return Shown{Received: []wire.Block{block}, Content: []json.RawMessage{block.WithText(shown)}, Texts: []string{shown}}, true
}
