// Package audit writes an audit trail to a file: numbered JSON lines. Lines are only appended; only [Forget] may change them. With
// a key, the lines are chained by HMACs. Then [Verify] detects changed lines, and lines removed from the middle. With an anchor, it
// also detects lines removed from the beginning or the end.
package audit

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"hash"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Options are the settings of a trail.
type Options struct {
	// Anchor is the path of a file outside the folder of the trail, see [AnchorPath]. With it, [Verify] detects that
	// lines were removed from the beginning or the end. Empty means no anchor.
	Anchor string
	// Keys are the keys of the HMACs. The first one makes the HMACs of new lines, and all of them check older lines. Without keys,
	// lines have no HMACs.
	Keys [][]byte
	// MaxBytes is the size in bytes at which the file is renamed, to FILE.000001 and so on, and a new file is started. 0 means 100
	// MiB.
	MaxBytes int64
	// Keep is how many renamed files are kept; older ones are deleted. 0 means that none are deleted.
	Keep int
	// About has attributes for the first line that each process writes, such as the version.
	About []slog.Attr
	// Logger logs when writing fails for the first time and when it works again. It also logs faults of the anchor and of renaming.
	// nil means no logging.
	Logger *slog.Logger
	// syncAfter is the longest time between writing a line and syncing it to disk. 0 means one second.
	syncAfter time.Duration
}

// Trail appends lines to a file. Only one process at a time can have the file open. A Trail may be used by several goroutines at
// the same time, and ends with [Trail.Close].
type Trail struct {
	path string
	o    Options
	run  string // identifies this process in each line; a pid would not, because pids are reused
	lock *flock.Flock
	// anchor is nil if the trail has no anchor.
	anchor *anchorFile

	mu      sync.Mutex
	file    *os.File // nil if the next line must open the file
	size    int64
	seq     uint64      // number of the last line
	mac     string      // HMAC of the last line, in hex; empty before the first line, and if there is no key
	chain   hash.Hash   // makes the HMACs of new lines; nil if lines have none
	chains  []hash.Hash // one for each key
	line    []byte
	lost    uint64 // number of records that could not be written after the last line
	failure error  // error of the last attempt to write or to sync; nil if it succeeded
	closed  bool

	timer   *time.Timer // calls sync; nil if every line is synced or being synced
	syncing sync.Mutex  // held during sync and Close; always locked before mu
}

// The trail itself writes lines with these events.
const (
	opened = "opened" // a run starts
	closed = "closed" // a run ends normally
	lost   = "lost"   // says how many records before this line could not be written
)

// errClosed is returned by writes after Close.
var errClosed = errors.New("the audit trail is closed")

// InUseError is the error of [Open] and [Forget] if another process has the trail at Path open.
type InUseError struct{ Path string }

func (e *InUseError) Error() string { return "another process writes to " + e.Path }

func (e *InUseError) Hint() string {
	return `give each mcpx its own file; audit.file may contain variables, such as "audit-${NAME}.jsonl"`
}

// Open opens the trail in a file, or creates it, and writes the first line of this process. It fails, for example, if the keys do
// not fit the last line of the file, if [Forget] was interrupted, or if another process has the file open ([InUseError]). If the
// last line is incomplete, for example after a power failure, Open removes it.
func Open(path string, o Options) (*Trail, error) {
	o.MaxBytes, o.syncAfter = cmp.Or(o.MaxBytes, 100<<20), cmp.Or(o.syncAfter, time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the audit file: %w", err)
	}
	t := &Trail{path: path, o: o, run: rand.Text()[:13]}
	t.chains = chainsOf(o.Keys)
	if len(t.chains) > 0 {
		t.chain = t.chains[0]
	}
	t.lock = flock.New(path+".lock", flock.SetPermissions(0o600))
	if ok, err := t.lock.TryLock(); err != nil {
		return nil, fmt.Errorf("locking the audit file: %w", err)
	} else if !ok {
		return nil, &InUseError{path}
	}
	start := t.start
	if err := betweenStates(path); err != nil {
		start = func() error { return err }
	}
	if err := start(); err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.release()
		return nil, err
	}
	return t, nil
}

// start writes the first line of the run, and notes it in the anchor.
func (t *Trail) start() error {
	cut, err := t.begin()
	if err != nil {
		return err
	}
	anchored, err := t.compare()
	if err != nil {
		return err
	}
	attrs := append([]slog.Attr{slog.Int("pid", os.Getpid()), slog.Int64("cut", cut)}, anchored...)
	if err := t.Write(opened, append(attrs, t.o.About...)...); err != nil || t.anchor == nil {
		return err
	}
	t.sync()
	return nil
}

