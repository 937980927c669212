package compress

import (
	"slices"
	"strconv"
	"strings"
)

// nearestKey returns the key of a part, without quotes. If the part has no key, nearestKey returns the key of the nearest container
// around the part that has a key, or "" if there is no such container.
func (s *script) nearestKey(i int32) string {
	for at := i; at >= 0; at = s.parts[at].parent {
		if key := s.key(at); key != "" {
			return key[1 : len(key)-1]
		}
	}
	return ""
}

// name names the functions and their parameters.
func (s *script) name() {
	used := map[string]bool{}
	for i := range s.kinds {
		k := &s.kinds[i]
		if k.name == "" {
			continue
		}
		k.name = unique(s.kindName(k), used)
		params := map[string]bool{}
		for l := range k.leaves {
			leaf := &k.leaves[l]
			if leaf.derived {
				continue
			}
			name := parameter(leaf.key)
			if params[name] && leaf.parent != "" {
				name = parameter(leaf.parent + "_" + leaf.key)
			}
			leaf.name = unique(name, params)
		}
	}
}

// unique returns the name or, if that is used or reserved, the name with a number after it.
func unique(name string, used map[string]bool) string {
	free := name
	for n := 2; used[free] || reserved[free]; n++ {
		free = name + strconv.Itoa(n)
	}
	used[free] = true
	return free
}

// kindName returns a name for the objects of a kind: the value of a constant member such as "type" or, if there is none, the
// key under which they are found, in the singular.
func (s *script) kindName(k *kind) string {
	for _, m := range k.members {
		if m.constant < 0 || !slices.Contains([]string{`"object"`, `"type"`, `"kind"`, `"__typename"`}, m.key) {
			continue
		}
		if text, ok := s.plain(m.constant); ok && letter(text[0]) && len(text) <= maxName {
			return capital(text)
		}
	}
	key := s.nearestKey(k.objects[0])
	if len(key) > 3 && strings.HasSuffix(key, "s") && !strings.HasSuffix(key, "ss") && !strings.HasSuffix(key, "us") {
		key = key[:len(key)-1]
		if stem, ok := strings.CutSuffix(key, "ie"); ok && len(stem) > 2 {
			key = stem + "y"
		}
	}
	if len(key) > maxName {
		key = ""
	}
	return capital(key)
}

// maxName is the longest key or value, in bytes, from which the name of a function is made.
const maxName = 30

// capital makes the name of a function from a text: created_by becomes CreatedBy. Without a letter in the text, the name is
// Item.
func capital(text string) string {
	var out strings.Builder
	up := true
	for i := range len(text) {
		switch c := text[i]; {
		case letter(c) && up:
			out.WriteByte(c &^ 0x20)
			up = false
		case letter(c) || '0' <= c && c <= '9' && out.Len() > 0:
			out.WriteByte(c)
		default:
			up = true
		}
	}
	if out.Len() == 0 {
		return "Item"
	}
	return out.String()
}

// parameter makes the name of a parameter from a key: the key itself if that is an identifier, or p if no name can be made of it.
func parameter(key string) string {
	if identifier(key) {
		return key
	}
	name := capital(key)
	if len(key) > maxName || name == "Item" {
		return "p"
	}
	return string(name[0]|0x20) + name[1:]
}

// reserved are words that may not be used as names in JavaScript, and names that a program around the text may use.
var reserved = map[string]bool{}

func init() {
	for word := range strings.FieldsSeq(`await break case catch class const continue debugger default delete do else enum eval export
		extends false finally for function if implements import in instanceof interface let new null package private protected public
		return static super switch this throw true try typeof var void while with yield arguments async of undefined NaN Infinity
		Object Array String Number Boolean Symbol BigInt Math JSON Date RegExp Map Set Promise Proxy Reflect Function Error`) {
		reserved[word] = true
	}
}
