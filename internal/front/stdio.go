package front

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

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

// stdioServer is one client on a pair of pipes. mcp-go answers everything but
// tools/call, which goes through as raw bytes; mcp-go's own stdio server drops
// answers at the end of the input and runs five calls at a time.
type stdioServer struct {
	front   *Front
	options StdioOptions
	out     *wire.Writer
	session *stdioSession

	nextID   atomic.Int64
	requests openRequests
	places   chan struct{} // of requests whose answer is waited for
	unread   atomic.Int64  // answers that wait for the client to read
	mu       sync.Mutex
	closing  bool           // under mu: requests are refused
	open     sync.WaitGroup // requests whose answer is waited for at the end
	all      sync.WaitGroup // every request, and the pump
}

// Why calls are ended that were open at the end.
var (
	errStopping   = errors.New("mcpx is shutting down; the call may have been executed")
	errInputEnded = errors.New("the client closed its side; the call may have been executed")
)

// codeRefused is what requests get that come too late, or are too many:
// "connection closed", as SDKs have it.
const codeRefused = -32000

// ServeStdio answers one client until in ends or ctx is done. Open answers are
// delivered before it returns; requests that come meanwhile are refused. Only
// whole messages are written to out. A read of in, and a write to out for a
// client that does not read, are left behind: they end with the process.
func (f *Front) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, options StdioOptions) error {
	if options.MaxMessage <= 0 {
		options.MaxMessage = 64 << 20
	}
	if options.Drain <= 0 {
		options.Drain = 900 * time.Millisecond
	}
	if options.Grace <= 0 {
		options.Grace = 4 * time.Second
	}
	if options.MaxOpen <= 0 {
		options.MaxOpen = 10_000
	}
	s := &stdioServer{
		front: f, options: options,
		out:    wire.NewWriter(out, wire.Newline),
		places: make(chan struct{}, options.MaxOpen),
	}
	s.session = &stdioSession{
		out:   s.out,
		deaf:  make(chan struct{}),
		notes: make(chan mcp.JSONRPCNotification, 256), calls: make(chan []byte, 256), queued: make(chan struct{}, 1),
	}
	if err := f.server.RegisterSession(ctx, s.session); err != nil {
		return fmt.Errorf("registering the session: %w", err)
	}
	defer f.server.UnregisterSession(ctx, s.session.SessionID())
	requests, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	s.all.Go(func() { s.session.pump(requests) }) // ends when cancel is called
	ended := make(chan error, 1)
	go func() { ended <- s.read(requests, in) }() // ends with in
	var err error
	select {
	case err = <-ended:
		s.drain(s.options.Drain, nil, func() { cancel(errInputEnded) })
	case <-s.session.deaf:
		err = fmt.Errorf("writing to stdout: %w", s.session.lost)
		s.drain(0, ended, func() { cancel(errInputEnded) })
	case <-ctx.Done():
		s.drain(s.options.Grace, ended, func() { cancel(errStopping) })
	}
	return err
}

// lastWords is how long the errors of cancelled calls may take to be written.
const lastWords = 300 * time.Millisecond

