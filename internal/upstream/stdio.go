package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/proc"
	"mcpx/internal/wire"
)

// stdioLink speaks to a child process, or to a server in this process, over a
// pair of pipes. A reader and a writer goroutine run until close, which waits
// for both.
type stdioLink struct {
	*mux
	spec   *Spec
	in     incoming
	writer *wire.Writer
	// framing is that of the messages that are sent first. Pinned, it is the only
	// one that is read as well.
	framing wire.Framing
	pinned  bool
	queue   chan *frame
	stop    func() // ends the process or the in-process server, waits for it
	// failure says why the server is gone; it waits for the last words of a
	// process, at most so long.
	failure func(err error, patience time.Duration) error
	tail    func() string // the end of stderr; nil for a server in this process
	noise   atomic.Pointer[string]
	spoke   atomic.Bool // a message came
	broken  error       // what ended the reader; valid once gone is closed
	gone    chan struct{}

	closing   chan struct{}
	closeOnce sync.Once
	loops     sync.WaitGroup
}

// frame is one message on its way to the writer. A caller whose time is over
// takes back a frame that the writer has not taken.
type frame struct {
	message []byte
	taken   atomic.Bool
	written chan error // buffered; nothing comes after a failure, which ends the link
}

const (
	// callPatience is how long open calls wait to be told how the process ended,
	// exitPatience how long the supervisor waits for it.
	callPatience = 20 * time.Millisecond
	exitPatience = 500 * time.Millisecond
)

// queueLength bounds the frames that wait for a child that does not read. Each
// of them is a call that waits anyway.
const queueLength = 64

// startProcess starts the child of a stdio upstream.
func startProcess(spec *Spec, framing wire.Framing, in incoming) (*stdioLink, error) {
	process, err := proc.Start(proc.Spec{
		Command: spec.Command, Args: spec.Args, Env: spec.Env, Dir: spec.Cwd,
		OnStderr: func(line string) { spec.Logger.Debug("stderr", "line", spec.clean(line, 500)) },
	}, spec.Reaper)
	if err != nil {
		reason := spec.clean(err.Error(), 500)
		if errors.Is(err, proc.ErrNotFound) && strings.Contains(spec.Command, " ") {
			reason += "; what follows the program belongs in args"
		}
		return nil, errors.New(reason)
	}
	spec.Logger.Debug("process started", "pid", process.PID())
	l := newStdioLink(spec, process.Stdin(), framing, in)
	l.tail = process.StderrTail
	l.stop = func() { _ = process.Close(context.Background(), spec.grace()) }
	l.failure = func(err error, patience time.Duration) error {
		return errors.New(exitReason(process, err, patience) + l.words())
	}
	l.start(process.Stdout())
	return l, nil
}

// exitReason says why a child is gone.
func exitReason(process *proc.Process, err error, patience time.Duration) string {
	// The end of stdout and the end of the process come close together, in
	// either order.
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-process.Done():
	case <-timer.C:
	}
	what := process.ExitReason()
	switch {
	case what != "":
		what = "the process ended: " + what
	case errors.Is(err, io.EOF):
		what = "the process closed its stdout"
	default:
		what = err.Error()
	}
	return what
}

// words are what a process said, for a reason: the first of its stdout, if that
// had no message at all, and the end of its stderr. They are bounded so that a
// reason with them is not cut.
func (l *stdioLink) words() string {
	text := ""
	if noise := l.noise.Load(); noise != nil && !l.spoke.Load() {
		text = "; stdout has text instead of messages: " + *noise
	}
	if tail := l.spec.cleanEnd(lastLines(l.tail(), 5), 500); tail != "" {
		text += "; stderr: " + tail
	}
	return text
}

// lastLines returns the last n lines of text.
func lastLines(text string, n int) string {
	end := len(text)
	for end > 0 && text[end-1] == '\n' {
		end--
	}
	at := end
	for at > 0 {
		if text[at-1] == '\n' {
			if n--; n == 0 {
				break
			}
		}
		at--
	}
	return text[at:end]
}

// startInProcess starts a server of this process.
func startInProcess(spec *Spec, in incoming) *stdioLink {
	ctx, cancel := context.WithCancel(context.Background())
	serverIn, toServer := io.Pipe()
	fromServer, serverOut := io.Pipe()
	ended := make(chan struct{})
	var err error // of Serve, after ended
	// Ends when its input ends or ctx is done; stop waits for it.
	go func() {
		defer close(ended)
		if err = spec.Serve(ctx, serverIn, serverOut); err == nil {
			err = io.EOF
		}
		_ = serverOut.CloseWithError(err)
		_ = serverIn.CloseWithError(err)
	}()
	l := newStdioLink(spec, toServer, wire.Newline, in)
	l.stop = func() {
		cancel()
		_ = toServer.Close()
		_ = fromServer.Close()
		<-ended
	}
	l.failure = func(seen error, patience time.Duration) error {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-ended:
			seen = err
		case <-timer.C:
		}
		return fmt.Errorf("the server ended: %w", seen)
	}
	l.start(fromServer)
	return l
}

