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
	// unusedAfter is how long an unused catalogue is kept on disk.
	unusedAfter = 30 * 24 * time.Hour
	// A catalogue's time of last use is the modification time of its file. touch sets it only if it is older than touchAfter.
	touchAfter = 24 * time.Hour
	// maxSwept is the maximum number of files that one sweep checks.
	maxSwept = 10_000
)

// cacheFile matches the names of the cache's files, of the files of package learned, and of unfinished files of both that a
// killed mcpx has left.
var cacheFile = pattern.New(`^(?:[0-9a-f]{32}\.(?:(?:shapes\.)?json|[0-9]+\.tmp)|\.[0-9a-f]{32}\.shapes\.json\.mcpx-[0-9]+)$`)

// touch sets the modification time of a catalogue's file to now, unless it is recent.
func (c *cache) touch(key string) {
	now := time.Now()
	if info, err := os.Stat(c.path(key)); err == nil && now.Sub(info.ModTime()) > touchAfter {
		_ = os.Chtimes(c.path(key), now, now) // fails in a read-only folder, in which sweep cannot delete anything either
	}
}

// sweep deletes unused catalogues. First it marks the catalogues of the servers in r as used, so that other processes do not delete
// them either.
func (r *Registry) sweep() {
	if r.cache.dir == "" {
		return
	}
	keys := make(map[string]bool)
	r.mu.Lock()
	for _, e := range r.entries {
		keys[e.server.Key] = true
	}
	r.mu.Unlock()
	for key := range keys {
		r.cache.touch(key)
	}
	if n := r.cache.sweep(keys, r.stop); n > 0 {
		r.log.Debug("deleted unused catalogues", "count", n)
	}
}

// sweep deletes the files that match cacheFile and were not used for unusedAfter, and returns how many it has deleted. It keeps
// the files with these keys, and files that mcpx did not write. It ends early when stop is closed.
func (c *cache) sweep(keys map[string]bool, stop <-chan struct{}) (deleted int) {
	if c.dir == "" {
		return 0
	}
	folder, err := os.Open(c.dir)
	if err != nil {
		return 0
	}
	defer folder.Close()
	files, _ := folder.ReadDir(maxSwept) // after an error, the files read so far
	for _, file := range files {
		select {
		case <-stop:
			return deleted
		default:
		}
		key, _, _ := strings.Cut(strings.TrimPrefix(file.Name(), "."), ".")
		if !keys[key] && c.unused(file) && os.Remove(filepath.Join(c.dir, file.Name())) == nil {
			deleted++
		}
	}
	return deleted
}

// unused reports whether a file matches cacheFile, was written by mcpx, and was not used for unusedAfter.
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

// recordHead is how each file that mcpx writes into the folder begins; an unfinished file may be shorter than that.
const recordHead = `{"format":`
