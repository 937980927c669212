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

// seals are the keys of one server, one for each kind of value, so that none passes for another.
type seals struct {
	client, page, login, code, access, refresh seal
	// id names the key and the resource.
	id string
}

// seal seals one kind of value: AES-256-GCM with a random nonce.
type seal struct {
	prefix string // of the text, so that people and scanners know it
	aead   cipher.AEAD
}

// newSeals derives the keys. Two resources with one secret have different ones.
func newSeals(secret *state.Secret, resource string) (s seals) {
	key := func(name string) []byte { return secret.Key("mcpx authorization server 1 " + name + " " + resource) }
	for name, into := range map[string]*seal{
		"client": &s.client, "page": &s.page, "login": &s.login, "code": &s.code, "access": &s.access, "refresh": &s.refresh,
	} {
		block, err := aes.NewCipher(key(name))
		if err != nil {
			panic(err) // the length of the key is right
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

// accessPrefix tells our access tokens from others.
const accessPrefix = "mcpx_at_"

// close seals v as text.
func (s seal) close(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // only types of this package, without anything that has no JSON
	}
	return s.prefix + base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, data, nil))
}

var errSeal = errors.New("it is none of this server, or was sealed with another key")

// open reads what close made.
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

// random is 128 random bits as text.
func random() string {
	bits := make([]byte, 16)
	_, _ = rand.Read(bits) // it never fails
	return base64.RawURLEncoding.EncodeToString(bits)
}

// digest is a short stand-in for a text that is compared with another.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
