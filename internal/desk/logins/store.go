package logins

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"mcpx/internal/base/atomicfile"
	"mcpx/internal/desk/keyring"
)

// login is a login at a server, as it is stored in a file of the keeper.
type login struct {
	Server   string    `json:"server"`
	URL      string    `json:"url"`
	Endpoint endpoint  `json:"endpoint"`
	Scopes   []string  `json:"scopes,omitempty"` // the granted scopes, or the requested ones if unknown
	Access   string    `json:"access_token,omitempty"`
	Refresh  string    `json:"refresh_token,omitempty"`
	Issued   time.Time `json:"issued,omitzero"`
	Expiry   time.Time `json:"expiry,omitzero"` // zero if unknown
	// Ended is the error code with which the authorization server has refused to renew the login for good. It is empty if the login
	// has not ended.
	Ended string `json:"ended,omitempty"`
	// Wanted has the scopes that the server asked for after this login or after an older one. The next login requests them too.
	Wanted []string `json:"wanted,omitempty"`
	// ID is a random ID of the login. It stays the same when the login is renewed. Principal is the ID of the principal who logged
	// in; it is empty for a login of the user who runs mcpx. [Logins.Finish] sets ID and begun; they are empty after
	// [Logins.Login].
	ID        string `json:"id,omitempty"`
	Principal string `json:"principal,omitempty"`
	begun
}

// begun has further members of a login that began with [Logins.Begin]. With them, a login of a principal can still be found and
// revoked after its server was removed from the config.
type begun struct {
	Name     string    `json:"name,omitempty"`     // the name that the principal had at the login; empty for the user who runs mcpx
	Redirect string    `json:"redirect,omitempty"` // the URL of mcpx to which the browser came back after the login
	Began    time.Time `json:"began,omitzero"`
	Private  bool      `json:"private,omitempty"` // the authorization server may have an address that is not public
}

// usable reports whether there is an access token that stays valid for longer than the duration margin. A token without an
// expiry counts as valid.
func (l *login) usable(margin time.Duration) bool {
	return l.Access != "" && (l.Expiry.IsZero() || time.Until(l.Expiry) > margin)
}

// leeway returns how long before its expiry the access token is renewed: 30 s, or a fifth of its life if that is less.
func (l *login) leeway() time.Duration { return min(30*time.Second, l.Expiry.Sub(l.Issued)/5) }

const loginSuffix = ".login"

// loginFile returns the name of the file with the login at a server. The file's name depends on the server's name, so that two
// servers with the same URL have separate logins.
func loginFile(s Server) string {
	if s.Principal != "" { // a digest, because on some file systems different names, such as a and A, are the same
		sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", s.Principal, s.Name, s.URL))
		return hex.EncodeToString(sum[:]) + loginSuffix
	}
	sum := sha256.Sum256([]byte(s.Name + "\x00" + s.URL))
	return s.Name + "-" + hex.EncodeToString(sum[:4]) + loginSuffix
}

// clientFile returns the name of the file with the client that mcpx has registered at an authorization server. redirect is the
// URL to which the browser comes back; empty means a port of this machine.
func clientFile(issuer, redirect string) string {
	sum := sha256.Sum256([]byte(strings.TrimSuffix(issuer+" "+redirect, " ")))
	return hex.EncodeToString(sum[:8]) + ".client"
}

// keeper stores logins and registrations of OAuth clients. Each is a "file" with a name, though it need not be on disk.
type keeper interface {
	// stamp returns a value that changes when the file changes. Changes by other processes may show in it a little later.
	stamp(file string) stamp
	// lock locks a file against all other processes. unlock ends the lock.
	lock(ctx context.Context, file string) (unlock func(), err error)
	// read decodes a file into v. If the caller has locked the file, v is the newest version. The error wraps fs.ErrNotExist if
	// there is no file, and errLost if it can never be read again. After any other error, a later read may succeed.
	read(ctx context.Context, file string, v any) error
	write(ctx context.Context, file string, v any) error
	remove(file string) error
	// all returns the names of the files with logins.
	all() (files []string, err error)
	// whyUnsealed says why the last written file was not encrypted; nil if it was encrypted.
	whyUnsealed() error
	// nowhere returns true if there is no folder, so that nothing can be stored.
	nowhere() bool
}

// store is the [keeper] whose "files" are files on disk, in one folder. They are encrypted with a key. The key is in the keyring of
// the system, or is derived from the secret given to NewOfPrincipals. If the keyring does not give the key (and strict is false),
// the files are not encrypted, and only their mode protects them from other users.
type store struct {
	dir    string
	log    *slog.Logger
	strict bool // unencrypted files are not read; key must be set, so that none are written

	mu       sync.Mutex
	key      []byte // from the keyring (nil before the first use), or given to NewOfPrincipals
	unsealed error  // why the last written file was not encrypted; nil if it was encrypted
}

// keyName is the name under which the keyring has the key that encrypts the files.
const keyName = "logins"

