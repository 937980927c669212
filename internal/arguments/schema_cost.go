package arguments

import (
	"math"
	"net/url"
	"strconv"
	"strings"
)

const (
	// maxSize bounds the subschemas that one value and its parts can meet, with
	// every reference unrolled: doubled ones (a: [b, b], b: [c, c], …) grow as
	// 2^n, and the library has no deadline.
	maxSize = 20000
	// maxGrowth bounds what recursion makes of it at the depth of the arguments.
	maxGrowth = 1e5
	// maxCost bounds the subschemas that all values of the arguments can meet: each
	// takes a microsecond, and half a kilobyte where it does not fit. maxGrownCost
	// does so with what recursion makes of it, which is hardly ever reached.
	maxCost      = 1e6
	maxGrownCost = 1e7
)

// cost is what evaluating a schema can take.
type cost struct {
	// unbounded: more than maxSize, or not to be known.
	unbounded bool
	// size is the number of subschemas, with every reference unrolled.
	size int
	// branching is how often a recursive schema applies to one part of a value: the
	// cost grows as branching to the power of the depth.
	branching int
}

// allows reports whether arguments of that depth with so many values can be
// evaluated in time.
func (c cost) allows(depth, values int) bool {
	total := float64(c.size) * float64(values)
	return depth <= c.depth() && total <= maxCost && total*math.Pow(float64(max(c.branching, 1)), float64(depth)) <= maxGrownCost
}

// depth is how deep arguments may be for a schema of this cost.
func (c cost) depth() int {
	if c.branching < 2 {
		return maxDepth
	}
	return min(maxDepth, int(math.Log(maxGrowth)/math.Log(float64(c.branching))))
}

// estimate unrolls the references of a schema.
func estimate(root any) cost {
	e := &estimator{root: root, anchors: make(map[string]any), costs: make(map[string]unrolled), open: make(map[string]bool)}
	e.collect(root, 0)
	if e.unclear {
		return cost{unbounded: true}
	}
	total := e.schema(root, 0)
	return cost{unbounded: e.unclear || total.size > maxSize, size: total.size, branching: e.branching}
}

// unrolled is one subschema with its references unrolled.
type unrolled struct {
	size      int // subschemas
	recursive int // references back into a schema that is being unrolled, for one part of a value
}

func (u *unrolled) add(v unrolled) {
	u.size = min(u.size+v.size, maxSize+1)
	u.recursive = min(u.recursive+v.recursive, maxSize)
}

type estimator struct {
	root      any
	anchors   map[string]any      // by "#name"
	costs     map[string]unrolled // of referenced schemas
	open      map[string]bool     // references that are being unrolled
	branching int
	unclear   bool // something cannot be followed
	steps     int
}

// applied are the keywords whose subschemas see the same value.
var (
	appliedLists = []string{"allOf", "anyOf", "oneOf"}
	appliedOnes  = []string{"not", "if", "then", "else"}
	// Several patterns can match one name.
	appliedMaps = []string{"dependentSchemas", "dependencies", "patternProperties"}
	// deeper are the keywords whose subschemas see parts of the value.
	deeperOnes = []string{
		"additionalProperties", "items", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "additionalItems", "contentSchema",
	}
	references = []string{"$ref", "$dynamicRef", "$recursiveRef"}
)

// collect finds the anchors, and schemas with an identity of their own, in which
// references mean something else.
func (e *estimator) collect(node any, depth int) {
	switch node := node.(type) {
	case map[string]any:
		for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := node[keyword].(string); ok {
				e.anchors["#"+name] = node
			}
		}
		for _, keyword := range []string{"$id", "id"} {
			if _, ok := node[keyword].(string); ok && depth > 0 {
				e.unclear = true
			}
		}
		for _, sub := range node {
			e.collect(sub, depth+1)
		}
	case []any:
		for _, sub := range node {
			e.collect(sub, depth+1)
		}
	}
}

func (e *estimator) schema(node any, depth int) unrolled {
	schema, ok := node.(map[string]any)
	if !ok {
		return unrolled{size: 1}
	}
	if e.steps++; e.steps > 10*maxSize || depth > 4*maxDepth {
		e.unclear = true
		return unrolled{size: 1}
	}
	total := unrolled{size: 1}
	for _, keyword := range appliedLists {
		list, _ := schema[keyword].([]any)
		for _, sub := range list {
			total.add(e.schema(sub, depth+1))
		}
	}
	for _, keyword := range appliedOnes {
		if sub, ok := schema[keyword]; ok {
			total.add(e.schema(sub, depth+1))
		}
	}
	for _, keyword := range appliedMaps {
		subs, _ := schema[keyword].(map[string]any)
		for _, sub := range subs {
			total.add(e.schema(sub, depth+1))
		}
	}
	for _, keyword := range references {
		if ref, ok := schema[keyword].(string); ok {
			total.add(e.reference(ref, depth))
		}
	}
	e.parts(schema, &total, depth)
	e.branching = max(e.branching, total.recursive)
	return total
}

// parts adds the subschemas for parts of the value. A part has one name, or one
// place, so of several properties only the most recursive counts.
func (e *estimator) parts(schema map[string]any, total *unrolled, depth int) {
	for _, keyword := range deeperOnes {
		if sub, ok := schema[keyword]; ok {
			total.add(e.schema(sub, depth+1))
		}
	}
	each := unrolled{}
	visit := func(sub any) {
		one := e.schema(sub, depth+1)
		each.size = min(each.size+one.size, maxSize+1)
		each.recursive = max(each.recursive, one.recursive)
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

func (e *estimator) reference(ref string, depth int) unrolled {
	if e.open[ref] {
		return unrolled{size: 1, recursive: 1}
	}
	if known, ok := e.costs[ref]; ok {
		return known
	}
	target, ok := e.anchors[ref]
	if !ok {
		if target, ok = resolve(e.root, ref); !ok {
			e.unclear = true
			return unrolled{size: 1}
		}
	}
	e.open[ref] = true
	found := e.schema(target, depth+1)
	delete(e.open, ref)
	e.costs[ref] = found
	return found
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