// begin opens the file and finds the last line of the trail. New lines continue its number and its HMAC chain. If the file is
// empty, the last line is the one at the end of the newest renamed file. cut is the length, in bytes, of an incomplete last line
// that begin has removed.
func (t *Trail) begin() (cut int64, err error) {
	if info, err := os.Stat(t.path); err == nil && !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is not a regular file", t.path)
	}
	if err := t.open(); err != nil {
		return 0, err
	}
	last, whole, err := lastLine(t.path)
	if err != nil {
		return 0, err
	}
	if cut = t.size - whole; cut > 0 {
		if err := os.Truncate(t.path, whole); err != nil {
			return 0, fmt.Errorf("cutting the unfinished last line of %s: %w", t.path, err)
		}
		t.size = whole
	}
	from := t.path
	if last == nil {
		parts, err := parts(t.path)
		if err != nil || len(parts) == 0 {
			return cut, err
		}
		from = parts[len(parts)-1].path
		if last, _, err = lastLine(from); err != nil || last == nil {
			return cut, err
		}
	}
	head, ok := readHead(last)
	switch {
	case !ok:
		return 0, fmt.Errorf("the last line of %s is not of an audit trail; move the file away", from)
	case t.chain == nil && head.MAC != "":
		return 0, fmt.Errorf("%s was written with a key, but audit.key is not set; set it, or move the file and its parts away", from)
	case t.chain != nil && head.MAC == "":
		return 0, fmt.Errorf("%s was written without a key; move the file and its parts away, so that the chain begins with the first line", from)
	case t.chain != nil && fits(t.chains, last) < 0:
		return 0, fmt.Errorf("the last line of %s does not fit audit.key: the line or the key was changed; move the file and its parts away (mcpx audit verify says more)", from)
	}
	t.seq, t.mac = head.Seq, head.MAC
	return cut, nil
}

func (t *Trail) open() error {
	file, err := os.OpenFile(t.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return err
	}
	t.file, t.size = file, info.Size()
	syncFolder(t.path)
	return nil
}

// Write appends one record: its number, time, run, event and attributes. slog groups are not supported, and long strings are cut.
// When Write returns nil, the operating system has the record; it is synced to disk at most Options.syncAfter later. After an error
// the record is lost, and a later line says how many records were lost.
func (t *Trail) Write(event string, attrs ...slog.Attr) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return errClosed
	}
	err := t.writeLost()
	if err == nil {
		err = t.append(event, attrs)
	}
	if err != nil {
		t.lost++
	}
	t.say(err)
	return err
}

// writeLost writes a line with the number of lost records, if there are any.
func (t *Trail) writeLost() error {
	if t.lost == 0 {
		return nil
	}
	err := t.append(lost, []slog.Attr{slog.Uint64("records", t.lost)})
	if err == nil {
		t.lost = 0
	}
	return err
}

// append writes one line, with one system call. If that fails after a part of the line, for example on a full disk, append removes
// the part again.
func (t *Trail) append(event string, attrs []slog.Attr) error {
	line := appendRecord(t.line[:0], t.seq+1, t.run, event, attrs)
	mac := ""
	if t.chain != nil {
		line, mac = seal(line, t.chain, t.mac)
	}
	line = append(line, "}\n"...)
	t.line = line
	if t.size > 0 && t.size+int64(len(line)) > t.o.MaxBytes {
		t.rotate()
	}
	if t.file == nil {
		if err := t.open(); err != nil {
			return err
		}
	}
	if _, err := t.file.Write(line); err != nil {
		if info, _ := t.file.Stat(); info != nil && info.Size() > t.size {
			err = errors.Join(err, t.file.Truncate(t.size))
		}
		return err
	}
	t.size += int64(len(line))
	t.seq, t.mac = t.seq+1, mac
	t.wantSync()
	return nil
}

// say logs when writing starts to fail, and when it works again.
func (t *Trail) say(err error) {
	switch {
	case err != nil && t.failure == nil:
		t.o.Logger.Error("the audit trail cannot be written", "file", t.path, "err", err)
		t.wantSync() // the method sync will retry
	case err == nil && t.failure != nil:
		t.o.Logger.Info("the audit trail is written again", "file", t.path)
	}
	t.failure = err
}

// Err returns why records cannot be written at present, or nil if they can.
func (t *Trail) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failure
}

// Close writes the last line of this process, and returns when everything is on disk.
func (t *Trail) Close() error {
	err := t.Write(closed)
	if errors.Is(err, errClosed) {
		return nil
	}
	t.syncing.Lock()
	defer t.syncing.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil {
		synced := t.file.Sync()
		if err = errors.Join(err, synced); err == nil {
			t.anchor.reached(t.seq, t.mac)
		}
	}
	t.release()
	return err
}

// release closes the file and the lock. The caller holds mu.
func (t *Trail) release() {
	t.closed = true
	if t.timer != nil {
		t.timer.Stop()
	}
	if t.file != nil {
		t.file.Close()
	}
	_ = t.lock.Close()
}
