package state

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Secret is the secret that keys are derived from. Processes with the same secret have the same keys, so each can
// open what another has sealed. It is immutable.
type Secret struct{ secret []byte }

// leastSecret is the minimum length of a secret file, in bytes.
const leastSecret = 32

// NewSecret makes a random secret for the lifetime of this process.
func NewSecret() *Secret {
	s := &Secret{make([]byte, sha256.Size)}
	_, _ = rand.Read(s.secret) // it never fails
	return s
}

// SecretOf makes a secret from bytes that the user has chosen, at least 32.
func SecretOf(secret []byte) *Secret { return &Secret{bytes.Clone(secret)} }

// SecretFile reads a secret from a file, or creates the file with a random secret. If two processes do so at the same
// time, one creates the file and both read it.
func SecretFile(path string) (*Secret, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
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
	secret, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if secret = bytes.TrimSpace(secret); len(secret) < leastSecret {
		return nil, fmt.Errorf("%s is too short for a key: delete it", path)
	}
	return &Secret{secret}, nil
}

// Key derives a key of 32 bytes (HKDF-SHA256, RFC 5869), which reveals nothing about keys for other purposes. The
// purpose names the package and the use of the key. It must never change, or sealed data cannot be opened any more.
func (s *Secret) Key(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, s.secret, nil, purpose, sha256.Size)
	if err != nil {
		panic(err) // impossible for 32 bytes
	}
	return key
}
