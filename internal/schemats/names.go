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

// maxInPlace is the length of a type that is written in place although it stands
// there several times.
const maxInPlace = 40

// freeName makes a name that is not used yet. The number of a used name is the last one
// that was tried behind it: tens of thousands of types may want the same name.
func freeName(name string, used map[string]int) string {
	base := name
	for i := max(2, used[base]); reservedTypes[name] || used[name] > 0; i++ {
		name = base + "_" + strconv.Itoa(i)
		if i == 2 && used[base+"_"] == 0 {
			name = base + "_"
		}
		used[base] = i
	}
	used[name] = max(1, used[name])
	return name
}
