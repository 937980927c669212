package results

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"mcpx/internal/preview"
)

// ends shows the beginning and the end of a long text in room tokens and, if its units are lines, an overview of them in between.
// It adds the parameter about, which describes the complete result and may be empty. ok is false if no part of the text can or need
// be left out, or if there is too little room.
func (p Pages) ends(h *result, room int, about string) (text string, ok bool) {
	if room < minDigestRoom || len(h.units) < 2 {
		return "", false
	}
	all := h.all()
	if h.within(all, likelyBytes*room) && p.weigh(p.render(h, all)) <= room {
		return "", false
	}
	line := rest{total: len(h.units), first: true}
	left := room - p.rest() - p.weigh(about) - marginTokens
	overview := ""
	if h.kind == lines {
		overview = preview.Overview(h.units, left/4)
	}
	left -= p.weigh(overview)
	tail, last := p.tail(h.units, left/3)
	text, line.next.Offset = p.fill(h, all, left-p.weigh(tail))
	if line.next.Offset == 0 || line.next.Offset >= len(h.units)-last {
		return "", false
	}
	line.next.Handle = p.keep(h)
	line.left = len(h.units) - last - line.next.Offset
	line.noun = h.noun() + " left"
	if h.goesOn(all.first(line.next.Offset)) && !h.quoted {
		line.noun += ", the line goes on"
	}
	middle := overview + fmt.Sprintf("[after %d %s that are left out, the last %d from offset %d:]\n", line.left, h.noun(), last, len(h.units)-last)
	switch {
	case last == 0 && tail != "":
		middle = overview + fmt.Sprintf("[after %d %s that are left out, the end of the last:]\n", line.left, h.noun())
	case last == 0:
		middle = overview
	}
	return p.withLines(withLine(text, middle+tail), about, p.restLine(line)), true
}

// marginTokens is the room for the lines that ends adds to the overview. These lines always have fewer tokens.
const marginTokens = 40

// tail returns the last lines or other units of a text that weigh at most room together, and their number. If even the last
// unit is too long, it returns the end of that unit, which may be empty, and 0 as the number.
func (p Pages) tail(units []string, room int) (tail string, count int) {
	for i := len(units) - 1; i > 0; i-- {
		cost := p.weigh(units[i])
		if cost > room {
			break
		}
		room -= cost
		count++
	}
	if count > 0 {
		return strings.Join(units[len(units)-count:], ""), count
	}
	last := units[len(units)-1]
	for size := min(len(last), 3*room); size > 0; size = size * 2 / 3 {
		at := len(last) - size
		if space := strings.IndexByte(last[at:], ' '); space >= 0 && space < size/2 {
			at += space + 1
		}
		for at < len(last) && !utf8.RuneStart(last[at]) {
			at++
		}
		if p.weigh(last[at:]) <= room {
			return last[at:], 0
		}
	}
	return "", 0
}
