package pages

import (
	"encoding/json"
	"fmt"
	"strings"

	"mcpx/internal/compress"
	"mcpx/internal/jq"
	"mcpx/internal/wire"
)

// restTokens and restBytes bound the line about the rest, without a grep.
const (
	restTokens = 80
	restBytes  = 320
)

// arrayItems are the elements of a JSON array of at most that many. It counts them
// first: a growing slice would take several times the memory.
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

// Pages cuts the results of one call to its limit, and keeps them for its principal.
type Pages struct {
	Store *Store
	// Principal owns the kept results; no other can read them.
	Principal string
	// Limit bounds the texts of one answer together, in tokens; 0 = no limit.
	Limit int
	// Bytes bounds them in bytes too; 0 = no limit. It must leave room for two lines
	// about the rest. Of the clients that cut a result some count bytes, some characters:
	// a text has no more characters than bytes.
	Bytes int
	// LineFirst puts the line about the rest before the text, for clients that keep only
	// the beginning of a result.
	LineFirst bool
	// Texts are the options for writing texts.
	Texts compress.Options
	// Filter runs the filters of select; nil refuses them.
	Filter *jq.Runner
}

// limit bounds the weight of the texts of one answer together.
func (p Pages) limit() int {
	switch {
	case p.Limit > 0:
		return p.Limit
	case p.Bytes > 0:
		return p.Bytes // no text has more tokens than bytes
	}
	return 1 << 30
}

// weigh is the weight of texts together: their tokens or, if that is more, their part of
// Bytes as the same part of the limit.
func (p Pages) weigh(texts ...string) int {
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	return max(tokensOf(texts...), p.weighBytes(size))
}

func tokensOf(texts ...string) int {
	n := 0
	for _, text := range texts {
		n += compress.Weigh(text)
	}
	return n
}

// weighBytes is the weight that so many bytes have at the least.
func (p Pages) weighBytes(size int) int {
	if p.Bytes <= 0 {
		return 0
	}
	return (size*p.limit() + p.Bytes - 1) / p.Bytes
}

// rest is the most that the line about the rest weighs, without a grep.
func (p Pages) rest() int { return max(restTokens, p.weighBytes(restBytes)) }

// minRoom is the least room that is worth a cut text with its line.
func (p Pages) minRoom() int { return 2 * p.rest() }

// Fits reports whether texts are within the limits together. Most results need no
// estimate, as no text has more tokens than bytes.
func (p Pages) Fits(texts ...string) bool {
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	if size <= p.limit() && p.weighBytes(size) <= p.limit() {
		return true
	}
	return p.weigh(texts...) <= p.limit()
}

// Cut is as much of a text as fits into room tokens, with a line that says how to
// read the rest. text is kept, and shown is text as the model gets it.
func (p Pages) Cut(text, shown string, verbatim bool, room int) string {
	h := p.divide(text, shown, verbatim)
	return p.cut(h, h.all(), room, ReadArguments{})
}

// CutText is [Pages.Cut] of a text that is not compressed; room is at most the limit.
func (p Pages) CutText(text string, room int) string {
	if room = min(room, p.limit()); max(len(text), p.weighBytes(len(text))) <= room {
		return text // no text has more tokens than bytes
	}
	return p.Cut(text, text, true, room)
}

// Keep keeps a text and returns its handle; empty if it is too long.
func (p Pages) Keep(text string, verbatim bool) (handle string) {
	return p.Store.add(p.divide(text, text, verbatim))
}

// KeepBlocks keeps several blocks, each as an item.
func (p Pages) KeepBlocks(blocks []json.RawMessage) (handle string) {
	return p.Store.add(p.divideBlocks(blocks, true))
}

// Shown is a result on its way to the model.
type Shown struct {
	// Received are the blocks as the upstream sent them.
	Received []wire.Block
	// Content are the same blocks as the model gets them, Texts their texts, empty for
	// a block without text.
	Content []json.RawMessage
	Texts   []string
	// Verbatim means that parts are not compressed.
	Verbatim bool
}

// Append appends a text to the blocks of a result. If they do not fit together, it
// cuts the blocks first, so that the new text has room for its beginning, and keeps
// whole instead of the text. tokens are the tokens of a result that was cut, else 0.
func (p Pages) Append(s Shown, whole, text string) (content []json.RawMessage, tokens int) {
	content = s.Content
	if !p.Fits(append(s.Texts, text)...) {
		used := p.weigh(s.Texts...)
		if most := p.limit() - p.minRoom(); used > most {
			used = most
			content, tokens = p.cutBlocks(s, most)
		} else {
			tokens = tokensOf(s.Texts...)
		}
		text = p.Cut(whole, text, false, p.limit()-used)
		tokens += tokensOf(text)
	}
	return wire.AppendText(content[:len(content):len(content)], text), tokens
}

// CutBlocks cuts the texts of a result to the limit, and returns their tokens.
func (p Pages) CutBlocks(s Shown) (content []json.RawMessage, tokens int) {
	return p.cutBlocks(s, p.limit())
}

