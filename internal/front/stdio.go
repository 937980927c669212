package front

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/upstream"
	"mcpx/internal/wire"
)

// StdioOptions bound what one client over stdio can ask for.
type StdioOptions struct {
	// MaxMessage is in bytes; 0 = 64 MiB.
	MaxMessage int64
	// Drain bounds the wait for open answers after the end of the input; then
	// they are cancelled. 0 = 900 ms: clients kill after 2 s.
	Drain time.Duration
	// Grace is the same after the end of the context (a signal); 0 = 4 s.
	Grace time.Duration
	// MaxOpen bounds the requests under way; those beyond it are refused, so that
	// what takes requests back is always read. 0 = 10,000.
	MaxOpen int
}

func (o StdioOptions) withDefaults() StdioOptions {
	o.MaxMessage = cmp.Or(o.MaxMessage, 64<<20)
	o.Drain = cmp.Or(o.Drain, 900*time.Millisecond)
	o.Grace = cmp.Or(o.Grace, 4*time.Second)
	o.MaxOpen = cmp.Or(o.MaxOpen, 10_000)
	return o
}

// stdioServer is one client on a pair of pipes.
type stdioServer struct {
	front     *Front
	options   StdioOptions
	out       *output
	session   *session
	announces atomic.Bool // initialize has been answered

	places chan struct{} // of requests whose answer is waited for
	stop   chan struct{} // closed at the end, for the reader and the pump

	mu      sync.Mutex
	closing bool           // under mu: requests are refused
	open    sync.WaitGroup // answers that the end waits for
	all     sync.WaitGroup // the goroutines of requests, and the pump
}

// ServeStdio answers one client until in ends or ctx is done. Open answers are
// delivered before it returns; requests that come meanwhile are refused. Only
// whole messages are written to out. A read of in, and a write to out for a
// client that does not read, are left behind: they end with the process.
func (f *Front) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, options StdioOptions) error {
	options = options.withDefaults()
	s := &stdioServer{
		front: f, options: options,
		out:     newOutput(out),
		session: newSession("stdio"),
		places:  make(chan struct{}, options.MaxOpen),
		stop:    make(chan struct{}),
	}
	s.session.client.Store(&upstream.Client{ID: "stdio", Notify: s.notify})
	s.session.changed = f.changes.subscribe()
	defer f.changes.unsubscribe(s.session.changed)
	defer func() { f.view.Forget(s.session.client.Load()) }()
	s.all.Go(s.pump) // ends with stop
	ended := make(chan error, 1)
	go func() { ended <- s.read(context.WithoutCancel(ctx), in) }() // ends with in
	var err error
	select {
	case err = <-ended:
		s.drain(options.Drain, nil, errInputEnded)
	case <-s.out.failed:
		err = fmt.Errorf("writing to stdout: %w", s.out.err)
		s.drain(0, ended, errInputEnded)
	case <-ctx.Done():
		s.drain(options.Grace, ended, errStopping)
	}
	return err
}

// lastAnswers is how long the errors of cancelled calls may take to be written.
const lastAnswers = 300 * time.Millisecond

// drain refuses what comes from now on and waits for the open answers; then it
// cancels what is left and waits for its errors to be written. The end of the
// input, if it is still to come, leaves no more time than options.Drain.
func (s *stdioServer) drain(bound time.Duration, ended <-chan error, why error) {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	answered, over := make(chan struct{}), make(chan struct{})
	go func() { // ends with the last answer, as does the other; cancelling makes sure of that
		s.open.Wait()
		close(answered)
	}()
	timer := time.NewTimer(bound)
	defer timer.Stop()
	for waiting := true; waiting; {
		select {
		case <-answered:
			waiting = false
		case <-timer.C:
			waiting = false
		case <-ended:
			ended = nil
			timer.Reset(min(bound, s.options.Drain))
		}
	}
	s.session.inflight.end(false, why)
	close(s.stop)
	go func() {
		s.all.Wait()
		s.out.flush()
		close(over)
	}()
	timer.Reset(lastAnswers)
	select {
	case <-over:
	case <-timer.C: // the client does not read
	}
}

// read takes messages until the input ends, or the first behind the end.
func (s *stdioServer) read(ctx context.Context, in io.Reader) error {
	reader := wire.NewReader(in, s.options.MaxMessage, func([]byte) {
		s.refuse(nil, &rpcError{code: mcp.PARSE_ERROR, message: "not a JSON-RPC message"})
	})
	for {
		data, err := reader.Read()
		s.out.setFraming(reader.Framing())
		select {
		case <-s.stop:
			return nil
		default:
		}
		var large *wire.TooLargeError
		switch {
		case errors.As(err, &large):
			s.tooLarge(large)
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading stdin: %w", err)
		default:
			s.accept(ctx, data)
		}
	}
}

