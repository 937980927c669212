package results

import (
	"context"
	"encoding/json"

	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
	"mcpx/internal/jq"
)

// Pages cuts the result of one call to the client's limits. If it cuts a result, it keeps the complete result in Store.
type Pages struct {
	Store *Store
	// Principal owns the kept results; no other principal can read them.
	Principal string
	// Origin is the tool whose results are kept.
	Origin Origin
	// Readable reports whether the principal may, at this moment, read results of this origin (server and tool); nil means
	// always.
	Readable func(context.Context, Origin) bool
	// Limit is how many tokens all texts of one answer may have together; 0 means no limit.
	Limit int
	// Bytes is how many bytes all texts of one answer may have together; 0 means no limit. It must be enough for two lines that
	// say how to read the rest. It also serves clients that count characters, since a text has no more characters than bytes.
	Bytes int
	// Preview is how many tokens of a long result are shown at first, not counting the line that says how to read the rest. So that
	// few tokens tell much, a list is shown with shortened items, and a text with its beginning and its end. If Preview is 0, or if
	// the result is verbatim, a long result is shown from its beginning, up to Limit.
	Preview int
	// LineFirst puts the line that says how to read the rest before the text, for clients that keep only the beginning of a
	// result.
	LineFirst bool
	// ShortNames means that the line that says how to read the rest uses the argument names server, tool and args, not
	// server_name, tool_name and arguments.
	ShortNames bool
	// Texts are the options for compressing texts.
	Texts compress.Options
	// Filter runs jq filters. If it is nil, all filters are refused.
	Filter *jq.Runner
	// Work bounds how many greps run at the same time; nil means no bound.
	Work *semaphore.Semaphore
	// Verbatim means that the tool hands out files: texts, and what a filter returns, are not compressed, but are cut if they are too
	// long.
	Verbatim bool
	unasked  bool // the result is kept because a grep or a filter left it out or failed, not because it was too long
}

// keep keeps h in the store and returns its handle, which is empty if h is too long to be kept.
func (p Pages) keep(h *result) (handle string) {
	h.unasked, h.file = p.unasked, p.Verbatim
	return p.Store.add(h)
}

// limit returns the greatest weight that all texts of one answer may have together: Limit or, if Limit is 0, Bytes. It is a
// very large number if both are 0. See weigh.
func (p Pages) limit() int {
	switch {
	case p.Limit > 0:
		return p.Limit
	case p.Bytes > 0:
		return p.Bytes // no text has more tokens than bytes
	}
	return 1 << 30
}

// weigh returns the weight of texts, a number that combines their tokens and bytes. If the weight is at most limit(), the texts
// exceed neither the limit of tokens nor the limit of bytes. The weight is the number of tokens. But if Bytes is set, the weight is
// at least limit() * bytes of the texts / Bytes. For example, texts with half as many bytes as Bytes weigh at least half of
// limit().
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

// weighBytes returns the smallest weight that a text of size bytes can have. It is 0 if Bytes is not set. The text weighs more if
// it has many tokens.
func (p Pages) weighBytes(size int) int {
	if p.Bytes <= 0 {
		return 0
	}
	return (size*p.limit() + p.Bytes - 1) / p.Bytes
}

// rest returns the greatest possible weight of the line about how to read the rest, not counting the part about a grep.
func (p Pages) rest() int { return max(restTokens, p.weighBytes(restBytes)) }

// minRoom returns the smallest weight that is enough to show the beginning of a text and the line about how to read
// the rest.
func (p Pages) minRoom() int { return 2 * p.rest() }

// Fits reports whether the texts together are within the limits. For most results the tokens need not be counted, since a text
// never has more tokens than bytes.
func (p Pages) Fits(texts ...string) bool {
	size := bytesOf(texts)
	if size <= p.limit() && p.weighBytes(size) <= p.limit() {
		return true
	}
	return p.weigh(texts...) <= p.limit()
}

// cutShown cuts a text that weighs more than room, and adds a line that says how to read the rest. The complete result is kept in
// the store, if it is not too long. The parameter compressed is the text in the form that the model sees. If verbatim is true,
// parts of the result are not compressed when the client reads them later.
func (p Pages) cutShown(text, compressed string, verbatim bool, room int) string {
	return p.look(p.divide(text, compressed, verbatim), room)
}

// CutText cuts a text that is not compressed, so that it weighs at most room, or the limit if that is less. If it cuts the
// text, it adds a line that says how to read the rest, and keeps the complete text.
func (p Pages) CutText(text string, room int) string {
	if room = min(room, p.limit()); max(len(text), p.weighBytes(len(text))) <= room {
		return text // no text has more tokens than bytes
	}
	return p.cutShown(text, text, true, room)
}

