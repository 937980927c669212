package results

import (
	"encoding/json"
	"strings"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// minMerged is how many blocks there must be at least to merge them into a list.
const minMerged = 3

// jsonLines writes blocks as JSON Lines, one line for each block. Such blocks are taken as the elements of one list, since the
// Python SDK writes each element of a list as a text block. ok is false if there are fewer than minMerged blocks, or if one of
// them is anything but a text with a JSON object.
func jsonLines(blocks []wire.Block) (text string, ok bool) {
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

// bare reports whether a block has a text and no other member.
func bare(b wire.Block) bool {
	if !b.IsText {
		return false
	}
	only := true
	_ = wire.Fields(b.Raw, func(key string, _ []byte) bool { // cannot fail, since the block was read before
		only = only && (key == "type" || key == "text")
		return only
	})
	return only
}

// merged merges blocks that are the elements of one list into one block. It returns s if the blocks are not the elements of a list,
// or are shown verbatim.
func (p Pages) merged(s Shown) Shown {
	if s.Verbatim {
		return s
	}
	text, ok := jsonLines(s.Received)
	if !ok {
		return s
	}
	block, shown := wire.ReadBlock(wire.TextBlock(text)), compress.Text(text, p.Texts).Text
	return Shown{Received: []wire.Block{block}, Content: []json.RawMessage{block.WithText(shown)}, Texts: []string{shown}}
}
