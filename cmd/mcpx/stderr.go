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
	// stderrBytes is how many bytes of lines may wait in the queue, at most.
	stderrBytes = 1 << 20
	// lastLines is how long close waits, at most, until the queued lines are written.
	lastLines = 200 * time.Millisecond
	// gatherLines is the shortest time between two writes, so that one write has many lines. With thousands of calls a second, a
	// write for each line would take too much time.
	gatherLines = 5 * time.Millisecond
	// A buffer is used again for further lines if it is not larger than spareBytes.
	spareBytes = 64 << 10
)

// droppingWriter queues lines for stderr or the log file, so that logging never blocks: many clients open a pipe for stderr and
// never read it. If the queue is full, it drops further lines and counts them.
type droppingWriter struct {
	w     io.Writer
	ended chan struct{} // closed when the method run has written the queue and returned
	hurry chan struct{} // closed by close; ends the pause between two writes

	mu      sync.Mutex
	more    sync.Cond // signalled when the queue has grown or closed is set
	queue   []byte
	closed  bool
	dropped int
}

// newDroppingWriter starts a goroutine for the method run, which ends after close. If a write to w never
// returns, the goroutine ends with the process.
func newDroppingWriter(w io.Writer) *droppingWriter {
	d := &droppingWriter{w: w, ended: make(chan struct{}), hurry: make(chan struct{})}
	d.more.L = &d.mu
	go d.run()
	return d
}

// Write implements io.Writer. It queues the line or, if the queue is full, drops the whole line. It never fails.
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
			out = fmt.Appendf(out, "mcpx: %d lines are missing here: they could not be written in time\n", dropped)
		}
		d.mu.Unlock()
		_, _ = d.w.Write(out) // an error cannot be reported anywhere
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

// close waits until the queue is written, for at most lastLines. Later lines are dropped.
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

// surviveBrokenPipes makes a write to a closed stdout or stderr return an error, until stop is called.
// Otherwise SIGPIPE would kill the process. It does not ignore the signal, because child processes would then
// ignore it too.
func surviveBrokenPipes() (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	return func() { signal.Stop(signals) }
}
