package transport

import (
	"context"
	"errors"
	"net/http"

	"mcpx/internal/base/wire"
)

// Link carries messages between one session and its server. A session owns it: it calls Start once, before anything else,
// and Close at the end. All other methods are safe for concurrent use.
type Link interface {
	// Start begins to read what the server sends.
	Start(in Incoming)
	// Request sends one request and returns its response. Its error is a [StatusError], a [request.TooLargeError], a
	// [request.AnswerError], the error of ctx, or the cause for which the link or the connection of the request broke. It may
	// be wrapped in [ErrNotSent], [ErrGone] or a [NoiseError].
	Request(ctx context.Context, r Outgoing) (wire.Message, error)
	// Notify sends a message that has no response.
	Notify(ctx context.Context, message []byte) error
	// Agreed tells the link the negotiated revision.
	Agreed(version string)
	// Listen opens the stream for messages that belong to no request, on transports where a client has to open it. It calls
	// opened each time it has opened the stream. It calls unavailable once, when it will not open the stream any more. It
	// returns at once; Close ends the stream.
	Listen(opened, unavailable func())
	// Traits describe the kind of link.
	Traits() Traits
	// Life returns the lifecycle of the link, always the same value.
	Life() *Lifecycle
	// Evidence returns what the link has seen of its server besides messages: other output, and how the stream ended. Most kinds
	// of links return nil.
	Evidence() *Evidence
	// Close ends the link and everything that it started, and waits for that. It may be called again.
	Close()
}

// Conn is a two-way stream of whole messages: the pipes of a process, a WebSocket, or a connection that the server dialled.
type Conn interface {
	// Read returns the next message, which the caller owns. For a message over the limit it returns a
	// *wire.TooLargeError; Read may then be called again.
	Read() ([]byte, error)
	// Write writes the messages, with one system call if the stream can. It is not called concurrently.
	Write(messages ...[]byte) error
	// Close ends the stream and makes Read and Write return. When it returns, nothing that belongs to the stream runs
	// any more. It may be called again.
	Close() error
}

// tryWriter is a Conn that can write without waiting for the server to read.
type tryWriter interface {
	// TryWrite reports whether it wrote all the messages. If it wrote only a part, the next Write first writes the missing part.
	// If writing failed, the next Write returns the error.
	TryWrite(messages ...[]byte) bool
}

// Traits are the properties of a kind of link that a session needs to know.
type Traits struct {
	// OneStream means that all messages share one stream, so that an error of the stream affects all of them.
	OneStream bool
	// OwnsProcess means that the link has started the server, as a child process or in this process, with no network in
	// between.
	OwnsProcess bool
	// ConnectionPerRequest means that the answer comes on the connection of its request, so that a broken
	// connection says nothing about other requests. In the modern era, closing that connection cancels the
	// request.
	ConnectionPerRequest bool
	// Headers means that modern requests need the HTTP headers of SEP-2243.
	Headers bool
	// LegacyOnly means that the transport is older than the modern era.
	LegacyOnly bool
	// Sessionless means that the server has given no session ID. A legacy server then keeps no state between
	// requests.
	Sessionless bool
}

// Outgoing is one request to send.
type Outgoing struct {
	ID      int64
	Method  string
	Message []byte
	// Header contains further HTTP headers. It is nil for legacy requests. The broken stream of an answer is resumed only if Header
	// is nil.
	Header http.Header
	// Answered is called when the response has been read, before the next message is read; may be nil. Links with a connection
	// per request do not call it.
	Answered func()
	// Again means that the server has refused this request before, in an earlier session: with ErrGone or an HTTP error status.
	Again bool
}

// what names the method and, if there is one, the tool or prompt of a request.
func (r Outgoing) what() string {
	return r.Method + " " + wire.MemberText(wire.Member(r.Message, "params"), "name")
}

// Incoming handles the notifications and requests that a server sends. requestID is the id of the request on whose stream the
// message came, or 0 if the message came on a shared stream. The goroutine that reads from the server calls it, so it must not
// block.
type Incoming func(m wire.Message, requestID int64)

// ErrGone means that the server does not know the session any more (HTTP 404 or an equivalent). The server did not execute the
// request.
var ErrGone = errors.New("the server ended the session")

// ErrNotSent marks an error that occurred before any byte of the request was sent.
var ErrNotSent = errors.New("not sent")

// NotSent marks err with [ErrNotSent]. The text of err stays the same.
func NotSent(err error) error { return &notSentError{err} }

type notSentError struct{ err error }

func (e *notSentError) Error() string        { return e.err.Error() }
func (e *notSentError) Unwrap() error        { return e.err }
func (e *notSentError) Is(target error) bool { return target == ErrNotSent }

// NoiseError is the error of a request during which the server wrote a line that is not a message.
type NoiseError struct {
	err   error
	First string // the first such line
}

func (e *NoiseError) Error() string { return e.err.Error() }
func (e *NoiseError) Unwrap() error { return e.err }
