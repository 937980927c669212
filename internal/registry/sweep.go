package registry

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	// unusedAfter is how long a catalogue is kept that no start has read or written.
	unusedAfter = 30 * 24 * time.Hour
	// touchAfter is how exactly the time of a file says when it was used.
	touchAfter = 24 * time.Hour
	// mostSwept bounds how many files of the folder one start looks at.
	mostSwept = 10_000
)

// cacheFile are the names that the cache gives to files: of catalogues, and of
// those that were being written when mcpx was killed.
var cacheFile = regexp.MustCompile(`^[0-9a-f]{32}\.(?:json|[0-9]+\.tmp)$`)

// touch notes that a catalogue was used.
func (c *cache) touch(key string) {
	now := time.Now()
	if info, err := os.Stat(c.path(key)); err == nil && now.Sub(info.ModTime()) > touchAfter {
		_ = os.Chtimes(c.path(key), now, now) // a folder that is read-only is not swept either
	}
}

// sweep deletes the catalogues that were not used for long, but for those of ours,
// and returns how many. What the cache did not write stays. It ends early with
// stop.
func (c *cache) sweep(ours map[string]bool, stop <-chan struct{}) (deleted int) {
	if c.dir == "" {
		return 0
	}
	folder, err := os.Open(c.dir)
	if err != nil {
		return 0
	}
	defer folder.Close()
	files, _ := folder.ReadDir(mostSwept) // as many as can be read
	for _, file := range files {
		select {
		case <-stop:
			return deleted
		default:
		}
		key, _, _ := strings.Cut(file.Name(), ".")
		if !ours[key] && c.unused(file) && os.Remove(filepath.Join(c.dir, file.Name())) == nil {
			deleted++
		}
	}
	return deleted
}

// unused reports whether a file is of the cache and was not used for long.
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

// recordHead is how a file of the cache begins; one that was being written may
// have less.
const recordHead = `{"format":`
