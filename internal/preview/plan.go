package preview

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"mcpx/internal/base/wire"
)

// Plan says what is shown of the items. It is valid until [Items.Plan] makes another one.
type Plan struct {
	// Cost is about how many tokens are needed. If two plans for the same number of items have the same cost, they are nearly
	// always the same plan.
	Cost          float64
	items         int // how many items, from the first on
	length, count int // indexes in lengths and counts: how long strings and arrays may be
}

// perItem, perValue and perKey are the cost of what is written in addition to values, in tokens. They are estimates: the cost
// depends on the form (JSON, TOON or JavaScript).
const (
	perItem  = 2
	perValue = 1.2
	perKey   = 2
)

// minConstants is the least number of items for which equal members are written only once, outside the items.
const minConstants = 3

// Least returns how many tokens the first n items need at least, with nothing but the value that identifies them.
func (d *Items) Least(n int) float64 {
	return d.base(n) + d.cost(d.identity(), Plan{items: n})
}

// base returns how many tokens the first n items need even without any member.
func (d *Items) base(n int) float64 {
	cost := float64(n * perItem)
	if d.members {
		for _, at := range d.at[:n] {
			cost += 0.35*float64(len(d.doc.Str(d.doc.Nodes[at].Key))) + 1
		}
	}
	return cost
}

// cost estimates how many tokens the values of a column need if they are shown as plan p says. It is 0 if c is nil.
func (d *Items) cost(c *column, p Plan) float64 {
	if c == nil {
		return 0
	}
	some, all := 0, 0
	for i, n := range c.values {
		if all += n; i <= p.count {
			some += n
		}
	}
	share := float64(some) / float64(all)
	if c.constant {
		return 3 + float64(len(c.key)+c.excess)/4 + c.weight*float64(c.sizes[p.length])/float64(all)
	}
	cost := c.weight*float64(c.sizes[p.length])*share + (perValue+float64(c.excess)/4)*float64(some)
	if c.listed || c.items < len(d.at) { // it is no column of a table, so each value needs the key
		cost += (perKey + float64(len(c.key))/4) * float64(some)
	}
	return cost * float64(p.items) / float64(len(d.at))
}

// identities are keys of members that identify an object, the best first.
var identities = []string{"id", "number", "sha", "key", "uuid", "guid", "iid", "path", "filename", "slug", "full_name", "name", "title"}

// identity returns the column that identifies the items. If there is none, it returns the cheapest column that most items have: without
// it, an item might be shown without any value. It returns nil if there is no such column either.
func (d *Items) identity() *column {
	if d.root.valued() && 2*d.root.items > len(d.at) {
		return d.root
	}
	var best *column
	rank := len(identities) + 2
	for _, c := range d.columns {
		if c.level != 1 || c.listed || c.twice || 10*c.items < 9*len(d.at) || 20*len(c.distinct) < 19*c.items {
			continue
		}
		at := slices.Index(identities, strings.ToLower(c.key))
		if at < 0 {
			if at = len(identities) + 1; strings.HasSuffix(strings.ToLower(c.key), "id") {
				at = len(identities)
			}
		}
		if at < rank {
			best, rank = c, at
		}
	}
	if best == nil {
		return d.cheapest()
	}
	return best
}

// cheapest returns the column that needs the fewest tokens, of those with different values in most items; nil if there is none.
func (d *Items) cheapest() (best *column) {
	least := math.Inf(1)
	for _, c := range d.columns {
		if !c.valued() || c.mixed() || c.equal && !c.listed || 2*c.items <= len(d.at) {
			continue
		}
		if cost := d.cost(c, Plan{items: len(d.at)}); cost < least {
			best, least = c, cost
		}
	}
	return best
}

