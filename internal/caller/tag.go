package caller

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"

	"mcpx/internal/base/state"
)

// Tags are MACs by which mcpx knows values again that it gave to a client, such as the ids of a
// server's tasks, without keeping them. A value with its tag is valid for the same principal
// alone, in all processes with the same secret.
type Tags struct{ key []byte }

// tagLen is the length of a tag, of characters that are safe in a URL.
const tagLen = 22

// NewTags makes Tags whose key is derived for a purpose; without a secret it is random.
func NewTags(secret *state.Secret, purpose string) *Tags {
	if secret == nil {
		secret = state.NewSecret()
	}
	return &Tags{secret.Key(purpose)}
}

// Of is the tag of some values, in their order, for a principal.
func (t *Tags) Of(p *Principal, values ...string) string {
	hash := hmac.New(sha256.New, t.key)
	for _, value := range append([]string{p.Key()}, values...) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(value))) // so that no two lists are one text
		hash.Write(size[:])
		hash.Write([]byte(value))
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil))[:tagLen]
}

// Is reports whether a tag is that of the values for a principal.
func (t *Tags) Is(tag string, p *Principal, values ...string) bool {
	return subtle.ConstantTimeCompare([]byte(tag), []byte(t.Of(p, values...))) == 1
}
