package results

import (
	"cmp"
	"encoding/json"
	"slices"

	"mcpx/internal/base/wire"
	"mcpx/internal/jq"
)

// maxOrdered is the depth of nesting up to which objects are reordered. maxKeySets is the maximum number of different sets of
// keys for which an order is looked up.
const maxOrdered, maxKeySets = 12, 64

// inOrder reorders the keys of the objects in the outputs of a filter, because jq sorts them. The new order is the one in which
// the filter names the keys, or the order in the document if the filter does not name them (see learn).
func inOrder(filter string, document json.RawMessage, outputs []json.RawMessage) {
	o := keyOrder{sets: map[string][]string{}}
	for _, output := range outputs {
		o.collect(output, 0)
	}
	if len(o.sets) == 0 {
		return
	}
	o.learn(jq.Constructed(filter), document)
	for i, output := range outputs {
		outputs[i] = o.apply(nil, output, 0)
	}
}

// keyOrder has the order of the keys for each set of keys in the outputs of a filter.
type keyOrder struct {
	// sets maps a set of keys to the order to use. The set is the string that setOf makes of the keys in the order in which jq
	// writes them.
	sets map[string][]string
}

func setOf(keys []string) string {
	var b []byte
	for _, key := range keys {
		b = wire.AppendQuoted(b, key)
	}
	return string(b)
}

// members returns the keys of an object. written has, for each key, the key in quotes and then the value, as jq wrote them.
func members(object []byte) (keys []string, written [][]byte) {
	_ = wire.Members(object, func(key string, name, value []byte) bool { // cannot fail, since jq wrote it
		keys = append(keys, key)
		written = append(written, name, value)
		return true
	})
	return keys, written
}

// collect adds the sets of keys in an output to the field sets.
func (o *keyOrder) collect(value []byte, depth int) {
	if depth > maxOrdered || len(o.sets) == maxKeySets || len(value) == 0 {
		return
	}
	switch value[0] {
	case '[':
		_ = wire.Elements(value, func(item []byte) bool { o.collect(item, depth+1); return true }) // cannot fail, since jq wrote it
	case '{':
		keys, written := members(value)
		if len(keys) > 1 {
			o.sets[setOf(keys)] = keys
		}
		for i := 1; i < len(written); i += 2 {
			o.collect(written[i], depth+1)
		}
	}
}

// learn finds the order for each set of keys. The parameter constructed has the keys of each object that the filter constructs.
// The first of these rules that applies to a set decides:
//
//   - If the filter constructs an object with exactly the keys of the set, the keys get the order of the first such object.
//   - If all keys of the set occur in objects that the filter constructs, the keys get the order of their first occurrences there.
//   - If the document has an object with exactly the keys of the set, the keys get the order of the first such object.
//   - Otherwise the keys get the order of their first occurrences in the document. Keys that are not in the document come last.
func (o *keyOrder) learn(constructed [][]string, document json.RawMessage) {
	doc, ok := wire.Read(string(document))
	if !ok {
		doc = &wire.Document{}
	}
	inFilter, inDocument := map[string]int{}, map[string]int{}
	for _, key := range slices.Concat(constructed...) {
		if _, known := inFilter[key]; !known {
			inFilter[key] = len(inFilter)
		}
	}
	for i := range doc.Nodes {
		if key := doc.Str(doc.Nodes[i].Key); key != "" {
			if _, known := inDocument[key]; !known {
				inDocument[key] = len(inDocument)
			}
		}
	}
	for set, keys := range o.sets {
		if at := slices.IndexFunc(constructed, func(c []string) bool { return sameKeys(c, keys) }); at >= 0 {
			o.sets[set] = constructed[at]
			continue
		}
		first, then := inDocument, inFilter
		if !slices.ContainsFunc(keys, func(key string) bool { _, named := inFilter[key]; return !named }) {
			first, then = inFilter, inDocument
		} else if found := objectOf(doc, keys); found != nil {
			o.sets[set] = found
			continue
		}
		place := func(key string) int {
			if at, ok := first[key]; ok {
				return at
			}
			if at, ok := then[key]; ok {
				return len(first) + at
			}
			return len(first) + len(then)
		}
		sorted := slices.Clone(keys)
		slices.SortStableFunc(sorted, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
		o.sets[set] = sorted
	}
}

// sameKeys reports whether a and b have the same keys, in any order.
func sameKeys(a, b []string) bool {
	return len(a) == len(b) && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// objectOf returns the keys of the first object in the document that has exactly these keys, in the order of that object. It
// returns nil if there is no such object.
func objectOf(doc *wire.Document, keys []string) []string {
	for i := range doc.Nodes {
		n := &doc.Nodes[i]
		if n.Kind != wire.Object || int(n.Count) != len(keys) {
			continue
		}
		found := make([]string, 0, len(keys))
		for at := int32(i) + 1; at < n.Next; at = doc.Nodes[at].Next {
			key := doc.Str(doc.Nodes[at].Key)
			if !slices.Contains(keys, key) {
				break
			}
			found = append(found, key)
		}
		if sameKeys(found, keys) { // found may have a key twice
			return found
		}
	}
	return nil
}

// apply appends a value to b, with the keys of its objects reordered.
func (o *keyOrder) apply(b, value []byte, depth int) []byte {
	if depth > maxOrdered || len(value) == 0 || value[0] != '[' && value[0] != '{' {
		return append(b, value...)
	}
	if value[0] == '[' {
		b = append(b, '[')
		at := len(b)
		_ = wire.Elements(value, func(item []byte) bool { // cannot fail, since jq wrote it
			if len(b) > at {
				b = append(b, ',')
			}
			b = o.apply(b, item, depth+1)
			return true
		})
		return append(b, ']')
	}
	keys, written := members(value)
	order, known := o.sets[setOf(keys)]
	if !known {
		order = keys
	}
	b = append(b, '{')
	for i, key := range order {
		if i > 0 {
			b = append(b, ',')
		}
		at := slices.Index(keys, key)
		b = append(append(b, written[2*at]...), ':')
		b = o.apply(b, written[2*at+1], depth+1)
	}
	return append(b, '}')
}
