package arguments

import (
	"maps"
	"slices"
	"strconv"
)

// object evaluates the keywords for the members of an object.
func (c *check) object(object map[string]any) {
	s := c.schema
	c.left -= len(object) + len(s.required)
	c.count(len(object), s.propertyCount, "minProperties", "maxProperties")
	var missing []string
	for _, name := range s.required {
		if _, ok := object[name]; ok {
			continue
		}
		if s.properties[name].optional() {
			c.unsure = true
		} else {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		c.add(fault{keyword: "required", names: missing})
	}
	c.needed(object)
	c.members(object)
	if s.propertyNames == nil {
		return
	}
	for _, name := range c.names(object) {
		failure, sure := c.evaluation.value(s.propertyNames, name, nil, nil)
		if failure != nil {
			c.add(fault{keyword: "propertyNames", detail: name, causes: []*fault{failure}})
		}
		c.unsure = c.unsure || !sure
	}
}

// names returns the names of the members in order, or none if no steps are left: a check may have used them up within thousands of
// others for the same object, and each of these would still sort the names.
func (c *check) names(object map[string]any) []string {
	if c.left < 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(object))
}

// optional reports whether a required property may be missing all the same, because the server has a default for it.
func (s *schema) optional() bool {
	return s != nil && (s.hasDefault || len(s.refs) > 0 && s.refs[0].hasDefault)
}

// needed evaluates what the members of an object require beside them.
func (c *check) needed(object map[string]any) {
	s := c.schema
	c.left -= len(s.neededBy) + len(s.dependents)
	for _, name := range slices.Sorted(maps.Keys(s.neededBy)) {
		needed := s.neededBy[name]
		if _, ok := object[name]; !ok {
			continue
		}
		c.left -= len(needed)
		var missing []string
		for _, other := range needed {
			if _, ok := object[other]; !ok {
				missing = append(missing, other)
			}
		}
		if missing != nil {
			c.add(fault{keyword: "dependentRequired", names: missing, detail: name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.dependents)) {
		if _, ok := object[name]; ok {
			c.take(c.same(s.dependents[name]))
		}
	}
}

func (c *check) members(object map[string]any) {
	s := c.schema
	if len(s.properties) == 0 && len(s.patterns) == 0 && s.additional == nil {
		return
	}
	var others []string
	for _, name := range c.names(object) {
		if c.decided() {
			return
		}
		value := object[name]
		sub, known := s.properties[name]
		if known {
			c.take(c.part(sub, value, name))
		}
		for _, p := range s.patterns {
			matches, sure := c.matches(p.name, name)
			switch {
			case !sure:
				c.unsure = true
			case matches:
				c.take(c.part(p.value, value, name))
			}
			known = known || matches || !sure
		}
		switch {
		case known:
		case s.additional == nil:
			continue
		case s.additional.isFalse():
			others = append(others, name)
		default:
			c.take(c.part(s.additional, value, name))
		}
		c.seen.property(name)
	}
	if others != nil {
		c.add(fault{keyword: "additionalProperties", names: others})
	}
}

// isFalse reports whether no value fits.
func (s *schema) isFalse() bool { return s.boolean != nil && !*s.boolean }

// array evaluates the keywords for the items of an array.
func (c *check) array(items []any) {
	s := c.schema
	c.count(len(items), s.itemCount, "minItems", "maxItems")
	if s.uniqueItems {
		c.unique(items)
	}
	c.containing(items)
	excess := len(items) - len(s.prefixItems)
	if s.items == nil || s.items.isFalse() {
		if s.items != nil && excess > 0 {
			c.add(fault{keyword: "items", excess: excess})
		}
		items = items[:min(len(items), len(s.prefixItems))]
	}
	for i, item := range items {
		if c.decided() {
			return
		}
		sub := s.items
		if i < len(s.prefixItems) {
			sub = s.prefixItems[i]
		}
		c.take(c.part(sub, item, strconv.Itoa(i)))
		c.seen.item(i)
	}
}

// unique evaluates uniqueItems.
func (c *check) unique(items []any) {
	seen := make(map[string]int) // grows as needed, as thousands of checks of the same list may end at its second item
	for i, item := range items {
		k := c.key(item)
		if first, twice := seen[k]; twice {
			c.add(fault{keyword: "uniqueItems", items: [2]int{first, i}})
			return
		}
		seen[k] = i
		if c.left--; c.left < 0 {
			return
		}
	}
}

// containing evaluates contains.
func (c *check) containing(items []any) {
	s := c.schema
	if s.contains == nil {
		return
	}
	possible, certain, made := 0, 0, c.made
	var wrong []*fault
	for i, item := range items {
		if c.left < 0 {
			break
		}
		failure, sure := c.part(s.contains, item, strconv.Itoa(i))
		if failure != nil {
			wrong = append(wrong, failure)
			continue
		}
		possible++
		if sure {
			certain++
		}
		c.seen.item(i)
	}
	if possible < s.containsCount.least {
		c.add(fault{keyword: "minContains", causes: wrong})
		return
	}
	c.made = made // those of the items are forgotten
	if certain > s.containsCount.most {
		c.add(fault{keyword: "maxContains"})
	}
	c.unsure = c.unsure || certain < s.containsCount.least || possible > s.containsCount.most || c.seen != nil && possible > certain
}

// unevaluated evaluates the keywords for the parts that no other keyword evaluates.
func (c *check) unevaluated() {
	s := c.schema
	if object, ok := c.value.(map[string]any); ok && s.otherProperties != nil {
		c.left -= len(object)
		for _, name := range c.names(object) {
			if !c.seen.all && !c.seen.names[name] && !c.decided() {
				c.take(c.part(s.otherProperties, object[name], name))
			}
		}
		c.seen.all = true
	}
	if items, ok := c.value.([]any); ok && s.otherItems != nil {
		c.left -= len(items)
		for i, item := range items {
			if !c.seen.all && !c.seen.indexes[i] && !c.decided() {
				c.take(c.part(s.otherItems, item, strconv.Itoa(i)))
			}
		}
		c.seen.all = true
	}
}

// parts are the members or items of one value that some schemas evaluate. The methods do nothing for nil.
type parts struct {
	names   map[string]bool
	indexes map[int]bool
	all     bool
}

func (p *parts) property(name string) {
	if p != nil {
		if p.names == nil {
			p.names = make(map[string]bool)
		}
		p.names[name] = true
	}
}

func (p *parts) item(i int) {
	if p != nil {
		if p.indexes == nil {
			p.indexes = make(map[int]bool)
		}
		p.indexes[i] = true
	}
}

// merge adds the parts in from to those in into. It does nothing if into is nil.
func (e *evaluation) merge(into, from *parts) {
	if into == nil {
		return
	}
	if e.left -= len(from.names) + len(from.indexes); e.left < 0 {
		return
	}
	for name := range from.names {
		into.property(name)
	}
	for i := range from.indexes {
		into.item(i)
	}
	into.all = into.all || from.all
}
