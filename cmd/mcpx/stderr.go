package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

const (
	// stderrLines bounds the lines that wait for who reads stderr.
	stderrLines = 1000
	// lastLines is how long the last of them may take at the end.
	lastLines = 200 * time.Millisecond
)

// droppingWriter is a stderr that may be read slowly, or not at all: many clients
// open a pipe for it and never look. What does not fit is dropped and counted;
// who logs never waits.
type droppingWriter struct {
	w     io.Writer
	lines chan []byte
	ended chan struct{} // closed when all that was queued is written

	mu      sync.Mutex
	closed  bool
	dropped int
}

// newDroppingWriter starts a goroutine that ends with close, or, where a write
// never returns, with the process.
func newDroppingWriter(w io.Writer) *droppingWriter {
	d := &droppingWriter{w: w, lines: make(chan []byte, stderrLines), ended: make(chan struct{})}
	go d.run()
	return d
}

// Write implements io.Writer.
func (d *droppingWriter) Write(line []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return len(line), nil
	}
	select {
	case d.lines <- append([]byte(nil), line...):
	default:
		d.dropped++
	}
	return len(line), nil
}

func (d *droppingWriter) run() {
	defer close(d.ended)
	for line := range d.lines {
		_, _ = d.w.Write(line) // nobody could be told
		d.mu.Lock()
		dropped := d.dropped
		d.dropped = 0
		d.mu.Unlock()
		if dropped > 0 {
			fmt.Fprintf(d.w, "mcpx: %d lines left out here: stderr was not read\n", dropped)
		}
	}
}

// close writes what is queued, as far as it is read soon. What is written
// afterwards is dropped.
func (d *droppingWriter) close() {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		close(d.lines)
	}
	d.mu.Unlock()
	timer := time.NewTimer(lastLines)
	defer timer.Stop()
	select {
	case <-d.ended:
	case <-timer.C:
	}
}

// surviveBrokenPipes makes a write to a stdout or stderr that nobody has open any
// more an error, as it is elsewhere; without it the process would be killed, with
// every call that is under way. The func it returns ends that. Children are not
// concerned, as they would be by a signal that is ignored.
func surviveBrokenPipes() func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	return func() { signal.Stop(signals) }
}
