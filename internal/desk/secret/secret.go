// Package secret provides the values of the secrets that a config refers to. It stores secrets of the user, and runs
// commands that print a secret.
package secret

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"mcpx/internal/base/atomicfile"
	"mcpx/internal/base/pattern"
	"mcpx/internal/desk/keyring"
)

// Store keeps secrets in the keyring of the system. A keyring cannot be listed, so a folder has a file for each secret, with
// the name of the secret. If there is no keyring, or it refuses the value, the file also has the value; only the user can read
// the file.
type Store struct{ dir string }

// New returns a Store whose files are in the folder dir, which need not exist. If dir is empty, there is no such folder: the Store
// reads secrets from the keyring only, lists none, and stores none.
func New(dir string) *Store { return &Store{dir: dir} }

// kept is the content of the file for a secret.
type kept struct {
	Name string `json:"name"`
	// Open is the value of the secret; empty if the keyring has the value.
	Open string `json:"open,omitempty"`
}

// MaxBytes is the size of the largest secret, in bytes.
const MaxBytes = 64 << 10

var nameForm = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName returns an error if name is not allowed as the name of a secret.
func CheckName(name string) error {
	if !nameForm.MatchString(name) {
		return errors.New("a name has letters, digits, '.', '_' and '-', begins with a letter or digit, and is at most 64 long")
	}
	return nil
}

// file returns the path of a secret's file. The name of the file contains a digest, because some file systems cannot distinguish
// names that differ only in case. The path is empty if there is no folder.
func (s *Store) file(name string) string {
	if s.dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(s.dir, name+"-"+hex.EncodeToString(sum[:4])+".secret")
}

// inKeyring returns the name under which the keyring has a secret. The prefix keeps it apart from the keys of mcpx itself.
func inKeyring(name string) string { return "secret " + name }

// ErrNotFound is wrapped by the error of [Store.Get] for a secret that does not exist.
var ErrNotFound = errors.New("there is no secret")

// Get returns a secret. Its errors never contain the value of a secret.
func (s *Store) Get(ctx context.Context, name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	file, err := read(s.file(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if file.Open != "" {
		return file.Open, nil
	}
	value, err := keyring.Get(ctx, inKeyring(name))
	if errors.Is(err, keyring.ErrNotFound) || err != nil && file.Name == "" {
		return "", fmt.Errorf("%w %s; set it with mcpx secret set %[2]s", ErrNotFound, name)
	}
	return value, err
}

// Set stores a secret. If there is no keyring, or it refuses the value, Set stores the value unencrypted in the folder;
// unsealed then says why.
func (s *Store) Set(ctx context.Context, name, value string) (unsealed, err error) {
	if err := s.check(name, value); err != nil {
		return nil, err
	}
	file := kept{Name: name}
	if unsealed = keyring.Set(ctx, inKeyring(name), value); unsealed != nil {
		file.Open = value
	}
	return unsealed, s.write(file)
}

// Seal stores a secret in the keyring. If the keyring refuses the value, Seal changes nothing, and returns the reason.
func (s *Store) Seal(ctx context.Context, name, value string) error {
	if err := s.check(name, value); err != nil {
		return err
	}
	if err := keyring.Set(ctx, inKeyring(name), value); err != nil {
		return err
	}
	return s.write(kept{Name: name})
}

// MaxSealed returns the size of the largest secret that Seal can store on this system, in bytes.
func (s *Store) MaxSealed() int { return min(MaxBytes, keyring.MaxBytes()) }

// check returns an error if a secret with this name and value cannot be stored.
func (s *Store) check(name, value string) error {
	switch err := CheckName(name); {
	case s.dir == "":
		return errors.New("there is no folder for secrets, as this user has no home folder ($HOME)")
	case err != nil:
		return err
	case value == "":
		return errors.New("the value is empty")
	case len(value) > MaxBytes:
		return fmt.Errorf("the value is larger than %d KiB", MaxBytes>>10)
	}
	return nil
}

// Works tries to read from the keyring of the system. It returns nil if the keyring answers, so that new secrets can be kept in
// it, and otherwise the reason why not.
func (s *Store) Works(ctx context.Context) error {
	if _, err := keyring.Get(ctx, inKeyring("works")); err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return err
	}
	return nil
}

// Delete deletes a secret, and reports whether there was one.
func (s *Store) Delete(ctx context.Context, name string) (found bool, err error) {
	if err := CheckName(name); err != nil {
		return false, err
	}
	file, err := read(s.file(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	found = err == nil
	switch err := keyring.Delete(ctx, inKeyring(name)); {
	case err == nil:
		found = true
	case errors.Is(err, keyring.ErrNotFound):
	case found && file.Open == "": // the keyring failed, so the file must stay: Names must still list the secret
		return true, err
	}
	if err := os.Remove(s.file(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	return found, nil
}

// Names returns the names of all secrets, sorted.
func (s *Store) Names() ([]string, error) {
	if s.dir == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "*.secret"))
	names := make([]string, 0, len(files))
	for _, path := range files {
		file, err := read(path)
		if err != nil {
			return nil, err
		}
		names = append(names, file.Name)
	}
	slices.Sort(names)
	return names, err
}

func read(path string) (file kept, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return kept{}, err
	}
	if json.Unmarshal(data, &file) != nil || file.Name == "" {
		return kept{}, fmt.Errorf("%s is damaged; delete it, and set the secret again", path)
	}
	return file, nil
}

func (s *Store) write(file kept) error {
	data, err := json.Marshal(file)
	if err != nil {
		return err
	}
	return atomicfile.Write(s.file(file.Name), data, 0o600)
}
