package results

import (
	"encoding/json"

	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
	"mcpx/internal/jq"
)

// Pages cuts the results of one call to the client's limits, and keeps whole what it cuts.
type Pages struct {
	Store *Store
	// Principal owns the kept results; only it can read them.
	Principal string
	// Origin is where the results come from that are kept.
	Origin Origin
	// Readable reports whether the reader may read results from there now; nil = always.
	Readable func(Origin) bool
	// Limit bounds the texts of one answer together, in tokens; 0 = no limit.
	Limit int
	// Bytes bounds them in bytes; 0 = no limit. It must leave room for two lines about the rest. Clients that count characters
	// are served too: a text has no more characters than bytes.
	Bytes int
	// Preview bounds what is first shown of a long result with items, in tokens, not counting its shape and the line about the
	// rest; 0 = Limit.
	Preview int
	// LineFirst puts the line about the rest before the text, for clients that only keep the beginning of a result.
	LineFirst bool
	// ShortNames means that exec's arguments are named server, tool, args in that line.
	ShortNames bool
	// Texts are the options for compressing texts.
	Texts compress.Options
	// Filter runs jq filters; nil refuses them.
	Filter *jq.Runner
	// Work has the slots for greps; nil = no bound.
	Work *semaphore.Semaphore
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

// weigh measures texts against the limit: by their tokens or, if Bytes is the tighter bound, by their share of Bytes scaled to
// the limit.
func (p Pages) weigh(texts ...string) int {
	return max(tokensOf(texts...), p.weighBytes(bytesOf(texts)))
}

func tokensOf(texts ...string) int {
	n := 0
	for _, text := range texts {
		n += compress.Weigh(text)
	}
	return n
}

func bytesOf(texts []string) (n int) {
	for _, text := range texts {
		n += len(text)
	}
	return n
}

// weighBytes returns the least weight of a text of that many bytes.
func (p Pages) weighBytes(size int) int {
	if p.Bytes <= 0 {
		return 0
	}
	return (size*p.limit() + p.Bytes - 1) / p.Bytes
}

// rest bounds the weight of the line about the rest, without a grep.
func (p Pages) rest() int { return max(restTokens, p.weighBytes(restBytes)) }

// minRoom is the least room in which it is worth showing a cut text with its line.
func (p Pages) minRoom() int { return 2 * p.rest() }

// Fits reports whether the texts together are within the limits. Most results need no count of tokens: no text has more tokens
// than bytes.
func (p Pages) Fits(texts ...string) bool {
	size := bytesOf(texts)
	if size <= p.limit() && p.weighBytes(size) <= p.limit() {
		return true
	}
	return p.weigh(texts...) <= p.limit()
}

// cutShown cuts a text to room tokens, with a line that says how to read the rest. text is kept whole; shown is the text as the
// model gets it.
func (p Pages) cutShown(text, shown string, verbatim bool, room int) string {
	return p.look(p.divide(text, shown, verbatim), room)
}

// look cuts a result that does not fit into room tokens to its beginning, and adds the shape of its JSON. A result with items
// shows only a preview, because its shape tells what to ask for.
func (p Pages) look(h *result, room int) string {
	about := ""
	if h.value != nil {
		about = "[shape: " + h.shape(min(shapeTokens, room/10)) + "]"
	}
	if own := p.Preview + p.weigh(about) + p.rest(); (h.items != nil || h.quoted) && p.Preview > 0 && own < room {
		p.Bytes = p.Bytes * room / p.limit()
		p.Limit, room = own, own
	}
	return p.cut(h, h.all(), room, ReadArguments{}, about)
}

// CutText is cutShown for a text that is not compressed; room is at most the limit.
func (p Pages) CutText(text string, room int) string {
	if room = min(room, p.limit()); max(len(text), p.weighBytes(len(text))) <= room {
		return text // no text has more tokens than bytes
	}
	return p.cutShown(text, text, true, room)
}

// Keep keeps a text and returns its handle; empty if the text is too long.
func (p Pages) Keep(text string, verbatim bool) (handle string) {
	return p.Store.add(p.divide(text, text, verbatim))
}

// KeepBlocks keeps several blocks as the items of one result.
func (p Pages) KeepBlocks(blocks []json.RawMessage) (handle string) {
	return p.Store.add(p.divideBlocks(blocks, true))
}

// Shown is a result while it is being prepared for the model.
type Shown struct {
	// Received are the blocks as the upstream sent them.
	Received []wire.Block
	// Content are the blocks as the model gets them; Texts are their texts, empty for a block without text.
	Content []json.RawMessage
	Texts   []string
	// Verbatim means that parts are not compressed.
	Verbatim bool
}

// Append appends a text to the blocks of a result. If they do not fit together, it first cuts the blocks to leave room for the
// beginning of the text, and keeps whole in place of the text. tokens are the tokens of the result if it was cut, else 0.
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
		text = p.cutShown(whole, text, false, p.limit()-used)
		tokens += tokensOf(text)
	}
	return wire.AppendText(content[:len(content):len(content)], text), tokens
}