// Keep keeps a text and returns its handle, which is empty if the text is too long to be kept. If verbatim is true, parts of the
// text are not compressed when the client reads them.
func (p Pages) Keep(text string, verbatim bool) (handle string) {
	return p.keep(p.divide(text, text, verbatim))
}

// KeepBlocks keeps several blocks as the items of one result and returns its handle, which is empty if they are too long to be
// kept.
func (p Pages) KeepBlocks(blocks []json.RawMessage) (handle string) {
	return p.keep(p.divideBlocks(blocks, true))
}

// Shown is a result while it is being prepared for the model.
type Shown struct {
	// Received are the blocks as the upstream sent them.
	Received []wire.Block
	// Content are the blocks as the model gets them. Texts are the texts in these blocks, empty for a block without text.
	Content []json.RawMessage
	Texts   []string
	// Verbatim means that parts of the result are not compressed when the client reads them later from the store.
	Verbatim bool
}

// Append appends a text to the blocks of a result. If the blocks and the text together exceed the limit, Append cuts the text.
// If the blocks leave too little room for the beginning of the text, it cuts the blocks, too. The parameter whole is the text
// before it was compressed; Append divides it into parts for the store. tokens is the number of tokens in the result if
// anything was cut, otherwise 0.
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

// CutBlocks cuts the texts of a result to the limit. It returns the blocks with the cut texts, and about how many tokens they
// have.
func (p Pages) CutBlocks(s Shown) (content []json.RawMessage, tokens int) {
	return p.cutBlocks(s, p.limit())
}

