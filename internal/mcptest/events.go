package mcptest

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// eventWriter writes a text/event-stream response. Several goroutines may use it. After close, writes fail.
type eventWriter struct {
	spec Spec
	w    http.ResponseWriter

	mu     sync.Mutex
	n      int
	opened bool
	closed bool
}

func newEventWriter(w http.ResponseWriter, spec Spec) *eventWriter {
	return &eventWriter{spec: spec, w: w}
}

// open sends the header, unless it was already sent.
func (e *eventWriter) open() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.start()
}

// start does the work of open. The caller holds mu.
func (e *eventWriter) start() {
	if e.opened {
		return
	}
	e.opened = true
	e.w.Header().Set("Content-Type", "text/event-stream")
	e.w.Header().Set("Cache-Control", "no-cache")
	e.w.WriteHeader(http.StatusOK)
	if e.spec.BOM {
		io.WriteString(e.w, bom) // allowed only once, at the start of the stream
	}
	flush(e.w)
}

// noiseEvents are written between events, in turn. None of them contains a message, so a client must ignore them.
var noiseEvents = []string{
	": keep-alive\n\n",
	"\n\n",
	"retry: 1000\n\n",
	"event: ping\ndata: {}\n\n",
	"id: 7\n\n",
	"event: log\ndata: not json\n\n",
	"unknown: field\n\n",
	":\n",
}

// event writes one message. If m.cut is set, the line end after the message is missing.
func (e *eventWriter) event(m message) error { return e.write("message", m) }

// prime writes an event with an ID, but without a message. A client can resume from this ID with GET.
func (e *eventWriter) prime(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	io.WriteString(e.w, "id: "+id+"\nretry: 10\ndata:\n\n") // if this fails, the client has disconnected
	flush(e.w)
}

func (e *eventWriter) write(kind string, m message) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return errors.New("the stream is closed")
	}
	e.start()
	eol := "\n"
	if e.spec.CRLF {
		eol = "\r\n"
	}
	before, after := "event: "+kind+eol+"data: ", eol+eol
	if e.spec.Noise {
		before = noiseEvents[e.n%len(noiseEvents)] + before
	}
	if m.cut {
		after = ""
	}
	e.n++
	var out io.Writer = e.w
	if e.spec.OneByteWrites {
		out = oneByte{flushed{e.w}}
	}
	if _, err := m.in(before, after).WriteTo(out); err != nil {
		return err
	}
	return flush(e.w)
}

// close makes later writes fail. It waits for a write that is in progress.
func (e *eventWriter) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}

// reset ends the connection of the stream with a TCP reset.
func (e *eventWriter) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	reset(e.w)
}

func flush(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }

// flushed is a writer that sends each write to the client at once, so that net/http does not collect several writes.
type flushed struct{ w http.ResponseWriter }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err != nil {
		return n, err
	}
	return n, flush(f.w)
}

// decodeHeader decodes a header value that was encoded in base64 because it is not plain ASCII.
func decodeHeader(v string) string {
	inner, ok := strings.CutPrefix(v, "=?base64?")
	if !ok {
		return v
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
	if err != nil {
		return v
	}
	return string(data)
}
