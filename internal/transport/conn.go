package transport

// Conn is a two-way stream of whole messages: the pipes of a process, a WebSocket, a
// connection that the server has dialled.
type Conn interface {
	// Read returns the next message, which the caller owns. A message over the limit
	// costs a *wire.TooLargeError, after which Read may be called again.
	Read() ([]byte, error)
	// Write writes messages, all in one write where the stream can. One goroutine
	// calls it at a time.
	Write(messages ...[]byte) error
	// Close ends the stream and frees Read and Write. It returns when nothing of it
	// is left, and may be called again.
	Close() error
}

// tryWriter is a Conn that can write without waiting for the server.
type tryWriter interface {
	// TryWrite reports whether it wrote all the messages. The next Write begins with
	// what it did not write, and returns the error if there was one.
	TryWrite(messages ...[]byte) bool
}
