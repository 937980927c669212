package tokens

import (
	"compress/gzip"
	"container/heap"
	_ "embed"
	"io"
	"strings"
	"sync"
)

// packed has the texts of the tokens of o200k_base, compressed, in the order of their ranks (numbers). First it has the length of
// each text in one byte, then all texts. TestTable makes the file.
//
//go:embed o200k.gz
var packed string

// ranks is the number of tokens. Each token has a rank, from 0 on.
const ranks = 199_998

// vocabulary contains the texts of all tokens. The [table] has only their hashes.
type vocabulary struct {
	texts  []byte
	starts []uint32 // the start of each token in texts, by rank, and the end of the last one
}

// o200k unpacks the vocabulary at the first call: that takes 10 ms, and 2.4 MB of memory for good.
var o200k = sync.OnceValue(func() *vocabulary {
	var all []byte
	r, err := gzip.NewReader(strings.NewReader(packed))
	if err == nil {
		all, err = io.ReadAll(r)
	}
	if err != nil {
		panic("unpacking the vocabulary: " + err.Error()) // it is built in
	}
	v := &vocabulary{texts: all[ranks:], starts: make([]uint32, ranks+1)}
	for i, n := range all[:ranks] {
		v.starts[i+1] = v.starts[i] + uint32(n)
	}
	return v
})

// rank returns the rank of the token s, or noRank if s is not a token. When parts of a piece are merged, the pair whose token has
// the lowest rank comes first.
func (v *vocabulary) rank(s string) uint32 {
	e, end, fingerprint := bucket(hash(s))
	for ; e < end; e += 4 {
		entry := le32(table, e)
		r := entry >> fingerprintBits
		if entry&(1<<fingerprintBits-1) == fingerprint && string(v.texts[v.starts[r]:v.starts[r+1]]) == s {
			return r
		}
	}
	return noRank
}

// Count returns the exact number of o200k_base tokens of s, which must be valid UTF-8. The first call takes 10 ms, and 2.4 MB
// of memory for good, so code that serves requests uses [Estimate] instead.
func Count(s string) int {
	v, n := o200k(), 0
	for i := 0; i < len(s); {
		end := nextPiece(s, i)
		if p := s[i:end]; v.rank(p) != noRank {
			n++
		} else {
			n += v.merge(p)
		}
		i = end
	}
	return n
}

// merge counts the tokens of one piece as the function [merge] does, but for a piece of any length n. It takes time in proportion
// to n log n.
func (v *vocabulary) merge(p string) int {
	// At first, each byte is a part. A part is identified by the position at which it begins. For each part, last and next have the
	// positions of the parts before and after it.
	last, next := make([]int, len(p)+1), make([]int, len(p)+1)
	for i := range next {
		last[i], next[i] = i-1, i+1
	}
	var pairs pairs
	push := func(start int) {
		if start >= 0 && next[start] < len(p) {
			end := next[next[start]]
			if r := v.rank(p[start:end]); r != noRank {
				heap.Push(&pairs, pair{r, start, end})
			}
		}
	}
	for i := range len(p) {
		push(i)
	}
	n := len(p)
	for len(pairs) > 0 {
		joined := heap.Pop(&pairs).(pair)
		middle := next[joined.start]
		if middle < 0 || middle >= len(p) || next[middle] != joined.end {
			continue // one of the two parts has been merged with another part meanwhile
		}
		n--
		next[middle] = -1
		next[joined.start], last[joined.end] = joined.end, joined.start
		push(last[joined.start])
		push(joined.start)
	}
	return n
}

// pair is two adjacent parts that are a token together.
type pair struct {
	rank       uint32
	start, end int
}

// pairs is a heap: the pair with the lowest rank comes first and, among equal ranks, the one that begins first.
type pairs []pair

func (h pairs) Len() int      { return len(h) }
func (h pairs) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h pairs) Less(i, j int) bool {
	return h[i].rank < h[j].rank || h[i].rank == h[j].rank && h[i].start < h[j].start
}
func (h *pairs) Push(x any) { *h = append(*h, x.(pair)) }
func (h *pairs) Pop() any {
	end := len(*h) - 1
	x := (*h)[end]
	*h = (*h)[:end]
	return x
}
