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

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

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
	// MaxOpen bounds the requests under way; reading waits beyond it. 0 = 1000.
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

	nextID  atomic.Int64
	mu      sync.Mutex
	cancels map[string]context.CancelFunc // by raw id
	closing bool                          // under mu: requests are refused
	places  chan struct{}
	stop    chan struct{}  // closed with closing
	open    sync.WaitGroup // requests whose answer is waited for at the end
	all     sync.WaitGroup // every request, and the pump
}

// Why calls are ended that were open at the end.
var (
	errStopping   = errors.New("mcpx is shutting down; the call may have been executed")
	errInputEnded = errors.New("the client closed its side; the call may have been executed")
)

// codeStopping is what requests get that come too late: "connection closed", as
// SDKs have it.
const codeStopping = -32000

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
		options.MaxOpen = 1000
	}
	s := &stdioServer{
		front: f, options: options,
		out:     wire.NewWriter(out, wire.Newline),
		cancels: make(map[string]context.CancelFunc),
		places:  make(chan struct{}, options.MaxOpen),
		stop:    make(chan struct{}),
	}
	s.session = &stdioSession{
		out:   s.out,
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
	close(s.stop)
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
		s.write(fault(nil, mcp.PARSE_ERROR, "not a JSON-RPC message"))
	})
	for ctx.Err() == nil {
		data, err := reader.Read()
		s.out.SetFraming(reader.Framing())
		var large *wire.TooLargeError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &large):
			s.write(fault(idIn(large.Head), mcp.INVALID_REQUEST, large.Error()))
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

// idIn finds the id in the first bytes of a message that was too long.
func idIn(head []byte) json.RawMessage {
	var id json.RawMessage
	_ = wire.Fields(head, func(key string, value []byte) bool {
		if key == "id" {
			id = value
		}
		return id == nil
	})
	return id
}

func (s *stdioServer) accept(ctx context.Context, data []byte) {
	if batch, ok := wire.Batch(data); ok {
		for _, one := range batch {
			s.accept(ctx, one)
		}
		return
	}
	m, err := wire.Parse(data)
	switch {
	case err != nil || (m.ID != nil && !json.Valid(data)):
		s.write(fault(m.ID, mcp.PARSE_ERROR, "invalid JSON"))
	case m.Method == "notifications/cancelled":
		s.cancelled(m.Params)
	case m.Method != "" && m.ID == nil:
		s.front.server.HandleMessage(s.context(ctx), data)
	case m.IsResponse():
		// mcpx asks nothing of its clients.
	case m.Method == "":
		s.write(fault(m.ID, mcp.INVALID_REQUEST, "no method"))
	default:
		s.begin(ctx, m)
	}
}

func (s *stdioServer) context(ctx context.Context) context.Context {
	return s.front.server.WithContext(ctx, s.session)
}

// begin answers a request: initialize in turn, so that what follows finds the
// session ready, others in a goroutine, which ends with the answer or with its
// cancellation.
func (s *stdioServer) begin(ctx context.Context, m wire.Message) {
	select {
	case s.places <- struct{}{}:
	case <-s.stop:
		s.refuse(m)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	key := string(m.ID)
	// A subscription lasts as long as the client: nobody waits for its answer.
	waited := m.Method != string(mcp.MethodSubscriptionsListen)
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		cancel()
		<-s.places
		s.refuse(m)
		return
	}
	s.cancels[key] = cancel
	if waited {
		s.open.Add(1)
	}
	s.all.Add(1)
	s.mu.Unlock()
	answer := func() {
		defer s.all.Done()
		s.respond(ctx, m)
		s.mu.Lock()
		delete(s.cancels, key)
		s.mu.Unlock()
		cancel()
		<-s.places
		if waited {
			s.open.Done()
		}
	}
	if m.Method == "initialize" {
		answer()
		return
	}
	go answer()
}

// refuse answers a request that came too late.
func (s *stdioServer) refuse(m wire.Message) {
	s.write(fault(m.ID, codeStopping, "mcpx is shutting down; the request was not executed"))
}

