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
	// stderrBytes bounds the lines that wait until somebody reads stderr.
	stderrBytes = 1 << 20
	// lastLines is how long the last of it may take at the end.
	lastLines = 200 * time.Millisecond
)

// droppingWriter is a stderr that may be read slowly, or not at all: many clients
// open a pipe for it and never look. Lines that do not fit are dropped and counted;
// logging never waits.
type droppingWriter struct {
	w     io.Writer
	ended chan struct{} // closed when all that was queued is written

	mu      sync.Mutex
	more    sync.Cond // something is queued, or closed is set
	queue   []byte
	closed  bool
	dropped int
}

// newDroppingWriter starts a goroutine that ends with close, or, where a write
// never returns, with the process.
func newDroppingWriter(w io.Writer) *droppingWriter {
	d := &droppingWriter{w: w, ended: make(chan struct{})}
	d.more.L = &d.mu
	go d.run()
	return d
}

// Write implements io.Writer. It takes a line or leaves it.
func (d *droppingWriter) Write(line []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
	case len(d.queue)+len(line) > stderrBytes:
		d.dropped++
	default:
		d.queue = append(d.queue, line...)
		d.more.Signal()
	}
	return len(line), nil
}

func (d *droppingWriter) run() {
	defer close(d.ended)
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		for len(d.queue) == 0 {
			if d.closed {
				return
			}
			d.more.Wait()
		}
		out, dropped := d.queue, d.dropped
		d.queue, d.dropped = nil, 0
		if dropped > 0 {
			out = fmt.Appendf(out, "mcpx: %d lines are left out here: they were not taken in time\n", dropped)
		}
		d.mu.Unlock()
		_, _ = d.w.Write(out) // nobody could be told
		d.mu.Lock()
	}
}

// close writes the queued lines, as far as somebody reads them soon. It drops later
// ones.
func (d *droppingWriter) close() {
	d.mu.Lock()
	d.closed = true
	d.more.Signal()
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
