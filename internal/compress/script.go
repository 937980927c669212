package compress

import (
	"hash/maphash"
	"math"
	"strconv"
	"strings"

	"mcpx/internal/base/wire"
)

// After compact JSON and TOON, the third form is JavaScript that evaluates to the same JSON:
//
//	const User=(login,id)=>({login,id,type:"User",url:`https://api.github.com/users/${login}`});
//	[User("a",1),User("b",2)]
//
// Objects with the same keys belong to one kind. A kind with several objects becomes a function, if that saves enough. Members
// that are equal in all its objects are constants in the body of the function, strings that can be made from other members are
// templates, and the other members are parameters. A value that repeats becomes a const, if that saves tokens.

// Constants of the JavaScript form. Compact JSON of more than maxScript or fewer than minScript bytes is not written as
// JavaScript.
const (
	maxScript     = 256 << 10 // bytes of compact JSON
	minScript     = 100
	maxTemplated  = 64      // if a kind has more leaves (see member), their values are not compared with each other
	maxDerived    = 1 << 10 // bytes of a string that may be derived from another member
	minShared     = 10      // least bytes of a string, object or array that may become a const
	manyKeys      = 16      // if an object has at least so many keys, equal keys are found with a map
	integerDigits = 15      // JavaScript certainly writes an integer of at most so many digits as it was read
)

// part is one value of a compact JSON text. If it has children, the first one has the next index.
type part struct {
	start, end int32
	key, colon int32 // the key with its quotes is text[key:colon]; they are equal if there is no key
	next       int32 // index of the part that follows this one and all parts inside it
	count      int32 // number of members or items
	parent     int32 // index of the container around it; -1 if there is none
	same       int32 // index of the first part with the same text; its own index if the part is short, or a number or literal
	kind       int32 // index in kinds, for an object; -1 for all else
}

// kind is a group of objects that have the same keys in the same order.
type kind struct {
	example int32   // the first object
	objects []int32 // the objects that the function makes; of objects with the same text only the first
	name    string  // name of the function; empty if the objects are written as literals
	members []member
	leaves  []leaf
	params  []int32 // indexes of leaves in the order of the call; parameters with a default come last
}

// member is a member that all objects of a kind have. It is a constant, or an object whose own members (inner) the same
// function writes, or a leaf: a member with different values.
type member struct {
	key      string // as it is written in JSON
	constant int32  // index of its part in the first object; -1 if the member is not a constant
	inner    []member
	leaf     int32
}

// script is a document that is being written as JavaScript.
type script struct {
	text     string
	parts    []part
	kinds    []kind
	absorbed []bool // whether a part is written by the function of a kind around it
	bad      bool   // JavaScript would not evaluate to the same value, or the JSON is nested too deeply
}

// asScript converts compact JSON, which must be an object or array, to JavaScript. It returns false if the JSON is too short,
// too long or nested too deeply, if nothing in it is worth a function or const, or if JavaScript would not evaluate to the same
// value.
func asScript(compact string) (string, bool) {
	if len(compact) > maxScript || len(compact) < minScript {
		return "", false
	}
	s, ok := readScripted(compact)
	if !ok {
		return "", false
	}
	return newScriptWriter(s).write()
}

// readScripted reads compact JSON and finds what repeats in it. ok is false if nothing repeats, if the JSON is nested more than
// maxDepth deep, or if JavaScript would not evaluate to the same value.
func readScripted(compact string) (s *script, ok bool) {
	most := 1 + strings.Count(compact, ",") + strings.Count(compact, "{") + strings.Count(compact, "[")
	s = &script{text: compact, parts: make([]part, 0, min(most, len(compact)/12+16))}
	if s.read(0, -1, maxDepth); s.bad || !s.group() {
		return nil, false
	}
	s.absorbed = make([]bool, len(s.parts))
	for i := range s.kinds {
		s.analyse(&s.kinds[i])
	}
	s.name()
	return s, true
}

// str is the text of a part.
func (s *script) str(i int32) string { return s.text[s.parts[i].start:s.parts[i].end] }

// key is the key of a part with its quotes.
func (s *script) key(i int32) string { return s.text[s.parts[i].key:s.parts[i].colon] }

// read reads the value at a position of valid compact JSON and returns its end. levels is how deeply containers may be nested
// there.
func (s *script) read(pos int, parent int32, levels int) int {
	i := len(s.parts)
	s.parts = append(s.parts, part{start: int32(pos), parent: parent, same: int32(i), kind: -1})
	open := s.text[pos]
	switch {
	case open == '"':
		pos = stringEnd(s.text, pos)
	case open == '{' || open == '[':
		if levels == 0 {
			s.bad = true
			return pos
		}
		pos = s.readParts(i, pos, levels)
	default:
		end := pos
		for end < len(s.text) && s.text[end] != ',' && s.text[end] != ']' && s.text[end] != '}' {
			end++
		}
		s.bad = s.bad || !finite(s.text[pos:end])
		pos = end
	}
	s.parts[i].end, s.parts[i].next = int32(pos), int32(len(s.parts))
	return pos
}

