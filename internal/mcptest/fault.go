package mcptest

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// FaultKind says what the fake does to a request instead of answering it normally.
type FaultKind string

// These faults happen before the request is handled. Nothing is executed, except after FaultDelay.
const (
	// FaultStatus answers with Status, Header and Body. In Body, $ID is replaced by the ID of the request.
	FaultStatus FaultKind = "status"
	// FaultDrop resets the connection without sending anything.
	FaultDrop FaultKind = "drop"
	// FaultStall sends nothing until the client disconnects.
	FaultStall FaultKind = "stall"
	// FaultDelay waits for Delay, and then serves the request normally.
	FaultDelay FaultKind = "delay"
	// FaultLostSession forgets the session of the request, and answers 404.
	FaultLostSession FaultKind = "lost session"
)

// These faults happen after the request was handled: a tool was executed, but the response does not contain its whole answer.
// The HTTP methods GET and DELETE are not handled first; for them the answer is a notification tools/list_changed.
const (
	// FaultDropAfter resets the connection instead of answering.
	FaultDropAfter FaultKind = "drop after"
	// FaultStallAfter sends the header of the response, and nothing more.
	FaultStallAfter FaultKind = "stall after"
	// FaultReset sends half of the answer as an event, and then resets the connection.
	FaultReset FaultKind = "reset"
	// FaultEnd ends the event stream properly, but without the answer.
	FaultEnd FaultKind = "end"
	// FaultHalfJSON sends half of the answer as a complete JSON body.
	FaultHalfJSON FaultKind = "half json"
	// FaultWrongID sends an answer with the ID of another request.
	FaultWrongID FaultKind = "wrong id"
	// FaultStatusAfter answers with Status, Header and Body after the request was executed. Like FaultDropAfter,
	// FaultStallAfter and FaultEnd, it also works for notifications.
	FaultStatusAfter FaultKind = "status after"
	// FaultPoll sends an event with an ID, and then ends the event stream. A GET that resumes from this ID gets the
	// answer. Before that, as many GETs as Polls says get only a new ID, and their streams end in the same way.
	FaultPoll FaultKind = "poll"
	// FaultBreak is like FaultPoll, but resets the connection.
	FaultBreak FaultKind = "break"
)

// Fault is something that goes wrong with HTTP requests to a fake.
type Fault struct {
	Kind FaultKind
	// Method says which requests fail: those with this JSON-RPC method, or with the HTTP method GET or DELETE. Empty
	// means all requests.
	Method string
	// Skip is how many of the matching requests succeed first.
	Skip int
	// Times is how many requests then fail: 0 means one, a negative number means all.
	Times int
	// Status, Header and Body are used by FaultStatus and FaultStatusAfter.
	Status int
	Header map[string]string
	Body   string
	// Delay is used by FaultDelay.
	Delay time.Duration
	// Polls is used by FaultPoll and FaultBreak.
	Polls int
}

// On returns the fault for requests with this method only.
func (f Fault) On(method string) Fault { f.Method = method; return f }

// Always returns the fault for all matching requests, forever.
func (f Fault) Always() Fault { f.Times = -1; return f }

// Drop returns a fault that resets the connection before anything is executed.
func Drop() Fault { return Fault{Kind: FaultDrop} }

// Stall returns a fault that never answers; nothing is executed.
func Stall() Fault { return Fault{Kind: FaultStall} }

// LostSession returns a fault that forgets the session and answers 404.
func LostSession() Fault { return Fault{Kind: FaultLostSession} }

// DropAfter returns a fault that resets the connection after the call was executed.
func DropAfter() Fault { return Fault{Kind: FaultDropAfter} }

// StallAfter returns a fault that executes the call, and then sends only the header of the response.
func StallAfter() Fault { return Fault{Kind: FaultStallAfter} }

// Reset returns a fault that executes the call, and resets the connection in the middle of the answer.
func Reset() Fault { return Fault{Kind: FaultReset} }

// End returns a fault that executes the call, and ends the event stream without the answer.
func End() Fault { return Fault{Kind: FaultEnd} }

// Unauthorized returns a fault that answers 401 with a challenge.
func Unauthorized() Fault {
	return Fault{Kind: FaultStatus, Status: 401, Body: `{"error":"invalid_token"}`, Header: map[string]string{
		"Content-Type": "application/json", "WWW-Authenticate": `Bearer realm="fake", error="invalid_token"`}}
}

// TooMany returns a fault that answers 429 with Retry-After, rounded down to seconds.
func TooMany(retryAfter time.Duration) Fault {
	return Fault{Kind: FaultStatus, Status: 429, Body: "slow down", Header: map[string]string{
		"Content-Type": "text/plain", "Retry-After": strconv.Itoa(int(retryAfter / time.Second))}}
}

