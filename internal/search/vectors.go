package search

import (
	_ "embed"
	"encoding/binary"
	"math"
	"strings"
	"sync"
)

// vectorTable has a word vector for each piece (word or part of a word) of the vocabulary, in the same order; tools/embed makes
// it. First it has a step size for each piece, in two bytes. Then it has 128 numbers of four bits for each piece, where the
// number n stands for n-8 steps.
var (
	//go:embed vectors.bin
	vectorTable string
	//go:embed vocabulary.txt
	vocabulary string
)

// dimensions is the length of a vector.
const dimensions = 128

type vector [dimensions]float32

// pieces maps each piece of the vocabulary to its number. It is made at the first use.
var pieces = sync.OnceValue(func() map[string]uint16 {
	m := make(map[string]uint16, 28000)
	for p := range strings.FieldsSeq(vocabulary) {
		m[p] = uint16(len(m))
	}
	return m
})

// piecesOf splits a folded word into the longest known pieces. It returns nil if a part of the word is unknown.
func piecesOf(word string) []uint16 {
	known := pieces()
	var out []uint16
	for rest, prefix := word, ""; rest != ""; prefix = "##" {
		end := len(rest)
		for ; end > 0; end-- {
			if id, ok := known[prefix+rest[:end]]; ok {
				out = append(out, id)
				break
			}
		}
		if end == 0 {
			return nil
		}
		rest = rest[end:]
	}
	return out
}

// add adds the vector of a piece, multiplied by weight.
func (v *vector) add(piece uint16, weight float32) {
	n := len(vectorTable) / (2 + dimensions/2)
	at := 2 * int(piece)
	step := weight * float32(binary.LittleEndian.Uint16([]byte(vectorTable[at:at+2])))
	row := vectorTable[2*n+int(piece)*dimensions/2:][:dimensions/2]
	for i := range len(row) {
		v[2*i] += step * float32(int8(row[i]&15)-8)
		v[2*i+1] += step * float32(int8(row[i]>>4)-8)
	}
}

// word adds the vectors of the pieces of a folded word.
func (v *vector) word(text string, weight float32) {
	for _, p := range piecesOf(text) {
		v.add(p, weight)
	}
}

// plus adds w, multiplied by share.
func (v *vector) plus(w *vector, share float32) {
	for i := range v {
		v[i] += share * w[i]
	}
}

// dot is the scalar product. It has four independent sums, which is faster.
func (v *vector) dot(w *vector) float32 {
	var a, b, c, d float32
	for i := 0; i < dimensions; i += 4 {
		a += v[i] * w[i]
		b += v[i+1] * w[i+1]
		c += v[i+2] * w[i+2]
		d += v[i+3] * w[i+3]
	}
	return a + b + c + d
}

// seenFrom makes v a unit vector, and then replaces it by the unit vector that points from centre to it. This removes what all
// tools have in common, which does not tell them apart. The zero vector, of a text without known words, stays zero, so it is near
// to nothing.
func (v *vector) seenFrom(centre *vector) {
	if *v == (vector{}) {
		return
	}
	v.unit()
	v.plus(centre, -1)
	v.unit()
}

func (v *vector) unit() {
	if n := v.dot(v); n > 0 {
		scale(v[:], 1/float32(math.Sqrt(float64(n))))
	}
}

// vectors returns a vector for each document: the sum of the vectors of its words, each multiplied by the weight of the word.
// texts[t] is a word with the stem t, or empty if t stands for no word.
func (p *postings) vectors(texts []string) []vector {
	out := make([]vector, p.docs)
	for t, text := range texts {
		var v vector
		v.word(text, 1)
		list := p.of(uint32(t))
		weight := idf(p.docs, float32(len(list)))
		for _, e := range list {
			out[e.doc].plus(&v, weight*e.impact)
		}
	}
	return out
}

// addVectors makes the vectors of the tools, from their words and the words of their servers.
func (x *Index) addVectors(texts []string) {
	x.vectors = x.tool.vectors(texts)
	for i, s := range x.srv.vectors(texts) {
		for d := x.servers[i].first; d < x.servers[i].end; d++ {
			x.vectors[d].plus(&s, serverShare)
		}
	}
	for i := range x.vectors {
		x.vectors[i].unit()
		x.centre.plus(&x.vectors[i], 1/float32(len(x.vectors)))
	}
	for i := range x.vectors {
		x.vectors[i].seenFrom(&x.centre)
	}
}
