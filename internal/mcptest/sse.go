package mcptest

import (
	"crypto/rand"
	"io"
	"net/http"
	"testing"
)

// SSE serves the fake as a server of the old HTTP+SSE transport (revision 2024-11-05) until the test ends. GET /sse opens the
// only stream of a session, and announces the URL for POSTs; answers are sent on the stream. HTTPServer.URL is the URL of the
// stream. A POST to it gets 405, as from real servers. The era is always legacy.
//
// The faults of HTTPServer work here too. With the method "GET", a fault affects the stream. With a JSON-RPC method, a fault that
// happens before handling affects the POST, and a fault that happens after handling affects the answer on the stream.
// FaultStatusAfter, FaultPoll and FaultBreak have no effect on an answer.
func (s Spec) SSE(t testing.TB) *HTTPServer {
	t.Helper()
	s.Era = EraLegacy
	h := s.serveHTTP(t, true)
	h.URL = h.web.URL + "/sse"
	return h
}

// serveEvents opens a session and serves its stream. The session ends with the stream.
func (h *HTTPServer) serveEvents(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
		return
	}
	if f := h.fault("GET"); f != nil && f.before(h, w, r, false, "null") {
		return
	}
	ses := h.newSession(rand.Text())
	stream := newEventWriter(w, h.srv.spec)
	ses.attach(stream)
	h.mu.Lock()
	h.sessions[ses.id] = ses
	h.mu.Unlock()
	stream.open()
	endpoint := "/messages?sessionId=" + ses.id
	if h.srv.spec.Endpoint != "" {
		endpoint = h.srv.spec.Endpoint
	}
	stream.write("endpoint", text(endpoint)) // if this fails, the request's context ends below
	select {
	case <-r.Context().Done():
		h.KillSession(ses.id)
	case <-ses.gone:
	case <-h.srv.ctx.Done():
	}
	stream.close()
}

// serveMessages handles one message from a client, and answers on the stream of the client's session.
func (h *HTTPServer) serveMessages(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has disconnected
	}
	id := r.URL.Query().Get("sessionId")
	h.mu.Lock()
	ses := h.sessions[id]
	h.mu.Unlock()
	env, ok := parseEnvelope(raw)
	if !ok {
		h.srv.garbage(&session{id: id}, raw)
		http.Error(w, "Could not parse message", http.StatusBadRequest)
		return
	}
	h.srv.record(&session{id: id}, raw, env)
	fault := h.fault(env.Method)
	if fault != nil && fault.before(h, w, r, true, string(env.ID)) {
		return
	}
	if ses == nil {
		http.Error(w, "Could not find session", http.StatusNotFound)
		return
	}
	if !env.isRequest() {
		h.srv.take(ses.session, env)
		if fault != nil && fault.after(h, w, r, "null", h.lazily(w), []message{text(`{}`)}) == nil {
			return
		}
		accepted(w)
		return
	}
	h.serveMessage(w, ses, env, fault)
}

func accepted(w http.ResponseWriter) {
	w.WriteHeader(http.StatusAccepted)
	io.WriteString(w, "Accepted")
	flush(w)
}

// serveMessage runs a request after its POST was answered.
func (h *HTTPServer) serveMessage(w http.ResponseWriter, ses *httpSession, env envelope, fault *Fault) {
	c := h.srv.begin(ses.session, env)
	stream := ses.current()
	c.note = stream.event
	c.reply = func(ms ...message) error {
		if fault != nil {
			if ms = fault.afterOnStream(h, ses, ms); ms == nil {
				return errTaken
			}
		}
		for _, m := range ms {
			if err := stream.event(m); err != nil {
				return err
			}
		}
		return nil
	}
	if h.srv.enter() {
		go func() { // stop waits for this goroutine
			defer h.srv.wg.Done()
			h.srv.serve(c)
		}()
	}
	accepted(w)
}

// afterOnStream is Fault.after for answers on the stream of a session. If the fault breaks the stream, the session
// ends.
func (f *Fault) afterOnStream(h *HTTPServer, ses *httpSession, ms []message) []message {
	stream := ses.current()
	switch f.Kind {
	case FaultDropAfter:
		stream.reset()
	case FaultReset:
		stream.event(half(ms[0], true))
		stream.reset()
	case FaultEnd:
	case FaultStallAfter:
		return nil
	case FaultHalfJSON:
		return []message{half(ms[0], false)}
	case FaultWrongID:
		return wrongAnswer()
	default:
		return ms
	}
	h.KillSession(ses.id)
	return nil
}
