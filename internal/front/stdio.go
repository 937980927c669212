package front

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/view"
)

// StdioOptions are the settings for serving one client over stdio, or in the same way over another connection, such as an
// HTTP+SSE stream or a socket.
type StdioOptions struct {
	// MaxMessage is the largest message that ServeStdio accepts, in bytes; 0 means 64 MiB. A Socket has a limit of its own.
	MaxMessage int64
	// Drain is how long mcpx waits for open requests after the input has ended, before it cancels them. 0 means
	// 900 ms, since clients kill a server after 2 s.
	Drain time.Duration
	// Grace is how long mcpx waits for open requests after ctx has ended (for example on a signal), before it cancels them. 0
	// means 4 s.
	Grace time.Duration
	// MaxOpen is the highest number of open requests, without the long-lived ones. Further requests are refused and not
	// delayed, so that the reader always gets to cancellations. 0 means 10,000.
	MaxOpen int
	// Session is the ID of the client if the front has several clients. Empty means that the front has only this client.
	Session string
	// Peer names the kind of connection in traces. Empty means "stdio".
	Peer string
	// Only is the ID of the client if the front has only this client (Session is empty): other parts of the process know the
	// client by this ID. Empty means "stdio".
	Only string
	// Admit means that every message is counted for the limits of the principal. Without Admit, only some messages over HTTP+SSE
	// are counted here (Session is not empty): the second and later messages of a batch. The first message needs no count, because
	// the HTTP request that brings the batch is itself counted.
	Admit bool
	// Headers and Principal are from the HTTP request that opened the client's stream.
	Headers   http.Header
	Principal *caller.Principal
}

func (o StdioOptions) withDefaults() StdioOptions {
	o.Peer = cmp.Or(o.Peer, "stdio")
	o.MaxMessage = cmp.Or(o.MaxMessage, 64<<20)
	o.Drain = cmp.Or(o.Drain, 900*time.Millisecond)
	o.Grace = cmp.Or(o.Grace, 4*time.Second)
	o.MaxOpen = cmp.Or(o.MaxOpen, 10_000)
	return o
}

// stdioServer serves one client over an input and an output.
type stdioServer struct {
	front     *Front
	options   StdioOptions
	out       *output
	session   *session
	announces atomic.Bool // initialize has been answered, so the client gets notifications of changes
	modern    atomic.Bool // the client has sent a modern request before any initialize

	places chan struct{} // one element for each open request that is not long-lived; its capacity is MaxOpen
	jobs   chan *job     // carries requests from the reader to an idle worker
	idle   chan struct{} // has one element for each idle worker
	stop   chan struct{} // closed by drain; ends the reader, the idle workers and the method pump
	// reading ends when the method serve returns, so that the reader then no longer waits for the limits (see admits).
	reading context.Context

	mu         sync.Mutex
	closing    bool           // new requests are refused; guarded by mu
	unanswered sync.WaitGroup // answers to write, and the work after writing them; drain waits for both
	answered   func()         // unanswered.Done as a func, made only once to save allocations
	all        sync.WaitGroup // the workers and the method pump
}

// ServeStdio serves one client until the input or ctx ends, or until a read or write fails. Only such a failure is returned as an
// error. Before ServeStdio returns, it refuses new requests, waits for the open ones as StdioOptions say (except after a failed
// write), and cancels those that are still open. It writes only whole messages. A read or write that blocks may go on after
// ServeStdio has returned, until input or output is closed.
func (f *Front) ServeStdio(ctx context.Context, input io.Reader, output io.Writer, options StdioOptions) error {
	s := f.newStdioServer(options)
	noise := func([]byte) { s.refuse(nil, &rpcError{code: mcp.PARSE_ERROR, message: "not a JSON-RPC message"}) }
	return s.serve(ctx, &lines{wire.NewReader(input, s.options.MaxMessage, noise), wire.NewWriter(output, wire.Newline)})
}

func (f *Front) newStdioServer(options StdioOptions) *stdioServer {
	options = options.withDefaults()
	s := &stdioServer{
		front: f, options: options,
		places: make(chan struct{}, options.MaxOpen),
		jobs:   make(chan *job),
		idle:   make(chan struct{}, maxIdle),
		stop:   make(chan struct{}),
	}
	s.answered = s.unanswered.Done
	return s
}

