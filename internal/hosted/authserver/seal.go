package authserver

import (
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"mcpx/internal/base/state"
)

// seals are the encryption keys of one server. Each kind of value has its own key, so that no value is accepted as another kind.
type seals struct {
	client, page, login, code, access, refresh, grant seal
}

// seal encrypts one kind of value with AES-256-GCM and a random nonce.
type seal struct {
	// prefix is the beginning of encrypted strings that users see, so that users and secret scanners recognize them. It is empty
	// for kinds of values that users do not see.
	prefix string
	// aeads has one cipher for each secret. close encrypts with the first cipher, open tries all of them.
	aeads []cipher.AEAD
}

// newSeals derives the keys from the secrets. The keys differ between resources, even if the secrets are the same.
func newSeals(secrets []*state.Secret, resource string) (s seals) {
	for _, secret := range secrets {
		s.add(secret, resource)
	}
	return s
}

func (s *seals) add(secret *state.Secret, resource string) {
	for name, into := range map[string]*seal{
		"client": &s.client, "page": &s.page, "login": &s.login, "code": &s.code, "access": &s.access, "refresh": &s.refresh,
		"grant": &s.grant,
	} {
		// Replicas of two versions of mcpx may run side by side for a while. If the versions put different data into tokens,
		// neither may accept tokens of the other. So whoever changes this data must raise the number here. Client IDs have a number
		// of their own, because they are the same in all versions.
		version := "2"
		if name == "client" {
			version = "1"
		}
		into.prefix = map[string]string{"client": "mcpx_client_", "access": accessPrefix, "refresh": "mcpx_rt_"}[name]
		into.aeads = append(into.aeads, secret.Cipher("mcpx authorization server "+version+" "+name+" "+resource))
	}
}

// accessPrefix is the beginning of the access tokens of this server.
const accessPrefix = "mcpx_at_"

// close encrypts v and returns it as a string.
func (s seal) close(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // impossible: all types of this package can be encoded
	}
	return s.prefix + base64.RawURLEncoding.EncodeToString(s.aeads[0].Seal(nil, nil, data, nil))
}

var errSeal = errors.New("not issued by this server, or issued under another key")

// open decrypts a string made by close, and decodes it into the value that target points to.
func (s seal) open(text string, target any) error {
	text, ok := strings.CutPrefix(text, s.prefix)
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || !ok {
		return errSeal
	}
	for _, aead := range s.aeads {
		if data, err := aead.Open(nil, nil, sealed, nil); err == nil {
			return json.Unmarshal(data, target)
		}
	}
	return errSeal
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