// CutBlocks cuts the texts of a result to the limit and returns their tokens.
func (p Pages) CutBlocks(s Shown) (content []json.RawMessage, tokens int) {
	return p.cutBlocks(s, p.limit())
}

// cutBlocks cuts the texts of a result to limit tokens. Blocks that are the items of one list are merged first. It keeps the
// texts that fit and cuts the first that does not. After that there is hardly any room: the remaining texts are kept as the items
// of one array, and a single line says how to read them.
func (p Pages) cutBlocks(s Shown, limit int) (content []json.RawMessage, tokens int) {
	s, _ = p.Merged(s)
	out := make([]json.RawMessage, 0, len(s.Content))
	left, room := 0, limit // left counts the texts from here on
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
			text = p.cutShown(b.Text, text, s.Verbatim || !b.IsText, max(own, p.minRoom()))
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

// collapse appends one line for all of the remaining texts.
func (p Pages) collapse(out []json.RawMessage, left []wire.Block, verbatim bool) []json.RawMessage {
	texts := rawBlocks(left, hasText)
	handle := p.Store.add(p.divideBlocks(texts, verbatim))
	out = wire.AppendText(out, p.restLine(rest{left: len(texts), total: len(texts), what: "text blocks left", next: ReadArguments{Handle: handle}}))
	return append(out, rawBlocks(left, func(b wire.Block) bool { return !b.HasText })...)
}

// divideBlocks makes a result whose items are blocks.
func (p Pages) divideBlocks(blocks []json.RawMessage, verbatim bool) *result {
	h := &result{principal: p.Principal, origin: p.Origin, value: json.RawMessage(joined("[", blocks, ",", "]")), verbatim: verbatim}
	if o, ok := outlineOf(h.value); ok {
		h.fill(h.value, place{0, len(h.value)}, o)
	} else { // more than maxItems
		h.units, h.kind = p.unitsOf(string(h.value))
	}
	return h
}

func hasText(b wire.Block) bool { return b.HasText }
func isText(b wire.Block) bool  { return b.IsText }

// rawBlocks selects blocks, as the upstream sent them.
func rawBlocks(blocks []wire.Block, which func(wire.Block) bool) []json.RawMessage {
	var out []json.RawMessage
	for _, b := range blocks {
		if which(b) {
			out = append(out, b.Raw)
		}
	}
	return out
}

// cut renders as many of the wanted items or lines as fit into limit tokens, then about, then a line about the rest. That line
// repeats the arguments, for the next part; if they have no handle, cut keeps h under a new one. If limit is the whole limit, at
// least a part of one item or line is shown, so that a reader always gets to the end.
func (p Pages) cut(h *result, wanted span, limit int, again ReadArguments, about string) string {
	line := rest{total: wanted.len(), first: again.Handle == ""}
	kept := "" // for a grep
	if line.first && h.omitsMuch(wanted) {
		kept = p.Store.add(h)
		again.Handle = kept
	}
	wanted.numbered = again.Handle != ""
	if h.within(wanted, likelyBytes*limit) {
		if text := p.withMatched(p.render(h, wanted), h, wanted, kept); p.weigh(text) <= limit {
			return text
		}
	}
	if again.Handle == "" {
		again.Handle = p.Store.add(h)
		wanted.numbered = again.Handle != ""
	}
	room := limit - p.rest() - p.weigh(again.Grep) - p.weigh(about)
	if wanted.list != nil {
		room -= p.weigh(h.matched(wanted, wanted.len()))
	}
	text, shown := p.fill(h, wanted, room)
	switch {
	case shown == 0 && limit >= p.limit():
		text, _ = p.beginItem(h, wanted.first(1), room-p.rest(), itemLevels)
		shown = 1
	case 0 < shown && shown < wanted.len() && h.open == "{" && wanted.list == nil && 3*p.weigh(text) < room:
		// The next member is long: it begins here, after the short ones.
		if begun, ok := p.beginItem(h, wanted.first(shown+1), room-p.rest(), itemLevels); ok {
			text = begun
			shown++
		}
	}
	if line.left = wanted.len() - shown; line.left == 0 {
		return p.withMatched(text, h, wanted, kept)
	}
	again.Offset += shown
	if again.Limit > 0 {
		again.Limit -= shown
	}
	line.what, line.next = h.noun()+" left", again
	switch {
	case wanted.list != nil:
		line.what = "matching " + h.noun() + " left; " + h.matched(wanted, shown)
	case h.goesOn(wanted.first(shown)):
		line.what += ", the line goes on"
	}
	return p.withLines(text, about, p.restLine(line))
}

// likelyBytes bounds the bytes of one token, as an estimate: longer texts are not tried as a whole.
const likelyBytes = 16

// beginItem shows the beginning of an item that is too long for the limit, after the short items before it, and keeps them under
// a handle of their own. ok is false if the text would end before the long item. levels bounds the nesting: an item within the
// item may be begun in the same way.
func (p Pages) beginItem(h *result, some span, room, levels int) (text string, ok bool) {
	if h.items == nil {
		return h.part(some), true
	}
	item := h.json(h.chosen(some), some.whole)
	if compact, ok := wire.Compact(item); ok && !h.verbatim {
		item = compact
	}
	inner := p.divide(item, item, h.verbatim)
	if some.len() > 1 && inner.inner == 0 {
		return "", false
	}
	text, shown := p.fill(inner, inner.all(), room)
	if shown == 0 && inner.items != nil {
		if levels > 0 && len(item) < maxBegun && room > 2*p.minRoom() {
			text, _ = p.beginItem(inner, inner.all().first(1), room-p.rest(), levels-1)
			shown = 1
		} else {
			inner = p.divide(item, item, true)
			text, shown = p.fill(inner, inner.all(), room)
		}
	}
	if shown == 0 {
		text, shown = inner.units[0], 1
	}
	line := rest{left: inner.count() - shown, total: inner.count(), what: inner.noun() + " of this item left"}
	if line.left == 0 {
		return text, true
	}
	if inner.goesOn(inner.all().first(shown)) {
		line.what += ", the line goes on"
	}
	line.next = ReadArguments{Handle: p.Store.addItem(h, some, inner), Offset: shown}
	return p.withLines(text, "", p.restLine(line)), true
}

// itemLevels bounds the nesting of items that are begun. Each of them is kept as a result of its own.
const (
	itemLevels = 3
	maxBegun   = keptBytes / 16 // bytes of an item with such items: one reader must not displace the results of others
)

// render returns the text of some items or lines.
func (p Pages) render(h *result, which span) string {
	part := h.part(which)
	if h.items == nil && !(h.quoted && which.whole) || h.verbatim {
		return part
	}
	return compress.Text(part, p.Texts).Text
}

// fill renders as many of the first wanted items or lines as fit into limit tokens, and returns their number; 0 if the first one
// does not fit. It stops searching when the text is nearly full. The caller knows that not all of them fit.
func (p Pages) fill(h *result, wanted span, limit int) (text string, shown int) {
	few, many := 0, wanted.len()+1 // few fit, many do not
	// The first guess assumes three bytes a token; later ones extrapolate from the last try.
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
