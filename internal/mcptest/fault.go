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

// FaultKind says what happens to a request instead of a proper answer.
type FaultKind string

// Faults before the request is handled: nothing is executed.
const (
	// FaultStatus answers with Status, Header and Body. In Body, $ID is replaced by the id of the request.
	FaultStatus FaultKind = "status"
	// FaultDrop resets the connection without a byte of an answer.
	FaultDrop FaultKind = "drop"
	// FaultStall sends nothing until the client leaves.
	FaultStall FaultKind = "stall"
	// FaultDelay waits for Delay, then serves as usual.
	FaultDelay FaultKind = "delay"
	// FaultLostSession forgets the session of the request and answers 404.
	FaultLostSession FaultKind = "lost session"
)

// Faults after the request was handled: a tool has been executed, its answer
// does not arrive. On GET they come right after the header.
const (
	// FaultDropAfter resets the connection instead of answering.
	FaultDropAfter FaultKind = "drop after"
	// FaultStallAfter sends the header of the response and nothing more.
	FaultStallAfter FaultKind = "stall after"
	// FaultReset sends half of the answer as an event and resets the connection.
	FaultReset FaultKind = "reset"
	// FaultEnd ends the event stream properly, before the answer.
	FaultEnd FaultKind = "end"
	// FaultHalfJSON sends half of the answer as a complete JSON body.
	FaultHalfJSON FaultKind = "half json"
	// FaultWrongID answers with the id of another request.
	FaultWrongID FaultKind = "wrong id"
	// FaultStatusAfter answers with Status, Header and Body after the request was executed. Like FaultDropAfter,
	// FaultStallAfter and FaultEnd it also works for notifications.
	FaultStatusAfter FaultKind = "status after"
	// FaultPoll sends an event with an id and ends the event stream. A GET with that id gets the answer, after Polls GETs
	// whose streams end in the same way.
	FaultPoll FaultKind = "poll"
	// FaultBreak is FaultPoll with a reset of the connection.
	FaultBreak FaultKind = "break"
)

// Fault is something that goes wrong with HTTP requests to a fake.
type Fault struct {
	Kind FaultKind
	// Method is the JSON-RPC method of the requests that fail, or GET or DELETE
	// for those HTTP methods; empty for all.
	Method string
	// Skip is how many of those requests succeed first.
	Skip int
	// Times is how many requests then fail: 0 means one, below 0 all.
	Times int
	// Status, Header and Body are for FaultStatus and FaultStatusAfter.
	Status int
	Header map[string]string
	Body   string
	// Delay is for FaultDelay.
	Delay time.Duration
	// Polls is for FaultPoll and FaultBreak.
	Polls int
}

// On returns the fault for one method.
func (f Fault) On(method string) Fault { f.Method = method; return f }

// Always returns the fault for all requests, for ever.
func (f Fault) Always() Fault { f.Times = -1; return f }

// Drop resets the connection before anything is executed.
func Drop() Fault { return Fault{Kind: FaultDrop} }

// Stall never answers; nothing is executed.
func Stall() Fault { return Fault{Kind: FaultStall} }

// LostSession forgets the session and answers 404.
func LostSession() Fault { return Fault{Kind: FaultLostSession} }

// DropAfter resets the connection after the call was executed.
func DropAfter() Fault { return Fault{Kind: FaultDropAfter} }

// StallAfter executes the call and sends no more than the header.
func StallAfter() Fault { return Fault{Kind: FaultStallAfter} }

// Reset executes the call and resets the connection in the middle of the answer.
func Reset() Fault { return Fault{Kind: FaultReset} }

// End executes the call and ends the event stream without the answer.
func End() Fault { return Fault{Kind: FaultEnd} }

// Unauthorized answers 401 with a challenge.
func Unauthorized() Fault {
	return Fault{Kind: FaultStatus, Status: 401, Body: `{"error":"invalid_token"}`, Header: map[string]string{
		"Content-Type": "application/json", "WWW-Authenticate": `Bearer realm="fake", error="invalid_token"`}}
}

// TooMany answers 429 with Retry-After in whole seconds.
func TooMany(retryAfter time.Duration) Fault {
	return Fault{Kind: FaultStatus, Status: 429, Body: "slow down", Header: map[string]string{
		"Content-Type": "text/plain", "Retry-After": strconv.Itoa(int(retryAfter / time.Second))}}
}

// BadGateway answers 502 with an HTML page.
func BadGateway() Fault {
	return Fault{Kind: FaultStatus, Status: 502, Header: map[string]string{"Content-Type": "text/html; charset=utf-8"},
		Body: "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>\n<body><h1>502 Bad Gateway</h1><hr>nginx</body></html>\n"}
}

// HTML answers 200 with an HTML page, as captive portals do.
func HTML() Fault {
	f := BadGateway()
	f.Status, f.Body = 200, "<!DOCTYPE html>\n<html><body><h1>Sign in</h1></body></html>\n"
	return f
}

// Redirect answers 307 to that URL, which may be on another host.
func Redirect(url string) Fault {
	return Fault{Kind: FaultStatus, Status: 307, Header: map[string]string{"Location": url}}
}

// Script lets requests fail from now on. Faults are tried in the order in which
// they were given; the first that matches is used up and applies alone.
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

// fault returns the fault of a request with this method, or nil.
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

// write answers with the status of the fault. id is the request's, as raw JSON.
func (f Fault) write(w http.ResponseWriter, id string) {
	for k, v := range f.Header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(f.Status)
	io.WriteString(w, strings.ReplaceAll(f.Body, "$ID", id))
}

// before applies the faults that come before handling, and all of them if the request is not a POST. It reports whether
// the request is over. id is the request's, as raw JSON.
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

// lazily returns a func for the event stream of a response; its first call opens the stream.
func (h *HTTPServer) lazily(w http.ResponseWriter) func() *eventWriter {
	stream := newEventWriter(w, h.srv.spec)
	return func() *eventWriter { stream.open(); return stream }
}

// errTaken is returned by a writer of answers if a fault replaced the answer.
var errTaken = errors.New("a fault took the answer")

// after applies the faults that replace the answer ms. It returns what is still to be sent, nil if nothing. stream
// returns the event stream for the answer.
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

// half is the first half of a message; with cut it also lacks its line end.
func half(m message, cut bool) message {
	return message{head: m.head[:len(m.head)/2], cut: cut}
}

func wrongAnswer() []message {
	return []message{textResult("answer to another request").with("424242")}
}

// hold waits until the client or the server goes away.
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
		panic(http.ErrAbortHandler) // closes the connection at least
	}
	resetConn(conn)
}

func resetConn(conn net.Conn) {
	if c, ok := conn.(interface{ SetLinger(int) error }); ok {
		c.SetLinger(0)
	}
	conn.Close()
}
