package transport

import (
	"context"
	"net/http"

	"mcpx/internal/base/wire"
)

// Link carries messages between one session and its server. A session owns it: it starts the link once, before anything
// else, and closes it. All other methods are safe for concurrent use.
type Link interface {
	// Start lets the server speak.
	Start(in Incoming)
	// Request sends one request and returns the response to it. Errors are a [StatusError], a [request.TooLargeError], a
	// [request.AnswerError], ctx's own, what broke the link, or wrap [ErrNotSent] or [ErrGone].
	Request(ctx context.Context, r Outgoing) (wire.Message, error)
	// Notify sends a message that has no answer.
	Notify(ctx context.Context, message []byte) error
	// Agreed tells the link which revision was negotiated.
	Agreed(version string)
	// Listen opens the stream of a legacy session on which the server sends what belongs to no request, where a client
	// has to ask for that stream. It calls opened each time that the stream is open, and none when no stream is to be
	// expected any more. It returns at once; Close ends the stream.
	Listen(opened, none func())
	// Traits say what kind of link it is.
	Traits() Traits
	// Lifecycle is when the server was last heard, and the end of the link. It is always the same one.
	Life() *Lifecycle
	// Evidence is what the link has seen of the server beside messages; nil for most kinds.
	Evidence() *Evidence
	// Close ends the link and everything that it started, and waits for that. Idempotent.
	Close()
}

// Traits are what a session needs to know of the kind of its link.
type Traits struct {
	// OneStream: all messages take one way, which breaks for all or for none.
	OneStream bool
	// OwnsProcess: the server ends with the link, and no network is between.
	OwnsProcess bool
	// ConnectionPerRequest: an answer comes on the connection of its request, and what breaks one says nothing of the
	// others. In the modern era the end of that connection cancels the request.
	ConnectionPerRequest bool
	// Headers: a modern request says in HTTP headers what it asks for.
	Headers bool
	// LegacyOnly: the transport is older than the modern era.
	LegacyOnly bool
	// Sessionless: the server has given no session ID, so that in the legacy era it keeps nothing from one request to
	// the next.
	Sessionless bool
}

// Outgoing is one request on its way.
type Outgoing struct {
	ID      int64
	Method  string
	Message []byte
	// Header has what HTTP needs beside the standard headers; may be nil.
	Header http.Header
	// Answered is called by the reader when it has the response, before it reads on; may be nil.
	Answered func()
}

// Incoming takes what a server sends on its own: notifications and requests. of is the request on whose stream the
// message came, 0 where it came on a stream for all requests. A reader calls it, so that it must not block.
type Incoming func(m wire.Message, of int64)
