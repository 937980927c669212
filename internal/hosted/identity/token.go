package identity

import (
	"crypto/rand"
	"math/big"
	"net/http"
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

// maxToken bounds a token, in bytes. The longest are JWTs with many groups.
const maxToken = 16 << 10

// Bearer is the token in the Authorization header (RFC 6750, section 2.1). One in the query does
// not count: MCP forbids that. The error is ErrNone, also for another scheme than Bearer, or
// ErrMalformed.
func Bearer(header http.Header) (string, error) {
	values := header["Authorization"]
	switch {
	case len(values) == 0:
		return "", ErrNone
	case len(values) > 1:
		return "", ErrMalformed
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", ErrNone
	}
	token = strings.TrimLeft(token, " ")
	if token == "" || len(token) > maxToken {
		return "", ErrMalformed
	}
	for i := range len(token) {
		if !tokenByte[token[i]] {
			return "", ErrMalformed
		}
	}
	return token, nil
}

// tokenByte has the bytes that a token may have (b64token of RFC 6750).
var tokenByte = func() (is [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=") {
		is[c] = true
	}
	return is
}()
