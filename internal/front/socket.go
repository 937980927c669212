package front

import (
	"context"
	"net/http"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
)

// Socket is the connection of one client. Each of its messages is a JSON-RPC message or a batch.
type Socket interface {
	// Read returns the next message. After a *wire.TooLargeError the connection continues; any other error ends it.
	Read() ([]byte, error)
	// Write sends messages, and returns when they are sent. Only one goroutine calls it at a time.
	Write(messages ...[]byte) error
}

// lines is the Socket of a client over stdio.
type lines struct {
	*wire.Reader
	*wire.Writer
}

// Read returns the next message. It also switches writes to the framing that the client uses.
func (l *lines) Read() ([]byte, error) {
	data, err := l.Reader.Read()
	l.SetFraming(l.Framing())
	return data, err
}

// oneLiner removes line breaks from the messages that it reads: to a server over stdio, a line break would end a message.
type oneLiner struct{ Socket }

// Read returns the next message, without line breaks.
func (o oneLiner) Read() ([]byte, error) {
	data, err := o.Socket.Read()
	return wire.OneLine(data), err
}

// ServeSocket serves a client that has opened a socket with an HTTP request, in the same way as a client over stdio. It returns
// when the connection ends, when the client's credential expires, or when the front ends its streams, as with EndStreams or
// EndUnknown. If the connection is still open then, open requests may take up to grace to finish. The caller closes the socket.
// Every message is counted for the limits of the principal.
func (f *Front) ServeSocket(r *http.Request, socket Socket, grace time.Duration) error {
	id := newSessionID()
	ctx, open := f.stateless.begin(context.WithoutCancel(r.Context()), id, true)
	defer f.stateless.done(open)
	return f.ServePeer(ctx, socket, StdioOptions{
		Drain: time.Millisecond, Grace: grace, Session: id, Peer: "socket", Admit: true,
		Headers: r.Header, Principal: caller.From(r.Context()),
	})
}

// ServePeer serves a client over a socket, in the same way as [Front.ServeStdio] does over stdio. The caller closes the socket.
func (f *Front) ServePeer(ctx context.Context, socket Socket, options StdioOptions) error {
	return f.newStdioServer(options).serve(ctx, oneLiner{socket})
}
