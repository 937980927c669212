package mcptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
)

// postWriter writes the response to one POST: as JSON if only the answer is sent and AnswerSSE is off, otherwise as an event
// stream.
type postWriter struct {
	h      *HTTPServer
	w      http.ResponseWriter
	r      *http.Request
	id     string // raw JSON
	fault  *Fault
	modern bool

	mu     sync.Mutex
	stream *eventWriter
	over   bool // whether the response is complete
}

// note writes a message to the event stream. It opens the stream if necessary.
func (p *postWriter) note(m message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events(m)
}

// events writes messages to the event stream. The caller holds mu.
func (p *postWriter) events(ms ...message) error {
	if p.over {
		return errors.New("the response is complete")
	}
	stream := p.opened()
	for _, m := range ms {
		if err := stream.event(m); err != nil {
			return err
		}
	}
	return nil
}

// opened returns the event stream. It opens the stream if necessary. The caller holds mu.
func (p *postWriter) opened() *eventWriter {
	if p.stream == nil {
		p.stream = newEventWriter(p.w, p.h.srv.spec)
		p.stream.open()
	}
	return p.stream
}

func (p *postWriter) reply(ms ...message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return errors.New("the response is complete")
	}
	if p.fault != nil {
		if ms = p.fault.after(p.h, p.w, p.r, p.id, p.opened, ms); ms == nil {
			p.over = true
			return errTaken
		}
	}
	if p.stream == nil && len(ms) == 1 && !p.h.answersSSE() {
		p.over = true
		return p.json(ms[0])
	}
	return p.events(ms...)
}

// json writes the answer as the body. For an error in the modern protocol version, it sets the HTTP status.
func (p *postWriter) json(m message) error {
	p.w.Header().Set("Content-Type", "application/json")
	if p.modern {
		p.w.WriteHeader(errorStatus(m.head))
	}
	spec := p.h.srv.spec
	var out io.Writer = p.w
	if spec.OneByteWrites {
		out = oneByte{flushed{p.w}}
	}
	before := ""
	if spec.BOM {
		before = bom
	}
	_, err := m.in(before, "").WriteTo(out)
	return err
}

// finish ends the response. A request without an answer gets an empty stream.
func (p *postWriter) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.opened().close()
	}
	p.over = true
}

func errorStatus(head []byte) int {
	var e struct{ Error *struct{ Code int } }
	if !bytes.Contains(head, []byte(`"error":`)) || json.Unmarshal(head, &e) != nil || e.Error == nil {
		return http.StatusOK
	}
	switch e.Error.Code {
	case -32601:
		return http.StatusNotFound
	case -32602, -32020, -32021, -32022, -32600, -32700:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

func (h *HTTPServer) answersSSE() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asSSE
}
