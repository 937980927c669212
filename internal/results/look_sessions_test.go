package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
	"mcpx/internal/tokens"
)

// identified are the keys of members that identify an item, the best first.
var identified = []string{"id", "number", "sha", "key", "path", "filename", "name"}

// idOf returns the value that identifies an item: a member with a known key, or else the first one that is a scalar. It is
// empty if there is none.
func idOf(item json.RawMessage) (id string) {
	rank := len(identified) + 1
	if err := wire.Fields(item, func(key string, value []byte) bool {
		if value[0] == '{' || value[0] == '[' {
			return true
		}
		at := slices.Index(identified, key)
		if at < 0 {
			at = len(identified)
		}
		if at < rank {
			id, rank = string(value), at
		}
		return true
	}); err != nil {
		return ""
	}
	return id
}

// looked is what the first look shows of a long list.
type looked struct {
	server              string
	items, shown, whole int // number of items; of items whose id is shown; of these, how many were shown before items were shortened
	received, tokens    int
}

// lookAt measures the first look at a text. ok is false if the text has no list with ids.
func lookAt(server, text string) (l looked, ok bool) {
	p := Pages{Store: newStore(), Limit: 20_000, Preview: 3000, Texts: compress.Options{TOON: true, JS: true}}
	h := p.divide(text, text, false)
	l = looked{server: server, items: len(h.items), received: tokens.Count(text)}
	if len(h.items) < 2 || h.open == "{" || slices.ContainsFunc(h.items, func(item json.RawMessage) bool { return idOf(item) == "" }) {
		return l, false
	}
	look := p.look(h, p.Limit)
	l.tokens = tokens.Count(look)
	room := p.Preview
	s := p.shorten(h, room-p.weigh("[shape: "+h.shape(min(shapeTokens, (room+p.rest())/10))+"]"))
	for i, item := range s.Items {
		if idOf(json.RawMessage(item)) == idOf(h.items[i]) {
			l.shown++
		}
	}
	p.Preview, p.Limit = 0, 3000+p.rest()
	before := p.look(h, p.Limit)
	l.whole = shownOf(before, len(h.items))
	if len(s.Items) == 0 {
		l.shown = shownOf(look, len(h.items))
	}
	if dir := os.Getenv("MCPX_LOOKS"); dir != "" {
		os.WriteFile(fmt.Sprintf("%s/%s-%d.txt", dir, server, l.received), []byte(look), 0o600)
	}
	return l, true
}

// shownOf reads from the last line of a look how many items it shows.
func shownOf(look string, items int) int {
	left := 0
	_, _ = fmt.Sscanf(look[strings.LastIndex(look, "\n[")+2:], "%d of", &left)
	return items - left
}

// TestLook_Sessions measures the first look at the forty longest lists of the recorded sessions.
func TestLook_Sessions(t *testing.T) {
	var all []looked
	texts := map[string]string{}
	sessions(t, func(server, text string) {
		if len(text) > 20_000 {
			texts[text] = server
		}
	})
	for text, server := range texts {
		if l, ok := lookAt(server, text); ok {
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b looked) int { return cmp.Or(b.received-a.received, strings.Compare(a.server, b.server)) })
	for _, l := range all[:min(40, len(all))] {
		t.Logf("%-20s %7d tokens, look %5d, %5d items, whole %5d, ids %5d", l.server, l.received, l.tokens, l.items, l.whole, l.shown)
	}
}
