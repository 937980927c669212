package state

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
)

// Secret is what encryption keys are derived from. Processes with the same secret have the same keys, so each can decrypt what another
// has encrypted. A Secret is immutable.
type Secret struct{ secret []byte }

// minSecret and maxSecret are the limits of the secret in a file, in bytes.
const minSecret, maxSecret = 32, 64 << 10

// NewSecret returns a random secret. It is lost when this process ends.
func NewSecret() *Secret {
	s := &Secret{make([]byte, sha256.Size)}
	_, _ = rand.Read(s.secret) // it never fails
	return s
}

// SecretOf returns a Secret from bytes that the user has chosen. They must be at least 32 bytes.
func SecretOf(secret []byte) *Secret { return &Secret{bytes.Clone(secret)} }

// SecretFile reads a secret from a file. If the file does not exist, SecretFile creates it with a random secret. If two
// processes do this at the same time, one creates the file and both return the same secret. Links are followed, since
// Kubernetes mounts secrets as links. Except on Windows, SecretFile logs a warning if the file's mode gives other users any
// access.
func SecretFile(path string, log *slog.Logger) (*Secret, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		if err := makeSecret(path); err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // opening a named pipe could wait forever
		return nil, fmt.Errorf("%s is not a regular file (%v): delete it, and mcpx makes a new key", path, info.Mode())
	case info.Size() > maxSecret:
		return nil, fmt.Errorf("%s is too long for a key: delete it, and mcpx makes a new one", path)
	}
	secret, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if secret = bytes.TrimSpace(secret); len(secret) < minSecret {
		return nil, fmt.Errorf("%s is too short for a key: delete it, and mcpx makes a new one", path)
	}
	if others := info.Mode().Perm() & 0o077; others != 0 && runtime.GOOS != "windows" {
		log.Warn("other users of this machine may know a key of mcpx: chmod 600 the file, or delete it for a new key", "file", path, "mode", info.Mode())
	}
	return &Secret{secret}, nil
}

// makeSecret creates a file with a random secret, unless the file exists. The file appears with its whole content, since another process
// may read it at any time.
func makeSecret(path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = fmt.Fprintf(file, "%s\n", rand.Text()+rand.Text())
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	err = os.Link(file.Name(), path)
	if err == nil || errors.Is(err, os.ErrExist) {
		return nil
	}
	return os.Rename(file.Name(), path) // for a file system without hard links
}

// Key derives a key of 32 bytes (HKDF-SHA256, RFC 5869), which reveals nothing about the keys for other purposes. purpose names the
// package and the use of the key. A purpose must never change: nothing could decrypt the data that was encrypted with the old key.
func (s *Secret) Key(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, s.secret, nil, purpose, sha256.Size)
	if err != nil {
		panic(err) // impossible for 32 bytes
	}
	return key
}

// Cipher returns AES-256-GCM with the [Secret.Key] for a purpose. It makes a random nonce for each text, and puts it before
// the encrypted text.
func (s *Secret) Cipher(purpose string) cipher.AEAD {
	block, err := aes.NewCipher(s.Key(purpose))
	if err != nil {
		panic(err) // impossible for 32 bytes
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // impossible for AES
	}
	return aead
}
