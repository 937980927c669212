package app

import (
	"bytes"
	"sync"
)

// recentBytes is about how many bytes of a log Lines keeps. At times it keeps up to a quarter more.
const recentBytes = 1 << 20

// Lines keeps the newest lines of a log. It is an io.Writer, and safe for concurrent use. The zero value is ready.
type Lines struct {
	mu      sync.Mutex
	text    []byte
	first   int64         // how many bytes were written before text
	changed chan struct{} // closed by the next write; nil if nobody waits for a write
}

// Write adds lines to the log. It never fails.
func (r *Lines) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, p...)
	if over := len(r.text) - recentBytes; over > recentBytes/4 { // trims rarely, not with each line
		if end := bytes.IndexByte(r.text[over:], '\n'); end >= 0 {
			over += end + 1
		}
		// This overwrites text in place, which is safe because From returns copies.
		r.text, r.first = append(r.text[:0], r.text[over:]...), r.first+int64(over)
	}
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
	return len(p), nil
}

// From returns the kept lines after a position, the position after these lines, and a channel that is closed when more lines
// come. Positions count all bytes ever written.
func (r *Lines) From(position int64) (lines []byte, next int64, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	skip := min(max(position-r.first, 0), int64(len(r.text)))
	return bytes.Clone(r.text[skip:]), r.first + int64(len(r.text)), r.changed
}

// About reports whether a line of the log, as text or as JSON, is about a server. The line may end with a line break.
func About(line []byte, server string) bool {
	text := []byte(" server=" + server)
	return bytes.HasSuffix(bytes.TrimSpace(line), text) || bytes.Contains(line, append(text, ' ')) ||
		bytes.Contains(line, []byte(`"server":"`+server+`"`))
}
