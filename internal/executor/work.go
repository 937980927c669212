package executor

import (
	"math"
	"net/url"
	"strconv"
	"strings"
)

const (
	// maxWork bounds the subschemas that one value and its parts can meet, with
	// every reference unrolled: doubled ones (a: [b, b], b: [c, c], …) grow as
	// 2^n, and the library has no deadline.
	maxWork = 20000
	// maxGrowth bounds what recursion makes of it at the depth of the arguments.
	maxGrowth = 1e5
	// maxCost bounds the subschemas that all values of the arguments can meet: each
	// takes a microsecond, and half a kilobyte where it does not fit. maxGrownCost
	// does so with what recursion makes of it, which is hardly ever reached.
	maxCost      = 1e6
	maxGrownCost = 1e7
)

// work is what evaluating a schema can cost.
type work struct {
	// tooMuch: more than maxWork, or not to be told.
	tooMuch bool
	// size is the number of subschemas, with every reference unrolled.
	size int
	// fan is how often a recursive schema applies to one part of a value: the
	// cost grows as fan to the power of the depth.
	fan int
}

// allows reports whether arguments of that depth with so many values can be
// evaluated in time.
func (w work) allows(depth, values int) bool {
	cost := float64(w.size) * float64(values)
	return depth <= w.depth() && cost <= maxCost && cost*math.Pow(float64(max(w.fan, 1)), float64(depth)) <= maxGrownCost
}

// depth is how deep arguments may be for a schema of this cost.
func (w work) depth() int {
	if w.fan < 2 {
		return maxDepth
	}
	return min(maxDepth, int(math.Log(maxGrowth)/math.Log(float64(w.fan))))
}

// estimateWork unrolls the references of a schema.
func estimateWork(root any) work {
	w := &worker{root: root, anchors: make(map[string]any), costs: make(map[string]cost), open: make(map[string]bool)}
	w.collect(root, 0)
	if w.unclear {
		return work{tooMuch: true}
	}
	total := w.schema(root, 0)
	return work{tooMuch: w.unclear || total.size > maxWork, size: total.size, fan: w.fan}
}

// cost is that of one subschema.
type cost struct {
	size      int // subschemas, unrolled
	recursive int // references back into a schema that is being unrolled, for one part of a value
}

func (c *cost) add(d cost) {
	c.size = min(c.size+d.size, maxWork+1)
	c.recursive = min(c.recursive+d.recursive, maxWork)
}

type worker struct {
	root    any
	anchors map[string]any  // by "#name"
	costs   map[string]cost // of referenced schemas
	open    map[string]bool // references that are being unrolled
	fan     int
	unclear bool // something cannot be followed
	steps   int
}

// applied are the keywords whose subschemas see the same value.
var (
	appliedLists = []string{"allOf", "anyOf", "oneOf"}
	appliedOnes  = []string{"not", "if", "then", "else"}
	// Several patterns can match one name.
	appliedMaps = []string{"dependentSchemas", "dependencies", "patternProperties"}
	// deeper are the keywords whose subschemas see parts of the value.
	deeperOnes = []string{"additionalProperties", "items", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems", "contentSchema"}
	references = []string{"$ref", "$dynamicRef", "$recursiveRef"}
)

// collect finds the anchors, and schemas with an identity of their own, in which
// references mean something else.
func (w *worker) collect(node any, depth int) {
	switch node := node.(type) {
	case map[string]any:
		for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := node[keyword].(string); ok {
				w.anchors["#"+name] = node
			}
		}
		for _, keyword := range []string{"$id", "id"} {
			if _, ok := node[keyword].(string); ok && depth > 0 {
				w.unclear = true
			}
		}
		for _, sub := range node {
			w.collect(sub, depth+1)
		}
	case []any:
		for _, sub := range node {
			w.collect(sub, depth+1)
		}
	}
}

func (w *worker) schema(node any, depth int) cost {
	schema, ok := node.(map[string]any)
	if !ok {
		return cost{size: 1}
	}
	if w.steps++; w.steps > 10*maxWork || depth > 4*maxDepth {
		w.unclear = true
		return cost{size: 1}
	}
	total := cost{size: 1}
	for _, keyword := range appliedLists {
		list, _ := schema[keyword].([]any)
		for _, sub := range list {
			total.add(w.schema(sub, depth+1))
		}
	}
	for _, keyword := range appliedOnes {
		if sub, ok := schema[keyword]; ok {
			total.add(w.schema(sub, depth+1))
		}
	}
	for _, keyword := range appliedMaps {
		subs, _ := schema[keyword].(map[string]any)
		for _, sub := range subs {
			total.add(w.schema(sub, depth+1))
		}
	}
	for _, keyword := range references {
		if ref, ok := schema[keyword].(string); ok {
			total.add(w.reference(ref, depth))
		}
	}
	w.parts(schema, &total, depth)
	w.fan = max(w.fan, total.recursive)
	return total
}

// parts adds the subschemas for parts of the value. A part has one name, or one
// place, so of several properties only the most recursive counts.
func (w *worker) parts(schema map[string]any, total *cost, depth int) {
	for _, keyword := range deeperOnes {
		if sub, ok := schema[keyword]; ok {
			total.add(w.schema(sub, depth+1))
		}
	}
	each := cost{}
	visit := func(sub any) {
		c := w.schema(sub, depth+1)
		each.size = min(each.size+c.size, maxWork+1)
		each.recursive = max(each.recursive, c.recursive)
	}
	if subs, ok := schema["properties"].(map[string]any); ok {
		for _, sub := range subs {
			visit(sub)
		}
	}
	for _, keyword := range []string{"items", "prefixItems"} {
		list, _ := schema[keyword].([]any)
		for _, sub := range list {
			visit(sub)
		}
	}
	total.add(each)
}

func (w *worker) reference(ref string, depth int) cost {
	if w.open[ref] {
		return cost{size: 1, recursive: 1}
	}
	if c, ok := w.costs[ref]; ok {
		return c
	}
	target, ok := w.anchors[ref]
	if !ok {
		if target, ok = resolve(w.root, ref); !ok {
			w.unclear = true
			return cost{size: 1}
		}
	}
	w.open[ref] = true
	c := w.schema(target, depth+1)
	delete(w.open, ref)
	w.costs[ref] = c
	return c
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
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			node = at[i]
		default:
			return nil, false
		}
	}
	return node, true
}