// Plan chooses what is shown of the first n items so that it needs about budget tokens. It takes the value that identifies an
// item first, then the columns in the order of the method sort. If some of the budget is left, longer parts of strings and
// arrays are shown.
func (d *Items) Plan(n int, budget float64) Plan {
	p := Plan{items: n, Cost: d.base(n)}
	order := make([]*column, 0, len(d.columns))
	same := 0
	for _, c := range d.columns {
		if c.keep, c.constant = false, false; c.valued() {
			order = append(order, c)
		}
		if c.equal && !c.listed && !c.twice && c.items == len(d.at) && c != d.root {
			c.constant = n >= minConstants
			same++
		}
	}
	if same == len(order) { // an item must not be empty
		for _, c := range order {
			c.constant = false
		}
	}
	if id := d.identity(); id != nil {
		id.keep = true
		p.Cost += d.cost(id, p)
	}
	d.sort(order, p)
	constants := budget / 12
	for _, c := range order {
		cost := d.cost(c, p)
		if c.keep || c.mixed() || p.Cost+cost > budget || c.constant && cost > constants {
			continue
		}
		if c.keep = true; c.constant {
			constants -= cost
		}
		p.Cost += cost
	}
	for _, c := range slices.Backward(order) {
		c.keep = c.keep || c.mixed() && !c.constant && c.inside()
	}
	d.widen(&p, budget)
	return p
}

// mixed reports whether the path of c has values in some items, such as null or an empty list, and arrays or objects with contents
// in others. The values are kept if any of the contents is kept.
func (c *column) mixed() bool { return c.valued() && (c.elements != nil || len(c.fields) > 0) }

// inside reports whether any column below this one is kept.
func (c *column) inside() bool {
	if c.elements != nil && (c.elements.keep || c.elements.inside()) {
		return true
	}
	return slices.ContainsFunc(c.inner, func(f *column) bool { return f.keep && !f.constant || f.inside() })
}

// widen uses what is left of the budget for longer strings and arrays.
func (d *Items) widen(p *Plan, budget float64) {
	for grown := true; grown; {
		grown = false
		for _, step := range []Plan{{length: 1}, {count: 1}} {
			next := *p
			next.length, next.count = min(p.length+step.length, len(lengths)-1), min(p.count+step.count, len(counts)-1)
			if next == *p {
				continue
			}
			next.Cost = d.base(p.items)
			for _, c := range d.columns {
				if c.keep {
					next.Cost += d.cost(c, next)
				}
			}
			if next.Cost <= budget {
				*p, grown = next, true
			}
		}
	}
}

// sort sorts columns by their score. A column with the same values as an earlier one, or with the same key, gets a higher score,
// so that it comes later.
func (d *Items) sort(order []*column, p Plan) {
	scores := make(map[*column]float64, len(order))
	for _, c := range order {
		scores[c] = d.score(c, p)
	}
	byScore := func(a, b *column) int { return cmp.Compare(scores[a], scores[b]) }
	slices.SortStableFunc(order, byScore)
	sums, keys := map[uint64]bool{}, map[string]bool{}
	for _, c := range order {
		switch {
		case c.constant:
			continue
		case sums[c.sum] && len(d.at) > 1:
			scores[c] *= 8
		case keys[c.key]:
			scores[c] *= 2
		}
		sums[c.sum], keys[c.key] = true, true
	}
	slices.SortStableFunc(order, byScore)
}

// score orders columns: the columns with the smallest scores are kept first. A score is the tokens of a value, multiplied by a
// factor that is less than 1 for values that tell much, and more than 1 for values that tell little.
func (d *Items) score(c *column, p Plan) float64 {
	all := 0
	for _, n := range c.values {
		all += n
	}
	score := (d.cost(c, p) + 1) / float64(max(1, p.items))
	switch {
	case c.constant:
		return score / 4
	case 2*c.urls > all:
		score *= 6
	case 2*c.prose > all:
		score *= 0.3
	case c.weight > opaque && c.sizes[1] > 12*all:
		score *= 4 // hashes and the like
	}
	if slices.Contains(telling, strings.ToLower(c.key)) {
		score *= 0.4
	}
	if c.listed {
		score *= 2 // items with lists cannot become a table
	}
	if d.doc.Nodes[c.first].Kind == wire.Null && c.equal {
		score *= 2
	}
	return score * (1 + 0.3*float64(max(0, c.level-1)))
}

// opaque is a number of tokens per byte. If a text needs more, mcpx assumes that it contains no words: it may be a hash, for
// example.
const opaque = 0.42

// telling are keys of members that say what an object is.
var telling = []string{"title", "name", "summary", "subject", "message", "content", "plain_text", "text", "label", "state", "status", "type", "date", "login", "filename", "path"}
