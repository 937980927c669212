package audit

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gofrs/flock"

	"mcpx/internal/base/atomicfile"
)

// anchor says which lines a trail must have: it notes the first and the last one. It is a file outside the trail's folder. If the
// first or last lines of a trail were removed, the remaining lines cannot show it, but the anchor can.
type anchor struct {
	File string `json:"file"` // path of the trail
	// First is the number of the oldest line that must still be in the trail. Older lines may be gone, because Options.Keep limits
	// how many files are kept. Last is the number of the newest line that is known to be on disk, and MAC is the HMAC of this line.
	// The trail may have newer lines.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	MAC   string `json:"mac,omitempty"`
	Seal  string `json:"seal,omitempty"` // HMAC of the other members
}

// AnchorPath returns the path of a trail's anchor in folder. The name contains a hash of the trail's absolute path, so trails in
// different folders have different anchors.
func AnchorPath(folder, trail string) (string, error) {
	trail, err := filepath.Abs(trail)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(trail)); err == nil {
		trail = filepath.Join(real, filepath.Base(trail))
	}
	digest := sha256.Sum256([]byte(trail))
	return filepath.Join(folder, fmt.Sprintf("%s-%x.json", filepath.Base(trail), digest[:8])), nil
}

// seals returns the HMACs that the anchor may have in Seal, one for each key. Without keys it returns one empty string.
func (a anchor) seals(keys [][]byte) (all []string) {
	if len(keys) == 0 {
		return []string{""}
	}
	a.Seal = ""
	// The same keys make the HMACs of anchors and of lines. But anchors and lines begin with different members. So the HMAC of an
	// anchor never fits a line, or the other way round, and nobody can forge an anchor with the HMAC of a line.
	data, _ := json.Marshal(a)
	for _, chain := range chainsOf(keys) {
		all = append(all, sum(chain, data))
	}
	return all
}

var errAnchor = errors.New("it was changed, or written with another key")

// readAnchor reads an anchor. It returns nil, without an error, if the file does not exist.
func readAnchor(path string, keys [][]byte) (*anchor, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var a anchor
	fits := func(seal string) bool { return hmac.Equal([]byte(a.Seal), []byte(seal)) }
	if json.Unmarshal(data, &a) != nil || !slices.ContainsFunc(a.seals(keys), fits) {
		return nil, errAnchor
	}
	return &a, nil
}

// anchorFile is the anchor of an open trail. It may be used by several goroutines at the same time.
type anchorFile struct {
	path string
	keys [][]byte // the first one makes new HMACs, all of them check old ones
	log  *slog.Logger

	mu     sync.Mutex
	now    anchor
	failed bool // whether the last attempt to write failed
}

// write lets change alter the anchor, and then writes the anchor to its file. If [Accept] has raised First in the file meanwhile,
// write keeps the raised value. f is nil if the trail has no anchor; then write does nothing.
func (f *anchorFile) write(change func(*anchor)) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err := locked(f.path, func() error {
		if disk, err := readAnchor(f.path, f.keys); err == nil && disk != nil {
			f.now.First = max(f.now.First, disk.First)
		}
		change(&f.now)
		return f.now.write(f.path, f.keys)
	})
	if err != nil && !f.failed {
		f.log.Error("the anchor of the audit trail cannot be written: removed lines may not be found", "file", f.path, "err", err)
	}
	f.failed = err != nil
}

// reached notes in the anchor that the line with the number seq and the HMAC mac is now the newest line on disk.
func (f *anchorFile) reached(seq uint64, mac string) {
	f.write(func(a *anchor) { a.Last, a.MAC = seq, mac })
}

// dropped is called just before an old file of the trail, at path, is removed because of Options.Keep. It sets First in the anchor
// to the number of the first line after this file. If mcpx crashes before the file is removed, the trail has one file too many,
// which [Verify] accepts.
func (f *anchorFile) dropped(path string) {
	last, _, err := lastLine(path)
	if head, ok := readHead(last); err == nil && ok {
		f.write(func(a *anchor) { a.First = max(a.First, head.Seq+1) })
	}
}

func (a *anchor) write(path string, keys [][]byte) error {
	a.Seal = a.seals(keys)[0]
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(data, '\n'), 0o600)
}

// locked calls f while it holds a lock that keeps other processes from changing the anchor.
func locked(path string, f func() error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return err
	}
	return errors.Join(f(), lock.Close())
}

// compare loads the anchor, and compares it with what the method begin has found in the trail. If the anchor names a later line
// than the trail's last one, lines were removed. Then new lines are numbered after the line of the anchor, so that the gap stays
// visible. If there is no anchor, or it cannot be used, compare makes an anchor whose First is the first line of the trail. attrs
// say what compare has found. They are for the first line that this process writes.
func (t *Trail) compare() (attrs []slog.Attr, err error) {
	if t.o.Anchor == "" {
		return nil, nil
	}
	t.anchor = &anchorFile{path: t.o.Anchor, keys: t.o.Keys, log: t.o.Logger}
	a, err := readAnchor(t.o.Anchor, t.o.Keys)
	switch {
	case a != nil:
		t.anchor.now = *a
		if a.Last > t.seq {
			missing := a.Last - t.seq
			t.o.Logger.Error("the last lines of the audit trail were removed", "file", t.path, "lines", missing)
			attrs = append(attrs, slog.Uint64("missing_before", missing))
			t.seq, t.mac = a.Last, a.MAC
		}
		return attrs, nil
	case err != nil:
		t.o.Logger.Error("the anchor of the audit trail is replaced", "file", t.o.Anchor, "err", err)
		attrs = append(attrs, slog.String("anchor", "replaced"))
	case t.seq > 0:
		t.o.Logger.Warn("the audit trail had no anchor: lines removed before now cannot be found", "file", t.path)
		attrs = append(attrs, slog.String("anchor", "new"))
	}
	t.anchor.now = anchor{File: t.path, First: t.seq + 1}
	before, err := parts(t.path)
	if err != nil {
		return nil, err
	}
	for _, one := range append(before, part{path: t.path}) {
		if first := firstSeq(one.path); first > 0 {
			t.anchor.now.First = first
			break
		}
	}
	return attrs, nil
}

// firstSeq returns the number of the first line of a file, or 0 if the file has no line.
func firstSeq(path string) uint64 {
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer file.Close()
	line, _ := bufio.NewReaderSize(file, 2*maxLine).ReadSlice('\n')
	head, _ := readHead(line)
	return head.Seq
}

// Accept makes [Verify] accept the trail as it is now: it writes the numbers of the trail's first and last line to the anchor at
// anchorPath. It is for an operator who has moved or removed files on purpose. Another process may write to the trail at the same
// time.
func Accept(path string, keys [][]byte, anchorPath string) error {
	if err := betweenStates(path); err != nil {
		return err
	}
	return accept(path, keys, anchorPath)
}

func accept(path string, keys [][]byte, anchorPath string) error {
	r, err := check(path, keys, anchorPath)
	if err != nil {
		return err
	}
	if r.Lines == 0 {
		return errors.New("the trail has no lines")
	}
	return locked(anchorPath, func() error {
		a := &anchor{File: path, First: r.First, Last: r.Last, MAC: r.MAC}
		return a.write(anchorPath, keys)
	})
}
