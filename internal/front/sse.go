package front

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// This file has the HTTP+SSE transport of revision 2024-11-05: a GET opens an event stream whose first event
// says where the client must post its messages. All answers are events of that stream. Each stream is served
// like one stdio client.

// sseStreams are the open streams, by streamKey. A stream can be used only in the process where it was opened:
// it has no stored record.
type sseStreams struct{ sync.Map } // the values are *sseStream

// ServeSSE opens a stream. The stream ends with its connection or when the client's credential expires. It also ends if the front
// ends its streams, as with EndStreams or EndUnknown. The parameter messages is the path to which the client posts its messages
// (PostSSE), escaped as in a URL.
func (f *Front) ServeSSE(w http.ResponseWriter, r *http.Request, messages string) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", "GET")
		http.Error(w, "this endpoint has GET; messages go where its first event says", http.StatusMethodNotAllowed)
		return
	}
	who := caller.From(r.Context())
	if over := f.options.Admission.OpenSession(who); over != nil {
		w.Header().Set("Retry-After", strconv.Itoa(over.Seconds()))
		http.Error(w, over.Error(), http.StatusTooManyRequests)
		return
	}
	defer f.options.Admission.CloseSession(who)
	id := newSessionID()
	if f.options.Peers != nil {
		id += "-" + f.options.Peers.Self()
	}
	// If the connection ends, the input ends, which cancels the open calls. A shutdown waits for the open calls instead.
	input, endInput := context.WithCancel(r.Context())
	defer endInput() // ends a POST that is waiting for the reader
	stream := &sseStream{exchange: f.newExchange(w, r), posted: make(chan []byte), inputEnded: input.Done()}
	key := streamKey(id, r)
	f.sseStreams.Store(key, stream)
	defer f.sseStreams.Delete(key)
	ctx, open := f.stateless.begin(context.WithoutCancel(r.Context()), id, true)
	defer f.stateless.done(open)

	defer stream.end()
	stream.start()
	if stream.send("event: endpoint\ndata: "+messages+"?sessionId="+id+"\n\n") != nil {
		return
	}
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	ended := make(chan struct{})
	var loops sync.WaitGroup
	loops.Go(func() { // the goroutine ends with this request
		for {
			select {
			case <-alive.C:
				_ = stream.send(": alive\n\n") // if the client is gone, the input ends too
			case <-ended:
				return
			}
		}
	})
	err := f.ServePeer(ctx, stream, StdioOptions{Drain: time.Millisecond, Session: id, Peer: "sse", Headers: r.Header, Principal: who})
	close(ended)
	loops.Wait()
	if err != nil {
		f.log.Debug("an event stream ended", "err", err)
	}
}

// PostSSE accepts a message that a client posts for its stream. If another replica has the stream, PostSSE forwards the
// message.
func (f *Front) PostSSE(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		http.Error(w, "this endpoint has POST", http.StatusMethodNotAllowed)
		return
	}
	id := r.URL.Query().Get("sessionId")
	found, ok := f.sseStreams.Load(streamKey(id, r))
	if to := id[strings.LastIndexByte(id, '-')+1:]; !ok && f.reaches(r, to) {
		data, read := f.readBody(w, r)
		if !read || f.forward(f.newExchange(w, r), &message{row: &unknownMethod}, data, to, false) {
			return
		}
	}
	if !ok {
		http.Error(w, "no such session; open the stream first", http.StatusNotFound)
		return
	}
	data, ok := f.readBody(w, r)
	if !ok {
		return
	}
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' && data[0] != '[' {
		http.Error(w, "the body must be a JSON-RPC message", http.StatusBadRequest)
		return
	}
	stream := found.(*sseStream)
	select {
	case stream.posted <- data:
		w.WriteHeader(http.StatusAccepted)
	case <-stream.inputEnded:
		http.Error(w, "the session has ended", http.StatusNotFound)
	}
}

// streamKey returns the key of a stream. It contains the principal, so that no other principal can post to the
// stream.
func streamKey(id string, r *http.Request) string {
	return id + " " + caller.From(r.Context()).Key()
}

// sseStream is the Socket of a client with an event stream.
type sseStream struct {
	*exchange
	posted     chan []byte     // the messages that the client posts
	inputEnded <-chan struct{} // closed when no message is read any more
	sending    sync.Mutex      // held while an event is written
	over       bool            // end was called; guarded by sending
}

// end refuses further events. If an event is just being written, end waits until it is written or has failed. The handler must call
// end before it returns, because net/http then uses the buffers of the response for other clients. An answer may come even later:
// [Front.ServePeer] does not wait long for a request that does not end.
func (s *sseStream) end() {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.over = true
}

// Read returns the next message that the client posts.
func (s *sseStream) Read() ([]byte, error) {
	select {
	case data := <-s.posted:
		return data, nil
	case <-s.inputEnded:
		return nil, io.EOF
	}
}

// Write sends each message as an event.
func (s *sseStream) Write(messages ...[]byte) error {
	for _, message := range messages {
		if err := s.send("event: message\ndata: " + string(wire.OneLine(message)) + "\n\n"); err != nil {
			return err
		}
	}
	return nil
}

// send writes a whole event. After end it returns io.ErrClosedPipe.
func (s *sseStream) send(event string) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	if s.over {
		return io.ErrClosedPipe
	}
	s.extend(len(event))
	if _, err := io.WriteString(s.w, event); err != nil {
		return err
	}
	s.flush()
	return nil
}