// BadGateway returns a fault that answers 502 with an HTML page.
func BadGateway() Fault {
	return Fault{Kind: FaultStatus, Status: 502, Header: map[string]string{"Content-Type": "text/html; charset=utf-8"},
		Body: "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>\n<body><h1>502 Bad Gateway</h1><hr>nginx</body></html>\n"}
}

// HTML returns a fault that answers 200 with an HTML page, as captive portals do.
func HTML() Fault {
	f := BadGateway()
	f.Status, f.Body = 200, "<!DOCTYPE html>\n<html><body><h1>Sign in</h1></body></html>\n"
	return f
}

// Redirect returns a fault that answers 307 with this URL, which may be on another host.
func Redirect(url string) Fault {
	return Fault{Kind: FaultStatus, Status: 307, Header: map[string]string{"Location": url}}
}

// Script adds faults for the requests from now on. For each request, the first fault in this order that matches is
// applied, and no other.
func (h *HTTPServer) Script(faults ...Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range faults {
		if f.Times == 0 {
			f.Times = 1
		}
		h.faults = append(h.faults, &f)
	}
}

// Heal removes all faults.
func (h *HTTPServer) Heal() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults = nil
}

// fault returns the fault for a request with this method, or nil.
func (h *HTTPServer) fault(method string) *Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.faults {
		switch {
		case f.Method != "" && f.Method != method || f.Times == 0:
		case f.Skip > 0:
			f.Skip--
		default:
			if f.Times > 0 {
				f.Times--
			}
			return f
		}
	}
	return nil
}

// write answers with the status, header and body of the fault. id is the ID of the request, as raw JSON.
func (f Fault) write(w http.ResponseWriter, id string) {
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(f.Status)
	io.WriteString(w, strings.ReplaceAll(f.Body, "$ID", id))
}

// before applies the faults that happen before handling or, if the request is not a POST, all faults. It reports
// whether the response is complete. id is the ID of the request, as raw JSON.
func (f *Fault) before(h *HTTPServer, w http.ResponseWriter, r *http.Request, post bool, id string) bool {
	switch f.Kind {
	case FaultStatus:
		f.write(w, id)
	case FaultDrop:
		reset(w)
	case FaultStall:
		h.hold(r)
	case FaultDelay:
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		case <-h.srv.ctx.Done():
		}
		return false
	case FaultLostSession:
		h.KillSession(r.Header.Get("Mcp-Session-Id"))
		h.KillSession(r.URL.Query().Get("sessionId"))
		refuse(w, http.StatusNotFound, "null", &rpcError{code: -32001, message: "Session not found"})
	default:
		if post {
			return false
		}
		f.after(h, w, r, id, h.lazily(w), []message{text(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)})
	}
	return true
}

// lazily returns a function that returns the event stream of a response. The stream is opened at the first call.
func (h *HTTPServer) lazily(w http.ResponseWriter) func() *eventWriter {
	stream := newEventWriter(w, h.srv.spec)
	return func() *eventWriter { stream.open(); return stream }
}

// errTaken is the error of writing an answer that a fault has replaced.
var errTaken = errors.New("a fault took the answer")

// after applies the faults that happen after handling. ms are the messages of the answer. after returns the messages that must
// still be sent, or nil if there are none. stream returns the event stream for the answer.
func (f *Fault) after(h *HTTPServer, w http.ResponseWriter, r *http.Request, id string, stream func() *eventWriter, ms []message) []message {
	switch f.Kind {
	case FaultDropAfter:
		reset(w)
	case FaultStallAfter:
		stream()
		h.hold(r)
	case FaultReset:
		s := stream()
		s.event(half(ms[0], true))
		s.reset()
	case FaultEnd:
		stream().close()
	case FaultHalfJSON:
		w.Header().Set("Content-Type", "application/json")
		half(ms[0], false).WriteTo(w)
	case FaultWrongID:
		return wrongAnswer()
	case FaultStatusAfter:
		f.write(w, id)
	case FaultPoll, FaultBreak:
		h.park(stream(), parked{ms, f.Polls, f.Kind == FaultBreak})
	default:
		return ms
	}
	return nil
}

// half returns the first half of a message. If cut is true, its line end is missing too.
func half(m message, cut bool) message {
	return message{head: m.head[:len(m.head)/2], cut: cut}
}

func wrongAnswer() []message {
	return []message{textResult("answer to another request").with("424242")}
}

// hold waits until the client disconnects or the server is stopped.
func (h *HTTPServer) hold(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-h.srv.ctx.Done():
	}
}

// reset ends the connection of a response with a TCP reset.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // this at least closes the connection
	}
	resetConn(conn)
}

func resetConn(conn net.Conn) {
	if c, ok := conn.(interface{ SetLinger(int) error }); ok {
		c.SetLinger(0)
	}
	conn.Close()
}
