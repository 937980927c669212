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
	// unusedAfter is how long an unused catalogue is kept.
	unusedAfter = 30 * 24 * time.Hour
	// touchAfter is the precision of the time of last use, which is the file's modification time.
	touchAfter = 24 * time.Hour
	// mostSwept bounds how many files one start checks.
	mostSwept = 10_000
)

// cacheFile matches the files of the cache, those of package learned, and unfinished ones that a killed mcpx has left.
var cacheFile = pattern.New(`^[0-9a-f]{32}\.(?:(?:shapes\.)?json|[0-9]+\.tmp)$`)

// touch sets the modification time of a catalogue's file.
func (c *cache) touch(key string) {
	now := time.Now()
	if info, err := os.Stat(c.path(key)); err == nil && now.Sub(info.ModTime()) > touchAfter {
		_ = os.Chtimes(c.path(key), now, now) // fails in a read-only folder, which sweep cannot change either
	}
}

// sweep deletes catalogues that are not in used and were not used for unusedAfter, and returns how many. It deletes only
// files that the cache wrote. It ends early when stop is closed.
func (c *cache) sweep(used map[string]bool, stop <-chan struct{}) (deleted int) {
	if c.dir == "" {
		return 0
	}
	folder, err := os.Open(c.dir)
	if err != nil {
		return 0
	}
	defer folder.Close()
	files, _ := folder.ReadDir(mostSwept) // after an error, those read so far
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

// unused reports whether a file belongs to the cache and was not used for unusedAfter.
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

// recordHead is how each file of the cache begins; an unfinished file may be shorter.
const recordHead = `{"format":`
