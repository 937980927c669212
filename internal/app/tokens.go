package app

import (
	"crypto/sha256"
	"encoding/hex"

	"mcpx/internal/hosted/identity"
)

// NewToken makes a token for a client over HTTP. The config keeps its digest alone, a
// SHA-256 in hexadecimal.
func NewToken() (token, digest string) {
	token = identity.NewToken()
	sum := sha256.Sum256([]byte(token))
	return token, hex.EncodeToString(sum[:])
}
