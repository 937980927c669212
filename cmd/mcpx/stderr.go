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
	// stderrBytes limits the queue of lines for stderr.
	stderrBytes = 1 << 20
	// lastLines limits the time to write the queue at the end.
	lastLines = 200 * time.Millisecond
	// gatherLines is the least time between two writes. With thousands of calls a second, a write
	// for each line would cost too much.
	gatherLines = 5 * time.Millisecond
	// spareBytes is the largest buffer that is kept for the next lines.
	spareBytes = 64 << 10
)

// droppingWriter queues lines for stderr, so that logging never blocks: many clients open
// a pipe for stderr and never read it. If the queue is full, it drops lines and counts them.
type droppingWriter struct {
	w     io.Writer
	ended chan struct{} // closed when run has written the queue and ended
	hurry chan struct{} // closed by close; ends the wait between two writes

	mu      sync.Mutex
	more    sync.Cond // the queue has grown, or closed is set
	queue   []byte
	closed  bool
	dropped int
}

// newDroppingWriter starts the goroutine run, which ends after close. If a write to w never returns,
// it ends with the process.
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

// close waits until the queue is written, but at most lastLines. It drops later lines.
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

// surviveBrokenPipes makes a write to a closed stdout or stderr return an error, until stop is
// called. Otherwise SIGPIPE would kill the process. It does not ignore the signal, because child
// processes would inherit that.
func surviveBrokenPipes() (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	return func() { signal.Stop(signals) }
}