// serve serves one client over any connection, in the way that [Front.ServeStdio] describes.
func (s *stdioServer) serve(ctx context.Context, c Socket) error {
	f, options := s.front, s.options
	s.out = newOutput(c, f.options.Pending, func() bool { return len(s.places) > 0 })
	if f.options.Trace != nil {
		s.out.trace = func(message []byte) { f.traced(options.Peer, false, message) }
	}
	s.session = f.newSession(cmp.Or(options.Session, options.Only, "stdio"), &Session{}, options.Principal, s, options.Headers)
	f.attach(s.session)
	defer s.session.endPending()
	defer func() {
		s.session.questions.end()
		s.session.followed.close()
		// The client always has the same ID. So this also detaches what initialize and modern requests have attached to the view
		// (see own).
		s.session.detach()
	}()
	reading, over := context.WithCancel(context.Background())
	defer over()
	s.reading = reading
	s.all.Go(s.pump) // ends when the channel stop is closed
	ended := make(chan error, 1)
	go func() { ended <- s.readAll(context.WithoutCancel(ctx), c) }() // the goroutine ends with the connection c at the latest
	var err error
	select {
	case err = <-ended:
		s.drain(options.Drain, nil, errInputEnded)
	case <-s.out.failed:
		err = fmt.Errorf("writing to the client: %w", s.out.err)
		s.drain(0, ended, errInputEnded)
	case <-ctx.Done():
		why := errStopping
		if options.Session != "" { // a stream over HTTP may also end for other reasons than a signal
			why = context.Cause(ctx)
		}
		s.drain(options.Grace, ended, why)
	}
	return err
}

// lastAnswers is how long mcpx tries to write the errors of cancelled calls.
const lastAnswers = 300 * time.Millisecond