func (s *stdioServer) cancelled(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	cancel := s.cancels[string(p.ID)]
	delete(s.cancels, string(p.ID)) // respond sees that it is gone
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// respond answers one request, unless the client took it back meanwhile.
func (s *stdioServer) respond(ctx context.Context, m wire.Message) {
	answer := s.answer(ctx, m)
	if answer == nil {
		return
	}
	if ctx.Err() != nil {
		s.mu.Lock()
		_, wanted := s.cancels[string(m.ID)]
		s.mu.Unlock()
		if !wanted {
			return
		}
	}
	s.write(answer)
}

// answer is the whole response to a request.
func (s *stdioServer) answer(ctx context.Context, m wire.Message) []byte {
	if m.Method == "tools/call" {
		if answer, ok := s.callTool(ctx, m); ok {
			return answer
		}
	}
	// mcp-go reads ids as float64: it gets one of ours, the client its own.
	message := append([]byte(`{"jsonrpc":"2.0","id":`), strconv.FormatInt(s.nextID.Add(1), 10)...)
	message = append(append(message, `,"method":`...), encode(m.Method)...)
	if m.Params != nil {
		message = append(append(message, `,"params":`...), m.Params...)
	}
	message = append(message, '}')
	switch response := s.front.server.HandleMessage(s.context(ctx), message).(type) {
	case mcp.JSONRPCResponse:
		return reply(m.ID, "result", encode(response.Result))
	case mcp.JSONRPCError:
		return reply(m.ID, "error", encode(response.Error))
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
	return reply(id, "error", encode(struct {
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

// stdioSession is the one client of a stdio server, as mcp-go knows it.
type stdioSession struct {
	out         *wire.Writer
	notes       chan mcp.JSONRPCNotification // what mcp-go sends: none belongs to a call
	calls       chan []byte                  // what belongs to calls; taken out only under writing
	queued      chan struct{}                // holds one: calls has some
	writing     sync.Mutex                   // held over a write and the notes before it
	initialized atomic.Bool
	info        atomic.Pointer[mcp.Implementation]
	can         atomic.Pointer[mcp.ClientCapabilities]
	filter      atomic.Pointer[mcp.SubscriptionFilter]
	least       atomic.Value // mcp.LoggingLevel that was asked for; unset = none
}

var (
	_ server.SessionWithClientInfo         = (*stdioSession)(nil)
	_ server.SessionWithLogging            = (*stdioSession)(nil)
	_ server.SessionWithSubscriptionFilter = (*stdioSession)(nil)
)

// SessionID implements server.ClientSession.
func (s *stdioSession) SessionID() string { return "stdio" }

// NotificationChannel implements server.ClientSession.
func (s *stdioSession) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notes }

// Initialize implements server.ClientSession.
func (s *stdioSession) Initialize() { s.initialized.Store(true) }

// Initialized implements server.ClientSession.
func (s *stdioSession) Initialized() bool {
	return s.initialized.Load() || s.filter.Load() != nil
}

// GetClientInfo implements server.SessionWithClientInfo.
func (s *stdioSession) GetClientInfo() mcp.Implementation {
	if info := s.info.Load(); info != nil {
		return *info
	}
	return mcp.Implementation{}
}

// SetClientInfo implements server.SessionWithClientInfo.
func (s *stdioSession) SetClientInfo(info mcp.Implementation) { s.info.Store(&info) }

// GetClientCapabilities implements server.SessionWithClientInfo.
func (s *stdioSession) GetClientCapabilities() mcp.ClientCapabilities {
	if can := s.can.Load(); can != nil {
		return *can
	}
	return mcp.ClientCapabilities{}
}

// SetClientCapabilities implements server.SessionWithClientInfo.
func (s *stdioSession) SetClientCapabilities(can mcp.ClientCapabilities) { s.can.Store(&can) }

// SetLogLevel implements server.SessionWithLogging.
func (s *stdioSession) SetLogLevel(level mcp.LoggingLevel) { s.least.Store(level) }

// GetLogLevel implements server.SessionWithLogging.
func (s *stdioSession) GetLogLevel() mcp.LoggingLevel {
	level, _ := s.least.Load().(mcp.LoggingLevel)
	return level
}

// SetSubscriptionFilter implements server.SessionWithSubscriptionFilter.
func (s *stdioSession) SetSubscriptionFilter(filter mcp.SubscriptionFilter) {
	if filter.IsEmpty() {
		s.filter.Store(nil)
		return
	}
	s.filter.Store(&filter)
}

// SubscriptionFilter implements server.SessionWithSubscriptionFilter.
func (s *stdioSession) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	if filter := s.filter.Load(); filter != nil {
		return *filter, true
	}
	return mcp.SubscriptionFilter{}, false
}

// pump writes the notifications that are queued, until ctx ends.
func (s *stdioSession) pump(ctx context.Context) {
	for {
		select {
		case note := <-s.notes:
			s.write(encode(note))
		case <-s.queued:
			s.write(nil)
		case <-ctx.Done():
			return
		}
	}
}

// queue queues a message that may be lost if the client does not read.
func (s *stdioSession) queue(message []byte) bool {
	select {
	case s.calls <- message:
	default:
		return false
	}
	select {
	case s.queued <- struct{}{}:
	default:
	}
	return true
}

// write writes one message, or none, behind the calls' notes that are queued: what
// belongs to a request never comes after its answer.
func (s *stdioSession) write(message []byte) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for {
		select {
		case note := <-s.calls:
			_ = s.out.Write(note)
			continue
		default:
		}
		if message != nil {
			_ = s.out.Write(message)
		}
		return
	}
}