func newStdioLink(spec *Spec, w io.Writer, framing wire.Framing, in incoming) *stdioLink {
	return &stdioLink{
		mux: newMux(), spec: spec, in: in,
		writer:  wire.NewWriter(w, framing),
		framing: framing,
		pinned:  spec.pinnedFraming(),
		queue:   make(chan *frame, queueLength),
		closing: make(chan struct{}),
		gone:    make(chan struct{}),
	}
}

func (l *stdioLink) start(r io.Reader) {
	l.loops.Add(2)
	go l.read(r)
	go l.write()
}

// read ends with the stream.
func (l *stdioLink) read(r io.Reader) {
	defer l.loops.Done()
	reader := wire.NewReader(r, l.spec.MaxMessage, l.noisy)
	if l.pinned {
		reader.Pin(l.framing)
	}
	for {
		data, err := reader.Read()
		var large *wire.TooLargeError
		if errors.As(err, &large) {
			l.spec.Logger.Warn("message over the limit skipped", "limit", large.Limit)
			if !l.resolveLarge(large) {
				l.noisy(large.Head)
			}
			continue
		}
		if err != nil {
			// Whoever waits for an answer hears of it at once.
			l.broken = err
			close(l.gone)
			l.fail(l.failure(err, callPatience))
			return
		}
		if reader.Framing() == wire.ContentLength {
			l.writer.SetFraming(wire.ContentLength)
		}
		if l.deliver(data, l.in) {
			l.spoke.Store(true)
			l.spec.heard.set(reader.Framing())
		} else {
			l.noisy(data)
		}
	}
}

// noisy takes what is no message: the first of it is kept.
func (l *stdioLink) noisy(line []byte) {
	l.noticed(func() string { return l.spec.clean(string(line), shownRunes) })
	if l.noise.Load() == nil {
		first := l.spec.clean(string(line), 200)
		l.noise.Store(&first) // the only writer is the reader
		l.spec.Logger.Warn("stdout has lines that are no message; they are skipped", "first", first)
	}
}

// batchBytes bounds what goes out in one write. A batch is what has queued up
// while the last write was under way, so it delays nobody.
const batchBytes = 64 << 10

// write ends when the link is closed. A child that does not read holds up this
// goroutine only: callers wait for their frame no longer than their context.
func (l *stdioLink) write() {
	defer l.loops.Done()
	for {
		var first *frame
		select {
		case first = <-l.queue:
		case <-l.closing:
			return
		case <-l.ended:
			return
		}
		batch, messages := l.gather(first)
		if len(batch) == 0 {
			continue
		}
		if err := l.writer.Write(messages...); err != nil {
			// The reader mostly knows more, and is about to say it.
			l.fail(l.failure(fmt.Errorf("writing to stdin: %w", err), exitPatience))
			return
		}
		for _, f := range batch {
			f.written <- nil
		}
	}
}

// gather takes first, and what else is queued, as far as nobody took it back.
func (l *stdioLink) gather(first *frame) (batch []*frame, messages [][]byte) {
	size := 0
	for f := first; f != nil; {
		if f.taken.CompareAndSwap(false, true) {
			batch, messages = append(batch, f), append(messages, f.message)
			size += len(f.message)
		}
		if f = nil; size < batchBytes {
			select {
			case f = <-l.queue:
			default:
			}
		}
	}
	return batch, messages
}

// send queues a message and returns when it was written, or ctx is done. The
// error wraps errNotSent if no byte of it went out.
func (l *stdioLink) send(ctx context.Context, message []byte) error {
	f := &frame{message: message, written: make(chan error, 1)}
	select {
	case l.queue <- f:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errNotSent, ctx.Err())
	case <-l.ended:
		return fmt.Errorf("%w: %w", errNotSent, l.cause())
	}
	select {
	case err := <-f.written:
		return err
	case <-ctx.Done():
		if f.taken.CompareAndSwap(false, true) {
			f.message = nil // it stays in the queue of a child that does not read
			return fmt.Errorf("%w: %w", errNotSent, ctx.Err())
		}
		return ctx.Err()
	case <-l.ended:
		if f.taken.CompareAndSwap(false, true) {
			return fmt.Errorf("%w: %w", errNotSent, l.cause())
		}
		return l.cause()
	}
}

func (l *stdioLink) request(ctx context.Context, r request) (wire.Message, error) {
	ch, err := l.register(r)
	if err != nil {
		return wire.Message{}, fmt.Errorf("%w: %w", errNotSent, err)
	}
	if err := l.send(ctx, r.message); err != nil {
		return l.giveUp(r.id, ch, err)
	}
	return l.wait(ctx, r.id, ch)
}

func (l *stdioLink) notify(ctx context.Context, message []byte) error {
	return l.send(ctx, message)
}

// lastWords is why the link ended, in full: for the state of the server, which
// can wait longer than a call.
func (l *stdioLink) lastWords() error {
	select {
	case <-l.gone:
		return l.failure(l.broken, exitPatience)
	default:
		return nil
	}
}

func (l *stdioLink) close() {
	l.closeOnce.Do(func() {
		close(l.closing)
		l.fail(errors.New("closed"))
		l.stop()
	})
	l.loops.Wait()
}