// cutBlocks cuts the texts of a result so that they weigh at most limit. Blocks that are the elements of one list are first
// merged into one block. The texts that fit are not changed, and a text that does not fit is cut. Once there is too little room
// for the beginning of a text, this text and all later ones are kept together as one array, and a single line says how to read
// this array.
func (p Pages) cutBlocks(s Shown, limit int) (content []json.RawMessage, tokens int) {
	s = p.merged(s)
	out := make([]json.RawMessage, 0, len(s.Content))
	left, room := 0, limit // left counts the texts that are not written yet, including the current one
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

// collapse keeps the remaining texts in the store, as one result. It appends one line that says how to read them, and then the
// remaining blocks without a text.
func (p Pages) collapse(out []json.RawMessage, left []wire.Block, verbatim bool) []json.RawMessage {
	texts := rawBlocks(left, hasText)
	handle := p.keep(p.divideBlocks(texts, verbatim))
	out = wire.AppendText(out, p.restLine(rest{left: len(texts), total: len(texts), noun: "text blocks left", next: ReadArguments{Handle: handle}}))
	return append(out, rawBlocks(left, func(b wire.Block) bool { return !b.HasText })...)
}

// divideBlocks makes a result whose items are blocks. For the parameter verbatim, see [Shown].
func (p Pages) divideBlocks(blocks []json.RawMessage, verbatim bool) *result {
	h := &result{principal: p.Principal, origin: p.Origin, value: json.RawMessage(joined("[", blocks, ",", "]")), verbatim: verbatim}
	if o, ok := outlineOf(h.value); ok {
		h.fill(h.value, place{0, len(h.value)}, o)
	} else { // there are more than maxItems blocks
		h.units, h.kind = p.unitsOf(string(h.value))
	}
	return h
}

func hasText(b wire.Block) bool { return b.HasText }
func isText(b wire.Block) bool  { return b.IsText }

// rawBlocks returns the blocks for which accept returns true, as the upstream sent them.
func rawBlocks(blocks []wire.Block, accept func(wire.Block) bool) []json.RawMessage {
	var out []json.RawMessage
	for _, b := range blocks {
		if accept(b) {
			out = append(out, b.Raw)
		}
	}
	return out
}

// cut renders as many of the wanted items or lines as weigh at most limit together. If some do not fit, it adds two texts: about,
// which describes the complete result and may be empty, and a line that says how to read the rest. This line repeats args, with the
// offset of the next part. If args has no handle, cut keeps h under a new handle in two cases: if some items or lines do not fit,
// or if a grep left out much of h. If limit is p.limit(), cut shows at least a part of one item or line. So a client that reads
// part after part always comes to the end.
func (p Pages) cut(h *result, wanted span, limit int, args ReadArguments, about string) string {
	line := rest{total: wanted.len(), first: args.Handle == ""}
	if wanted.list == nil && args.Limit == 0 {
		line.total = h.count() // also of what is before the offset
	}
	kept := "" // the new handle of h, if a grep leaves out much of h; the text then says how to read the rest of h
	if line.first && h.omitsMuch(wanted) {
		kept = p.keep(h)
		args.Handle = kept
	}
	wanted.numbered = args.Handle != ""
	if h.within(wanted, likelyBytes*limit) {
		if text := p.withMatched(p.render(h, wanted), h, wanted, kept); p.weigh(text) <= limit {
			return text
		}
	}
	if args.Handle == "" {
		args.Handle = p.keep(h)
		wanted.numbered = args.Handle != ""
	}
	room := limit - p.rest() - p.weigh(args.Grep) - p.weigh(about)
	if wanted.list != nil {
		room -= p.weigh(h.matched(wanted, wanted.len()))
	}
	text, shown := p.fill(h, wanted, room)
	switch {
	case shown == 0 && limit >= p.limit():
		text, _ = p.beginItem(h, wanted.first(1), room-p.rest(), itemLevels)
		shown = 1
	case 0 < shown && shown < wanted.len() && h.open == "{" && wanted.list == nil && 3*p.weigh(text) < room:
		// The next item is too long to fit completely: show its beginning after the short items.
		if begun, ok := p.beginItem(h, wanted.first(shown+1), room-p.rest(), itemLevels); ok {
			text = begun
			shown++
		}
	}
	if line.left = wanted.len() - shown; line.left == 0 {
		return p.withMatched(text, h, wanted, kept)
	}
	args.Offset += shown
	if args.Limit > 0 {
		args.Limit -= shown
	}
	line.noun, line.next = h.noun()+" left", args
	switch {
	case wanted.list != nil:
		line.noun = "matching " + h.noun() + " left; " + h.matched(wanted, shown)
	case h.goesOn(wanted.first(shown)):
		line.noun += ", the line goes on"
	}
	return p.withLines(text, about, p.restLine(line))
}

// likelyBytes is more than the number of bytes that a token usually has. If a text has more bytes than the limit of tokens
// times likelyBytes, it is taken as too long, and its tokens are not counted.
const likelyBytes = 16

// beginItem shows the wanted items, of which the last is too long. Of this long item it shows only the beginning. It keeps the
// wanted items as a separate result, unless they fit after all. If the first part of the long item is too long as well, beginItem
// calls itself for that part, to a depth of at most levels. Where it may not call itself, it shows the beginning of the item's
// text. ok is false if nothing of the long item would be shown. If h is divided into units, beginItem returns the wanted units as
// they are.
func (p Pages) beginItem(h *result, wanted span, room, levels int) (text string, ok bool) {
	if h.items == nil {
		return h.part(wanted), true
	}
	item := h.json(h.chosen(wanted), wanted.whole)
	if compact, ok := wire.Compact(item); ok && !h.verbatim {
		item = compact
	}
	inner := p.divide(item, item, h.verbatim)
	if wanted.len() > 1 && inner.inner == 0 {
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
	line := rest{left: inner.count() - shown, total: inner.count(), noun: inner.noun() + " of this item left"}
	if line.left == 0 {
		return text, true
	}
	if inner.goesOn(inner.all().first(shown)) {
		line.noun += ", the line goes on"
	}
	line.next = ReadArguments{Handle: p.Store.addItem(h, wanted, inner), Offset: shown}
	return p.withLines(text, "", p.restLine(line)), true
}

// itemLevels is how deep beginItem goes if the first part of a long item is too long as well. At each level, it keeps a
// separate result.
const (
	itemLevels = 3
	maxBegun   = keptBytes / 16 // in bytes; beginItem does not call itself for a longer item, since its parts would displace other results
)

// render returns the text of some items or lines.
func (p Pages) render(h *result, which span) string {
	return p.compressed(h, which).Text
}

// rendered returns the text of some items or lines, and the weight of the text.
func (p Pages) rendered(h *result, which span) (text string, cost int) {
	out := p.compressed(h, which)
	if out.Tokens > 0 { // do not count them again
		return out.Text, max(out.Tokens, p.weighBytes(len(out.Text)))
	}
	return out.Text, p.weigh(out.Text)
}

func (p Pages) compressed(h *result, which span) compress.Output {
	part := h.part(which)
	if h.items == nil && !(h.quoted && which.whole) || h.verbatim {
		return compress.Output{Text: part}
	}
	return compress.Text(part, p.Texts)
}

// fill renders as many of the wanted items or lines as weigh at most limit, beginning with the first. It returns their number,
// which is 0 if the first one does not fit. It stops searching when the text nearly fills the limit, so one more might still
// fit.
func (p Pages) fill(h *result, wanted span, limit int) (text string, shown int) {
	few, many := 0, wanted.len()+1 // few parts fit into limit, many parts do not; the search moves these bounds together
	// The first guess assumes three bytes per token. Later guesses use the number of bytes per token in the previous try.
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
		now, cost := p.rendered(h, wanted.first(n))
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
