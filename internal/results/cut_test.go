package results

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
)

// Very many text blocks are cut in time that grows with their number.
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
	// It takes a fraction of a second; counting the rest anew for each took minutes.
	if took := time.Since(began); took > 10*time.Second || len(out) != len(blocks) {
		t.Errorf("%d blocks after %v", len(out), took)
	}
	if text := wire.ReadBlock(out[last]).Text; !strings.Contains(text, "pieces left") {
		t.Errorf("the last: %.200s", text)
	} else if n := compress.Weigh(text); n != tokens {
		t.Errorf("%d tokens, said to be %d", n, tokens)
	}
}
