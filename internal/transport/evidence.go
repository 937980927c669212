package transport

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"mcpx/internal/base/proc"
	"mcpx/internal/base/sanitize"
)

// Evidence is what a link has seen of its server beside messages: other output, and how its stream ended. A nil Evidence
// is empty. Safe for concurrent use.
type Evidence struct {
	dialer *Dialer
	life   *Lifecycle
	own    *ownServer // nil if the link has not started the server

	noise  atomic.Pointer[string] // the first line that is not a message
	noises atomic.Int64
	spoke  atomic.Bool   // the server has sent a message
	broken error         // why the reader ended; set before gone is closed
	gone   chan struct{} // closed by the reader
}

// ownServer describes a server that the link has started.
type ownServer struct {
	// failure returns why the server is gone. It waits up to patience for the end of a process.
	failure func(err error, patience time.Duration) string
	// stderr returns the end of the server's stderr. May be nil.
	stderr func() string
	// movement returns what the process has done so far. May be nil.
	movement func() proc.Movement
	// understood is called for each message that came. May be nil.
	understood func()
}

const (
	// callPatience is how long open calls wait to learn how the process ended, exitPatience how long the supervising
	// goroutine waits.
	callPatience = 20 * time.Millisecond
	exitPatience = 500 * time.Millisecond
)

// stderrRunes and noiseRunes bound what is quoted of a server's output, so that a reason stays within its own bound.
const (
	stderrRunes = 300
	noiseRunes  = 120
)

// WhyEnded returns why the stream has ended, in full; nil if it has not. It may wait for a process to end.
func (e *Evidence) WhyEnded() error {
	if e == nil {
		return nil
	}
	select {
	case <-e.gone:
		return e.failure(e.broken, exitPatience)
	default:
		return e.life.Cause()
	}
}

// Movement returns a comparable value that changes with each sign of progress on the server's side, in its processes too.
func (e *Evidence) Movement() any {
	if e == nil {
		return nil
	}
	type movement struct {
		heard, noises int64
		process       proc.Movement
	}
	now := movement{heard: e.life.heard.Load(), noises: e.noises.Load()}
	if e.own != nil && e.own.movement != nil {
		now.process = e.own.movement()
	}
	return now
}

// Remarks returns what can explain a failure, in the form "; text": the first line of a stdout without any message, and the
// line of stderr that names a cause, or else its last lines.
func (e *Evidence) Remarks() string {
	if e == nil || e.own == nil || e.own.stderr == nil {
		return ""
	}
	cause, stderr := e.cause()
	if cause == "" {
		cause = e.dialer.Secrets.LineEnd(sanitize.Ending(stderr, 5), stderrRunes)
	}
	if cause != "" {
		cause = "; stderr: " + cause
	}
	return e.noiseNote() + cause
}

// cause returns the line of stderr that names a cause, if any, and all of stderr without secrets.
func (e *Evidence) cause() (line, stderr string) {
	stderr = e.dialer.Secrets.Strike(e.own.stderr())
	return e.dialer.Secrets.Line(sanitize.Cause(stderr), stderrRunes), stderr
}

// message notes that a message came.
func (e *Evidence) message() {
	e.spoke.Store(true)
	if e.own != nil && e.own.understood != nil {
		e.own.understood()
	}
}

// noisy handles output that is not a message: it keeps and logs the first line.
func (e *Evidence) noisy(line []byte) {
	e.noises.Add(1)
	if e.noise.Load() == nil {
		first := e.dialer.Secrets.LineOf(line, 200)
		e.noise.Store(&first) // the only writer is the reader
		e.dialer.Logger.Warn("stdout has lines that are not messages; they are skipped", "first", first)
	}
}

// ended notes why the reader ended. It is called once.
func (e *Evidence) ended(err error) {
	e.broken = err
	close(e.gone)
}

// failure returns why the stream broke. If stderr names a cause, that comes first.
func (e *Evidence) failure(err error, patience time.Duration) error {
	if e.own == nil {
		return fmt.Errorf("the connection broke: %w", err)
	}
	event := e.own.failure(err, patience) // stderr is complete after this
	if e.own.stderr == nil {
		return errors.New(event)
	}
	why := event + e.Remarks()
	if cause, _ := e.cause(); cause != "" {
		why = cause + " (" + event + e.noiseNote() + ")"
	}
	return errors.New(npxCure(e.own.stderr()) + why)
}

// noiseNote quotes the first line of a stdout without any message.
func (e *Evidence) noiseNote() string {
	if noise := e.noise.Load(); noise != nil && !e.spoke.Load() {
		return "; stdout has text instead of messages: " + sanitize.Line(*noise, noiseRunes)
	}
	return ""
}
