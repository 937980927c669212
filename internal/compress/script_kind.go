package compress

import (
	"cmp"
	"slices"
	"strings"
)

// leaf is a member that has different values in the objects of a kind.
type leaf struct {
	column []int32 // the part of this member in each object
	key    string  // without quotes, as it is written in JSON
	parent string  // key of the inner object with this member; empty if it is directly in the object of the kind
	name   string  // name of the JavaScript function's parameter for this leaf
	// derived means that the value can be made from other leaves; template says how.
	derived  bool
	template []piece
	base     bool // other leaves are derived from this one
	// prefix and suffix are the same in all strings of this leaf. The parameter then has only what is between them.
	prefix, suffix string
	fallback       string // the default value, which calls leave out; empty if there is none
	inFallback     int    // number of objects with the default value
}

// piece is a part of a template: a literal or the value of a leaf.
type piece struct {
	literal string
	leaf    int32 // index of the leaf; -1 for a literal
}

// analyse finds what the objects of a kind have in common. If a function for them saves enough, analyse gives the kind a name,
// and the objects will be written as calls of this function.
func (s *script) analyse(k *kind) {
	k.objects = slices.DeleteFunc(k.objects, func(i int32) bool { return s.absorbed[i] || s.parts[i].same != i })
	if len(k.objects) < 2 || s.parts[k.objects[0]].count == 0 {
		return
	}
	k.members = s.common(k, k.objects, "")
	s.derive(k)
	for i := range k.leaves {
		s.stem(&k.leaves[i])
		s.fallback(&k.leaves[i])
	}
	s.order(k)
	if s.gain(k) < minGain {
		k.members = nil
		return
	}
	s.absorb(k.members, k)
	k.name = "Item" // a placeholder; script.name() replaces it later
}

// minGain is how many bytes the JavaScript function for the objects of a kind must save at least, as estimated by gain.
const minGain = 40

// columns returns the members of objects of the same kind: for each key a column, which has the part with this key from each
// object.
func (s *script) columns(objects []int32) [][]int32 {
	all := make([]int32, len(objects)*int(s.parts[objects[0]].count))
	columns := make([][]int32, s.parts[objects[0]].count)
	for m := range columns {
		columns[m] = all[m*len(objects) : (m+1)*len(objects)]
	}
	for o, i := range objects {
		c := i + 1
		for m := range columns {
			columns[m][o] = c
			c = s.parts[c].next
		}
	}
	return columns
}

// common decides for each member of the objects whether it is a constant, an inner object or a leaf.
func (s *script) common(k *kind, objects []int32, parent string) []member {
	columns := s.columns(objects)
	members := make([]member, len(columns))
	for m, column := range columns {
		key := s.key(column[0])
		members[m] = member{key: key, constant: -1, leaf: -1}
		inside := key[1 : len(key)-1]
		switch {
		case s.equal(column):
			members[m].constant = column[0]
		case s.flat(column):
			members[m].inner = s.common(k, column, inside)
		default:
			members[m].leaf = int32(len(k.leaves))
			k.leaves = append(k.leaves, leaf{column: column, key: inside, parent: parent})
		}
	}
	return members
}

func (s *script) equal(column []int32) bool {
	for _, i := range column[1:] {
		if s.str(i) != s.str(column[0]) {
			return false
		}
	}
	return true
}

// flat reports whether the function for the outer objects should also write the inner objects, which are the parts in column. That
// is worthwhile if all these parts are objects of the same kind, most of them differ from each other, and few other objects of this
// kind are elsewhere in the document.
func (s *script) flat(column []int32) bool {
	of := s.parts[column[0]].kind
	if of < 0 || s.parts[column[0]].count == 0 {
		return false
	}
	distinct := 0
	for _, i := range column {
		if s.parts[i].kind != of {
			return false
		}
		if s.parts[i].same == i {
			distinct++
		}
	}
	return 10*distinct >= 7*len(column) && 10*distinct >= 8*len(s.kinds[of].objects)
}

// absorb marks the parts that the function of kind k writes, so that they get no function of their own.
func (s *script) absorb(members []member, k *kind) {
	columns := s.columns(k.objects)
	for m, column := range columns {
		s.absorbColumn(members[m], column)
	}
}

func (s *script) absorbColumn(m member, column []int32) {
	switch {
	case m.constant >= 0:
		for _, i := range column {
			for at := i; at < s.parts[i].next; at++ {
				s.absorbed[at] = true
			}
		}
	case m.inner != nil:
		for _, i := range column {
			s.absorbed[i] = true
		}
		for n, inner := range s.columns(column) {
			s.absorbColumn(m.inner[n], inner)
		}
	}
}

