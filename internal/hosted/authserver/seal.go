package authserver

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	"mcpx/internal/base/state"
)

// seals are the encryption keys of one server. Each kind of value has its own key, so that no value is accepted as
// another kind.
type seals struct {
	client, page, login, code, access, refresh seal
	// id is different for each combination of secret and resource.
	id string
}

// seal encrypts one kind of value with AES-256-GCM and a random nonce.
type seal struct {
	prefix string // start of the encrypted string, by which users and secret scanners recognize it
	aead   cipher.AEAD
}

// newSeals derives the keys from secret. They differ between resources, even if the secret is the same.
func newSeals(secret *state.Secret, resource string) (s seals) {
	key := func(name string) []byte { return secret.Key("mcpx authorization server 1 " + name + " " + resource) }
	for name, into := range map[string]*seal{
		"client": &s.client, "page": &s.page, "login": &s.login, "code": &s.code, "access": &s.access, "refresh": &s.refresh,
	} {
		block, err := aes.NewCipher(key(name))
		if err != nil {
			panic(err) // impossible: the key has the right length
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			panic(err)
		}
		*into = seal{map[string]string{"client": "mcpx_client_", "access": accessPrefix, "refresh": "mcpx_rt_"}[name], aead}
	}
	s.id = hex.EncodeToString(key("id")[:6])
	return s
}

// accessPrefix is the beginning of the access tokens of this server.
const accessPrefix = "mcpx_at_"

// close encrypts v and returns it as a string.
func (s seal) close(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // impossible: all types of this package can be encoded
	}
	return s.prefix + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, data, nil))
}

var errSeal = errors.New("not issued by this server, or issued under another key")

// open decrypts a string made by close, into the value that into points to.
func (s seal) open(text string, into any) error {
	text, ok := strings.CutPrefix(text, s.prefix)
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || !ok || len(sealed) < s.aead.Overhead() {
		return errSeal
	}
	data, err := s.aead.Open(nil, nil, sealed, nil)
	if err != nil {
		return errSeal
	}
	return json.Unmarshal(data, into)
}

// random returns 128 random bits in base64url.
func random() string {
	bits := make([]byte, 16)
	_, _ = rand.Read(bits) // never fails
	return base64.RawURLEncoding.EncodeToString(bits)
}

// digest returns the SHA-256 hash of a string in base64url.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
