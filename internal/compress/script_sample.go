package compress

import (
	"encoding/binary"
	"strings"
)

// JavaScript is tried only if the samples of a text repeat enough. Samples are parts spread over the text, or the whole text if
// it is short.
const (
	scriptParts = 4
	partBytes   = 1 << 10
	minRepeated = 8 // percent of the samples that must repeat, or else JavaScript is not tried
)

// promising reports whether JavaScript may save tokens. That is so if enough of the samples is in strings that repeat, such as
// keys, values and beginnings of addresses. To look at samples is much faster than to write JavaScript.
func promising(text string) bool {
	var seen stringSet
	if len(text) <= scriptParts*partBytes {
		return seen.repeated(text)*100 >= len(text)*minRepeated
	}
	repeated := 0
	for n := range scriptParts {
		at := n * (len(text) - partBytes) / (scriptParts - 1)
		sample := text[at : at+partBytes]
		// The sample may begin within a string. A quote before a colon mostly ends a key, so the sample is read from there. If
		// the quote is an escaped one within a string, the estimate is only less exact.
		if start := strings.Index(sample, `":`); start >= 0 {
			repeated += seen.repeated(sample[start+1:])
		} else {
			repeated += partBytes // a long string or a list of scalars: the sample says nothing
		}
	}
	return repeated*100 >= scriptParts*partBytes*minRepeated
}

// stringSet is a small set of hashes. A new hash replaces another one at the same index, so the set forgets some of them.
type stringSet [512]uint64

// again adds a hash and reports whether it was in the set.
func (set *stringSet) again(h uint64) bool {
	h = h*0x9e3779b97f4a7c15 | 1
	at := &set[h>>55]
	before := *at
	*at = h
	return before == h
}

// hashOf returns a hash of the length, the beginning and the end of a string. To hash all of a long string takes too long.
func hashOf(s string) uint64 {
	h := uint64(len(s))
	if len(s) >= 8 {
		return h ^ binary.LittleEndian.Uint64([]byte(s[:8])) ^ binary.LittleEndian.Uint64([]byte(s[len(s)-8:]))<<1
	}
	for i := range len(s) {
		h = h<<8 ^ uint64(s[i])
	}
	return h
}

// repeated returns how many bytes of a part of a JSON text are in strings that repeat, or in the beginnings of paths that repeat. A
// repeated key is only included if the key before it is the same as the last time, as in objects of one kind. The part must not
// begin within a string.
func (set *stringSet) repeated(text string) (size int) {
	key := uint64(0) // hash of the previous key
	for {
		start := strings.IndexByte(text, '"')
		if start < 0 {
			return size
		}
		end := start + 1
		for end < len(text) && text[end] != '"' {
			if text[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(text) {
			return size
		}
		s := text[start+1 : end]
		text = text[end+1:]
		h := hashOf(s)
		if text != "" && text[0] == ':' {
			h, key = h+3*key, h
		}
		if set.again(h) {
			size += len(s) + 2
		} else if slash := strings.LastIndexByte(s, '/'); slash > 10 && set.again(hashOf(s[:slash])) {
			size += slash
		}
	}
}
