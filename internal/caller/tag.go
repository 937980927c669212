package caller

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"

	"mcpx/internal/base/state"
)

// Tags makes tags: MACs (message authentication codes) by which mcpx recognizes values that it gave to a client, without storing
// them. Examples are the ids of a server's tasks. A tag is valid for one principal, in every process that has the secret with which
// the tag was made.
type Tags struct{ keys [][]byte }

// tagLen is the length of a tag in characters. All characters of a tag may occur in a URL.
const tagLen = 22

// NewTags derives keys from the secrets. Different purposes get different keys. New tags are made with the first secret. A tag is
// recognized if it was made with any of the secrets. Without secrets, the key is random.
func NewTags(secrets []*state.Secret, purpose string) *Tags {
	if len(secrets) == 0 {
		secrets = []*state.Secret{state.NewSecret()}
	}
	t := new(Tags)
	for _, secret := range secrets {
		t.keys = append(t.keys, secret.Key(purpose))
	}
	return t
}

// Of returns the tag for these values, in this order, and this principal.
func (t *Tags) Of(p *Principal, values ...string) string { return tagOf(t.keys[0], p, values) }

func tagOf(key []byte, p *Principal, values []string) string {
	hash := hmac.New(sha256.New, key)
	for _, value := range append([]string{p.Key()}, values...) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(value))) // without the lengths, two lists could give the same bytes
		hash.Write(size[:])
		hash.Write([]byte(value))
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil))[:tagLen]
}

// Is reports whether the method Of made tag for these values and this principal, with any of the secrets.
func (t *Tags) Is(tag string, p *Principal, values ...string) bool {
	for _, key := range t.keys {
		if subtle.ConstantTimeCompare([]byte(tag), []byte(tagOf(key, p, values))) == 1 {
			return true
		}
	}
	return false
}
