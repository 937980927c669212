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
type sseStreams struct{ sync.Map } // the values are *io.PipeWriter

// ServeSSE opens a stream. The stream ends with its connection, when its credential expires, or when the front ends its
// streams, as with EndStreams or EndUnknown. The parameter messages is the path to which the client posts its messages
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
	in, client := io.Pipe()
	key := streamKey(id, r)
	f.sseStreams.Store(key, client)
	defer f.sseStreams.Delete(key)
	defer in.Close() // ends a POST that is waiting for the reader
	// If the connection ends, the input ends, which cancels the open calls. A shutdown waits for the open calls instead.
	defer context.AfterFunc(r.Context(), func() { client.Close() })()
	ctx, open := f.stateless.begin(context.WithoutCancel(r.Context()), id, true)
	defer f.stateless.done(open)

	out := &eventWriter{exchange: f.newExchange(w, r)}
	out.start()
	if out.send("event: endpoint\ndata: "+messages+"?sessionId="+id+"\n\n") != nil {
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
				_ = out.send(": alive\n\n") // if the client is gone, the input ends too
			case <-ended:
				return
			}
		}
	})
	err := f.ServeStdio(ctx, in, out, StdioOptions{
		MaxMessage: f.options.MaxMessage, Drain: time.Millisecond, Session: id, Peer: "sse", Headers: r.Header, Principal: who,
	})
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
	client := found.(*io.PipeWriter)
	data, ok := f.readBody(w, r)
	if !ok {
		return
	}
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '{' && data[0] != '[' {
		http.Error(w, "the body must be a JSON-RPC message", http.StatusBadRequest)
		return
	}
	if _, err := client.Write(append(wire.OneLine(data), '\n')); err != nil {
		http.Error(w, "the session has ended", http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// streamKey returns the key of a stream. It contains the principal, so that no other principal can post to the
// stream.
func streamKey(id string, r *http.Request) string {
	return id + " " + caller.From(r.Context()).Key()
}

// eventWriter writes each line as an event.
type eventWriter struct {
	*exchange
	sending sync.Mutex // held while an event is written
	line    []byte     // an incomplete line
}

// Write implements io.Writer.
func (e *eventWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		e.line = append(e.line, line...)
		if !ended {
			return n, nil
		}
		var event strings.Builder
		event.Grow(len(e.line) + 24)
		event.WriteString("event: message\ndata: ")
		event.Write(e.line)
		event.WriteString("\n\n")
		e.line, p = e.line[:0], rest
		if err := e.send(event.String()); err != nil {
			return 0, err
		}
	}
}

// send writes a whole event.
func (e *eventWriter) send(event string) error {
	e.sending.Lock()
	defer e.sending.Unlock()
	e.extend(len(event))
	if _, err := io.WriteString(e.w, event); err != nil {
		return err
	}
	e.flush()
	return nil
}