// cutBlocks cuts the texts of a result to limit tokens. It keeps the texts that fit,
// and cuts the first that does not, with a line that says how to read the rest. There
// is hardly room after that: one more line stands for all other texts, which are kept
// as the items of one array.
func (p Pages) cutBlocks(s Shown, limit int) (content []json.RawMessage, tokens int) {
	out := make([]json.RawMessage, 0, len(s.Content))
	left, room := 0, limit // left is the number of texts from here on
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
			own -= p.rest()
		}
		cost := p.weigh(s.Texts[i])
		if cost > own && own < p.minRoom() && !first {
			return p.collapse(out, s.Received[i:], s.Verbatim), tokens + restTokens
		}
		text := s.Texts[i]
		if cost > own {
			text = p.Cut(b.Text, text, s.Verbatim || !b.IsText, max(own, p.minRoom()))
			raw, cost = b.WithText(text), p.weigh(text)
		}
		first = false
		room -= cost
		tokens += tokensOf(text)
		left--
		out = append(out, raw)
	}
	return out, tokens
}

// collapse appends to out one line for all texts that are left.
func (p Pages) collapse(out []json.RawMessage, left []wire.Block, verbatim bool) []json.RawMessage {
	texts := rawBlocks(left, func(b wire.Block) bool { return b.HasText })
	handle := p.Store.add(p.divideBlocks(texts, verbatim))
	out = wire.AppendText(out, restLine(len(texts), len(texts), "text blocks left", ReadArguments{Handle: handle}))
	return append(out, rawBlocks(left, func(b wire.Block) bool { return !b.HasText })...)
}

// divideBlocks makes a result whose items are blocks.
func (p Pages) divideBlocks(blocks []json.RawMessage, verbatim bool) *result {
	h := &result{principal: p.Principal, value: arrayOf(blocks), verbatim: verbatim}
	h.items, _ = arrayItems(h.value, len(blocks))
	return h
}

// rawBlocks are some of the blocks, as the upstream sent them.
func rawBlocks(blocks []wire.Block, which func(wire.Block) bool) []json.RawMessage {
	var out []json.RawMessage
	for _, b := range blocks {
		if which(b) {
			out = append(out, b.Raw)
		}
	}
	return out
}

// cut is as much of the wanted items or lines as fits into limit tokens, with a line
// about the rest. That line has the arguments again, for the next part; without a
// handle in them cut keeps h under a new one. If limit is the whole limit, the text has
// at least a part of one item or line, so that a reader always gets to the end.
func (p Pages) cut(h *result, wanted span, limit int, again ReadArguments) string {
	if h.within(wanted, likelyBytes*limit) {
		if text := withMatched(p.render(h, wanted), h, wanted); p.weigh(text) <= limit {
			return text
		}
	}
	if again.Handle == "" {
		again.Handle = p.Store.add(h)
	}
	room := limit - p.rest() - p.weigh(again.Grep)
	text, shown := p.fill(h, wanted, room)
	if shown == 0 && limit >= p.limit() {
		text, shown = p.beginItem(h, wanted.first(1), room-p.rest()), 1
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
	return p.withRest(text, restLine(left, wanted.len(), what, again))
}

// withMatched adds to the text of all wanted parts the count of the grep, if there was
// one.
func withMatched(text string, h *result, wanted span) string {
	if wanted.list == nil {
		return text
	}
	return withLine(text, h.matched(wanted))
}

// likelyBytes bounds the bytes of a token. cut does not try a text as a whole that has
// more bytes for its limit.
const likelyBytes = 16

// restLine is the line about the rest. Without a handle the rest is lost.
func restLine(left, total int, what string, next ReadArguments) string {
	if next.Handle == "" {
		return fmt.Sprintf("[%d of %d %s, and dropped: the result is too long to be kept; ask for less, or use select]", left, total, what)
	}
	return fmt.Sprintf("[%d of %d %s: exec %s %s %s]", left, total, what, Server, Tool, wire.Encode(next))
}

// withRest is text with the line about the rest.
func (p Pages) withRest(text, line string) string {
	if p.LineFirst {
		return line + "\n" + text
	}
	return withLine(text, line)
}

// withLine is text with one more line.
func withLine(text, line string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + line
}

// beginItem is the beginning of an item that is too long for the limit, as an array of
// one. It keeps the item under a handle of its own.
func (p Pages) beginItem(h *result, one span, room int) string {
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
	return p.withRest(text, restLine(lines.len()-shown, lines.len(), what, ReadArguments{Handle: p.Store.addItem(h, i, inner), Offset: shown}))
}

// render is the text of some items or lines.
func (p Pages) render(h *result, which span) string {
	part := h.part(which)
	if h.items == nil || h.verbatim {
		return part
	}
	return compress.Text(part, p.Texts).Text
}

// fill is the text of the first wanted items or lines, as many as fit into limit
// tokens, nearly; shown is their number. All together do not fit. shown is 0 if the
// first alone does not fit.
func (p Pages) fill(h *result, wanted span, limit int) (text string, shown int) {
	few, many := 0, wanted.len()+1 // few fit, many do not
	// The first guess is three bytes a token, the later ones go by the last try.
	size, likely := 0, 3*limit
	if p.Bytes > 0 {
		likely = min(likely, limit*p.Bytes/p.limit())
	}
	for few < wanted.len() && size < likely {
		size += h.length(wanted.at(few))
		few++
	}
	n := max(1, few)
	few = 0
	for try := 0; many-few > 1; try++ {
		n = min(max(n, few+1), many-1)
		now := p.render(h, wanted.first(n))
		cost := p.weigh(now)
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