// tooLarge refuses a request of which only the edges were read.
func (s *stdioServer) tooLarge(large *wire.TooLargeError) {
	id, _ := large.ID()
	if !isID(id) || !wire.Valid(id) {
		id = nil
	}
	s.refuse(id, &rpcError{code: mcp.INVALID_REQUEST, message: large.Error()})
}

// accept takes one message, or a batch, whose messages are answered each by itself.
func (s *stdioServer) accept(ctx context.Context, data []byte) {
	if batch, ok := wire.Batch(data); ok {
		if len(batch) == 0 {
			s.refuse(nil, &rpcError{code: mcp.INVALID_REQUEST, message: "a batch without a message"})
		}
		for _, one := range batch {
			s.accept(ctx, one)
		}
		return
	}
	m := read(data)
	switch {
	case m.refusal != nil:
		s.refuse(m.ID, m.refusal)
	case m.isRequest():
		s.begin(ctx, m)
	default:
		s.session.notice(m)
	}
}

// refuse answers from the reader, which goes on reading meanwhile: the end of the
// input and what takes requests back are behind it.
func (s *stdioServer) refuse(id json.RawMessage, err *rpcError) {
	if s.out.unread() >= maxUnread {
		s.front.log.Debug("answer dropped, the client does not read")
		return
	}
	s.mu.Lock()
	written := func() {}
	if !s.closing {
		s.open.Add(1)
		written = s.open.Done
	}
	s.mu.Unlock()
	s.out.later(refuse(id, err).body, written)
}

// maxUnread bounds the answers that wait for a client to read. Behind it requests
// and refusals are dropped.
const maxUnread = 10_000

// job is a request under way.
type job struct {
	*request
	ctx    context.Context
	open   *openRequest
	waited bool // the end waits for the answer
}

// begin answers a request in a goroutine of its own; initialize at once, so that what
// follows finds the session ready.
func (s *stdioServer) begin(ctx context.Context, m *message) {
	row := methods[m.Method]
	if s.out.unread() >= maxUnread {
		s.front.log.Debug("request dropped, the client does not read", "method", m.Method)
		return
	}
	j := &job{request: s.request(m), waited: !row.lasts} // what lasts takes no place from those who wait
	if j.waited {
		select {
		case s.places <- struct{}{}:
		default:
			s.refuse(m.ID, &rpcError{code: codeRefused, message: "too many requests are open; wait for answers"})
			return
		}
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		s.refuse(m.ID, &rpcError{code: codeRefused, message: "mcpx is shutting down; the request was not executed"})
		return
	}
	if j.waited {
		s.open.Add(1)
	}
	j.ctx, j.open = s.session.inflight.begin(ctx, keyOf(m.ID), row.lasts)
	if !row.opens {
		s.all.Go(func() { s.run(j, s.out.now) }) // ends with the answer; drain cancels it
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.run(j, s.out.later)
	s.announces.Store(s.session.client.Load().Version != "")
}

// request is a message with what this transport knows of its client.
func (s *stdioServer) request(m *message) *request {
	r := &request{message: m, session: s.session, out: s, client: s.session.client.Load()}
	if m.modern() {
		r.client = &upstream.Client{ID: r.client.ID, Name: m.clientName, Version: m.version, Capabilities: m.capabilities, Notify: s.notify}
	}
	return r
}

// run answers a request, unless its client has taken it back.
func (s *stdioServer) run(j *job, write func(message []byte, written func())) {
	var answer []byte
	if err := j.refuseModern(); j.modern() && err != nil {
		answer = refuse(j.ID, err).body
	} else {
		answer = s.front.answer(j.ctx, j.request).body
	}
	written := func() {}
	if j.waited {
		<-s.places // before the client can know of the answer, and ask for more
		written = s.open.Done
	}
	if s.session.inflight.wanted(j.open) {
		write(oneLine(answer), written)
	} else {
		written()
	}
	s.session.inflight.done(j.open)
}

// notify implements outlet.
func (s *stdioServer) notify(method string, params json.RawMessage) {
	if !s.out.note(oneLine(notification(method, params))) {
		s.front.log.Debug("notification dropped, the client does not read", "method", method)
	}
}

// alive implements outlet: nothing stands between.
func (*stdioServer) alive() {}

// pump writes what the reader and the calls have queued, and announces changes to
// a client that has sent initialize; one of the modern era gets what it subscribes
// to.
func (s *stdioServer) pump() {
	for {
		select {
		case <-s.out.queued:
			s.out.flush()
		case <-s.session.changed:
			if s.announces.Load() {
				s.notify(mcp.MethodNotificationToolsListChanged, nil)
			}
		case <-s.stop:
			return
		}
	}
}

// oneLine is a message without line ends: over stdio and in events they end it.
func oneLine(message []byte) []byte {
	if bytes.IndexByte(message, '\n') >= 0 || bytes.IndexByte(message, '\r') >= 0 {
		if line, ok := wire.Compact(string(message)); ok {
			return []byte(line)
		}
	}
	return message
}
