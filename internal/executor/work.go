package executor

import (
	"net/url"
	"strings"
)

// maxWork bounds the subschemas that apply to one value at once: doubled
// references (a: [b, b], b: [c, c], …) grow as 2^n, and the library has no
// deadline.
const maxWork = 2000

// work is what evaluating a schema can cost.
type work struct {
	// tooMuch: one value alone costs more than maxWork.
	tooMuch bool
	// doubling: a recursive schema applies to its parts more than once, so the
	// cost grows with a power of the depth of the value.
	doubling bool
}

// estimateWork follows the keywords that apply to the same value.
func estimateWork(root any) work {
	w := &worker{root: root, cost: make(map[string]int), open: make(map[string]bool)}
	total := w.inPlace(root, "#", 0)
	return work{tooMuch: total > maxWork || w.cyclic, doubling: w.recursive && w.branching}
}

type worker struct {
	root      any
	cost      map[string]int // of referenced schemas, by reference
	open      map[string]bool
	cyclic    bool // a reference applies to itself without going into the value
	recursive bool
	branching bool
}

// applied are the keywords whose subschemas see the same value.
var (
	appliedLists = []string{"allOf", "anyOf", "oneOf"}
	appliedOnes  = []string{"not", "if", "then", "else"}
	// deeper are the keywords whose subschemas see parts of the value.
	deeperOnes = []string{"additionalProperties", "items", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems"}
	deeperMaps = []string{"properties", "patternProperties"}
)

// inPlace is the number of subschemas that apply to one value.
func (w *worker) inPlace(node any, at string, depth int) int {
	schema, ok := node.(map[string]any)
	if !ok || depth > 200 {
		return 1
	}
	total := 1
	add := func(n int) { total = min(total+n, maxWork+1) }
	for _, keyword := range appliedLists {
		list, _ := schema[keyword].([]any)
		if len(list) > 1 {
			w.branching = true
		}
		for _, sub := range list {
			add(w.inPlace(sub, at, depth+1))
		}
	}
	for _, keyword := range appliedOnes {
		if sub, ok := schema[keyword]; ok {
			add(w.inPlace(sub, at, depth+1))
		}
	}
	if dependent, ok := schema["dependentSchemas"].(map[string]any); ok {
		for _, sub := range dependent {
			add(w.inPlace(sub, at, depth+1))
		}
	}
	for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		if ref, ok := schema[keyword].(string); ok {
			add(w.reference(ref, depth))
		}
	}
	w.deeper(schema, at, depth)
	return total
}

func (w *worker) reference(ref string, depth int) int {
	if w.open[ref] {
		w.cyclic = true
		return maxWork + 1
	}
	if cost, ok := w.cost[ref]; ok {
		if cost == 0 { // being worked out further up, through a part of the value
			w.recursive = true
			return 1
		}
		return cost
	}
	target, ok := resolve(w.root, ref)
	if !ok {
		return 1
	}
	w.open[ref] = true
	cost := w.inPlace(target, ref, depth+1)
	delete(w.open, ref)
	w.cost[ref] = cost
	return cost
}

// deeper looks into the subschemas for parts of the value. References that are
// open now may recur there: that is recursion, not a cycle.
func (w *worker) deeper(schema map[string]any, at string, depth int) {
	saved := w.open
	w.open = make(map[string]bool)
	marked := make([]string, 0, len(saved))
	for ref := range saved {
		if _, done := w.cost[ref]; !done {
			w.cost[ref] = 0
			marked = append(marked, ref)
		}
	}
	visit := func(sub any) {
		if w.inPlace(sub, at, depth+1) > maxWork {
			w.cyclic = true
		}
	}
	for _, keyword := range deeperOnes {
		if sub, ok := schema[keyword]; ok {
			visit(sub)
		}
	}
	for _, keyword := range deeperMaps {
		if subs, ok := schema[keyword].(map[string]any); ok {
			for _, sub := range subs {
				visit(sub)
			}
		}
	}
	for _, keyword := range []string{"items", "prefixItems"} {
		if list, ok := schema[keyword].([]any); ok {
			for _, sub := range list {
				visit(sub)
			}
		}
	}
	for _, ref := range marked {
		delete(w.cost, ref)
	}
	w.open = saved
}

// resolve follows a reference within the document.
func resolve(root any, ref string) (any, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	if path == "" {
		return root, true
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	node := root
	for _, step := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		if decoded, err := url.PathUnescape(step); err == nil {
			step = decoded
		}
		step = unescape.Replace(step)
		switch at := node.(type) {
		case map[string]any:
			if node, ok = at[step]; !ok {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return node, true
}
