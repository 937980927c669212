// Package learned stores the shapes of results of tools that declare no output type. A shape is the keys and the
// kinds of values in the results of a tool; it never contains a value.
//
// Keys may be confidential too. A key is shown only if it looks like an identifier and was in at least two results. On disk, a
// key that was in only one result is replaced by a hash; a key that does not look like an identifier is not stored at all. All
// work and memory is limited, whatever a server sends.
package learned

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strings"
)

const (
	// maxBytes is how many bytes of one result are read at most.
	maxBytes = 64 << 10
	// maxPlaces bounds the places in a shape. The bound is lower by fewerByLevel for each level of depth. So deep places cannot use
	// up all of it, and some is left for later places at higher levels.
	maxPlaces, fewerByLevel = 512, 56
	maxDepth                = 8
	// maxFields is the maximum number of keys at one place.
	maxFields = 128
)

// Shape is what is known about the results of one tool. It is not safe for concurrent use.
type Shape struct {
	results uint32 // how many results were added
	places  int    // how many places the shape has, including root
	root    place
	// salt is hashed together with each key that is replaced by a hash, so that the hashes of two tools differ.
	salt string
}

// place is a position in the JSON of results, such as the items of an array, with the kinds of all values that were at this
// position.
type place struct {
	kinds   kinds
	objects uint32   // how many objects were read completely
	fields  []*field // in the order in which they were first seen
	hashed  int      // how many fields have only a hash instead of a key
	items   *place   // the items of arrays; nil if no array had an item
	rest    *place   // the values of members for which there is no field; nil if there are none, or if there is no room
	others  uint32   // how many members have no field
	cut     bool     // some keys or values were not read
	blind   bool     // some items, or members without a field, were not recorded because the shape had too many places
	full    uint32   // the number of the last result with a key that had no room, so that dropRare is called once for each result
}

// field is a key that objects at one place in the JSON of results have. The embedded place is the position of the key's values.
type field struct {
	key         string // "" if only the hash is known, from the file
	hash        uint64
	seen        uint32 // how many of the completely read objects had the key
	first, last uint32 // the first and the last result that had the key, counted from 1
	// object is the number, from reader.objects, of the object that is being read at this place, if it has had the key. Otherwise
	// it is 0.
	object uint32
	place
}

type kinds uint8

const (
	isObject kinds = 1 << iota
	isArray
	isString
	isNumber
	isBoolean
	isNull
	allKinds = 1<<iota - 1
)

// common reports whether the key is known, not only its hash, and was in at least two results.
func (f *field) common() bool { return f.first != f.last && f.key != "" }

// Add learns from a result. The parameter json is valid JSON if the parameter cut is false. If cut is true, json is only the
// beginning of a longer text, and Add ignores json if it turns out not to be JSON.
func (s *Shape) Add(json []byte, cut bool) {
	if len(json) > maxBytes {
		json, cut = json[:maxBytes], true
	}
	if cut {
		trial := &reader{data: json, shape: &Shape{}}
		if trial.value(&trial.shape.root, 0); trial.broken {
			return
		}
	}
	if s.results == math.MaxUint32 {
		return
	}
	s.results++
	s.places = max(s.places, 1)
	(&reader{data: json, shape: s}).value(&s.root, 0)
}

// room reports whether a shape may get another place at this depth.
func (s *Shape) room(depth int) bool { return s.places < maxPlaces-fewerByLevel*depth }

// under returns the place in *slot. If *slot is nil, under first creates a place there, or returns nil if the shape is full.
func (s *Shape) under(slot **place, depth int) *place {
	if *slot == nil && s.room(depth) {
		*slot = new(place)
		s.places++
	}
	return *slot
}

// field returns the field of a key, and creates the field if necessary. It returns nil if the key gets no field, because it does
// not look like an identifier or there is no room. guess is the index at which the field is expected.
func (s *Shape) field(p *place, key []byte, guess, depth int) *field {
	if guess < len(p.fields) && len(key) > 0 && p.fields[guess].key == string(key) {
		return p.fields[guess]
	}
	if !identifier(key) {
		return nil
	}
	for _, f := range p.fields {
		if f.key == string(key) {
			return f
		}
	}
	if f := s.unhashed(p, key); f != nil {
		return f
	}
	if len(p.fields) == maxFields && p.full != s.results {
		p.full = s.results
		s.dropRare(p)
	}
	if len(p.fields) == maxFields || !s.room(depth) {
		p.cut = true
		return nil
	}
	f := &field{key: string(key), first: s.results}
	p.fields = append(p.fields, f)
	s.places++
	return f
}