// drain refuses what comes from now on and waits for the open answers; then it
// cancels what is left and waits for its errors to be written. The end of the
// input, if it is still to come, leaves no more time than options.Drain.
func (s *stdioServer) drain(bound time.Duration, ended <-chan error, cancel func()) {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	answered, over := make(chan struct{}), make(chan struct{})
	go func() { // ends with the last request, as does the other; cancel makes sure that they do
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
	cancel()
	go func() {
		s.all.Wait()
		close(over)
	}()
	timer.Reset(lastWords)
	select {
	case <-over:
	case <-timer.C: // the client does not read
	}
}

// read takes messages until the input ends, or behind the end of ctx.
func (s *stdioServer) read(ctx context.Context, in io.Reader) error {
	reader := wire.NewReader(in, s.options.MaxMessage, func([]byte) {
		s.say(fault(nil, mcp.PARSE_ERROR, "not a JSON-RPC message"))
	})
	for ctx.Err() == nil {
		data, err := reader.Read()
		s.out.SetFraming(reader.Framing())
		var large *wire.TooLargeError
		switch {
		case ctx.Err() != nil:
			return nil
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
	return nil
}

// tooLarge refuses a request of which only the edges were read.
func (s *stdioServer) tooLarge(large *wire.TooLargeError) {
	id, _ := large.ID()
	if !IsID(id) {
		id = nil
	}
	s.say(fault(id, mcp.INVALID_REQUEST, large.Error()))
}

func (s *stdioServer) accept(ctx context.Context, data []byte) {
	if batch, ok := wire.Batch(data); ok {
		if len(batch) == 0 {
			s.say(fault(nil, mcp.INVALID_REQUEST, "a batch without a message"))
		}
		for _, one := range batch {
			s.accept(ctx, one)
		}
		return
	}
	m, err := wire.Parse(data)
	switch {
	case err != nil || (m.ID != nil && !json.Valid(data)):
		if !IsID(m.ID) {
			m.ID = nil
		}
		s.say(fault(m.ID, mcp.PARSE_ERROR, "invalid JSON"))
	case m.ID != nil && !IsID(m.ID):
		s.say(fault(nil, mcp.INVALID_REQUEST, "the id must be a string or a number"))
	case !utf8.Valid(data):
		// An upstream that is strict about it would die of it, for everybody.
		if m.ID != nil {
			s.say(fault(m.ID, mcp.PARSE_ERROR, "invalid UTF-8"))
		}
	case m.Method == "notifications/cancelled" && m.ID == nil:
		s.requests.cancelled(m.Params)
	case m.Method != "" && m.ID == nil:
		s.front.server.HandleMessage(s.context(ctx), data)
	case m.IsResponse():
		// mcpx asks nothing of its clients.
	case m.Method == "":
		s.say(fault(m.ID, mcp.INVALID_REQUEST, "no method"))
	default:
		s.begin(ctx, m)
	}
}

// IsID reports whether an id, as written, is one: a string or a number.
func IsID(id json.RawMessage) bool {
	return len(id) > 0 && (id[0] == '"' || id[0] == '-' || (id[0] >= '0' && id[0] <= '9')) && json.Valid(id)
}

func (s *stdioServer) context(ctx context.Context) context.Context {
	return s.front.server.WithContext(ctx, s.session)
}

// begin answers a request in a goroutine, which ends with the answer or with its
// cancellation. initialize is answered in turn, so that what follows finds the
// session ready.
func (s *stdioServer) begin(ctx context.Context, m wire.Message) {
	// A subscription lasts as long as the client: nobody waits for its answer, and
	// it takes no place from those who do.
	waited := m.Method != string(mcp.MethodSubscriptionsListen)
	if s.unread.Load() >= maxUnread {
		s.front.log.Debug("request dropped, the client does not read", "method", m.Method)
		return
	}
	if waited {
		select {
		case s.places <- struct{}{}:
		default:
			s.say(fault(m.ID, codeRefused, "too many requests are open; wait for answers"))
			return
		}
	}
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		s.say(fault(m.ID, codeRefused, "mcpx is shutting down; the request was not executed"))
		return
	}
	if waited {
		s.open.Add(1)
	}
	s.all.Add(1)
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	request := s.requests.begin(m.ID, cancel)
	respond := func(answer []byte) {
		defer s.all.Done()
		if waited {
			<-s.places // before the client can know of the answer, and ask for more
			defer s.open.Done()
		}
		if answer != nil && s.requests.wanted(request) {
			s.unread.Add(1)
			s.write(answer)
			s.unread.Add(-1)
		}
		s.requests.end(request)
	}
	if m.Method == "initialize" {
		answer, answered := s.answer(ctx, m), make(chan struct{})
		go func() {
			respond(answer)
			if m, err := wire.Parse(answer); err == nil && m.Result != nil {
				s.session.legacy.Store(true) // what it is told unasked comes behind the answer
			}
			close(answered)
		}()
		timer := time.NewTimer(lastWords)
		defer timer.Stop()
		select {
		case <-answered:
		case <-timer.C: // it does not read
		}
		return
	}
	go func() { respond(s.answer(ctx, m)) }()
}

// maxUnread bounds the answers that wait for a client to read. Behind it requests
// are refused, and refusals dropped.
const maxUnread = 10_000

// say writes an answer of the reader's own, which goes on reading meanwhile: the
// end of the input and what takes requests back are behind it.
func (s *stdioServer) say(message []byte) {
	if s.unread.Add(1) > maxUnread {
		s.unread.Add(-1)
		s.front.log.Debug("answer dropped, the client does not read")
		return
	}
	s.mu.Lock()
	waited := !s.closing
	if waited {
		s.open.Add(1)
	}
	s.mu.Unlock()
	go func() { // ends when the client has read, or with the process
		s.write(message)
		s.unread.Add(-1)
		if waited {
			s.open.Done()
		}
	}()
}

// answer is the whole response to a request.
func (s *stdioServer) answer(ctx context.Context, m wire.Message) []byte {
	switch m.Method {
	case string(mcp.MethodToolsCall):
		if answer, ok := s.callTool(ctx, m); ok {
			return answer
		}
	case string(mcp.MethodSubscriptionsListen):
		if request, ok := readListen(m.Params); ok {
			return reply(m.ID, "result", s.front.listen(ctx, m.ID, request, s.write, nil))
		}
	}
	// mcp-go reads ids as float64: it gets one of ours, the client its own.
	message := append([]byte(`{"jsonrpc":"2.0","id":`), strconv.FormatInt(s.nextID.Add(1), 10)...)
	message = append(append(message, `,"method":`...), wire.Encode(m.Method)...)
	if m.Params != nil {
		message = append(append(message, `,"params":`...), m.Params...)
	}
	message = append(message, '}')
	switch response := s.front.server.HandleMessage(s.context(ctx), message).(type) {
	case mcp.JSONRPCResponse:
		return reply(m.ID, "result", wire.Encode(response.Result))
	case mcp.JSONRPCError:
		return reply(m.ID, "error", wire.Encode(response.Error))
	}
	return nil
}

// reply is a response with the id as the client wrote it.
func reply(id json.RawMessage, member string, value json.RawMessage) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	out := make([]byte, 0, len(value)+len(id)+48)
	out = append(append(out, `{"jsonrpc":"2.0","id":`...), id...)
	out = append(append(append(out, `,"`...), member...), `":`...)
	return append(append(out, value...), '}')
}

func fault(id json.RawMessage, code int, message string) []byte {
	return reply(id, "error", wire.Encode(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{code, message}))
}

// write sends one message, after the notifications that were queued before it.
func (s *stdioServer) write(message []byte) { s.session.write(flat(message)) }

// flat is a message without line ends: over stdio they end it.
func flat(message []byte) []byte {
	if bytes.ContainsAny(message, "\n\r") {
		var line bytes.Buffer
		if json.Compact(&line, message) == nil {
			return line.Bytes()
		}
	}
	return message
}
