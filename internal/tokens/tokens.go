// Package tokens counts the tokens of a text for a model.
//
// [Estimate] and [Ceiling] are for code that serves requests: they split a text by the rule of o200k_base, look its pieces up in a
// table of 1 MB in the binary, and allocate nothing. [Count] is exact, but unpacks the texts of the tokens; it is for tools and
// tests.
package tokens

import "unicode/utf8"

// maxMerge is the length, in bytes, of the longest piece that is merged as a whole. A longer piece that is no token, such as
// base64 or a long row of dashes, is cut. So the time for merging grows only in proportion to the text. A cut adds about one
// token at most.
const maxMerge = 64

// Estimate returns the number of o200k_base tokens of s, on real texts within 0.1 % of [Count].
func Estimate(s string) int {
	n := 0
	for i := 0; i < len(s); {
		end := nextPiece(s, i)
		n += pieceTokens(s[i:end])
		i = end
	}
	return n
}

// Sample estimates the o200k_base tokens of a long text from n samples of it. Each sample has the length size, in bytes. If the
// text is not longer than the samples together, Sample reads all of it.
func Sample(s string, n, size int) int {
	if len(s) <= n*size {
		return Estimate(s)
	}
	sum, stride := 0, len(s)/n
	for i := range n {
		sum += Estimate(s[i*stride : i*stride+size])
	}
	return sum * len(s) / (n * size)
}

// Ceiling returns [Estimate] plus half a percent, for budgets that must not be exceeded. An estimate can be slightly too low,
// because the table gives a rank to a few texts that are no tokens.
func Ceiling(s string) int {
	n := Estimate(s)
	return n + (n+199)/200
}

func pieceTokens(p string) int {
	if len(p) == 1 {
		return 1
	}
	if len(p) <= longestToken && rank(p) != noRank {
		return 1
	}
	if len(p) == 2 {
		return 2
	}
	if len(p) <= maxMerge {
		return merge(p)
	}
	return longPiece(p)
}

// longPiece returns the number of tokens of a piece that is too long to be merged as a whole, and so is cut.
func longPiece(p string) int {
	n := 0
	var last string // what was last cut off from p; the next cut often takes the same text, for example from a row of dashes
	var lastTokens int
	for len(p) > maxMerge {
		if len(p) >= longestToken && rank(p[:longestToken]) != noRank {
			n++
			p = p[longestToken:]
			continue
		}
		cut := maxMerge
		for cut > maxMerge-utf8.UTFMax && !utf8.RuneStart(p[cut]) {
			cut--
		}
		if p[:cut] != last {
			last, lastTokens = p[:cut], merge(p[:cut])
		}
		n += lastTokens
		p = p[cut:]
	}
	return n + merge(p)
}

// merge counts the tokens of one piece by byte-pair encoding. Two adjacent parts become one part, always the pair with the lowest
// rank first, until no pair is a token. The piece must have at most maxMerge bytes.
func merge(p string) int {
	var at [maxMerge + 2]uint8     // start of each part, then the end of the last part
	var ranks [maxMerge + 1]uint32 // rank of part i joined with part i+1
	n := parts(p, &at)
	for i := 0; i+1 < n; i++ {
		ranks[i] = rank(p[at[i]:at[i+2]])
	}
	for n > 1 {
		low, lowest := 0, uint32(noRank)
		for i, r := range ranks[:n-1] {
			if r < lowest {
				low, lowest = i, r
			}
		}
		if lowest == noRank {
			break
		}
		n--
		for i := low + 1; i < n; i++ {
			at[i], ranks[i] = at[i+1], ranks[i+1]
		}
		at[n] = at[n+1]
		if low+1 < n {
			ranks[low] = rank(p[at[low]:at[low+2]])
		}
		if low > 0 {
			ranks[low-1] = rank(p[at[low-1]:at[low+1]])
		}
	}
	return n
}

// parts fills starts with the positions of the parts with which merging begins. A part is a character that is a token, or a
// single byte of another character. The bytes of a character nearly always merge first; to skip these merges makes most scripts
// three times as fast.
func parts(p string, starts *[maxMerge + 2]uint8) int {
	n := 0
	for i := 0; i < len(p); {
		starts[n] = uint8(i)
		n++
		if p[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRuneInString(p[i:])
		if size > 1 && rank(p[i:i+size]) == noRank {
			size = 1
		}
		i += size
	}
	starts[n] = uint8(len(p))
	return n
}
