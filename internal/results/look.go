package results

import (
	"encoding/json"
	"fmt"

	"mcpx/internal/digest"
)

// look returns what is shown at first of a result that is longer than room tokens, and the shape of its JSON.
func (p Pages) look(h *result, room int) string {
	if p.Preview > 0 && !h.verbatim {
		if own := p.Preview + p.rest(); own < room {
			p.Bytes = p.Bytes * room / p.limit()
			p.Limit, room = own, own
		}
	}
	about := ""
	if h.value != nil {
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
	// leastRoom: within fewer tokens, the beginning of a result tells more than parts of all of it.
	leastRoom = 500
	// maxMembers: an object with fewer members is not a list. The beginning of its first long member is shown.
	leastMembers = 20
	// leastItem is how many tokens an item should have at least, unless all items can be shown with fewer.
	leastItem = 24
	// digestBytes is how many bytes of items are read to shorten them.
	digestBytes = 4 << 20
	// digestTries is how often the amount of what is shown is adjusted to what it weighs in the form that is chosen for it.
	digestTries = 7
)

// shortened shows as many items of a list as possible in room tokens, each without the parts that need most. ok is false if there
// is no list of several items, or if the items that fit are whole.
func (p Pages) shortened(h *result, room int, about string) (text string, ok bool) {
	s := p.shorten(h, room-p.rest()-p.weigh(about))
	n := len(s.Items)
	if n == 0 {
		return "", false
	}
	line := rest{left: len(h.items) - n, total: len(h.items), what: h.noun() + " left", shortened: n}
	line.next.Handle = p.Store.add(h)
	if line.left == 0 {
		line.what = h.noun() + " shortened"
	} else {
		line.next.Offset = n
	}
	return p.withLines(s.text, s.notes+about, p.restLine(line)), true
}

// short is a list with shortened items.
type short struct {
	digest.Look
	text  string // the items, with everything around their list
	notes string // says what is left out
}

// shorten shortens the items of a list, or the first of them, until they weigh at most room together with their notes. There are no
// items in s if they cannot or need not be shortened.
func (p Pages) shorten(h *result, room int) (s short) {
	if room < leastRoom || len(h.items) < 2 || h.open == "{" && len(h.items) < leastMembers {
		return s
	}
	if all := h.all(); h.within(all, likelyBytes*room) && p.weigh(p.render(h, all)) <= room {
		return s
	}
	n, size := 0, 0
	for n < min(len(h.items), max(leastMembers, room/3)) && size < digestBytes {
		size += len(h.items[n])
		n++
	}
	items := make([]string, n)
	for i := range items {
		items[i] = string(h.items[i])
	}
	d, ok := digest.Read(items, h.open == "{")
	if !ok {
		return s
	}
	if n == len(h.items) && d.Least(n) < 1.6*float64(room) { // an estimate that may be too high
		if s = p.fit(h, d, n, room); len(s.Items) > 0 {
			return s
		}
	}
	for n = min(n, int(float64(room)/max(leastItem, 1.1*d.Least(n)/float64(n)))); n > 1 && len(s.Items) == 0; n = n * 9 / 10 {
		s = p.fit(h, d, n, room)
		if n < len(h.items) && s.Mark == "" && s.LeftOut == "" && len(s.Items) > 0 {
			return short{} // the items that fit are whole
		}
	}
	return s
}

// fit shortens the first n items until they weigh at most room together with their notes.
func (p Pages) fit(h *result, d *digest.Items, n, room int) (best short) {
	least := d.Least(n)
	budget, most := max(float64(room)*0.9, least), float64(3*room) // with the budget most, the items did not fit
	for range digestTries {
		now := short{Look: d.Look(n, budget)}
		now.text, now.notes = p.renderLook(h, now.Look), notesOn(now.Look, len(h.items))
		cost := p.weigh(now.text) + p.weigh(now.notes)
		if cost <= room {
			best = now
			if 20*cost >= 19*room || now.Mark == "" && now.LeftOut == "" {
				break
			}
			budget = min(budget*min(0.98*float64(room)/float64(cost), 2), (budget+most)/2)
			continue
		}
		if budget <= least {
			break
		}
		most = budget
		budget = max(budget*0.97*float64(room)/float64(cost), least)
	}
	return best
}

// renderLook renders shortened items, with everything around their list.
func (p Pages) renderLook(h *result, look digest.Look) string {
	items := make([]json.RawMessage, len(look.Items))
	for i, item := range look.Items {
		items[i] = json.RawMessage(item)
	}
	short := &result{list: h.list}
	short.items = items
	return p.render(short, short.all())
}

// notesOn says what is left out of shortened items; total is the number of all items.
func notesOn(look digest.Look, total int) (notes string) {
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
