package mcptest

import (
	"net/http"
	"strconv"
)

// parked is an answer that waits until a GET resumes from the last event ID.
type parked struct {
	answer []message
	polls  int  // how many GETs get only a new event ID before one gets the answer
	reset  bool // whether the stream ends with a TCP reset
}

// park sends an event with an ID and ends the stream. A GET with this ID then gets the answer.
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

// unpark serves a GET that resumes from an event ID. It reports false if no answer waits for this ID.
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
		stream.event(m) // if this fails, the client has disconnected
	}
	stream.close()
	return true
}

// write sends the refusal. id is the ID of the request, as raw JSON.
func (f Refusal) write(w http.ResponseWriter, id string) {
	if f.Status == 0 {
		refuse(w, http.StatusNotFound, "null", &rpcError{code: -32001, message: "Session not found"})
		return
	}
	Fault{Status: f.Status, Header: map[string]string{"Content-Type": f.Type}, Body: f.Body}.write(w, id)
}
