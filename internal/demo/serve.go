package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const (
	// maxLine is far above what any argument of a demo tool needs.
	maxLine = 4 << 20
	// maxRequests is how many requests of one session run at once.
	maxRequests = 32
)

// session is the state that mcp-go wants of a client. Its own stdio server has
// one for the whole process, which would let the sample servers share it.
type session struct {
	id          string
	initialized atomic.Bool
	notes       chan mcp.JSONRPCNotification
}

var _ server.ClientSession = (*session)(nil)

func (s *session) SessionID() string                                   { return s.id }
func (s *session) Initialize()                                         { s.initialized.Store(true) }
func (s *session) Initialized() bool                                   { return s.initialized.Load() }
func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notes }

// serve is [Server.Serve] over an mcp-go server; id is the session's, unique to s.
func serve(ctx context.Context, s *server.MCPServer, id string, in io.Reader, out io.Writer) error {
	defer context.AfterFunc(ctx, func() { shut(in); shut(out) })()

	sess := &session{id: id, notes: make(chan mcp.JSONRPCNotification, 16)}
	if err := s.RegisterSession(ctx, sess); err != nil {
		return fmt.Errorf("registering the session: %w", err)
	}
	defer s.UnregisterSession(context.WithoutCancel(ctx), sess.id)

	l := &loop{server: s, out: &lineWriter{w: out}, slots: make(chan struct{}, maxRequests)}
	// Requests that last as long as the session end with it, not with the input.
	sessionCtx, endSession := context.WithCancel(s.WithContext(ctx, sess))
	defer l.standing.Wait()
	defer endSession()
	l.standing.Go(func() { l.notify(sessionCtx, sess.notes) })
	err := l.read(sessionCtx, in)
	l.requests.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(err, l.out.failure())
}

func shut(v any) {
	if c, ok := v.(io.Closer); ok {
		c.Close()
	}
}

// loop reads messages and answers each request as it is done.
type loop struct {
	server   *server.MCPServer
	out      *lineWriter
	slots    chan struct{}
	requests sync.WaitGroup // answered before serve returns
	standing sync.WaitGroup // cancelled when serve returns
}

// read handles the messages of in until it ends.
func (l *loop) read(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for lines.Scan() {
		message := append(json.RawMessage(nil), lines.Bytes()...)
		var head struct {
			ID     any    `json:"id"`
			Method string `json:"method"`
		}
		if len(message) == 0 {
			continue
		}
		if json.Unmarshal(message, &head) != nil || head.ID == nil {
			// In order: a cancellation must find its request, a parse error needs an answer.
			l.answer(ctx, message)
			continue
		}
		if head.Method == string(mcp.MethodSubscriptionsListen) {
			l.standing.Go(func() { l.answer(ctx, message) })
			continue
		}
		l.slots <- struct{}{}
		l.requests.Go(func() {
			defer func() { <-l.slots }()
			l.answer(ctx, message)
		})
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return fmt.Errorf("reading requests: %w", err)
	}
	return nil
}

func (l *loop) answer(ctx context.Context, message json.RawMessage) {
	if response := l.server.HandleMessage(ctx, message); response != nil {
		l.out.write(response)
	}
}

// notify writes the server's notifications until ctx is done.
func (l *loop) notify(ctx context.Context, notes <-chan mcp.JSONRPCNotification) {
	for {
		select {
		case n := <-notes:
			l.out.write(n)
		case <-ctx.Done():
			return
		}
	}
}

// lineWriter writes each message as one whole line. It is safe for concurrent use.
type lineWriter struct {
	mu  sync.Mutex
	w   io.Writer
	err error // the first failure; nothing is written after it; guarded by mu
}

func (w *lineWriter) write(message any) {
	line, err := json.Marshal(message)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	if err == nil {
		_, err = w.w.Write(append(line, '\n'))
	}
	w.err = err
}

func (w *lineWriter) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
