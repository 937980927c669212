package authserver

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// seals are the keys of one server, one for each kind of value, so that none passes for another.
type seals struct {
	client, page, login, code, access, refresh seal
	// id names the key and the resource, for the file of grants.
	id string
}

// seal seals one kind of value: AES-256-GCM with a random nonce.
type seal struct {
	prefix string // of the text, so that people and scanners know it
	aead   cipher.AEAD
}

// newSeals derives the keys. Two resources with one secret have different ones.
func newSeals(secret []byte, resource string) (s seals) {
	for name, into := range map[string]*seal{
		"client": &s.client, "page": &s.page, "login": &s.login, "code": &s.code, "access": &s.access, "refresh": &s.refresh,
	} {
		block, err := aes.NewCipher(derive(secret, name, resource))
		if err != nil {
			panic(err) // the length of the key is right
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			panic(err)
		}
		*into = seal{map[string]string{"client": "mcpx_client_", "access": accessPrefix, "refresh": "mcpx_rt_"}[name], aead}
	}
	s.id = hex.EncodeToString(derive(secret, "id", resource)[:6])
	return s
}

// accessPrefix tells our access tokens from others.
const accessPrefix = "mcpx_at_"

func derive(secret []byte, name, resource string) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "mcpx authorization server 1 "+name+" "+resource, 32)
	if err != nil {
		panic(err) // 32 bytes are not too many
	}
	return key
}

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

// keyFile reads the key in the folder, or makes it. Of two processes that make it at once, one
// succeeds, and both read that.
func keyFile(folder string) ([]byte, error) {
	path := filepath.Join(folder, "front.key")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(file, "%s\n", rand.Text()+rand.Text())
		err = errors.Join(err, file.Sync(), file.Close())
		if err != nil {
			_ = os.Remove(path)
			return nil, err
		}
	} else if !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	key, err := os.ReadFile(path)
	if key = bytes.TrimSpace(key); err == nil && len(key) < leastKey {
		err = fmt.Errorf("%s is too short for a key: delete it", path)
	}
	return key, err
}

// leastKey is the shortest secret, in bytes.
const leastKey = 32
