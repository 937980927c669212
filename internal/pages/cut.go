package pages

import (
	"encoding/json"
	"fmt"
	"strings"

	"mcpx/internal/compress"
	"mcpx/internal/jq"
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

// Pages writes results for one call: within its limit, and kept for its principal.
type Pages struct {
	Store *Store
	// Principal is whose the kept results are; nobody else can read them.
	Principal string
	// Limit is what the texts of one answer may have together, in tokens; 0 = all.
	Limit int
	// Texts say how the texts of an answer are written.
	Texts compress.Options
	// Filter runs the filters of select; nil = there are none.
	Filter *jq.Runner
}

func (p Pages) limit() int {
	if p.Limit <= 0 {
		return 1 << 30
	}
	return p.Limit
}

// Fits reports whether texts are within the limit together. No text has more
// tokens than bytes, which settles most results without an estimate.
func (p Pages) Fits(texts ...string) bool {
	if p.Limit <= 0 {
		return true
	}
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	return size <= p.Limit || weigh(texts) <= p.Limit
}

func weigh(texts []string) int {
	n := 0
	for _, text := range texts {
		n += compress.Weigh(text)
	}
	return n
}

// Cut is as much of a text as fits into room tokens, and a line that says how to
// read the rest of it. shown is the text as the model gets it.
func (p Pages) Cut(text, shown string, verbatim bool, room int) string {
	h := p.divide(text, shown, verbatim)
	return p.cut(h, h.all(), room, ReadArguments{})
}

// CutText is [Pages.Cut] of a text that stays as it is; room is at most the limit.
func (p Pages) CutText(text string, room int) string {
	if room = min(room, p.limit()); len(text) <= room {
		return text // no text has more tokens than bytes
	}
	return p.Cut(text, text, true, room)
}

// Keep keeps a text and returns its handle; empty where it is too long for that.
func (p Pages) Keep(text string, verbatim bool) (handle string) {
	return p.Store.put(p.divide(text, text, verbatim))
}

// KeepBlocks keeps several blocks, each as an item.
func (p Pages) KeepBlocks(blocks []json.RawMessage) (handle string) {
	return p.Store.put(p.divideBlocks(blocks, true))
}

// Shown is a result on its way to the model.
type Shown struct {
	// Received are the blocks as the upstream sent them.
	Received []wire.Block
	// Content are the same blocks as they are shown, Texts the texts of them, each
	// empty where a block has none.
	Content []json.RawMessage
	Texts   []string
	// Verbatim texts stay as they are also in parts.
	Verbatim bool
}

// Append puts a text behind the blocks of a result. Where all of them do not fit,
// the blocks are cut first, so that the new text has room for its beginning. whole
// is what is kept of it. tokens is what a result that was cut costs; 0 where
// nothing was.
func (p Pages) Append(s Shown, whole, text string) (content []json.RawMessage, tokens int) {
	content = s.Content
	if !p.Fits(append(s.Texts, text)...) {
		used := weigh(s.Texts)
		if used > p.limit()-minRoom {
			used = p.limit() - minRoom
			content, _ = p.cutBlocks(s, used)
		}
		text = p.Cut(whole, text, false, p.limit()-used)
		tokens = used + compress.Weigh(text)
	}
	return append(content[:len(content):len(content)], wire.TextBlock(text)), tokens
}

// CutBlocks shortens the texts of a result to the limit, and says what they cost
// then.
func (p Pages) CutBlocks(s Shown) (content []json.RawMessage, tokens int) {
	return p.cutBlocks(s, p.limit())
}

// cutBlocks shortens the texts of a result to limit tokens. Those that fit stay.
// The first that does not is cut, with a line that says how to read the rest.
// Behind it there is hardly room: the texts that follow become one line, under
// which they stand as the items of one array.
func (p Pages) cutBlocks(s Shown, limit int) (content []json.RawMessage, tokens int) {
	out := make([]json.RawMessage, 0, len(s.Content))
	left, room := 0, limit // left are the texts from here on
	for _, b := range s.Received {
		if b.HasText {
			left++
		}
	}
	first := true
	for i, b := range s.Received {
		if !b.HasText {
			out = append(out, s.Content[i])
			continue
		}
		raw, own := s.Content[i], room
		if left > 1 {
			own -= noteTokens
		}
		cost := compress.Weigh(s.Texts[i])
		if cost > own && own < minRoom && !first {
			return p.collapse(out, s.Received[i:], s.Verbatim), limit - room + noteTokens
		}
		if cost > own {
			text := p.Cut(b.Text, s.Texts[i], s.Verbatim || !b.IsText, max(own, minRoom))
			raw, cost = b.WithText(text), compress.Weigh(text)
		}
		first = false
		room -= cost
		left--
		out = append(out, raw)
	}
	return out, limit - room
}

// collapse ends out with one line for all the texts that are left.
func (p Pages) collapse(out []json.RawMessage, left []wire.Block, verbatim bool) []json.RawMessage {
	texts := rawBlocks(left, func(b wire.Block) bool { return b.HasText })
	handle := p.Store.put(p.divideBlocks(texts, verbatim))
	out = append(out, wire.TextBlock(note(len(texts), len(texts), "text blocks left", ReadArguments{Handle: handle})))
	return append(out, rawBlocks(left, func(b wire.Block) bool { return !b.HasText })...)
}

// divideBlocks makes a result of several blocks: each is an item.
func (p Pages) divideBlocks(blocks []json.RawMessage, verbatim bool) *result {
	h := &result{principal: p.Principal, value: arrayOf(blocks), verbatim: verbatim}
	h.items, _ = arrayItems(h.value, len(blocks))
	return h
}

// minRoom is where a cut text is not worth its line any more.
const minRoom = 2 * noteTokens

// rawBlocks are some of the blocks, as they were received.
func rawBlocks(blocks []wire.Block, which func(wire.Block) bool) []json.RawMessage {
	var out []json.RawMessage
	for _, b := range blocks {
		if which(b) {
			out = append(out, b.Raw)
		}
	}
	return out
}

// cut is as much of the wanted items or lines as fits into limit tokens, and a
// line about the rest. again repeats, in that line, what the reader asked for;
// without a handle in it, h is kept under a new one. With the whole limit at
// least a part of one item or line is in it, so that a reader who goes on comes
// to the end.
func (p Pages) cut(h *result, wanted span, limit int, again ReadArguments) string {
	if h.within(wanted, likelyBytes*limit) {
		if text := withMatched(p.render(h, wanted), h, wanted); compress.Weigh(text) <= limit {
			return text
		}
	}
	if again.Handle == "" {
		again.Handle = p.Store.put(h)
	}
	room := limit - noteTokens - compress.Weigh(again.Grep)
	text, shown := p.fill(h, wanted, room)
	if shown == 0 && limit >= p.limit() {
		text, shown = p.openItem(h, wanted.first(1), room-noteTokens), 1
	}
	left := wanted.len() - shown
	if left == 0 {
		return withMatched(text, h, wanted)
	}
	again.Offset += shown
	if again.Limit > 0 {
		again.Limit -= shown
	}
	what := h.noun() + " left"
	switch {
	case wanted.list != nil:
		what = fmt.Sprintf("matching %s left; %d of %d match", h.noun(), len(wanted.list), h.count())
	case h.items == nil && shown > 0 && !strings.HasSuffix(text, "\n"):
		what += ", the line goes on"
	}
	return withLine(text, note(left, wanted.len(), what, again))
}

// withMatched is the text of all that was wanted, with a line that says how much a grep
// found.
func withMatched(text string, h *result, wanted span) string {
	if wanted.list == nil {
		return text
	}
	return withLine(text, h.matched(wanted))
}

// likelyBytes is what a token stands for at most in a text that is tried as a
// whole; of a longer one the beginning is enough to look at.
const likelyBytes = 16

// note is the line about what is left. Without a handle that is not kept.
func note(left, total int, what string, next ReadArguments) string {
	if next.Handle == "" {
		return fmt.Sprintf("[%d of %d %s, and dropped: the result is too long to be kept; ask for less, or use select]", left, total, what)
	}
	return fmt.Sprintf("[%d of %d %s: exec %s %s %s]", left, total, what, Server, Tool, wire.Encode(next))
}

// withLine is text with one more line.
func withLine(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}

// openItem shows the first lines of an item that is too long for the limit, in an
// array as items always are, and keeps the rest under a handle of its own.
func (p Pages) openItem(h *result, one span, room int) string {
	if h.items == nil {
		return h.part(one)
	}
	i := one.at(0)
	item := string(arrayOf(h.items[i : i+1]))
	inner := p.divide(item, item, true)
	lines := inner.all()
	text, shown := p.fill(inner, lines, room)
	if shown == 0 {
		text, shown = inner.units[0], 1
	}
	if shown == lines.len() {
		return text
	}
	what := inner.noun() + " of this item left"
	if !strings.HasSuffix(text, "\n") {
		what += ", the line goes on"
	}
	return withLine(text, note(lines.len()-shown, lines.len(), what, ReadArguments{Handle: p.Store.putItem(h, i, inner), Offset: shown}))
}

// render is the text of some items or lines.
func (p Pages) render(h *result, which span) string {
	part := h.part(which)
	if h.items == nil || h.verbatim {
		return part
	}
	return compress.Text(part, p.Texts).Text
}

// fill takes wanted items or lines from the front until limit tokens are nearly
// full; all of them together do not fit. shown is 0 where the first alone does
// not.
func (p Pages) fill(h *result, wanted span, limit int) (text string, shown int) {
	few, many := 0, wanted.len()+1 // that many fit, and do not
	// The size of a token is guessed by bytes at first, then by the last try.
	size := 0
	for few < wanted.len() && size < 3*limit {
		size += h.length(wanted.at(few))
		few++
	}
	n := max(1, few)
	few = 0
	for try := 0; many-few > 1; try++ {
		n = min(max(n, few+1), many-1)
		now := p.render(h, wanted.first(n))
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
