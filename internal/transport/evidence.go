package transport

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"mcpx/internal/base/proc"
	"mcpx/internal/base/sanitize"
)

// Evidence is what a link has seen of its server besides messages: other output, and how the stream ended. A nil Evidence is
// empty. Safe for concurrent use.
type Evidence struct {
	dialer *Dialer
	life   *Lifecycle
	own    *ownServer // nil if the link did not start the server itself

	noise  atomic.Pointer[string] // the first line of output that is not a message
	noises atomic.Int64
	spoke  atomic.Bool   // the server has sent at least one message
	broken error         // why the reader ended; set before gone is closed
	gone   chan struct{} // closed when the reader ends
}

// ownServer describes a server that the link has started itself: a child process, or a server in this process.
type ownServer struct {
	pid int // the id of its process; 0 if it is not a process
	// failure returns why the server has ended; err is the error of the stream. failure waits for the end of the server, but for at
	// most the time patience.
	failure func(err error, patience time.Duration) string
	// stderr returns the end of the server's stderr output. May be nil.
	stderr func() string
	// movement returns how much the process has done so far. If two values differ, the process made progress between them. May
	// be nil.
	movement func() proc.Movement
	// understood is called for each valid message that arrived. Over stdio it records the framing of the message: lines or
	// Content-Length headers. May be nil.
	understood func()
}

const (
	// When the stream of a process breaks, the process usually ends too. To learn how it ended, open calls wait for that end for at
	// most callPatience, and the goroutine that owns the session for at most exitPatience.
	callPatience = 20 * time.Millisecond
	exitPatience = 500 * time.Millisecond
)

// stderrRunes and noiseRunes bound how much of a server's output is quoted, in runes, so that a reason does not
// become too long.
const (
	stderrRunes = 300
	noiseRunes  = 120
)

// WhyEnded returns why the stream has ended, with all details, or nil if it is still open. It may wait for a
// process to end.
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

// Movement returns a comparable value that changes with each sign of progress of the server: a message, other output, and
// activity of its processes. A nil Evidence has none.
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

// PID returns the id of the process that the link has started; 0 if it has started none.
func (e *Evidence) PID() int {
	if e == nil || e.own == nil {
		return 0
	}
	return e.own.pid
}

// Remarks returns output of the server that can explain a failure, in the form "; text". The text quotes the first line of
// stdout, if the server has sent no message. It also quotes stderr: the line that names a cause or, if no line does, the last
// lines.
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

// cause returns the line of stderr that names a cause, if any, and the whole stderr, without secrets.
func (e *Evidence) cause() (line, stderr string) {
	stderr = e.dialer.Secrets.Strike(e.own.stderr())
	return e.dialer.Secrets.Line(sanitize.Cause(stderr), stderrRunes), stderr
}

// message records that a message arrived.
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
		e.noise.Store(&first) // only the reader writes it
		e.dialer.Logger.Warn("stdout has lines that are not messages; they are skipped", "first", first)
	}
}

// ended records why the reader ended. It is called once.
func (e *Evidence) ended(err error) {
	e.broken = err
	close(e.gone)
}

// failure returns why the stream broke. If a line of stderr names a cause, that line comes first.
func (e *Evidence) failure(err error, patience time.Duration) error {
	if e.own == nil {
		return fmt.Errorf("the connection broke: %w", err)
	}
	event := e.own.failure(err, patience) // after this call stderr is complete
	if e.own.stderr == nil {
		return errors.New(event)
	}
	why := event + e.Remarks()
	if cause, _ := e.cause(); cause != "" {
		why = cause + " (" + event + e.noiseNote() + ")"
	}
	return errors.New(npxCure(e.own.stderr()) + why)
}

// noiseNote quotes the first line of stdout if the server has sent no message.
func (e *Evidence) noiseNote() string {
	if noise := e.noise.Load(); noise != nil && !e.spoke.Load() {
		return "; stdout has text instead of messages: " + sanitize.Line(*noise, noiseRunes)
	}
	return ""
}
