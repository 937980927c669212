package results

import (
	"encoding/json"
	"fmt"

	"mcpx/internal/preview"
)

// look returns the first text that the model gets of a result that weighs more than room: parts of the result, and the shape (the
// keys and types) of its JSON.
func (p Pages) look(h *result, room int) string {
	if p.Preview > 0 && !h.verbatim {
		if own := p.Preview + p.rest(); own < room {
			p.Bytes = p.Bytes * room / p.limit()
			p.Limit, room = own, own
		}
	}
	about := ""
	if h.value != nil && h.value[0] != '"' {
		about = "[shape: " + h.shape(min(shapeTokens, room/10)) + "]"
	}
	if p.Preview > 0 && !h.verbatim {
		if text, ok := p.shortened(h, room, about); ok {
			return text
		}
		if text, ok := p.ends(h, room, about); ok {
			return text
		}
	}
	return p.cut(h, h.all(), room, ReadArguments{}, about)
}

const (
	// With less room than minDigestRoom tokens, the beginning of a result tells more than small parts from all of it.
	minDigestRoom = 500
	// An object with fewer members than minMembers is not treated as a list. The beginning of its first long member
	// is shown.
	minMembers = 20
	// If not all items fit, the number of items that are shown is so small that each can have at least about minItem tokens.
	minItem = 24
	// If there are more than manyItems items, an item is assumed to need about extraTokens tokens in addition to the parts that
	// identify it.
	manyItems, extraTokens = 100, 10
	// An item is assumed to need at least assumedItem tokens. So of a list of more than room/assumedItem items, only the first
	// items are shown.
	assumedItem = 8
	// To shorten a list, items are read from its beginning only until they have previewBytes bytes together.
	previewBytes = 4 << 20
	// previewTries is how many times the shortened items are written and weighed, at most. After each try, the amount that is shown
	// is corrected.
	previewTries = 4
)

// shortened shows as many items of a list as possible in room tokens, each without the parts that need most tokens. It adds the
// parameter about, which describes the complete result and may be empty. ok is false if the items cannot or need not be shortened
// (see shorten).
func (p Pages) shortened(h *result, room int, about string) (text string, ok bool) {
	s := p.shorten(h, room-p.rest()-p.weigh(shortenedHint)-p.weigh(about))
	n := len(s.Items)
	if n == 0 {
		return "", false
	}
	line := rest{left: len(h.items) - n, total: len(h.items), noun: h.noun() + " left", shortened: n, first: true}
	line.next.Handle = p.keep(h)
	if line.left == 0 {
		line.noun = h.noun() + " shortened"
	} else {
		line.next.Offset = n
	}
	return p.withLines(s.text, s.notes+about, p.restLine(line)), true
}

// short is a list with shortened items, which is what the model gets first of a long list.
type short struct {
	preview.Look
	text  string // the items, with everything around their list
	notes string // says what is left out
	cost  int    // what text and notes weigh together
}

// shorten shortens the items of a list, or the first of them, until they weigh at most room together with their notes. s has
// no items if the items of h cannot or need not be shortened, or if there is too little room to do so.
func (p Pages) shorten(h *result, room int) (s short) {
	if room < minDigestRoom || len(h.items) < 2 || h.open == "{" && len(h.items) < minMembers {
		return s
	}
	if all := h.all(); h.within(all, likelyBytes*room) && p.weigh(p.render(h, all)) <= room {
		return s
	}
	most := len(h.items)
	if most > max(minMembers, room/assumedItem) {
		most = max(minMembers, 2*room/minItem)
	}
	n, size := 0, 0
	for n < most && size < previewBytes {
		size += len(h.items[n])
		n++
	}
	if n < len(h.items) && p.fitWhole(h, room/minItem, room) {
		return s
	}
	d, ok := preview.Read(h.items[:n], h.open == "{", h.around())
	if !ok {
		return s
	}
	least := d.Least(n) / float64(n)
	if n > manyItems {
		least += extraTokens
	}
	if n == len(h.items) && least*float64(n) < 1.6*float64(room) { // 1.6, not 1, since least is an estimate that may be too high
		if s = p.fitAll(h, d, room, least*float64(n)); len(s.Items) > 0 {
			return s
		}
	}
	return p.fitSome(h, d, room, max(minItem, 1.1*least))
}

