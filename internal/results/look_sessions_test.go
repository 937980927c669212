package results

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/compress"
	"mcpx/internal/mcptest"
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
	server           string
	items            int
	before, ids      int // items whose id is shown; before counts those that are shown if items are not shortened
	received, tokens int
}

// lookAt measures the first look at a text. ok is false if the text has no list of items with ids.
func lookAt(server, text string) (l looked, ok bool) {
	p := Pages{Store: newStore(), Limit: 20_000, Preview: 3000, Texts: compress.Options{TOON: true, JS: true}}
	h := p.divide(text, text, false)
	l = looked{server: server, items: len(h.items), received: tokens.Count(text)}
	if len(h.items) < 2 || h.open == "{" || slices.ContainsFunc(h.items, func(item json.RawMessage) bool { return idOf(item) == "" }) {
		return l, false
	}
	look := p.look(h, p.Limit)
	l.tokens = tokens.Count(look)
	shape := "[shape: " + h.shape(min(shapeTokens, (p.Preview+p.rest())/10)) + "]"
	s := p.shorten(h, p.Preview-p.weigh(shortenedHint)-p.weigh(shape))
	for i, item := range s.Items {
		if idOf(json.RawMessage(item)) == idOf(h.items[i]) {
			l.ids++
		}
	}
	l.before = shownOf(p.cut(h, h.all(), p.Preview, ReadArguments{}, shape), len(h.items))
	if len(s.Items) == 0 { // the items that are shown are whole
		l.ids = shownOf(look, len(h.items))
	}
	return l, true
}

// shownOf reads from the last line of a look how many items it shows.
func shownOf(look string, items int) int {
	left := 0
	_, _ = fmt.Sscanf(look[strings.LastIndex(look, "\n[")+2:], "%d of", &left)
	return items - left
}

// heldBack are the files of sessions that were not looked at when the choice of what is shown was made.
var heldBack = map[string]bool{"notion-klavis": true, "postgres-crystaldba": true}

// TestLook_Sessions measures the first look at the forty longest lists of the recorded sessions, whether or not they are over
// the limit. With -update it writes the table of docs/benchmark-forms.md.
func TestLook_Sessions(t *testing.T) {
	var all []looked
	seen := map[string]bool{}
	sessions(t, func(server, text string) {
		if len(text) < 20_000 || seen[text] {
			return
		}
		seen[text] = true
		if l, ok := lookAt(server, text); ok {
			all = append(all, l)
		}
	})
	slices.SortStableFunc(all, func(a, b looked) int { return b.received - a.received })
	all = all[:min(40, len(all))]
	var table strings.Builder
	table.WriteString("| results | number | tokens received (median) | items (median) | tokens of the look (median) | ids seen | without shortening |\n|---|---|---|---|---|---|---|\n")
	for _, part := range []struct {
		name string
		of   func(looked) bool
	}{
		{"all", func(looked) bool { return true }},
		{"held back", func(l looked) bool { return heldBack[l.server] }},
		{"GitHub", func(l looked) bool { return strings.HasPrefix(l.server, "github") }},
		{"Notion", func(l looked) bool { return strings.HasPrefix(l.server, "notion") }},
		{"Postgres", func(l looked) bool { return strings.HasPrefix(l.server, "postgres") }},
	} {
		some := slices.DeleteFunc(slices.Clone(all), func(l looked) bool { return !part.of(l) })
		if len(some) == 0 {
			continue
		}
		ids := mean(some, func(l looked) float64 { return float64(l.ids) / float64(l.items) })
		look := median(some, func(l looked) int { return l.tokens })
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %.0f %% | %.0f %% |\n", part.name, len(some), median(some, func(l looked) int { return l.received }),
			median(some, func(l looked) int { return l.items }), look, 100*ids, 100*mean(some, func(l looked) float64 { return float64(l.before) / float64(l.items) }))
		if part.name == "all" && (ids < 0.9 || look > 3300) {
			t.Errorf("%.3f of the ids in %d tokens", ids, look)
		}
	}
	for _, l := range all {
		t.Logf("%-20s %7d tokens, look %5d, %5d items, %5d ids, before %5d", l.server, l.received, l.tokens, l.items, l.ids, l.before)
	}
	t.Log("\n" + table.String())
	mcptest.TableIn(t, "../../docs/benchmark-forms.md", "looks", table.String(), *update)
}

func median(all []looked, of func(looked) int) int {
	values := make([]int, len(all))
	for i, l := range all {
		values[i] = of(l)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func mean(all []looked, of func(looked) float64) (sum float64) {
	for _, l := range all {
		sum += of(l) / float64(len(all))
	}
	return sum
}

var update = flag.Bool("update", false, "write the table of first looks in docs/benchmark-forms.md")
