package front

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"mcpx/internal/view"
	"mcpx/internal/wire"
)

// callStream is the response of one call: its notifications and then its answer
// as an event stream, or the answer alone as JSON where no notification came.
// mcp-go has one queue of notifications for all calls of a session, from which
// any of their responses takes.
type callStream struct {
	w      http.ResponseWriter
	events bool          // the client reads event streams
	json   bool          // the client reads JSON
	bound  time.Duration // of one write
	status int           // of an answer as JSON; 0 = 200
	notes  chan []byte   // nil where none were asked for
	ended  chan struct{} // closed when the writer has ended; nil as well

	mu     sync.Mutex
	closed bool
	opened bool // the header says event stream; the writer's until it has ended
}

// noteQueue bounds the notifications that wait for a client that reads slowly.
const noteQueue = 256

// newCallStream looks into the request for what the client reads: JSON, if it
// does not say.
func (f *Front) newCallStream(w http.ResponseWriter, r *http.Request) *callStream {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	all := strings.Contains(accept, "*/*")
	s := &callStream{w: w, bound: f.options.writeWithin, events: all || strings.Contains(accept, "text/event-stream")}
	s.json = all || !s.events || strings.Contains(accept, "application/json")
	return s
}

// note queues a notification. It does not block; it reports false where there is
// no room, or the answer is on its way.
func (s *callStream) note(message []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	select {
	case s.notes <- message:
		return true
	default:
		return false
	}
}

func (s *callStream) write() {
	defer close(s.ended)
	for note := range s.notes {
		s.event(note)
	}
}

// event writes one message. To a client that is gone it does nothing.
func (s *callStream) event(message []byte) {
	if !s.opened {
		s.opened = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("Cache-Control", "no-cache")
		s.w.Header().Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
	}
	out := append(make([]byte, 0, len(message)+24), "event: message\ndata: "...)
	s.put(append(append(out, message...), "\n\n"...), true)
}

// comment shows that the stream is alive.
func (s *callStream) comment() {
	s.put([]byte(": alive\n\n"), true)
}

// put writes. A client that does not read is given up after a while: its
// connection would hold the answer for ever. What is written to one that is gone
// is lost, and nobody could be told.
func (s *callStream) put(data []byte, flush bool) {
	control := http.NewResponseController(s.w)
	_ = control.SetWriteDeadline(time.Now().Add(s.bound))
	_, _ = s.w.Write(data)
	if flush {
		_ = control.Flush()
	}
	_ = control.SetWriteDeadline(time.Time{}) // the next answer on this connection has its own
}

// close writes what is queued and waits for that. Idempotent.
func (s *callStream) close() {
	if s.notes == nil {
		return
	}
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.notes)
	}
	s.mu.Unlock()
	<-s.ended
}

// answer writes the response to the call, after close.
func (s *callStream) answer(message []byte) {
	if s.opened || !s.json {
		s.answerEvent(message)
		return
	}
	s.w.Header().Set("Content-Type", "application/json")
	if s.status != 0 {
		s.w.WriteHeader(s.status)
	}
	s.put(message, false)
}

// answerEvent writes the response as the last event.
func (s *callStream) answerEvent(message []byte) { s.event(flat(message)) }

// nothing ends the response of a call that the client took back, after close.
func (s *callStream) nothing() {
	if !s.opened {
		s.w.WriteHeader(http.StatusAccepted)
	}
}

// tell makes c pass on what the client asked for with its call: progress under
// its token, and log messages. close must follow.
func (s *callStream) tell(f *Front, c *view.Call, token json.RawMessage, least mcp.LoggingLevel) {
	send := func(method string, params json.RawMessage) {
		if !s.note(flat(notification(method, params))) {
			f.log.Debug("notification dropped, the client does not read", "method", method)
		}
	}
	if token == nil && least == "" {
		return
	}
	s.notes, s.ended = make(chan []byte, noteQueue), make(chan struct{})
	go s.write() // ends with close, which waits for it
	if token != nil {
		c.OnProgress = func(params json.RawMessage) { send("notifications/progress", withToken(params, token)) }
	}
	if least != "" {
		c.LogLevel = string(least)
		c.OnLog = func(params json.RawMessage) {
			if atLeast(params, least) {
				send("notifications/message", params)
			}
		}
	}
}

// notification is a JSON-RPC notification with these params.
func notification(method string, params json.RawMessage) []byte {
	note := append([]byte(`{"jsonrpc":"2.0","method":`), wire.Encode(method)...)
	return append(append(append(note, `,"params":`...), params...), '}')
}

// withToken are the params of a progress notification under another token.
func withToken(params, token json.RawMessage) json.RawMessage {
	out := append([]byte(`{"progressToken":`), token...)
	_ = wire.Members(params, func(name string, written, value []byte) bool {
		if name != "progressToken" {
			out = append(append(append(append(out, ','), written...), ':'), value...)
		}
		return true
	})
	return append(out, '}')
}
