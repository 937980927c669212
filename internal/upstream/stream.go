package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/proc"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/base/wire"
)

// streamLink speaks over one Conn. A reader and a writer goroutine run until close,
// which waits for both.
type streamLink struct {
	*mux
	dialer *Dialer
	in     incoming
	conn   Conn
	out    *outbox
	own    *ownServer // nil where the server is somebody else's

	noise  atomic.Pointer[string]
	noises atomic.Int64
	spoke  atomic.Bool // a message came
	broken error       // what ended the reader; valid once gone is closed
	gone   chan struct{}

	closing   chan struct{}
	closeOnce sync.Once
	loops     sync.WaitGroup
}

// ownServer is what is known of a server that the link has started.
type ownServer struct {
	// failure says why the server is gone; it waits for the last words of a process,
	// at most so long.
	failure func(err error, patience time.Duration) string
	// stderr is the end of it, for a reason.
	stderr func() string
	// movement is that of the process. May be nil.
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

func newStreamLink(d *Dialer) *streamLink {
	return &streamLink{mux: newMux(), dialer: d, closing: make(chan struct{}), gone: make(chan struct{})}
}

// use gives the link its conn, which it closes.
func (l *streamLink) use(conn Conn, own *ownServer) *streamLink {
	l.conn, l.out, l.own = conn, newOutbox(conn), own
	return l
}

func (l *streamLink) start(in incoming) {
	l.in = in
	l.loops.Go(l.read)  // ends with the stream
	l.loops.Go(l.write) // ends when the stream breaks or the link is closed
}

func (l *streamLink) traits() traits {
	return traits{oneStream: true, ownsProcess: l.own != nil}
}

func (l *streamLink) read() {
	for {
		data, err := l.conn.Read()
		if err == nil {
			l.dialer.traced(true, data)
		} else {
			if large, ok := errors.AsType[*wire.TooLargeError](err); ok {
				l.dialer.Logger.Warn("message over the limit skipped", "limit", large.Limit)
				if !l.resolveLarge(large) {
					l.noisy(large.Head)
				}
				continue
			}
			// Requests that wait for an answer end at once.
			l.broken = err
			close(l.gone)
			l.fail(l.failure(err, callPatience))
			return
		}
		if !l.deliver(data, l.in) {
			l.noisy(data)
			continue
		}
		l.spoke.Store(true)
		if l.own != nil && l.own.understood != nil {
			l.own.understood()
		}
	}
}

// noisy takes what is no message: the first of it is kept.
func (l *streamLink) noisy(line []byte) {
	l.noises.Add(1)
	l.noticed(func() string { return l.dialer.Secrets.LineOf(line, shownRunes) })
	if l.noise.Load() == nil {
		first := l.dialer.Secrets.LineOf(line, 200)
		l.noise.Store(&first) // the only writer is the reader
		l.dialer.Logger.Warn("stdout has lines that are no message; they are skipped", "first", first)
	}
}

// movement implements [Link].
func (l *streamLink) movement() any {
	type movement struct {
		heard, noises int64
		process       proc.Movement
	}
	now := movement{heard: l.heard.Load(), noises: l.noises.Load()}
	if l.own != nil && l.own.movement != nil {
		now.process = l.own.movement()
	}
	return now
}

func (l *streamLink) write() {
	if err := l.out.write(l.closing); err != nil {
		// The reader mostly knows more, and is about to say it: a process that is gone
		// may have left text on stdout.
		select {
		case <-l.gone:
		case <-time.After(exitPatience):
		}
		l.fail(l.failure(fmt.Errorf("writing: %w", err), exitPatience))
	}
}

// failure says why the stream broke.
func (l *streamLink) failure(err error, patience time.Duration) error {
	if l.own == nil {
		return fmt.Errorf("the connection broke: %w", err)
	}
	why := l.causeOf(l.own.failure(err, patience)) // and after that stderr is whole
	if l.own.stderr != nil {
		why = npxCure(l.own.stderr()) + why
	}
	return errors.New(why)
}

func (l *streamLink) request(ctx context.Context, r outgoing) (wire.Message, error) {
	p, crowded, err := l.register(r)
	if err != nil {
		return wire.Message{}, err
	}
	l.dialer.traced(false, r.message)
	l.out.add(&p.frame, crowded)
	message, err := l.wait(ctx, p)
	if err != nil && l.out.takeBack(&p.frame) {
		err = notSent(err)
	}
	return message, err
}

// notify queues a message, and does not wait until it is written.
func (l *streamLink) notify(_ context.Context, message []byte) error {
	if err := l.cause(); err != nil {
		return notSent(err)
	}
	if !l.out.addNote(message) {
		return errNotSent
	}
	l.dialer.traced(false, message)
	return nil
}

// whyEnded waits longer for the end of a process than a call can.
func (l *streamLink) whyEnded() error {
	select {
	case <-l.gone:
		return l.failure(l.broken, exitPatience)
	default:
		return l.cause()
	}
}

// causeOf says why an event came: the line of stderr that tells is the first that a
// reader sees of it.
func (l *streamLink) causeOf(event string) string {
	if l.own.stderr != nil {
		if cause := l.dialer.Secrets.Line(sanitize.Cause(l.dialer.Secrets.Strike(l.own.stderr())), stderrRunes); cause != "" {
			return cause + " (" + event + l.noiseNote() + ")"
		}
	}
	return event + l.remarks()
}

// stderrRunes and noiseRunes bound what is quoted of a server, so that a reason is
// not cut.
const (
	stderrRunes = 300
	noiseRunes  = 120
)

// remarks are the first line of stdout, if that had no message at all, and what stderr
// says, else the end of it.
func (l *streamLink) remarks() string {
	if l.own == nil || l.own.stderr == nil {
		return ""
	}
	text := l.noiseNote()
	stderr := l.dialer.Secrets.Strike(l.own.stderr())
	said := l.dialer.Secrets.Line(sanitize.Cause(stderr), stderrRunes)
	if said == "" {
		said = l.dialer.Secrets.LineEnd(sanitize.Ending(stderr, 5), stderrRunes)
	}
	if said != "" {
		text += "; stderr: " + said
	}
	return text
}

// noiseNote has the first line of a stdout without any message.
func (l *streamLink) noiseNote() string {
	if noise := l.noise.Load(); noise != nil && !l.spoke.Load() {
		return "; stdout has text instead of messages: " + sanitize.Line(*noise, noiseRunes)
	}
	return ""
}

func (l *streamLink) close() {
	l.closeOnce.Do(func() {
		close(l.closing)
		l.fail(errors.New("closed"))
		_ = l.conn.Close()
	})
	l.loops.Wait()
}
