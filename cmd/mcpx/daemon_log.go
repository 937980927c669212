package main

import (
	"io"
	"sync"

	"mcpx/internal/app"
)

// keptWriter writes log lines to a writer, such as the stderr of a session, and also keeps them for mcpx logs or the status
// page.
type keptWriter struct {
	io.Writer
	lines *app.Lines
}

// Write keeps the log lines in p, and writes them to the writer.
func (w *keptWriter) Write(p []byte) (int, error) {
	_, _ = w.lines.Write(p)
	return w.Writer.Write(p)
}

// fanOut copies the log of an app that several commands share to the stderr of each command that is using it at the moment.
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

// Write passes log lines to each command that uses the app at the moment. It never fails.
func (f *fanOut) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.to {
		_, _ = w.Write(p) // never blocks
	}
	return len(p), nil
}
