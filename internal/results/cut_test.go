package results

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// TestCutBlocks_ManyBlocks: the time to cut a result grows only linearly with the number of its text blocks.
func TestCutBlocks_ManyBlocks(t *testing.T) {
	p := Pages{Store: newStore(), Limit: 20_000}
	blocks := make([]wire.Block, 100_000)
	shaped := make([]json.RawMessage, len(blocks))
	for i := range blocks {
		blocks[i] = wire.ReadBlock(wire.TextBlock(""))
		shaped[i] = blocks[i].Raw
	}
	last := len(blocks) - 1
	blocks[last] = wire.ReadBlock(wire.TextBlock(strings.Repeat("word ", 100_000)))
	shaped[last] = blocks[last].Raw
	began := time.Now()
	texts := make([]string, len(blocks))
	texts[last] = blocks[last].Text
	out, tokens := p.CutBlocks(Shown{Received: blocks, Content: shaped, Texts: texts})
	// This takes a fraction of a second. It took minutes when the remaining texts were counted again for each block.
	if took := time.Since(began); took > 10*time.Second || len(out) != len(blocks) {
		t.Errorf("%d blocks after %v", len(out), took)
	}
	if text := wire.ReadBlock(out[last]).Text; !strings.Contains(text, "pieces left") {
		t.Errorf("the last: %.200s", text)
	} else if n := compress.Weigh(text); n != tokens {
		t.Errorf("%d tokens, said to be %d", n, tokens)
	}
}
