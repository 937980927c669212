package front

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/request"
)

// exchange is one HTTP request and its response. An answer is a single JSON text or an event of a stream. The response is a stream
// for a GET, a batch or a long-lived request, and also if a notification or a question is sent before the answer, or if the client
// accepts no JSON. But if the request is refused before a stream has begun (see the method refuse), the response is no stream.
type exchange struct {
	front   *Front
	w       http.ResponseWriter
	r       *http.Request
	who     *caller.Principal
	version string // the protocol version in the request's header
	events  bool   // the client accepts event streams
	json    bool   // the client accepts JSON
	batch   bool   // a batch is being answered, with events
	anew    bool   // the client's sessions with PerClient servers are lost, with the replica that had them (see homeOf)
	status  int    // HTTP status of a JSON answer; 0 means 200

	held     *session          // the legacy session of the request; nil if it has none
	ended    []*request.Event  // the events of the requests answered so far
	room     [1]*request.Event // the first backing array of ended, so that only a batch needs to allocate one
	writable time.Time         // the connection's write deadline; the zero time means that none has been set

	mu        sync.Mutex
	queued    waiting       // the events to write
	changed   sync.Cond     // signals that queued or closed has changed
	written   chan struct{} // closed when the goroutine writeQueued has ended; nil before the first event
	closed    bool
	streaming bool // the event stream has begun; while the goroutine writeQueued runs, only it may use this field
}

// waiting are events that wait to be written.
type waiting struct {
	messages                 [][]byte // nil is a keep-alive
	notifications, questions int      // their bytes
}

// newExchange makes an exchange. It takes the accepted media types from the headers; if these name neither JSON nor event
// streams, the client gets JSON.
func (f *Front) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	e := &exchange{front: f, w: w, r: r, who: caller.From(r.Context()), version: headerOf(r, versionHeader)}
	e.ended, e.changed.L = e.room[:0], &e.mu
	for _, accept := range r.Header["Accept"] {
		if accept == "application/json, text/event-stream" { // as most clients write it
			e.events, e.json = true, true
			continue
		}
		all := strings.Contains(accept, "*/*")
		e.events = e.events || all || strings.Contains(accept, "text/event-stream")
		e.json = e.json || all || strings.Contains(accept, "application/json")
	}
	e.json = e.json || !e.events
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.WriteTimeout > 0 {
		e.writable = time.Now().Add(server.WriteTimeout) // net/http has set this deadline for the request
	}
	return e
}

// free ends the use of the session by this request. From then on, this request no longer prevents the session from ending as idle.
func (e *exchange) free() {
	if e.held != nil {
		e.held.inflight.free()
	}
}

// notify sends a notification as an event. It drops the notification if too many wait to be written, or if the answer has begun.
func (e *exchange) notify(method string, params json.RawMessage) {
	if !e.queue(wire.OneLine(notification(method, params)), &e.queued.notifications) {
		e.front.log.Debug("notification dropped, the client does not read", "method", method)
	}
}

// send sends a question to the client as an event. It returns false if too many wait to be written, or if the answer has begun.
// Questions are counted apart from notifications, so that a flood of those does not prevent a question.
func (e *exchange) send(request []byte) bool { return e.queue(request, &e.queued.questions) }

// alive sends a keep-alive, so that proxies do not close the connection.
func (e *exchange) alive() { e.queue(nil, &e.queued.notifications) }

// queue adds a message to the event stream; nil adds a keep-alive. bytes is the field of e.queued that counts its kind. queue returns
// false if the answer has begun, or if others of its kind wait and all together have more than maxPending bytes. A notification also
// counts towards Options.Pending until it is written.
func (e *exchange) queue(message []byte, bytes *int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	size := len(message) + eventSize
	if e.closed || *bytes > 0 && *bytes+size > maxPending {
		return false
	}
	if bytes == &e.queued.notifications && !e.front.options.Pending.add(size, *bytes) {
		return false
	}
	if e.written == nil {
		e.written = make(chan struct{})
		go e.writeQueued() // the goroutine ends with close, which waits for it
	}
	e.queued.messages = append(e.queued.messages, message)
	*bytes += size
	e.changed.Signal()
	return true
}

// writeQueued writes the queued messages. Those that were queued during a write are written together by the next one.
func (e *exchange) writeQueued() {
	defer close(e.written)
	for {
		e.mu.Lock()
		for len(e.queued.messages) == 0 && !e.closed {
			e.changed.Wait()
		}
		batch, notifications := e.queued.messages, e.queued.notifications
		e.queued = waiting{}
		e.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		e.event(batch...)
		e.front.options.Pending.written(notifications)
	}
}