// plain returns the text of a part that may be used in a template. This is a string without escapes and of at most maxDerived
// bytes, or a positive integer that JavaScript writes with the same digits. For any other part, ok is false.
func (s *script) plain(i int32) (text string, ok bool) {
	text = s.str(i)
	switch c := text[0]; {
	case c == '"':
		text = text[1 : len(text)-1]
		return text, len(text) <= maxDerived && !strings.Contains(text, `\`)
	case '1' <= c && c <= '9':
		return text, len(text) <= integerDigits && strings.Trim(text, "0123456789") == ""
	}
	return "", false
}

// plainColumn reports whether all parts of a column are plain, and either all are strings or all are numbers.
func (s *script) plainColumn(column []int32) bool {
	for _, i := range column {
		if _, ok := s.plain(i); !ok || (s.text[s.parts[i].start] == '"') != (s.text[s.parts[column[0]].start] == '"') {
			return false
		}
	}
	return true
}

// derive finds the leaves whose values can be made from other leaves.
func (s *script) derive(k *kind) {
	if len(k.leaves) > maxTemplated {
		return
	}
	plain := make([]bool, len(k.leaves))
	order := make([]int32, len(k.leaves))
	for i := range k.leaves {
		plain[i], order[i] = s.plainColumn(k.leaves[i].column), int32(i)
	}
	// Leaves with long values come first, since long values are derived from short ones.
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(len(s.str(k.leaves[b].column[0])), len(s.str(k.leaves[a].column[0])))
	})
	for _, of := range order {
		l := &k.leaves[of]
		if l.base {
			continue
		}
		if s.alias(k, of); l.derived || !plain[of] || s.text[s.parts[l.column[0]].start] != '"' {
			continue
		}
		s.deriveOne(k, of, plain)
	}
}

// alias looks for a second leaf that has the same value in every object as the first leaf, which has the given index. If there
// is a second leaf, alias marks the first as derived, so that its value is taken from the second.
func (s *script) alias(k *kind, index int32) {
	l := &k.leaves[index]
	for j := range k.leaves {
		other := &k.leaves[j]
		if int32(j) == index || other.derived || !s.alike(l.column, other.column) {
			continue
		}
		l.derived, l.template, other.base = true, []piece{{leaf: int32(j)}}, true
		return
	}
}

func (s *script) alike(a, b []int32) bool {
	for o := range a {
		if s.str(a[o]) != s.str(b[o]) {
			return false
		}
	}
	return true
}

// deriveOne makes a template for the leaf with this index, if the strings of the leaf contain the values of other leaves.
func (s *script) deriveOne(k *kind, index int32, plain []bool) {
	l := &k.leaves[index]
	n := len(l.column)
	first, _ := s.plain(l.column[0])
	last, _ := s.plain(l.column[n-1])
	var bases []int32
	for j := range k.leaves {
		other := &k.leaves[j]
		if int32(j) == index || other.derived || !plain[j] {
			continue
		}
		a, _ := s.plain(other.column[0])
		b, _ := s.plain(other.column[n-1])
		if a == "" || b == "" || len(a) > len(first) {
			continue
		}
		if times := strings.Count(first, a); times > 0 && times == strings.Count(last, b) {
			bases = append(bases, int32(j))
		}
	}
	slices.SortStableFunc(bases, func(a, b int32) int {
		return cmp.Compare(len(s.str(k.leaves[b].column[0])), len(s.str(k.leaves[a].column[0])))
	})
	for try := range min(len(bases)+1, 5) {
		some := bases
		if try > 0 {
			some = bases[try-1 : try]
		} else if len(bases) < 2 {
			continue
		}
		template := s.templateOf(k, first, some)
		if !s.follows(k, l.column, template) {
			continue
		}
		l.derived, l.template = true, template
		for _, p := range template {
			if p.leaf >= 0 {
				k.leaves[p.leaf].base = true
			}
		}
		return
	}
}

// templateOf turns text, the value of one leaf in the first object of k, into a template. bases are the indexes of other leaves.
// Wherever text contains the value that one of these leaves has in the first object, the template refers to that leaf instead.
func (s *script) templateOf(k *kind, text string, bases []int32) []piece {
	pieces := []piece{{literal: text, leaf: -1}}
	for _, base := range bases {
		value, _ := s.plain(k.leaves[base].column[0])
		var next []piece
		for _, p := range pieces {
			if p.leaf >= 0 {
				next = append(next, p)
				continue
			}
			for n, literal := range strings.Split(p.literal, value) {
				if n > 0 {
					next = append(next, piece{leaf: base})
				}
				if literal != "" {
					next = append(next, piece{literal: literal, leaf: -1})
				}
			}
		}
		pieces = next
	}
	return pieces
}

// follows reports whether the template makes the right string for each part of a column, and has no literal that would need
// escapes.
func (s *script) follows(k *kind, column []int32, template []piece) bool {
	for _, p := range template {
		if strings.Contains(p.literal, "`") || strings.Contains(p.literal, "${") {
			return false
		}
	}
	for o, i := range column {
		rest, _ := s.plain(i)
		for _, p := range template {
			next := p.literal
			if p.leaf >= 0 {
				next, _ = s.plain(k.leaves[p.leaf].column[o])
			}
			var ok bool
			if rest, ok = strings.CutPrefix(rest, next); !ok {
				return false
			}
		}
		if rest != "" {
			return false
		}
	}
	return true
}

// stem sets the prefix and the suffix of a leaf if all its strings are web addresses. They are what the strings have in common at
// the beginning and at the end, cut at a mark such as a slash.
func (s *script) stem(l *leaf) {
	if l.derived || l.base {
		return
	}
	prefix, suffix, shortest := "", "", 0
	for o, i := range l.column {
		text, ok := s.plain(i)
		if !ok || s.text[s.parts[i].start] != '"' {
			return
		}
		if o == 0 {
			prefix, suffix, shortest = text, text, len(text)
			continue
		}
		prefix, suffix, shortest = prefix[:commonPrefix(prefix, text)], commonSuffix(suffix, text), min(shortest, len(text))
		if prefix == "" {
			return
		}
	}
	prefix = prefix[:strings.LastIndexAny(prefix, "/?=&#")+1]
	if !strings.Contains(prefix, "://") || len(prefix) < 12 || strings.Contains(prefix, "`") || strings.Contains(prefix, "${") {
		return
	}
	if at := strings.IndexAny(suffix, "/?&#"); at < 0 || len(prefix)+len(suffix)-at > shortest {
		suffix = ""
	} else {
		suffix = suffix[at:]
	}
	if strings.Contains(suffix, "`") || strings.Contains(suffix, "${") {
		suffix = ""
	}
	l.prefix, l.suffix = prefix, suffix
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func commonSuffix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return a[len(a)-n:]
}

// maxFallback is the longest default value, in bytes.
const maxFallback = 40

// fallback finds the default value of a leaf. This is a value of at most maxFallback bytes that at least 60 % of the objects have.
// There is no default value for a leaf that is derived or has a prefix, or if there are fewer than three objects.
func (s *script) fallback(l *leaf) {
	if l.derived || l.prefix != "" || len(l.column) < 3 {
		return
	}
	// This is the majority vote of Boyer and Moore: a value that more than half of the objects have is the candidate at the end.
	candidate, votes := "", 0
	for _, i := range l.column {
		switch value := s.str(i); {
		case votes == 0:
			candidate, votes = value, 1
		case value == candidate:
			votes++
		default:
			votes--
		}
	}
	if len(candidate) > maxFallback {
		return
	}
	times := 0
	for _, i := range l.column {
		if s.str(i) == candidate {
			times++
		}
	}
	if 10*times >= 6*len(l.column) {
		l.fallback, l.inFallback = candidate, times
	}
}

// order sorts the parameters of the JavaScript function for the objects of a kind. Parameters with a default come last, and the
// one that most calls can leave out is at the end.
func (s *script) order(k *kind) {
	for i := range k.leaves {
		if !k.leaves[i].derived {
			k.params = append(k.params, int32(i))
		}
	}
	slices.SortStableFunc(k.params, func(a, b int32) int {
		return cmp.Compare(k.leaves[a].inFallback, k.leaves[b].inFallback)
	})
}

// called returns how many arguments are written in the JavaScript call that makes one object: default values at the end are
// left out. The parameter k is the kind of the object, and the parameter object is its index in k.objects.
func (s *script) called(k *kind, object int) int {
	n := len(k.params)
	for n > 0 {
		l := &k.leaves[k.params[n-1]]
		if l.fallback == "" || s.str(l.column[object]) != l.fallback {
			break
		}
		n--
	}
	return n
}

// gain estimates how many bytes the JavaScript function for the objects of a kind saves.
func (s *script) gain(k *kind) int {
	n := len(k.objects)
	gain := s.bodyGain(k.members)*(n-1) - 6*n - 24
	for i := range k.leaves {
		l := &k.leaves[i]
		switch {
		case l.derived:
			gain += (n-1)*len(s.str(l.column[0])) - 4*len(l.template)
		case l.prefix != "":
			gain += (n - 1) * (len(l.prefix) + len(l.suffix))
		case l.fallback != "":
			gain += l.inFallback * (len(l.fallback) + 1) / 2
		}
		gain -= len(l.key) + 1
	}
	return gain
}

func (s *script) bodyGain(members []member) (gain int) {
	for _, m := range members {
		gain += len(m.key)
		if m.constant >= 0 {
			gain += len(s.str(m.constant))
		}
		gain += s.bodyGain(m.inner)
	}
	return gain
}
