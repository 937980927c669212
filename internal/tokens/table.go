package tokens

import (
	_ "embed"
	"math"
	"math/bits"
)

// The table maps the hash of every token of o200k_base to its rank: the hash selects one of 2^16 buckets and a 14-bit fingerprint.
// First come the starts of all buckets and the end of the last bucket. Then comes an entry for each token: rank<<14 | fingerprint.
// All numbers are uint32, little endian. About 1 of 5,000 look-ups finds a rank for a text that is not a token. TestTable makes the
// file (go test ./internal/tokens -run TestTable -update).
//
//go:embed o200k.bin
var table string

const (
	bucketBits      = 16
	fingerprintBits = 14
	entriesAt       = 4 * (1<<bucketBits + 1)
	longestToken    = 128 // bytes
	noRank          = math.MaxUint32
)

// rank returns the rank of the token s, or noRank if the table has no such token.
func rank(s string) uint32 {
	e, end, fingerprint := bucket(hash(s))
	for ; e < end; e += 4 {
		if v := le32(table, e); v&(1<<fingerprintBits-1) == fingerprint {
			return v >> fingerprintBits
		}
	}
	return noRank
}

// bucket returns the range of the table with the entries of a hash, and the fingerprint of the hash.
func bucket(h uint64) (start, end int, fingerprint uint32) {
	b := int(h>>(64-bucketBits)) * 4
	fingerprint = uint32(h>>(64-bucketBits-fingerprintBits)) & (1<<fingerprintBits - 1)
	return entriesAt + 4*int(le32(table, b)), entriesAt + 4*int(le32(table, b+4)), fingerprint
}

func le32(s string, i int) uint32 {
	_ = s[i+3]
	return uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24
}

func le64(s string, i int) uint64 {
	_ = s[i+7]
	return uint64(le32(s, i)) | uint64(le32(s, i+4))<<32
}

// hash mixes s eight bytes at a time. If hash is changed, the table must be made again.
func hash(s string) uint64 {
	const k0, k1 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := uint64(len(s)) * k0
	for len(s) > 8 {
		h = mix(h^le64(s, 0), k1)
		s = s[8:]
	}
	switch {
	case len(s) >= 4:
		h ^= uint64(le32(s, 0))<<32 | uint64(le32(s, len(s)-4))
	case len(s) > 0:
		h ^= uint64(s[0])<<16 | uint64(s[len(s)/2])<<8 | uint64(s[len(s)-1])
	}
	return mix(mix(h, k1), k0)
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
