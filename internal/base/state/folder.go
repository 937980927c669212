package state

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"mcpx/internal/base/atomicfile"
)

// Followed is a [Records] that also reports each change of a value.
type Followed interface {
	Records
	// Watch calls the func receive with each value whose key begins with prefix, until stop is called: first with the present values,
	// then with each new one. receive gets the values of one key in the order in which they were stored. Change calls receive
	// before Change returns, so receive must neither block nor use the Records.
	Watch(prefix string, receive func(value []byte)) (stop func())
}

// Folder implements [Followed] with a file for each value, so that the values survive restarts. Several processes may use the
// folder; they change its files one after the other. OpenFolder reads all files; after that, only Change reads a file, the one of
// its key. So if another process stores a value, this process does not see it until it calls Change for the same key.
type Folder struct {
	folder string // if it is empty, nothing is saved
	limit  int
	log    *slog.Logger

	changing sync.Mutex // held during Change
	mu       sync.RWMutex
	byKey    map[string]saved
	watchers []*watcher
}

type watcher struct {
	prefix string
	do     func([]byte)
}

// saved is the content of a file.
type saved struct {
	Key   string `json:"key"`
	N     int    `json:"n"`     // one more after each change
	Until int64  `json:"until"` // in Unix milliseconds
	Value []byte `json:"value"`
}

func (s *saved) over(now time.Time) bool { return now.UnixMilli() >= s.Until }

// The file of a value is called KEY.json. Some file systems ignore case, so callers choose keys that do not differ in case only. A
// change locks the file named lock in the same folder.
const (
	recordSuffix = ".json"
	recordLock   = "lock"
)

// lockFolderWithin is how long a change waits, at most, while another process changes the folder.
const lockFolderWithin = 3 * time.Second

// OpenFolder reads the folder, and creates it if it does not exist. limit is how many values it keeps; if Change adds one more,
// the value that expires first is removed. If folder is empty, the values are in memory only. A file that cannot be read is
// logged and stays as it is.
func OpenFolder(folder string, limit int, log *slog.Logger) (*Folder, error) {
	f := &Folder{folder: folder, limit: limit, log: log, byKey: make(map[string]saved)}
	if folder == "" {
		return f, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for _, entry := range entries {
		key, is := strings.CutSuffix(entry.Name(), recordSuffix)
		if !is {
			continue
		}
		switch one, err := f.read(key); {
		case err != nil:
			log.Warn("a file cannot be read: what it was about is forgotten", "file", f.path(key), "error", err)
		case one.over(now):
			_ = os.Remove(f.path(key))
		default:
			f.byKey[key] = one
		}
	}
	return f, nil
}

func (f *Folder) path(key string) string { return filepath.Join(f.folder, key+recordSuffix) }

// read returns the value in the file of a key; the zero value if there is no file.
func (f *Folder) read(key string) (one saved, err error) {
	if f.folder == "" {
		return saved{}, nil
	}
	data, err := os.ReadFile(f.path(key))
	if errors.Is(err, os.ErrNotExist) {
		return saved{}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &one)
	}
	if err == nil && one.Key != key {
		err = errors.New("the file is of another key")
	}
	return one, err
}

// Get returns the value of a key from memory, unless the value has expired.
func (f *Folder) Get(key string) ([]byte, error) {
	f.mu.RLock()
	one, ok := f.byKey[key]
	f.mu.RUnlock()
	if !ok || one.over(time.Now()) {
		return nil, ErrUnknown
	}
	return one.Value, nil
}