// envelope is the JSON content of a file. Sealed has the encrypted data. If there is no key, mostly because the keyring cannot be
// used, Open has the data unencrypted instead.
type envelope struct {
	Sealed []byte          `json:"sealed,omitempty"`
	Open   json.RawMessage `json:"open,omitempty"`
}

// stamp identifies a version of a file. The zero stamp means that the version is unknown, because it could not be determined.
type stamp struct {
	absent   bool // there is no file
	modified time.Time
	size     int64
	sum      [sha256.Size]byte // digest of the content, if the keeper is a shared; zero for a file on disk
}

func (s *store) stamp(file string) stamp {
	info, err := os.Stat(filepath.Join(s.dir, file))
	if err != nil {
		return stamp{absent: errors.Is(err, fs.ErrNotExist)}
	}
	return stamp{modified: info.ModTime(), size: info.Size()}
}

// lock locks a file against all other processes. unlock ends the lock.
func (s *store) lock(ctx context.Context, file string) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(s.dir, file+".lock"), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return nil, fmt.Errorf("waiting for another mcpx that uses this login: %w", err)
	}
	return func() { _ = lock.Unlock() }, nil
}

// errLost means that a file exists but can never be decrypted or parsed again.
var errLost = errors.New("the login is lost")

// read decodes a file into v. The error wraps fs.ErrNotExist if there is no file, and errLost if it can never be read again. After any
// other error, a later read may succeed.
func (s *store) read(ctx context.Context, file string, v any) error {
	data, err := os.ReadFile(filepath.Join(s.dir, file))
	if err != nil {
		return err
	}
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf("%w: %s is damaged", errLost, file)
	}
	if e.Sealed == nil && s.strict {
		return fmt.Errorf("%w: %s is not encrypted", errLost, file)
	}
	if e.Sealed != nil {
		seal, err := s.seal(ctx, false)
		if errors.Is(err, keyring.ErrNotFound) {
			return fmt.Errorf("%w: the key to %s is no longer in the keyring", errLost, file)
		}
		if err != nil {
			return err
		}
		if e.Open, err = seal.Open(nil, nil, e.Sealed, []byte(file)); err != nil {
			return fmt.Errorf("%w: %s was encrypted with another key than the one in the keyring", errLost, file)
		}
	}
	if err := json.Unmarshal(e.Open, v); err != nil {
		return fmt.Errorf("%w: %s is damaged", errLost, file)
	}
	return nil
}

// write encodes v as JSON, encrypts it if there is a key, and replaces the file atomically. If there is no key, write logs a
// warning. It does not repeat the warning for the next files, until a file was encrypted again.
func (s *store) write(ctx context.Context, file string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	e := envelope{Open: data}
	seal, err := s.seal(ctx, true)
	if err == nil {
		e = envelope{Sealed: seal.Seal(nil, nil, data, []byte(file))}
	}
	if s.setUnsealed(err) {
		s.log.Warn("logins are stored unencrypted, readable by you only, as there is no keyring", "folder", s.dir, "err", err)
	}
	if data, err = json.Marshal(e); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(s.dir, file), data, 0o600)
}

// setUnsealed notes why the last written file is not encrypted; a nil err means that it is encrypted. news is true if err is not
// nil and the file written before it, if any, was encrypted.
func (s *store) setUnsealed(err error) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = err != nil && s.unsealed == nil
	s.unsealed = err
	return news
}

func (s *store) nowhere() bool { return s.dir == "" }

func (s *store) whyUnsealed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unsealed
}

func (s *store) remove(file string) error {
	err := os.Remove(filepath.Join(s.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *store) all() (files []string, err error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, one := range entries {
		if strings.HasSuffix(one.Name(), loginSuffix) {
			files = append(files, one.Name())
		}
	}
	return files, err
}

// seal returns the cipher with which files are encrypted. If the keyring works but has no key, and create is true, seal makes the key.
func (s *store) seal(ctx context.Context, create bool) (cipher.AEAD, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == nil {
		key, err := s.readKey(ctx)
		if errors.Is(err, keyring.ErrNotFound) && create {
			key, err = s.makeKey(ctx)
		}
		if err != nil {
			return nil, err
		}
		s.key = key
	}
	block, err := aes.NewCipher(s.key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func (s *store) readKey(ctx context.Context) ([]byte, error) {
	text, err := keyring.Get(ctx, keyName)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(text)
}

// makeKey makes the key and stores it in the keyring. If another process has done so meanwhile, it returns that key.
func (s *store) makeKey(ctx context.Context) ([]byte, error) {
	unlock, err := s.lock(ctx, "key")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if key, err := s.readKey(ctx); !errors.Is(err, keyring.ErrNotFound) {
		return key, err
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // rand.Read never fails
	return key, keyring.Set(ctx, keyName, base64.StdEncoding.EncodeToString(key))
}

// union returns a, followed by the elements of b that are not in a.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, one := range b {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

func scopesOf(extra any, asked []string) []string {
	if text, ok := extra.(string); ok && text != "" {
		return strings.Fields(text)
	}
	return asked
}
