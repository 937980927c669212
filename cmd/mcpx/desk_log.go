package main

import (
	"io"
	"sync"

	"mcpx/internal/app"
)

// keptWriter writes to a session's stderr, and keeps the lines for mcpx logs and the page.
type keptWriter struct {
	io.Writer
	lines *app.Lines
}

// Write implements io.Writer.
func (w *keptWriter) Write(p []byte) (int, error) {
	_, _ = w.lines.Write(p)
	return w.Writer.Write(p)
}

// fanOut copies the log of a shared app to the stderr of each command that uses the app at the moment.
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