// readParts reads the members or items of the container i.
func (s *script) readParts(i, at, levels int) int {
	object := s.text[at] == '{'
	for at++; s.text[at] != '}' && s.text[at] != ']'; {
		if s.text[at] == ',' {
			at++
		}
		key, colon := at, at
		if object {
			colon = stringEnd(s.text, at)
			at = colon + 1
		}
		child := len(s.parts)
		at = s.read(at, int32(i), levels-1)
		if s.bad {
			return at
		}
		s.parts[child].key, s.parts[child].colon = int32(key), int32(colon)
		s.parts[i].count++
	}
	return at + 1
}

// stringEnd is the end of the string that begins at a position.
func stringEnd(text string, pos int) int {
	for pos++; text[pos] != '"'; pos++ {
		if text[pos] == '\\' {
			pos++
		}
	}
	return pos + 1
}

// finite returns false for a number beyond the range of float64, such as 1e400, because JavaScript reads it as Infinity. It returns
// true for all other scalars.
func finite(scalar string) bool {
	if len(scalar) < 308 && !strings.ContainsAny(scalar, "eE") || scalar == "true" || scalar == "false" {
		return true
	}
	f, err := strconv.ParseFloat(scalar, 64)
	return err == nil && !math.IsInf(f, 0)
}

// group finds parts with equal texts, and the kinds of objects. It returns false if nothing repeats, or if JavaScript would
// change the keys of an object.
func (s *script) group() bool {
	seed, byKeys := maphash.MakeSeed(), map[uint64][]int32{}
	first := make(map[string]int32, len(s.parts)/4)
	repeats := false
	for i := int32(0); i < int32(len(s.parts)); i++ {
		p := &s.parts[i]
		c := s.text[p.start]
		if c == '{' && !s.ofKind(i, seed, byKeys) {
			return false
		}
		if (c == '{' || c == '[' || c == '"') && p.end-p.start >= minShared {
			if at, known := first[s.str(i)]; known {
				p.same, repeats = at, true
			} else {
				first[s.str(i)] = i
			}
		}
	}
	for i := int32(0); i < int32(len(s.parts)); {
		p := &s.parts[i]
		if p.same != i {
			i = p.next // skip its children, since a value that repeats is written only once
			continue
		}
		if p.kind >= 0 {
			k := &s.kinds[p.kind]
			k.objects = append(k.objects, i)
			repeats = repeats || len(k.objects) > 1
		}
		i++
	}
	return repeats
}

// ofKind finds the kind of object i, or adds a kind. byKeys maps a hash of keys to the kinds with this hash. ofKind returns false
// if JavaScript would change the keys of the object.
func (s *script) ofKind(i int32, seed maphash.Seed, byKeys map[uint64][]int32) bool {
	var h maphash.Hash
	h.SetSeed(seed)
	for c := i + 1; c < s.parts[i].next; c = s.parts[c].next {
		_, _ = h.WriteString(s.key(c))
	}
	sum := h.Sum64()
	for _, k := range byKeys[sum] {
		if s.likeKeys(s.kinds[k].example, i) {
			s.parts[i].kind = k
			return true
		}
	}
	k := int32(len(s.kinds))
	s.parts[i].kind = k
	s.kinds = append(s.kinds, kind{example: i})
	byKeys[sum] = append(byKeys[sum], k)
	return s.faithful(i)
}

// likeKeys reports whether two objects have the same keys in the same order.
func (s *script) likeKeys(a, b int32) bool {
	if s.parts[a].count != s.parts[b].count {
		return false
	}
	c, d := a+1, b+1
	for c < s.parts[a].next {
		if s.key(c) != s.key(d) {
			return false
		}
		c, d = s.parts[c].next, s.parts[d].next
	}
	return true
}

// faithful reports whether JavaScript keeps the keys of object i and their order. No key may be __proto__ or occur twice, and
// keys that are integers must come first, in ascending order.
func (s *script) faithful(i int32) bool {
	var keys []string
	var seen map[string]bool
	last, others := int64(-1), false
	for c := i + 1; c < s.parts[i].next; c = s.parts[c].next {
		key := s.key(c)
		key = key[1 : len(key)-1]
		if strings.Contains(key, `\`) {
			decoded, ok := wire.WholeText([]byte(s.key(c)))
			if !ok {
				return false
			}
			key = decoded
		}
		if key == "__proto__" || seen[key] {
			return false
		}
		if len(keys) < manyKeys {
			for _, k := range keys {
				if k == key {
					return false
				}
			}
			keys = append(keys, key)
		} else {
			if seen == nil {
				seen = make(map[string]bool, 2*manyKeys)
				for _, k := range keys {
					seen[k] = true
				}
				if seen[key] {
					return false
				}
			}
			seen[key] = true
		}
		if n, integer := integerKey(key); !integer {
			others = true
		} else if others || n <= last {
			return false
		} else {
			last = n
		}
	}
	return true
}

// integerKey parses a key that JavaScript may treat as an array index. ok is false if the key is not such an integer.
func integerKey(key string) (n int64, ok bool) {
	if key == "" || len(key) > 18 || key[0] < '0' || key[0] > '9' || key[0] == '0' && len(key) > 1 {
		return 0, false
	}
	n, err := strconv.ParseInt(key, 10, 64)
	return n, err == nil
}