// drain refuses new requests and waits for the open ones, for at most the given limit. Then it cancels the requests that are still
// open, and waits until their errors are written, for at most lastAnswers. ended gets a value when the input ends; nil means that
// the input has ended already. If the input ends during the first wait, a new limit for this wait begins: options.Drain, or the
// given limit if that is shorter.
func (s *stdioServer) drain(limit time.Duration, ended <-chan error, cause error) {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	answered, over := make(chan struct{}), make(chan struct{})
	go func() { // ends when the last answer is written; inflight.end below ensures that all requests are answered
		s.unanswered.Wait()
		close(answered)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for waiting := true; waiting; {
		select {
		case <-answered:
			waiting = false
		case <-timer.C:
			waiting = false
		case <-ended:
			ended = nil
			timer.Reset(min(limit, s.options.Drain))
		}
	}
	s.session.inflight.end(false, cause)
	close(s.stop)
	go func() {
		s.all.Wait()
		s.out.end()
		close(over)
	}()
	timer.Reset(lastAnswers)
	select {
	case <-over:
	case <-timer.C: // the client does not read, or a request does not end
	}
}

// readAll reads messages until the input ends or a read fails. Once the channel stop is closed, it returns when the next
// message arrives.
func (s *stdioServer) readAll(ctx context.Context, in Socket) error {
	for {
		data, err := in.Read()
		select {
		case <-s.stop:
			return nil
		default:
		}
		large, _ := errors.AsType[*wire.TooLargeError](err)
		switch {
		case large != nil:
			s.tooLarge(large)
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading from the client: %w", err)
		default:
			s.front.traced(s.options.Peer, true, data)
			s.accept(ctx, data)
		}
	}
}

// tooLarge refuses a message over the limit. The reader has kept the beginning and the end of the message, one
// of which may contain the id.
func (s *stdioServer) tooLarge(large *wire.TooLargeError) {
	id, _ := large.ID()
	if !isID(id) || !wire.Valid(id) {
		id = nil
	}
	s.refuse(id, &rpcError{code: mcp.INVALID_REQUEST, message: large.Error()})
}

// accept handles one message, or each message of a batch.
func (s *stdioServer) accept(ctx context.Context, data []byte) {
	switch batch, err := wire.Batch(data); {
	case errors.Is(err, wire.ErrLargeBatch):
		s.refuse(nil, refusedBatch)
		return
	case err == nil:
		if len(batch) == 0 {
			s.refuse(nil, &rpcError{code: mcp.INVALID_REQUEST, message: "a batch without a message"})
		}
		for i, one := range batch {
			m := readMessage(one)
			if (s.options.Admit || i > 0 && s.options.Session != "") && !s.admits(m) {
				continue
			}
			s.take(ctx, m)
		}
		return
	}
	if m := readMessage(data); !s.options.Admit || s.admits(m) {
		s.take(ctx, m)
	}
}

// admits counts a message for the limits of the principal, and waits if the limits require a pause. It returns false if the
// message is refused; a request then gets an error.
func (s *stdioServer) admits(m *message) bool {
	over := s.front.admit(s.reading, s.options.Principal)
	if over != nil && m.isRequest() {
		s.refuse(m.ID, over)
	}
	return over == nil
}

// take begins to answer a request, handles a notification or a response, or refuses an invalid message.
func (s *stdioServer) take(ctx context.Context, m *message) {
	switch {
	case m.refusal != nil:
		// An error with the id of a question would be the answer to the client's own request with the same id, if it has one.
		if !s.session.questions.spoilt(m) {
			s.refuse(m.ID, m.refusal)
		}
	case m.isRequest():
		s.begin(ctx, m)
	default:
		s.front.notice(s.session, s.session.client.Load(), m)
	}
}

// refuse queues an error, or drops it if too many answers wait already (see maxUnread). It must not block the reader, which has
// to read cancellations and the end of the input.
func (s *stdioServer) refuse(id json.RawMessage, err *rpcError) {
	if s.out.unread() >= maxUnread {
		s.front.log.Debug("answer dropped, the client does not read")
		return
	}
	s.mu.Lock()
	written := func() {}
	if !s.closing {
		s.unanswered.Add(1)
		written = s.answered
	}
	s.mu.Unlock()
	s.out.later(refuse(id, err).body, written)
}

// maxUnread limits the answers and questions that wait for the client to read. While so many wait, mcpx drops the client's
// further requests without an answer, does not report refused messages, and asks no more questions. Answers to open requests
// are queued all the same.
const maxUnread = 10_000

// job is an open request.
type job struct {
	incoming
	ctx     context.Context
	open    *openRequest
	awaited bool // drain waits for the answer to this job
}

// begin passes a request to a worker. It answers initialize itself, so that the session is complete when the
// next message is read.
func (s *stdioServer) begin(ctx context.Context, m *message) {
	row := m.row
	if s.out.unread() >= maxUnread {
		s.front.log.Debug("request dropped, the client does not read", "method", m.Method)
		return
	}
	j := &job{incoming: s.request(m), awaited: !row.lasts} // a long-lived request is not counted in places
	if j.awaited {
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
	if j.awaited {
		s.unanswered.Add(1)
	}
	j.ctx, j.open = s.session.inflight.begin(ctx, keyOf(m.ID), row.lasts)
	if !row.opens {
		s.session.begin()
		select {
		case s.jobs <- j: // an idle worker takes the job
		default:
			s.all.Go(func() { s.work(j) }) // ends after its answer if enough workers are idle, or when stop is closed
		}
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.run(j, s.out.later)
	if client := s.session.client.Load(); client.Version != "" {
		s.announces.Store(true)
		s.own(client)
	}
}

// own tells the view that this client is its only one. It does nothing if the front has several clients.
func (s *stdioServer) own(client *caller.Client) {
	if s.options.Session == "" {
		s.front.view.Attach(client, view.Attachment{Sole: true}) // the method serve detaches the client at its end
	}
}

// request makes a request from a message. The client of a modern request is a copy of the session's client, with what the
// message says about the client.
func (s *stdioServer) request(m *message) incoming {
	r := incoming{message: m, session: s.session, out: s, client: s.session.client.Load()}
	if m.modern() {
		modern := r.client.Saying(m.said())
		client := &modern
		if r.client.Version == "" && s.modern.CompareAndSwap(false, true) {
			s.own(client)
		}
		r.client = client
	}
	return r
}

// maxIdle is the highest number of idle workers. Workers are reused because a new goroutine grows its stack in
// steps, which takes a fifth of the time of a small call.
const maxIdle = 64

// work answers a request, and then waits for more requests. It returns when there are already enough idle workers, or when the
// channel stop is closed.
func (s *stdioServer) work(j *job) {
	for {
		s.run(j, s.out.now)
		select {
		case s.idle <- struct{}{}:
		default:
			return
		}
		select {
		case j = <-s.jobs:
			<-s.idle
		case <-s.stop:
			return
		}
	}
}

// run answers a request. The parameter write queues the answer, and calls written once the answer is written or the output has
// failed. If the client has cancelled the request, the answer is dropped.
func (s *stdioServer) run(j *job, write func(message []byte, written func())) {
	var answer []byte
	if err := j.refuseMeta(); err != nil {
		answer = refuse(j.ID, err).body
	} else {
		answer = s.front.answer(j.ctx, &j.incoming).body
	}
	written := func() {}
	if j.awaited {
		<-s.places // before the write, because after it the client may already send its next request
		written = s.answered
		s.unanswered.Add(1) // drain must also wait for the work after the write
		defer s.unanswered.Done()
	}
	switch wanted := s.session.inflight.wanted(j.open); {
	case !wanted:
		written()
	case s.options.Session != "" && j.event != nil: // a client over HTTP, whose answers wait in the queue until it reads them
		send, sent := s.front.counted(s.options.Principal, j.event, answer)
		write(wire.OneLine(send), func() { sent(); written() })
	default:
		write(wire.OneLine(answer), written)
	}
	s.session.inflight.done(j.open)
	if j.event != nil {
		s.front.ended(j.event)
	}
}

// notify queues a notification, or drops it if the queue is full.
func (s *stdioServer) notify(method string, params json.RawMessage) {
	if !s.out.notify(wire.OneLine(notification(method, params))) {
		s.front.log.Debug("notification dropped, the client does not read", "method", method)
	}
}

// send queues a request to the client. It returns false if maxUnread answers and questions wait already.
func (s *stdioServer) send(request []byte) bool {
	if s.out.unread() >= maxUnread {
		return false
	}
	s.out.later(request, func() {})
	return true
}

// alive does nothing: pipes need no keep-alive, and streams over HTTP+SSE have their own.
func (*stdioServer) alive() {}

// pump writes queued output. It also announces changes to a client that has sent initialize; a modern client
// must subscribe instead (listen).
func (s *stdioServer) pump() {
	for {
		select {
		case <-s.out.queued:
			s.out.flush()
		case <-s.session.pending.due:
			for _, n := range s.session.pending.take() {
				if s.announces.Load() {
					s.notify(n.method, n.params)
				}
			}
		case <-s.stop:
			return
		}
	}
}
