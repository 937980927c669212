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
	// stderrBytes bounds the queue of lines for stderr.
	stderrBytes = 1 << 20
	// lastLines bounds the time to write the queue at the end.
	lastLines = 200 * time.Millisecond
	// gatherLines is how long lines are gathered after a write. The first one is written at
	// once; of thousands of calls a second each would be a write, and a switch to run.
	gatherLines = 5 * time.Millisecond
	// spareBytes is how much of an empty queue is kept for the next lines.
	spareBytes = 64 << 10
)

// droppingWriter queues lines for stderr, so that logging never blocks: many clients open
// a pipe for stderr and never read it. It drops and counts lines beyond stderrBytes.
type droppingWriter struct {
	w     io.Writer
	ended chan struct{} // closed when run has written the queue and ended
	hurry chan struct{} // closed by close

	mu      sync.Mutex
	more    sync.Cond // the queue has grown, or closed is set
	queue   []byte
	closed  bool
	dropped int
}

// newDroppingWriter starts a goroutine. It ends after close or, if a write never returns,
// with the process.
func newDroppingWriter(w io.Writer) *droppingWriter {
	d := &droppingWriter{w: w, ended: make(chan struct{}), hurry: make(chan struct{})}
	d.more.L = &d.mu
	go d.run()
	return d
}

// Write implements io.Writer. It queues or drops a whole line.
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
	timer := time.NewTimer(gatherLines)
	defer timer.Stop()
	var spare []byte
	for {
		for len(d.queue) == 0 {
			if d.closed {
				return
			}
			d.more.Wait()
		}
		out, dropped := d.queue, d.dropped
		d.queue, d.dropped = spare[:0], 0
		if dropped > 0 {
			out = fmt.Appendf(out, "mcpx: %d lines are left out here: they were not taken in time\n", dropped)
		}
		d.mu.Unlock()
		_, _ = d.w.Write(out) // there is no place for the error
		timer.Reset(gatherLines)
		select {
		case <-timer.C:
		case <-d.hurry:
		}
		d.mu.Lock()
		if spare = out; cap(spare) > spareBytes {
			spare = nil
		}
	}
}

// close waits until the queue is written, at most lastLines. Later lines are dropped.
func (d *droppingWriter) close() {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		close(d.hurry)
	}
	d.more.Signal()
	d.mu.Unlock()
	timer := time.NewTimer(lastLines)
	defer timer.Stop()
	select {
	case <-d.ended:
	case <-timer.C:
	}
}

// surviveBrokenPipes makes a write to a closed stdout or stderr an error. Otherwise
// SIGPIPE would kill the process and its open calls. The func that it returns ends that.
// It does not ignore the signal, since children would inherit that.
func surviveBrokenPipes() func() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	return func() { signal.Stop(signals) }
}
