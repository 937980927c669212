package mcptest

import (
	"net/http"
	"strconv"
)

// parked is an answer that waits for a GET with the id of the event before it.
type parked struct {
	answer []message
	polls  int  // how many GETs get only a new id first
	reset  bool // instead of a proper end
}

// park ends the stream of an answer after an event with an id.
func (h *HTTPServer) park(stream *eventWriter, p parked) {
	h.mu.Lock()
	h.polls++
	id := "poll-" + strconv.Itoa(h.polls)
	h.parked[id] = p
	h.mu.Unlock()
	stream.prime(id)
	if p.reset {
		stream.reset()
		return
	}
	stream.close()
}

// unpark serves a GET that resumes from an event. It reports false if nothing is parked there.
func (h *HTTPServer) unpark(w http.ResponseWriter, lastID string) bool {
	h.mu.Lock()
	p, ok := h.parked[lastID]
	delete(h.parked, lastID)
	h.mu.Unlock()
	if !ok {
		return false
	}
	stream := h.lazily(w)()
	if p.polls > 0 {
		p.polls--
		h.park(stream, p)
		return true
	}
	for _, m := range p.answer {
		stream.event(m) // an error means that the client is gone
	}
	stream.close()
	return true
}

// write sends the refusal of a session. id is that of the request, raw.
func (f Refusal) write(w http.ResponseWriter, id string) {
	if f.Status == 0 {
		refuse(w, http.StatusNotFound, "null", &rpcError{code: -32001, message: "Session not found"})
		return
	}
	Fault{Status: f.Status, Header: map[string]string{"Content-Type": f.Type}, Body: f.Body}.write(w, id)
}
