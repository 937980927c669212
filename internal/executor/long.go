package executor

import (
	"encoding/json"
	"fmt"
	"strings"

	"mcpx/internal/compress"
	"mcpx/internal/wire"
)

// noteTokens is what the line about the rest may cost.
const noteTokens = 80

// arrayItems are the elements of a JSON array.
func arrayItems(value json.RawMessage) (items []json.RawMessage, err error) {
	err = wire.Elements(value, func(item []byte) bool {
		items = append(items, item)
		return true
	})
	return items, err
}

// fits reports whether texts are within the limit together. No text has more
// tokens than bytes, which settles most results without an estimate.
func (e *Executor) fits(texts []string) bool {
	limit := e.options.ResultTokens
	if limit <= 0 {
		return true
	}
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	if size <= limit {
		return true
	}
	n := 0
	for _, text := range texts {
		n += compress.Weigh(text)
	}
	return n <= limit
}

// cutBlocks shortens the text blocks of a result that is over the limit: those
// that fit stay, the others are cut, each with a line that says how to read the
// rest. received are the blocks as the upstream sent them.
func (e *Executor) cutBlocks(received []block, shaped []json.RawMessage, verbatim bool, principal string) []json.RawMessage {
	room := e.options.ResultTokens
	out := make([]json.RawMessage, len(shaped))
	for i, raw := range shaped {
		out[i] = raw
		if i >= len(received) || !received[i].isText {
			continue
		}
		now := readBlock(raw)
		if cost := compress.Weigh(now.text); cost <= room {
			room -= cost
			continue
		}
		h := hold(received[i].text, now.text, verbatim)
		h.principal = principal
		text := e.cut(h, sequence(0, h.count()), max(room, noteTokens), nil)
		room = max(0, room-compress.Weigh(text))
		out[i] = now.withText(text)
	}
	return out
}

// sequence is from, from+1, … to-1.
func sequence(from, to int) []int {
	list := make([]int, 0, max(0, to-from))
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

// cut is as much of the wanted items or lines as fits into limit tokens, and a
// line about the rest. again repeats, in that line, what the reader asked for.
func (e *Executor) cut(h *held, wanted []int, limit int, again *readArguments) string {
	text, shown := e.fill(h, wanted, limit-noteTokens)
	if shown == len(wanted) {
		return text
	}
	if again == nil {
		again = &readArguments{Handle: e.store.put(h)}
	}
	next := *again
	next.Offset += shown
	note := fmt.Sprintf("[%d of %d %s left: exec mcpx read_result %s]", len(wanted)-shown, len(wanted), h.noun(), encode(next))
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + note
}

// fill takes wanted items or lines from the front until limit tokens are full.
func (e *Executor) fill(h *held, wanted []int, limit int) (text string, shown int) {
	render := func(n int) string {
		part := h.part(wanted[:n])
		if h.items == nil || h.verbatim {
			return part
		}
		return compress.Text(part, e.textOptions()).Text
	}
	text = render(len(wanted))
	cost := compress.Weigh(text)
	if cost <= limit {
		return text, len(wanted)
	}
	// The first guess is by proportion; then steps down, then what is left over
	// is tried to be filled once.
	n := max(0, min(len(wanted)-1, len(wanted)*max(limit, 0)/max(1, cost)))
	for range 12 {
		text = render(n)
		if cost = compress.Weigh(text); cost <= limit || n == 0 {
			break
		}
		n = min(n-1, n*limit/cost)
	}
	if n == 0 && len(wanted) > 0 && limit > 0 {
		// One item alone is too long: it is shown in its own parts.
		return "", 0
	}
	return text, n
}
