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

// seals are the encryption keys of one server, one for each kind of value, so that no kind is accepted as another.
type seals struct {
	client, page, login, code, access, refresh seal
	// id identifies the secret and the resource.
	id string
}

// seal encrypts one kind of value with AES-256-GCM and a random nonce.
type seal struct {
	prefix string // of the text, for users and secret scanners
	aead   cipher.AEAD
}

// newSeals derives the keys. They differ between resources, even with the same secret.
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

// accessPrefix marks the access tokens of this server.
const accessPrefix = "mcpx_at_"

// close encrypts v as text.
func (s seal) close(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // impossible: all types of this package encode
	}
	return s.prefix + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, data, nil))
}

var errSeal = errors.New("not issued by this server, or issued under another key")

// open decrypts a text made by close into a value.
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

// random returns 128 random bits as text.
func random() string {
	bits := make([]byte, 16)
	_, _ = rand.Read(bits) // it never fails
	return base64.RawURLEncoding.EncodeToString(bits)
}

// digest is the SHA-256 of a text in base64url.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