// Change replaces the value of a key, in memory and in the file. If another process uses the folder for longer than
// lockFolderWithin, the error is ErrAway, and nothing changes. If the file cannot be written, Change logs that and keeps the new
// value in memory only. If the old value in the file would expire later than the new value, Change then removes the file, because a
// restart must not bring the old value back. If the file cannot be removed, the error is ErrAway.
func (f *Folder) Change(ctx context.Context, key string, change func(old []byte) ([]byte, time.Time, error)) error {
	f.changing.Lock()
	defer f.changing.Unlock()
	unlock, err := f.lock(ctx)
	if err != nil {
		f.log.Error("the folder of the logins cannot be locked", "folder", f.folder, "error", err)
		return ErrAway
	}
	defer unlock()
	f.mu.RLock()
	newest := f.byKey[key]
	f.mu.RUnlock()
	// Another process may have changed the file. But if this process failed to write its last value, that value is newer than the
	// file.
	file, err := f.read(key)
	if err == nil && file.N > newest.N {
		newest = file
		f.keep(file)
	}
	if newest.over(time.Now()) {
		newest.Value = nil
	}
	value, until, err := change(newest.Value)
	if err == nil && len(value) > MaxRecord {
		err = ErrLarge
	}
	if err != nil {
		return err
	}
	next := saved{key, newest.N + 1, until.UnixMilli(), value}
	err = f.write(&next)
	if err != nil && next.Until < max(newest.Until, file.Until) {
		if removed := os.Remove(f.path(key)); removed != nil && !errors.Is(removed, os.ErrNotExist) {
			f.log.Error("the end of a login cannot be saved: it goes on after a restart", "file", f.path(key), "error", err)
			f.keep(next)
			return ErrAway
		}
		err = f.write(&next) // tries again, since removing the old file has made room on the disk
	}
	if err != nil {
		f.log.Error("a login cannot be saved: after a restart its user has to log in again", "file", f.path(key), "error", err)
	}
	f.keep(next)
	return nil
}

// keep stores a value in memory, and calls the watchers. The caller holds the lock f.changing.
func (f *Folder) keep(next saved) {
	f.mu.Lock()
	if _, known := f.byKey[next.Key]; !known && len(f.byKey) >= f.limit {
		f.makeRoom()
	}
	f.byKey[next.Key] = next
	watchers := append([]*watcher(nil), f.watchers...)
	f.mu.Unlock()
	for _, w := range watchers {
		if strings.HasPrefix(next.Key, w.prefix) {
			w.do(next.Value)
		}
	}
}

// makeRoom removes expired values and, if there is still no room, the value that expires first. The caller holds the locks
// f.changing and f.mu.
func (f *Folder) makeRoom() {
	now, first := time.Now(), ""
	for key, one := range f.byKey {
		switch {
		case one.over(now):
			f.remove(key)
		case first == "" || one.Until < f.byKey[first].Until:
			first = key
		}
	}
	if len(f.byKey) >= f.limit {
		f.log.Warn("too many logins to keep: the one that would end first ends now", "most", f.limit, "folder", f.folder)
		f.remove(first)
	}
}

func (f *Folder) remove(key string) {
	delete(f.byKey, key)
	if f.folder != "" {
		_ = os.Remove(f.path(key))
	}
}

func (f *Folder) write(one *saved) error {
	if f.folder == "" {
		return nil
	}
	data, err := json.Marshal(one)
	if err != nil {
		return err
	}
	return atomicfile.Write(f.path(one.Key), data, 0o600)
}

// lock keeps other processes from changing the folder, until unlock is called or this process ends.
func (f *Folder) lock(ctx context.Context) (unlock func(), err error) {
	if f.folder == "" {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lockFolderWithin)
	defer cancel()
	lock := flock.New(filepath.Join(f.folder, recordLock), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 5*time.Millisecond); err != nil {
		return nil, err
	}
	return func() { _ = lock.Unlock() }, nil
}

// Watch calls receive with the present values, and then with each value that Change stores in this process.
func (f *Folder) Watch(prefix string, receive func(value []byte)) (stop func()) {
	f.changing.Lock()
	defer f.changing.Unlock()
	w := &watcher{prefix, receive}
	f.mu.Lock()
	f.watchers = append(f.watchers, w)
	f.mu.Unlock()
	now := time.Now()
	for key, one := range f.byKey { // byKey changes only while f.changing is locked
		if strings.HasPrefix(key, prefix) && !one.over(now) {
			receive(one.Value)
		}
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.watchers = slices.DeleteFunc(f.watchers, func(one *watcher) bool { return one == w })
	}
}
