package schemats

import (
	"strconv"
	"strings"
)

// reservedTypes cannot be the name of a definition: keyword types, names that
// the text itself uses, and words that a type statement may not define.
var reservedTypes = wordSet(`string number boolean null undefined unknown never any object symbol bigint void
	Record Partial Args Result Tools Array String Number Boolean Object Function Symbol Date Promise
	break case catch class const continue debugger default delete do else enum export extends false finally for
	function if import in instanceof new return super switch this throw true try typeof var while with
	implements interface let package private protected public static yield await async infer keyof readonly unique
	asserts is module namespace require type abstract declare global out accessor satisfies as of intrinsic arguments eval`)

// reservedParams are identifiers that no parameter can have in strict code, or
// that would read as a modifier.
var reservedParams = wordSet(`break case catch class const continue debugger default delete do else enum export extends
	false finally for function if import in instanceof new null return super switch this throw true try typeof var
	void while with implements interface let package private protected public static yield await arguments eval
	readonly override undefined`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// maxInPlace is the length of a type that is written in place although several
// references share it.
const maxInPlace = 40

// nameDefs decides which definitions are type statements (recursive ones, and
// those that are used several times and are not short), and gives them names
// that differ. used collects the names over several documents.
func nameDefs(root *def, order []*def, used map[string]bool) []*def {
	countUses(root.body)
	var out []*def
	for _, d := range order {
		if d.uses == 0 {
			continue
		}
		d.named = d == root || d.recursive || d.uses > 1 && !short(d.body)
		if !d.named {
			continue
		}
		if d == root {
			d.name = d.hint
		} else {
			d.name = freeName(nameFrom(d.hint), used)
		}
		out = append(out, d)
	}
	return out
}

func freeName(name string, used map[string]bool) string {
	base := name
	for i := 2; reservedTypes[name] || used[name]; i++ {
		name = base + "_" + strconv.Itoa(i)
		if i == 2 && !used[base+"_"] {
			name = base + "_"
		}
	}
	used[name] = true
	return name
}

func short(t *typ) bool {
	p := &printer{limit: maxInPlace, trial: true, o: Options{Descriptions: true, Constraints: true}}
	p.inline(t, loose)
	p.comment(t)
	return !p.over
}

// countUses counts the references that can be reached from t.
func countUses(t *typ) {
	switch t.kind {
	case tRef:
		t.def.uses++
		if t.def.uses == 1 {
			countUses(t.def.body)
		}
	case tArray:
		countUses(t.elem)
	case tUnion, tInter, tTuple:
		for _, m := range t.members {
			countUses(m)
		}
		if t.elem != nil {
			countUses(t.elem)
		}
	case tObject:
		for i := range t.props {
			countUses(t.props[i].t)
		}
		if t.rest != nil {
			countUses(t.rest)
		}
		if t.keys != nil {
			countUses(t.keys)
		}
	}
}
