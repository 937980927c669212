package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/base/catalog"
	"mcpx/internal/transport"
)

// The revisions that mcpx requests. If a server refuses the legacy revision and lists older ones, initialize requests an older one.
// A server may answer initialize with an older or unknown revision, so mcpx uses only what all legacy revisions have in common.
const (
	modernVersion = mcp.LATEST_PROTOCOL_VERSION
	legacyVersion = mcp.LATEST_LEGACY_PROTOCOL_VERSION
)

// session is one conversation with a server over a link, from the handshake to its end.
type session struct {
	spec *Spec
	link transport.Link // set under mu before the link is started

	Agreement
	offers   catalog.Offers
	preamble []byte // the members of _meta that are the same in all modern requests
	nextID   atomic.Int64

	changes   *changes
	relisting relisting
	questions questions
	notes     notes

	mu       sync.Mutex
	closed   bool
	calls    openCalls
	topics   map[string]*topic // by URI
	level    level
	mirrored mirrored
}

func newSession(spec *Spec) *session {
	s := &session{
		spec:      spec,
		changes:   newChanges(),
		relisting: newRelisting(),
		calls:     openCalls{listeners: make(map[int64]*listener)},
		topics:    make(map[string]*topic),
		level:     level{set: len(LogLevels)},
	}
	s.notes.ctx, s.notes.end = context.WithCancel(context.Background())
	info, _ := json.Marshal(s.clientInfo())
	s.preamble = append([]byte(`"`+mcp.MetaKeyProtocolVersion+`":"`+modernVersion+`","`+mcp.MetaKeyClientInfo+`":`), info...)
	return s
}

// open connects to the server and does the handshake, within ctx. If it fails, it leaves nothing running.
func (s *session) open(ctx context.Context, dialer *transport.Dialer) error {
	l, err := dialer.Dial(ctx)
	if err != nil {
		return err
	}
	s.connected(l)
	err = s.handshake(ctx)
	if status, ok := errors.AsType[*transport.StatusError](err); ok && s.spec.Type == transport.HTTP &&
		(status.Code == 400 || status.Code == 404 || status.Code == 405) {
		// Servers of revision 2024-11-05 refuse this POST. If the server offers an event stream instead, mcpx uses
		// the HTTP+SSE transport.
		if old, sseErr := dialer.DialSSE(ctx); sseErr == nil {
			s.link.Close()
			s.connected(old)
			err = s.handshake(ctx)
		}
	}
	if err == errUnheard {
		s.link.Close()
		if l, err = dialer.Dial(ctx); err == nil {
			s.connected(l)
			err = s.handshake(ctx)
		}
		if err == errUnheard { // it ignores the probe, or is always slow
			err = nil
		}
	}
	switch {
	case err == errBoth && s.spec.Arrived != nil: // only the server can open such a connection, so mcpx cannot connect again
		s.Unprobed, err = true, nil
	case err == errBoth:
		s.link.Close()
		if l, err = dialer.Dial(ctx); err == nil {
			s.connected(l)
			err = s.discover(ctx)
		}
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = s.silence(ctx)
	} else {
		err = s.ended(err)
	}
	s.close()
	return err
}

// close ends the session and everything it started. Over HTTP it waits a moment for notifications, such as cancellations,
// that are being sent. On other transports the end of the stream cancels all requests.
func (s *session) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.changes.end()
	s.questions.end()
	if !s.link.Traits().OneStream {
		timer := time.AfterFunc(notePatience, s.notes.end)
		s.notes.all.Wait()
		timer.Stop()
	}
	s.link.Close()
	s.notes.end()
	s.notes.all.Wait()
	s.changes.streams.Wait()
}

// ended returns why the stream of the session has ended. It returns err if the stream is still open, or if the transport keeps
// no evidence of its end (HTTP).
func (s *session) ended(err error) error { return cmp.Or(s.link.Evidence().WhyEnded(), err) }

// silence returns the error for a handshake that timed out. For a child process, the error also quotes what it wrote to stderr
// and, instead of messages, to stdout.
func (s *session) silence(ctx context.Context) error {
	text := "no answer to initialize within " + s.spec.Timeouts.Connect.String()
	if late, ok := errors.AsType[lateError](context.Cause(ctx)); ok {
		text = late.Error()
	}
	return &silenceError{text + s.link.Evidence().Remarks()}
}

// silenceError is the error for a server that did not answer the handshake in time.
type silenceError struct{ text string }

func (e *silenceError) Error() string { return e.text }

// connected makes l the link of the session and starts it.
func (s *session) connected(l transport.Link) {
	s.mu.Lock()
	s.link = l
	s.mu.Unlock()
	l.Start(s.incoming)
}

// newID returns the id of the next request. Ids grow by random steps, so that a server cannot guess an id and
// answer a request before it was sent.
func (s *session) newID() int64 { return s.nextID.Add(2 + rand.Int64N(1<<16)) }

// clientInfo is the clientInfo that mcpx sends to the server. If the session belongs to one client, and that client gave its name,
// mcpx sends this name with a suffix.
func (s *session) clientInfo() map[string]string {
	name := s.spec.Introduction.Name
	if owner := s.spec.owner(); owner != nil && owner.Name != "" {
		name = owner.Name + "-through-proxy"
	}
	return map[string]string{"name": name, "version": s.spec.Introduction.Version}
}

// capabilities returns the capabilities that mcpx declares to a legacy server. In a session that belongs to one client, these
// are the capabilities of that client that mcpx relays.
func (s *session) capabilities() json.RawMessage {
	if owner := s.spec.owner(); owner != nil {
		return owner.Relayed()
	}
	return json.RawMessage(cmp.Or(s.spec.Introduction.Capabilities, "{}"))
}