// unhashed finds a field that was read from the file with only a hash, and sets its key. It returns nil if no field has the hash of
// the key.
func (s *Shape) unhashed(p *place, key []byte) *field {
	if p.hashed == 0 {
		return nil
	}
	hash := s.hash(string(key))
	i := slices.IndexFunc(p.fields, func(f *field) bool { return f.key == "" && f.hash == hash })
	if i < 0 {
		return nil
	}
	p.hashed--
	p.fields[i].key = string(key)
	return p.fields[i]
}

func (s *Shape) hash(key string) uint64 {
	sum := sha256.Sum256([]byte(s.salt + "\x00" + key))
	return binary.LittleEndian.Uint64(sum[:])
}

// dropRare removes the fields that only one earlier result had, to make space for other keys. What is known about
// their values is added to the place rest.
func (s *Shape) dropRare(p *place) {
	p.fields = slices.DeleteFunc(p.fields, func(f *field) bool {
		if f.first != f.last || f.last == s.results {
			return false
		}
		if f.key == "" {
			p.hashed--
		}
		if p.rest == nil {
			p.rest = new(place)
		}
		p.others += max(f.seen, 1)
		p.rest.merge(&f.place)
		return true
	})
	s.places = s.root.count()
}

// merge adds to p what is known about another place, o. The caller must not use o any more.
func (p *place) merge(o *place) {
	p.kinds |= o.kinds
	p.objects += o.objects
	p.others += o.others
	p.cut, p.blind = p.cut || o.cut, p.blind || o.blind
	for _, f := range o.fields {
		i := slices.IndexFunc(p.fields, func(own *field) bool { return own.key == f.key && own.hash == f.hash })
		switch {
		case i >= 0:
			own := p.fields[i]
			own.seen, own.first, own.last = own.seen+f.seen, min(own.first, f.first), max(own.last, f.last)
			own.merge(&f.place)
		case len(p.fields) < maxFields:
			p.fields = append(p.fields, f)
			if f.key == "" {
				p.hashed++
			}
		default:
			p.others += f.seen
			p.blind = true
		}
	}
	for _, part := range []struct {
		into **place
		from *place
	}{{&p.items, o.items}, {&p.rest, o.rest}} {
		switch {
		case part.from == nil:
		case *part.into == nil:
			*part.into = part.from
		default:
			(*part.into).merge(part.from)
		}
	}
}

// count returns the number of places in p, including p.
func (p *place) count() int {
	if p == nil {
		return 0
	}
	n := 1 + p.items.count() + p.rest.count()
	for _, f := range p.fields {
		n += f.count()
	}
	return n
}

// These are the limits for an identifier. Keys of real interfaces are within them, and few secrets are.
const (
	maxKey    = 40
	maxWord   = 20
	maxWords  = 7
	maxDigits = 4
	maxMixed  = 12 // characters of a part between underscores in which a letter follows a digit, such as oauth2token
)

// identifier reports whether a key looks like an identifier that a programmer has chosen, and not like a name from the data, a
// token or a sentence.
func identifier(key []byte) bool {
	if len(key) == 0 || len(key) > maxKey || digit(key[0]) {
		return false
	}
	words, word, digits, mixed, part, mixedPart := 0, 0, 0, 0, 0, false
	for i, c := range key {
		part++
		switch {
		case letter(c):
			if i > 0 && digit(key[i-1]) {
				mixed, mixedPart = mixed+1, true
			}
			if word == 0 || upper(c) && !upper(key[i-1]) {
				words, word = words+1, 0
			}
			word++
		case digit(c):
			digits++
		case c == '_' || c == '$':
			word, part, mixedPart = 0, 0, false
		default:
			return false
		}
		if word > maxWord || mixedPart && part > maxMixed {
			return false
		}
	}
	return digits <= maxDigits && mixed <= 1 && words <= maxWords && (words < 4 || len(key) >= 3*words)
}

func digit(c byte) bool  { return '0' <= c && c <= '9' }
func upper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func letter(c byte) bool { return upper(c) || 'a' <= c && c <= 'z' }

// reader adds one result to a shape. It reads each byte at most twice, and never beyond the end of the data.
type reader struct {
	data    []byte
	pos     int
	shape   *Shape
	objects uint32 // how many objects were begun
	broken  bool   // the data is not JSON
}

