package executor

import (
	"encoding/json"
	"fmt"
	"strings"

	"mcpx/internal/compress"
	"mcpx/internal/wire"
)

// noteTokens is what the line about the rest may cost, without a grep.
const noteTokens = 80

// arrayItems are the elements of a JSON array, where there are at most that
// many. They are counted first: a slice that grows takes several times as much.
func arrayItems(value json.RawMessage, most int) (items []json.RawMessage, ok bool) {
	n := 0
	err := wire.Elements(value, func([]byte) bool {
		n++
		return n <= most
	})
	if err != nil || n > most {
		return nil, false
	}
	items = make([]json.RawMessage, 0, n)
	err = wire.Elements(value, func(item []byte) bool {
		items = append(items, item)
		return true
	})
	return items, err == nil
}

// arrayOf is the JSON array of these elements.
func arrayOf(items []json.RawMessage) json.RawMessage {
	size := 2
	for _, item := range items {
		size += len(item) + 1
	}
	out := append(make([]byte, 0, size), '[')
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return append(out, ']')
}

// fits reports whether texts are within the limit together. No text has more
// tokens than bytes, which settles most results without an estimate.
func (e run) fits(texts []string) bool {
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
	return weighAll(texts) <= limit
}

func weighAll(texts []string) int {
	n := 0
	for _, text := range texts {
		n += compress.Weigh(text)
	}
	return n
}

// cutBlocks shortens the texts of a result to room tokens: those that fit
// stay, the first that does not is cut, with a line that says how to read the
// rest. Behind it there is hardly room: the texts that follow become one
// line, under which they stand as the items of one array. received are the
// blocks as the upstream sent them.
func (e run) cutBlocks(received []block, shaped []json.RawMessage, verbatim bool, principal string, room int) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(shaped))
	left := 0 // texts, from here
	for _, b := range received {
		if b.hasText {
			left++
		}
	}
	first := true
	for i, raw := range shaped {
		if !received[i].hasText {
			out = append(out, raw)
			continue
		}
		now, own := readBlock(raw), room
		if left > 1 {
			own -= noteTokens
		}
		cost := compress.Weigh(now.text)
		if cost > own && own < minRoom && !first {
			return e.collapse(out, received[i:], verbatim, principal)
		}
		if cost > own {
			h := e.hold(received[i].text, now.text, verbatim || !received[i].isText, principal)
			text := e.cut(h, h.all(), max(own, minRoom), readArguments{})
			raw, cost = now.withText(text), compress.Weigh(text)
		}
		first = false
		room -= cost
		left--
		out = append(out, raw)
	}
	return out
}

// collapse ends out with one line for all the texts that are left.
func (e run) collapse(out []json.RawMessage, left []block, verbatim bool, principal string) []json.RawMessage {
	texts := rawBlocks(left, func(b block) bool { return b.hasText })
	h := holdBlocks(texts, verbatim, principal)
	out = append(out, wire.TextBlock(e.note(len(texts), len(texts), "text blocks left", readArguments{Handle: e.store.put(h)})))
	return append(out, rawBlocks(left, func(b block) bool { return !b.hasText })...)
}

// holdBlocks makes what is kept of several blocks: each is an item.
func holdBlocks(blocks []json.RawMessage, verbatim bool, principal string) *held {
	h := &held{principal: principal, value: arrayOf(blocks), verbatim: verbatim}
	h.items, _ = arrayItems(h.value, len(blocks))
	return h
}

// minRoom is where a cut text is not worth its line any more.
const minRoom = 2 * noteTokens

func textBlocks(blocks []block) []json.RawMessage {
	return rawBlocks(blocks, func(b block) bool { return b.isText })
}

// rawBlocks are some of the blocks, as they were received.
func rawBlocks(blocks []block, which func(block) bool) []json.RawMessage {
	var out []json.RawMessage
	for _, b := range blocks {
		if which(b) {
			out = append(out, b.raw)
		}
	}
	return out
}

