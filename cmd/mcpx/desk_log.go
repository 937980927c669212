package main

import (
	"bytes"
	"io"
	"sync"
)

// recentBytes is how many bytes of the newest log lines the daemon keeps, for mcpx logs.
const recentBytes = 1 << 20

// recentLines has the newest lines of the logs of all sessions.
type recentLines struct {
	mu      sync.Mutex
	text    []byte
	first   int64         // the position of text in all that was written
	changed chan struct{} // closed and replaced with each line; nil if nobody waits
}

// Write implements io.Writer.
func (r *recentLines) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text = append(r.text, p...)
	if over := len(r.text) - recentBytes; over > recentBytes/4 { // not with each line
		if end := bytes.IndexByte(r.text[over:], '\n'); end >= 0 {
			over += end + 1
		}
		r.text, r.first = append([]byte(nil), r.text[over:]...), r.first+int64(over)
	}
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
	return len(p), nil
}

// from returns the lines after a position, the position after them, and a channel that is closed when there are more.
func (r *recentLines) from(position int64) (lines []byte, next int64, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	skip := min(max(position-r.first, 0), int64(len(r.text)))
	return bytes.Clone(r.text[skip:]), r.first + int64(len(r.text)), r.changed
}

// keptWriter writes to a session's stderr and keeps the lines.
type keptWriter struct {
	io.Writer
	lines *recentLines
}

// Write implements io.Writer.
func (w *keptWriter) Write(p []byte) (int, error) {
	_, _ = w.lines.Write(p)
	return w.Writer.Write(p)
}

// fanOut writes to the stderr of each command that uses an app now.
type fanOut struct {
	mu sync.Mutex
	to map[*droppingWriter]bool
}

func (f *fanOut) add(w *droppingWriter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to[w] = true
}

func (f *fanOut) remove(w *droppingWriter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.to, w)
}

// Write implements io.Writer.
func (f *fanOut) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.to {
		_, _ = w.Write(p) // never blocks
	}
	return len(p), nil
}