// next skips white space and returns the next byte without reading it; 0 at the end of the data.
func (r *reader) next() byte {
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// fail stops reading. It marks the data as broken, unless all of it was read. It always returns false.
func (r *reader) fail() bool {
	r.broken = r.broken || r.pos < len(r.data)
	return false
}

// value reads a value at a place and reports whether the value was complete. If p is nil, nothing is learned from the value.
func (r *reader) value(p *place, depth int) bool {
	c := r.next()
	kind := kindOf(c)
	if p != nil {
		p.kinds |= kind
	}
	switch {
	case kind == isString:
		_, ok := r.text()
		return ok
	case kind == isObject || kind == isArray:
		if p == nil || depth == maxDepth {
			if p != nil {
				p.cut = true
			}
			return r.skip()
		}
		r.pos++
		if kind == isObject {
			return r.object(p, depth)
		}
		return r.items(p, depth)
	case kind == 0:
		return r.fail()
	}
	for r.pos < len(r.data) && strings.IndexByte(" \t\r\n,]}:", r.data[r.pos]) < 0 {
		r.pos++
	}
	return true
}

func kindOf(c byte) kinds {
	switch c {
	case '{':
		return isObject
	case '[':
		return isArray
	case '"':
		return isString
	case 't', 'f':
		return isBoolean
	case 'n':
		return isNull
	}
	if c == '-' || digit(c) {
		return isNumber
	}
	return 0
}

// text reads a string and returns the bytes between its quotes, with escapes unchanged. ok is false if the string has no end.
func (r *reader) text() (written []byte, ok bool) {
	start := r.pos + 1
	for at := start; ; at++ {
		n := bytes.IndexByte(r.data[min(at, len(r.data)):], '"')
		if n < 0 {
			r.pos = len(r.data)
			return nil, false
		}
		at += n
		escapes := 0
		for at-escapes > start && r.data[at-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			r.pos = at + 1
			return r.data[start:at], true
		}
	}
}

// skip reads an object or array without learning from it, and reports whether it was complete. It is not recursive, so deep nesting
// does no harm.
func (r *reader) skip() bool {
	for open := 0; r.pos < len(r.data); {
		switch r.data[r.pos] {
		case '"':
			if _, ok := r.text(); !ok {
				return false
			}
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		if r.pos++; open == 0 {
			return true
		}
	}
	return false
}

func (r *reader) items(p *place, depth int) bool {
	for first := true; ; first = false {
		c := r.next()
		if c == ']' {
			r.pos++
			return true
		}
		if !first {
			if c != ',' {
				return r.fail()
			}
			r.pos++
		}
		into := r.shape.under(&p.items, depth+1)
		p.blind = p.blind || into == nil
		if !r.value(into, depth+1) {
			return false
		}
	}
}

func (r *reader) object(p *place, depth int) bool {
	r.objects++
	id := r.objects
	if !r.members(p, id, depth) { // it is not known which keys the incomplete object lacks
		p.cut = true
		for _, f := range p.fields {
			if f.object == id {
				f.object = 0
				f.seen--
			}
		}
		return false
	}
	p.objects++
	for _, f := range p.fields {
		if f.object == id {
			f.object = 0
		}
	}
	return true
}

func (r *reader) members(p *place, id uint32, depth int) bool {
	for guess := 0; ; guess++ {
		c := r.next()
		if c == '}' {
			r.pos++
			return true
		}
		if guess > 0 {
			if c != ',' {
				return r.fail()
			}
			r.pos++
			c = r.next()
		}
		if c != '"' {
			return r.fail()
		}
		key, ok := r.text()
		if !ok {
			return false
		}
		if r.next() != ':' {
			return r.fail()
		}
		r.pos++
		if !r.value(r.member(p, key, id, guess, depth), depth+1) {
			return false
		}
	}
}

// member returns the place for the value of a key; nil if the shape has no room for it.
func (r *reader) member(p *place, key []byte, id uint32, guess, depth int) *place {
	f := r.shape.field(p, key, guess, depth+1)
	if f == nil {
		p.others++
		into := r.shape.under(&p.rest, depth+1)
		p.blind = p.blind || into == nil
		return into
	}
	f.last = r.shape.results
	if f.object != id { // the key may occur twice in the object
		f.object = id
		f.seen++
	}
	return &f.place
}
