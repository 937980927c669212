package registry

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mcpx/internal/base/pattern"
)

const (
	// unusedAfter is how long sweep keeps a catalogue after its last use.
	unusedAfter = 30 * 24 * time.Hour
	// touchAfter is the precision of the last use, which is the time of the file.
	touchAfter = 24 * time.Hour
	// mostSwept bounds the files that one start looks at.
	mostSwept = 10_000
)

// cacheFile matches the names of catalogues, and of unfinished ones that a killed mcpx
// has left.
var cacheFile = pattern.New(`^[0-9a-f]{32}\.(?:json|[0-9]+\.tmp)$`)

// touch updates the time of the file of a catalogue.
func (c *cache) touch(key string) {
	now := time.Now()
	if info, err := os.Stat(c.path(key)); err == nil && now.Sub(info.ModTime()) > touchAfter {
		_ = os.Chtimes(c.path(key), now, now) // fails in a read-only folder, which sweep cannot change either
	}
}

// sweep deletes the catalogues that were not used for long, except those in use, and
// returns their number. It leaves alone files that the cache did not write. It ends
// early with stop.
func (c *cache) sweep(used map[string]bool, stop <-chan struct{}) (deleted int) {
	if c.dir == "" {
		return 0
	}
	folder, err := os.Open(c.dir)
	if err != nil {
		return 0
	}
	defer folder.Close()
	files, _ := folder.ReadDir(mostSwept) // as many as the system returns
	for _, file := range files {
		select {
		case <-stop:
			return deleted
		default:
		}
		key, _, _ := strings.Cut(file.Name(), ".")
		if !used[key] && c.unused(file) && os.Remove(filepath.Join(c.dir, file.Name())) == nil {
			deleted++
		}
	}
	return deleted
}

// unused reports whether a file belongs to the cache and was not used for long.
func (c *cache) unused(file os.DirEntry) bool {
	if !cacheFile.MatchString(file.Name()) || !file.Type().IsRegular() {
		return false
	}
	info, err := file.Info()
	if err != nil || time.Since(info.ModTime()) < unusedAfter {
		return false
	}
	f, err := os.Open(filepath.Join(c.dir, file.Name()))
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(recordHead))
	n, err := io.ReadFull(f, head)
	return (err == nil || err == io.EOF || err == io.ErrUnexpectedEOF) && bytes.HasPrefix([]byte(recordHead), head[:n])
}

// recordHead is the beginning of a file of the cache; an unfinished file may have less.
const recordHead = `{"format":`
