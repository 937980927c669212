package front

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// exchange is a request over HTTP and its response: notifications and then the
// answer as an event stream, or the answer alone as JSON where no notification
// came.
type exchange struct {
	front   *Front
	w       http.ResponseWriter
	r       *http.Request
	version string // in the header
	events  bool   // the client reads event streams
	json    bool   // the client reads JSON
	batch   bool   // more messages are to come
	status  int    // of an answer as JSON; 0 = 200

	writable time.Time // until when what is written must be read; zero = not set yet

	mu     sync.Mutex
	notes  chan []byte   // nil before the first; nil in it = alive
	ended  chan struct{} // closed when the writer of notes has ended; nil like notes
	closed bool
	opened bool // the header says event stream; the writer's until it has ended
}

// noteQueue bounds the notifications that wait for a client that reads slowly.
const noteQueue = 256

// newExchange looks into the request for what the client reads: JSON, if it does
// not say.
func (f *Front) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	e := &exchange{front: f, w: w, r: r, version: r.Header.Get(mcp.HeaderProtocolVersion)}
	for _, accept := range r.Header["Accept"] {
		all := strings.Contains(accept, "*/*")
		e.events = e.events || all || strings.Contains(accept, "text/event-stream")
		e.json = e.json || all || strings.Contains(accept, "application/json")
	}
	e.json = e.json || !e.events
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.WriteTimeout > 0 {
		e.writable = time.Now().Add(server.WriteTimeout) // net/http has set it for this request
	}
	return e
}

// notify implements outlet.
func (e *exchange) notify(method string, params json.RawMessage) {
	if !e.queue(oneLine(notification(method, params))) {
		e.front.log.Debug("notification dropped, the client does not read", "method", method)
	}
}

// alive implements outlet.
func (e *exchange) alive() { e.queue(nil) }

// queue reports false where there is no room, or the answer is on its way.
func (e *exchange) queue(note []byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	if e.notes == nil {
		e.notes, e.ended = make(chan []byte, noteQueue), make(chan struct{})
		go e.write() // ends with close, which waits for it
	}
	select {
	case e.notes <- note:
		return true
	default:
		return false
	}
}

func (e *exchange) write() {
	defer close(e.ended)
	for note := range e.notes {
		e.event(note)
	}
}

// close writes what is queued and waits for that. Idempotent.
func (e *exchange) close() {
	e.mu.Lock()
	first := !e.closed && e.notes != nil
	e.closed = true
	if first {
		close(e.notes)
	}
	e.mu.Unlock()
	if e.ended != nil {
		<-e.ended
	}
}

// start begins an event stream.
func (e *exchange) start() {
	e.opened = true
	header := e.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
}

// event writes one message, or without one a comment that shows that the stream is
// alive. To a client that is gone it does nothing.
func (e *exchange) event(message []byte) {
	if !e.opened {
		e.start()
	}
	if message == nil {
		e.put([]byte(": alive\n\n"))
	} else {
		out := append(make([]byte, 0, len(message)+24), "event: message\ndata: "...)
		e.put(append(append(out, message...), "\n\n"...))
	}
	e.flush()
}

// put writes. A client that does not read is given up after a while: its
// connection would hold the answer for ever. What is written to one that is gone
// is lost, and nobody could be told.
func (e *exchange) put(data []byte) {
	e.extend()
	_, _ = e.w.Write(data)
}

// extend gives the client time to read what is written next, where not enough of it
// is left.
func (e *exchange) extend() {
	if now := time.Now(); e.writable.Sub(now) < e.front.options.writeWithin/2 {
		e.writable = now.Add(e.front.options.writeWithin)
		_ = http.NewResponseController(e.w).SetWriteDeadline(e.writable)
	}
}

func (e *exchange) flush() { _ = http.NewResponseController(e.w).Flush() }

var jsonMedia = []string{"application/json"}

// ownLength is the size of a short answer, of which net/http finds out the length
// for less.
const ownLength = 2048

// answer writes the response to a request, after close.
func (e *exchange) answer(message []byte) {
	if e.opened || !e.json || e.batch {
		e.event(oneLine(message))
		return
	}
	header := e.w.Header()
	header["Content-Type"] = jsonMedia
	if len(message) > ownLength {
		header["Content-Length"] = []string{strconv.Itoa(len(message))}
	}
	if e.status != 0 {
		e.w.WriteHeader(e.status)
	}
	e.put(message)
}

// nothing ends the response where there is nothing to say: to a notification, or to
// a request that the client took back.
func (e *exchange) nothing() {
	if !e.opened && !e.batch {
		e.extend()
		e.w.WriteHeader(http.StatusAccepted)
	}
}

// refuse answers with a status: as a JSON-RPC error where the id of the request is
// known, and as text where it is not, since some clients wait for ever after an
// error whose id is null.
func (e *exchange) refuse(status int, id json.RawMessage, err *rpcError) {
	if id == nil {
		http.Error(e.w, err.message, status)
		return
	}
	e.status, e.json = status, true
	e.answer(refuse(id, err).body)
}