// close refuses further events, and waits until all queued events are written. It may be called repeatedly.
func (e *exchange) close() {
	e.mu.Lock()
	e.closed = true
	e.changed.Signal()
	e.mu.Unlock()
	if e.written != nil {
		<-e.written
	}
}

// reopen accepts events again after close, for the next message of a batch.
func (e *exchange) reopen() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed, e.written = false, nil
}

// start makes the response an event stream: it sends the status and the headers.
func (e *exchange) start() {
	e.streaming = true
	header := e.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache")
	header.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
}

// eventSize is the number of bytes that an event has beside its message.
const eventSize = len("event: message\ndata: \n\n")

// event writes each message as an event, and in place of a nil message a comment that keeps the connection alive.
func (e *exchange) event(messages ...[]byte) {
	if !e.streaming {
		e.start()
	}
	size := 0
	for _, message := range messages {
		size += len(message) + eventSize
	}
	out := make([]byte, 0, size)
	for _, message := range messages {
		if message == nil {
			out = append(out, ": alive\n\n"...)
			continue
		}
		e.front.traced(e.r.RemoteAddr, false, message)
		out = append(append(append(out, "event: message\ndata: "...), message...), "\n\n"...)
	}
	e.write(out)
	e.flush()
}

// write writes to the client before a deadline, so that a client that does not read cannot block mcpx for
// ever. It ignores errors, since the client can no longer be reached.
func (e *exchange) write(data []byte) {
	e.extend(len(data))
	_, _ = e.w.Write(data)
}

// largeWrite is the size, in bytes, from which a write or an answer is large. A large write has all of writeWithin as its time. A
// smaller one may have only half of it, because setting a deadline for each small answer would cost measurable time. A large answer
// counts towards its principal's limit for unread answers.
const largeWrite = 64 << 10

// extend sets a new write deadline, if less than half of writeWithin is left or the next write has largeWrite bytes or more.
func (e *exchange) extend(size int) {
	if now := time.Now(); size >= largeWrite || e.writable.Sub(now) < e.front.options.writeWithin/2 {
		e.writable = now.Add(e.front.options.writeWithin)
		_ = http.NewResponseController(e.w).SetWriteDeadline(e.writable)
	}
}

func (e *exchange) flush() { _ = http.NewResponseController(e.w).Flush() }

// Header values that all responses share, to save allocations.
var jsonMedia, noBytes = []string{"application/json"}, []string{"0"}

// errUnread replaces an answer if the principal's clients have too many unread answers already.
var errUnread = &rpcError{code: codeRefused, message: "the request was executed, but its answer is not sent: " +
	"you have not read the large answers to your other requests yet. Read them, or ask for less at once"}

// counted counts an answer towards the limit of a principal for unread answers. The caller must send the answer that counted
// returns, and then call written. If the limit is exceeded, counted returns errUnread in place of the answer, and records this
// error in the event of the request.
func (f *Front) counted(who *caller.Principal, event *request.Event, answer []byte) (send []byte, written func()) {
	admission, size := f.options.Admission, len(answer)
	if admission.WriteAnswer(who, size) {
		return answer, func() { admission.AnswerWritten(who, size) }
	}
	send = refuse(wire.Member(answer, "id"), errUnread).body
	event.Outcome, event.SentBytes = "", 0
	answeredWith(event, errUnread.code, len(send))
	return send, func() {}
}

// answer writes the answer to the client. If events may have been queued, the caller must first call e.close, which waits until all
// queued events are written.
func (e *exchange) answer(message []byte) {
	if e.streaming || !e.json || e.batch {
		e.event(wire.OneLine(message))
		return
	}
	e.front.traced(e.r.RemoteAddr, false, message)
	header := e.w.Header()
	header["Content-Type"] = jsonMedia
	header["Content-Length"] = []string{strconv.Itoa(len(message))}
	if e.status != 0 {
		e.w.WriteHeader(e.status)
	}
	e.write(message)
}

// accepted ends the response without a JSON-RPC answer, for example because the message was a notification or a response, or
// because the client has cancelled the request. It does nothing if an event stream has begun, or for a message of a batch.
func (e *exchange) accepted() {
	if !e.streaming && !e.batch {
		e.extend(0)
		e.w.Header()["Content-Length"] = noBytes
		e.w.WriteHeader(http.StatusAccepted)
	}
}

// refuse answers with an HTTP status and a JSON-RPC error. Without an id it answers in plain text, because some clients hang
// when an error has the id null.
func (e *exchange) refuse(status int, id json.RawMessage, err *rpcError) {
	if id == nil {
		http.Error(e.w, err.message, status)
		return
	}
	e.status, e.json = status, true
	e.answer(refuse(id, err).body)
}
