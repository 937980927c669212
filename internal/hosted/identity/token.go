package identity

import (
	"crypto/rand"
	"math/big"
	"strings"
)

// tokenPrefix lets scanners of repositories find a token that somebody has committed.
const tokenPrefix = "mcpx_"

// tokenDigits is the length of 160 bits in base 62.
const tokenDigits = 27

// NewToken makes a token of 160 random bits: with so many the config can have its plain SHA-256,
// which nobody can invert by trying.
func NewToken() string {
	bits := make([]byte, 20)
	_, _ = rand.Read(bits) // it never fails
	digits := new(big.Int).SetBytes(bits).Text(62)
	return tokenPrefix + strings.Repeat("0", tokenDigits-len(digits)) + digits
}