// fitAll shortens all items until they weigh at most room together with their notes. If that needs a budget below minimum tokens,
// fitAll gives up, and best has no items.
func (p Pages) fitAll(h *result, d *preview.Items, room int, minimum float64) (best short) {
	budget, tooMuch := max(float64(room)*0.9, minimum), float64(3*room) // tooMuch is a budget with which the items do not fit
	planned := 0.0
	for range previewTries {
		plan := d.Plan(len(h.items), budget)
		if plan.Cost == planned {
			break
		}
		planned = plan.Cost
		now := p.write(h, d.Look(plan))
		switch {
		case now.cost <= room:
			best = now
			if 5*now.cost >= 4*room || now.whole() {
				return best
			}
			budget = min(budget*min(0.98*float64(room)/float64(now.cost), 2), (budget+tooMuch)/2)
		case budget <= minimum:
			return best
		default:
			tooMuch = budget
			budget = max(budget*0.95*float64(room)/float64(now.cost), minimum)
		}
	}
	return best
}

// fitSome shortens the first items of a list. It looks for the largest number of items that fit: together with their notes, they may
// weigh at most room. estimate is a guess of the fewest tokens that an item needs. best has no items in two cases: fewer than two
// items were found to fit, or those that fit also fit without being shortened.
func (p Pages) fitSome(h *result, d *preview.Items, room int, estimate float64) (best short) {
	n := min(d.Len(), int(float64(room)/estimate))
	for range previewTries {
		if n < 2 || n == len(best.Items) {
			break
		}
		if n == d.Len() { // all items that were read fit, so their members may have the rest of the room
			estimate = max(estimate, 0.9*float64(room)/float64(n))
		}
		now := p.write(h, d.Look(d.Plan(n, estimate*float64(n))))
		if now.cost <= room {
			if best = now; 5*now.cost >= 4*room || now.whole() {
				break
			}
		}
		n = min(d.Len(), n*room*19/20/max(1, now.cost))
	}
	if best.whole() || p.fitWhole(h, len(best.Items), room) {
		return short{} // the items that fit need not be shortened
	}
	return best
}

// fitWhole reports whether the first n items fit into room as they are.
func (p Pages) fitWhole(h *result, n, room int) bool {
	some := h.all().first(n)
	if !h.within(some, 10*room) {
		return false // too long, even if much of it is white space
	}
	_, cost := p.rendered(h, some)
	return cost <= room
}

// whole reports whether the items are complete, or lack only members that are the same in all of them (Constant).
func (s short) whole() bool { return s.Mark == "" && s.LeftOut == "" }

// write writes shortened items, with everything around their list, and notes on them.
func (p Pages) write(h *result, look preview.Look) short {
	items := make([]json.RawMessage, len(look.Items))
	for i, item := range look.Items {
		items[i] = json.RawMessage(item)
	}
	shown := &result{list: h.list}
	shown.items = items
	s := short{Look: look, notes: notesOn(look, len(h.items))}
	s.text, s.cost = p.rendered(shown, shown.all())
	s.cost += p.weigh(s.notes)
	return s
}

// notesOn says what is left out of shortened items, as lines for the model. total is the number of all items.
func notesOn(look preview.Look, total int) (notes string) {
	if look.Constant != "" {
		these := "all"
		if len(look.Items) < total {
			these = "these"
		}
		notes += fmt.Sprintf("[the same in %s %d items, and left out there: %s]\n", these, len(look.Items), look.Constant)
	}
	if look.LeftOut != "" {
		notes += "[left out of the items: " + look.LeftOut + "]\n"
	}
	if look.Mark != "" {
		notes += fmt.Sprintf("[%q and a number: so many more characters or items are left out]\n", look.Mark)
	}
	return notes
}
