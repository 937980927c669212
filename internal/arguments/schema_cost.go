package arguments

import (
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
)

// The JSON Schema library has no deadline, so the work is bounded in advance. The unit of work is the evaluation
// of one subschema for one value: it takes about a microsecond and, if the value does not fit, half a kilobyte of memory.
const (
	// maxSize bounds the number of subschemas that there are when every reference is replaced by its target. If definitions refer
	// to others twice (a: [b, b], b: [c, c], …), this number grows as 2^n.
	maxSize = 20000
	// maxGrowth bounds the factor by which a schema that refers to itself multiplies the work.
	maxGrowth = 1e5
	// maxCost bounds the work for all values if there is no recursion. maxGrownCost bounds it for the worst
	// recursion, which real arguments hardly ever reach.
	maxCost      = 1e6
	maxGrownCost = 1e7
)

// cost is an upper bound for the work of evaluating a schema.
type cost struct {
	// unbounded means that the size is above maxSize or cannot be known.
	unbounded bool
	// size is the number of subschemas that there are when every reference is replaced by its target, except references to
	// enclosing schemas, which count as one. It is at most maxSize+1.
	size int
	// branching is how often a schema that refers to itself is applied to the same part of a value. At a depth of n levels, the
	// cost is multiplied by branching to the power of n.
	branching int
}

// allows reports whether arguments of that depth and number of values can be evaluated in time.
func (c cost) allows(depth, values int) bool {
	total := float64(c.size) * float64(values)
	return depth <= c.depth() && total <= maxCost && total*math.Pow(float64(max(c.branching, 1)), float64(depth)) <= maxGrownCost
}

// depth is the greatest allowed depth of arguments.
func (c cost) depth() int {
	if c.branching < 2 {
		return maxDepth
	}
	return min(maxDepth, int(math.Log(maxGrowth)/math.Log(float64(c.branching))))
}

// estimate computes the cost of a schema, with every reference replaced by its target.
func estimate(root any) cost {
	e := &estimator{root: root, anchors: make(map[string]any), costs: make(map[string]unrolled), open: make(map[string]bool)}
	e.collect(root, 0)
	if e.unclear {
		return cost{unbounded: true}
	}
	total := e.schema(root, 0)
	return cost{unbounded: e.unclear || total.size > maxSize, size: total.size, branching: e.branching}
}

// unrolled is the cost of one schema, with every reference in it replaced by the schema to which the reference leads. A reference
// to an enclosing schema cannot be replaced, because the result would have no end; recursive counts such references.
type unrolled struct {
	size      int // number of subschemas
	recursive int // the maximum number of references to enclosing schemas that apply to the same part of a value
}

func (u *unrolled) add(v unrolled) {
	u.size = min(u.size+v.size, maxSize+1)
	u.recursive = min(u.recursive+v.recursive, maxSize)
}

type estimator struct {
	root      any
	anchors   map[string]any      // the key is "#name"
	costs     map[string]unrolled // costs of referenced schemas
	open      map[string]bool     // references that are being followed
	branching int
	unclear   bool // the cost cannot be known, for example because a reference cannot be followed
	steps     int
}

// These are the keywords that contain subschemas.
var (
	// All subschemas of these keywords apply to the same value. (Several patterns can match the same name.)
	appliedLists = []string{"allOf", "anyOf", "oneOf"}
	appliedMaps  = []string{"dependentSchemas", "dependencies", "patternProperties"}
	// Each of these keywords has one subschema, which applies to the same value or to all parts of the value.
	singles = []string{
		"not", "if", "then", "else", "additionalProperties", "items", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "additionalItems", "contentSchema",
	}
	references = []string{"$ref", "$dynamicRef", "$recursiveRef"}
)

// collect finds the subschemas with an anchor, which is a name for references. It sets unclear for a subschema with its own $id
// (or id), which changes the meaning of the references in it.
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
	for _, keyword := range singles {
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
	total.add(e.parts(schema, depth))
	e.branching = max(e.branching, total.recursive)
	return total
}

// parts returns the cost of the subschemas for single members or items. Only one of these subschemas applies to each
// part of the value. So the field recursive of the cost is the maximum for one subschema; the field size is the sum for all.
func (e *estimator) parts(schema map[string]any, depth int) (all unrolled) {
	properties, _ := schema["properties"].(map[string]any)
	items, _ := schema["items"].([]any)
	prefix, _ := schema["prefixItems"].([]any)
	for _, sub := range slices.Concat(slices.Collect(maps.Values(properties)), items, prefix) {
		one := e.schema(sub, depth+1)
		all.size = min(all.size+one.size, maxSize+1)
		all.recursive = max(all.recursive, one.recursive)
	}
	return all
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

// resolve returns the part of the document root to which a reference such as #/$defs/a leads. The second result is false if
// there is no such part.
func resolve(root any, ref string) (any, bool) {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok || path == "" {
		return root, ok
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	steps := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, step := range steps {
		if decoded, err := url.PathUnescape(step); err == nil {
			step = decoded
		}
		steps[i] = unescape.Replace(step)
	}
	return at(root, steps)
}