// cut is as much of the wanted items or lines as fits into limit tokens, and a
// line about the rest. again repeats, in that line, what the reader asked for;
// without a handle in it, h is kept under a new one. With the whole limit at
// least a part of one item or line is in it, so that a reader who goes on comes
// to the end.
func (e run) cut(h *held, wanted span, limit int, again readArguments) string {
	if h.within(wanted, likelyBytes*limit) {
		if text := e.render(h, wanted); compress.Weigh(text) <= limit {
			return text
		}
	}
	if again.Handle == "" {
		again.Handle = e.store.put(h)
	}
	room := limit - noteTokens - compress.Weigh(again.Grep)
	text, shown := e.fill(h, wanted, room)
	if shown == 0 && limit >= e.limit() {
		text, shown = e.open(h, wanted.at(0), room-noteTokens), 1
	}
	left := wanted.len() - shown
	if left == 0 {
		return text
	}
	again.Offset += shown
	if again.Limit > 0 {
		again.Limit -= shown
	}
	what := h.noun() + " left"
	if h.items == nil && shown > 0 && !strings.HasSuffix(text, "\n") && wanted.at(shown) == wanted.at(shown-1)+1 {
		what += ", the last goes on"
	}
	return withLine(text, e.note(left, wanted.len(), what, again))
}

// likelyBytes is what a token stands for at most in a text that is tried as a
// whole; of a longer one the beginning is enough to look at.
const likelyBytes = 16

// note is the line about what is left. Without a handle that is not kept.
func (e run) note(left, total int, what string, next readArguments) string {
	if next.Handle == "" {
		return fmt.Sprintf("[%d of %d %s, and dropped: the result is too long to be kept; ask for less, or use select]", left, total, what)
	}
	return fmt.Sprintf("[%d of %d %s: exec %s %s %s]", left, total, what, Builtin, readResult, wire.Encode(next))
}

// withLine is text with one more line.
func withLine(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}

// open is the beginning of an item that is over the limit alone: its own lines,
// in an array as items always are, the rest of which is kept under a handle of
// its own.
func (e run) open(h *held, i, room int) string {
	if h.items == nil {
		return h.units[i]
	}
	item := string(arrayOf(h.items[i : i+1]))
	inner := e.hold(item, item, true, h.principal)
	lines := inner.all()
	text, shown := e.fill(inner, lines, room)
	if shown == 0 {
		text, shown = inner.units[0], 1
	}
	if shown == lines.len() {
		return text
	}
	what := "lines of this item left"
	if !strings.HasSuffix(text, "\n") {
		what += ", the last goes on"
	}
	return withLine(text, e.note(lines.len()-shown, lines.len(), what, readArguments{Handle: e.store.putItem(h, i, inner), Offset: shown}))
}

// render is the text of some items or lines.
func (e run) render(h *held, which span) string {
	part := h.part(which)
	if h.items == nil || h.verbatim {
		return part
	}
	return compress.Text(part, e.textOptions()).Text
}

// fill takes wanted items or lines from the front until limit tokens are nearly
// full; all of them together do not fit. shown is 0 where the first alone does
// not.
func (e run) fill(h *held, wanted span, limit int) (text string, shown int) {
	few, many := 0, wanted.len()+1 // that many fit, and do not
	// What a token takes is guessed at first by bytes, then by the last try.
	size := 0
	for few < wanted.len() && size < 3*limit {
		size += h.length(wanted.at(few))
		few++
	}
	n := max(1, few)
	few = 0
	for try := 0; many-few > 1; try++ {
		n = min(max(n, few+1), many-1)
		now := e.render(h, wanted.first(n))
		cost := compress.Weigh(now)
		if cost <= limit {
			text, few = now, n
			if cost*100 >= limit*95 {
				break
			}
		} else {
			many = n
		}
		if n = n * limit / max(1, cost); try > 5 {
			n = (few + many) / 2
		}
	}
	return text, few
}
