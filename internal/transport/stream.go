package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"mcpx/internal/base/wire"
)

// streamLink is a link over one Conn. Its reader and writer goroutines end when the stream breaks, at the latest with Close,
// which waits for both.
type streamLink struct {
	*mux
	dialer   *Dialer
	in       Incoming
	conn     Conn
	out      *outbox
	evidence *Evidence

	closing   chan struct{}
	closeOnce sync.Once
	loops     sync.WaitGroup
}

func newStreamLink(d *Dialer) *streamLink {
	l := &streamLink{mux: newMux(d.Logger), dialer: d, closing: make(chan struct{})}
	l.evidence = &Evidence{dialer: d, life: l.life, gone: make(chan struct{})}
	return l
}

// use gives the link its Conn. Close of the link also closes the Conn. server describes the server if the link has started it;
// otherwise server is nil.
func (l *streamLink) use(conn Conn, server *ownServer) *streamLink {
	l.conn, l.out, l.evidence.own = conn, newOutbox(conn), server
	return l
}

func (l *streamLink) Start(in Incoming) {
	l.in = in
	l.loops.Go(l.read)  // the goroutine ends with the stream
	l.loops.Go(l.write) // the goroutine ends when the stream breaks or the link is closed
}

func (l *streamLink) Traits() Traits {
	return Traits{OneStream: true, OwnsProcess: l.evidence.own != nil}
}

func (l *streamLink) Evidence() *Evidence { return l.evidence }

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
			l.evidence.ended(err)
			l.life.Fail(l.evidence.failure(err, callPatience))
			return
		}
		if l.deliver(data, l.in) {
			l.evidence.message()
		} else {
			l.noisy(data)
		}
	}
}

// noisy handles a line that is not a message.
func (l *streamLink) noisy(line []byte) {
	l.noticed(func() string { return l.dialer.Secrets.LineOf(line, shownRunes) })
	l.evidence.noisy(line)
}

func (l *streamLink) write() {
	if err := l.out.write(l.closing); err != nil {
		// Usually the reader soon finds a better reason for the error. For example, a process that has ended may have
		// written text to stdout.
		select {
		case <-l.evidence.gone:
		case <-time.After(exitPatience):
		}
		l.life.Fail(l.evidence.failure(fmt.Errorf("writing: %w", err), exitPatience))
	}
}

func (l *streamLink) Request(ctx context.Context, r Outgoing) (wire.Message, error) {
	p, crowded, err := l.register(r)
	if err != nil {
		return wire.Message{}, err
	}
	l.dialer.traced(false, r.Message)
	l.out.add(&p.frame, crowded)
	message, err := l.wait(ctx, p)
	if err != nil && l.out.takeBack(&p.frame) {
		err = NotSent(err)
	}
	return message, err
}

// Notify queues a message without waiting until it is written.
func (l *streamLink) Notify(_ context.Context, message []byte) error {
	if err := l.life.Cause(); err != nil {
		return NotSent(err)
	}
	if !l.out.addNote(message) {
		return ErrNotSent
	}
	l.dialer.traced(false, message)
	return nil
}

func (l *streamLink) Close() {
	l.closeOnce.Do(func() {
		close(l.closing)
		l.life.Fail(errors.New("closed"))
		_ = l.conn.Close()
	})
	l.loops.Wait()
}
