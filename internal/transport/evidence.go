package transport

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"mcpx/internal/base/proc"
	"mcpx/internal/base/sanitize"
)

// Evidence is what a link has seen of its server beside messages: how its stream ended, and what it wrote meanwhile.
// Nil, for a link that sees nothing of that, says nothing. Safe for concurrent use.
type Evidence struct {
	dialer *Dialer
	life   *Lifecycle
	own    *ownServer // nil for a server that the link has not started

	noise  atomic.Pointer[string] // the first line that is no message
	noises atomic.Int64
	spoke  atomic.Bool   // a message came
	broken error         // what ended the reader; valid once gone is closed
	gone   chan struct{} // closed by the reader
}

// ownServer is what is known of a server that the link has started.
type ownServer struct {
	// failure says why the server is gone; it waits for the last words of a process,
	// at most so long.
	failure func(err error, patience time.Duration) string
	// stderr returns the end of what the server wrote there, for a reason. May be nil.
	stderr func() string
	// movement is what the process has done so far. May be nil.
	movement func() proc.Movement
	// understood is called for each message that came. May be nil.
	understood func()
}

const (
	// callPatience is how long open calls wait until it is known how the process
	// ended, exitPatience how long the supervisor waits for it.
	callPatience = 20 * time.Millisecond
	exitPatience = 500 * time.Millisecond
)

// stderrRunes and noiseRunes bound what is quoted of a server, so that a reason is
// not cut.
const (
	stderrRunes = 300
	noiseRunes  = 120
)

// WhyEnded is why a stream has ended, in full; nil if it has not. It may wait for a process to end.
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

// Movement can be compared: two values that differ say that something moved on the server's side between them, be it in
// its processes.
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

// Remarks are the first line of stdout, if that had no message at all, and what stderr says, else the end of it. Mostly
// they are empty.
func (e *Evidence) Remarks() string {
	if e == nil || e.own == nil || e.own.stderr == nil {
		return ""
	}
	text := e.noiseNote()
	stderr := e.dialer.Secrets.Strike(e.own.stderr())
	said := e.dialer.Secrets.Line(sanitize.Cause(stderr), stderrRunes)
	if said == "" {
		said = e.dialer.Secrets.LineEnd(sanitize.Ending(stderr, 5), stderrRunes)
	}
	if said != "" {
		text += "; stderr: " + said
	}
	return text
}

// message notes that a message came.
func (e *Evidence) message() {
	e.spoke.Store(true)
	if e.own != nil && e.own.understood != nil {
		e.own.understood()
	}
}

// noisy takes what is no message: the first of it is kept.
func (e *Evidence) noisy(line []byte) {
	e.noises.Add(1)
	if e.noise.Load() == nil {
		first := e.dialer.Secrets.LineOf(line, 200)
		e.noise.Store(&first) // the only writer is the reader
		e.dialer.Logger.Warn("stdout has lines that are no message; they are skipped", "first", first)
	}
}

// ended notes what has ended the reader, once.
func (e *Evidence) ended(err error) {
	e.broken = err
	close(e.gone)
}

// failure says why the stream broke.
func (e *Evidence) failure(err error, patience time.Duration) error {
	if e.own == nil {
		return fmt.Errorf("the connection broke: %w", err)
	}
	why := e.causeOf(e.own.failure(err, patience)) // and after that stderr is whole
	if e.own.stderr != nil {
		why = npxCure(e.own.stderr()) + why
	}
	return errors.New(why)
}

// causeOf says why an event came: the line of stderr that tells is the first that a
// reader sees of it.
func (e *Evidence) causeOf(event string) string {
	if e.own.stderr != nil {
		stderr := e.dialer.Secrets.Strike(e.own.stderr())
		if cause := e.dialer.Secrets.Line(sanitize.Cause(stderr), stderrRunes); cause != "" {
			return cause + " (" + event + e.noiseNote() + ")"
		}
	}
	return event + e.Remarks()
}

// noiseNote has the first line of a stdout without any message.
func (e *Evidence) noiseNote() string {
	if noise := e.noise.Load(); noise != nil && !e.spoke.Load() {
		return "; stdout has text instead of messages: " + sanitize.Line(*noise, noiseRunes)
	}
	return ""
}
