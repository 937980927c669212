package caller

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"

	"mcpx/internal/base/state"
)

// Tags makes MACs by which mcpx recognizes values that it gave to a client (for example the ids of a server's
// tasks) without storing them. A tag is valid for one principal, in every process that has the same secret.
type Tags struct{ key []byte }

// tagLen is the length of a tag in characters, which all may occur in a URL.
const tagLen = 22

// NewTags derives a key from the secret, different for each purpose. If secret is nil, the key is random.
func NewTags(secret *state.Secret, purpose string) *Tags {
	if secret == nil {
		secret = state.NewSecret()
	}
	return &Tags{secret.Key(purpose)}
}

// Of returns the tag for the values, in this order, and a principal.
func (t *Tags) Of(p *Principal, values ...string) string {
	hash := hmac.New(sha256.New, t.key)
	for _, value := range append([]string{p.Key()}, values...) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(value))) // so that different lists never hash the same bytes
		hash.Write(size[:])
		hash.Write([]byte(value))
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil))[:tagLen]
}

// Is reports whether tag is the one that the method Of returns for the values and the principal.
func (t *Tags) Is(tag string, p *Principal, values ...string) bool {
	return subtle.ConstantTimeCompare([]byte(tag), []byte(t.Of(p, values...))) == 1
}
