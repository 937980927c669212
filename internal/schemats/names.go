package schemats

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// reservedTypes may not be names of types: they are keyword types, names that the output itself uses, or reserved words.
var reservedTypes = wordSet(`string number boolean null undefined unknown never any object symbol bigint void
	Record Partial Args Result Tools Array String Number Boolean Object Function Symbol Date Promise
	break case catch class const continue debugger default delete do else enum export extends false finally for
	function if import in instanceof new return super switch this throw true try typeof var while with
	implements interface let package private protected public static yield await async infer keyof readonly unique
	asserts is module namespace require type abstract declare global out accessor satisfies as of intrinsic arguments eval`)

// reservedParams may not be names of parameters: they are reserved words in strict mode, or look like a modifier.
var reservedParams = wordSet(`break case catch class const continue debugger default delete do else enum export extends
	false finally for function if import in instanceof new null return super switch this throw true try typeof var
	void while with implements interface let package private protected public static yield await arguments eval
	readonly override undefined`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// nameFrom makes an identifier of a hint, which is a name that the schema suggests. Characters that an identifier may not have
// become one underscore between words, and are left out at the ends.
func nameFrom(hint string) string {
	var b strings.Builder
	gap := false
	for _, c := range hint {
		if c >= utf8.RuneSelf || c != '$' && !asciiWord(byte(c)) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(c)
		if b.Len() >= 60 {
			break
		}
	}
	s := b.String()
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return "T" + s
	}
	return s
}

// freeName returns a name that is not yet used: name, name_, name_3 and so on. used maps each name to the last number that was
// tried, since thousands of types may have the same hint.
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
