package cluster

import (
	"context"
	"fmt"
	"io"
)

// Stream is a two-way stream of bytes between two replicas. One goroutine may read while another writes. The stream ends, with
// an error on both sides, when either replica ends, the connection to NATS or a message is lost, or one side calls Close.
type Stream struct {
	x    *exchange
	rest []byte // bytes that were received, but that Read has not returned yet
	over error  // what Read returns after rest; nil as long as the stream goes on
}

// Open opens a stream to another replica. The caller must close the stream. On the other replica, the function that was given to
// [Cluster.Accept] for this kind is called with opening, which has at most 256 KB, and serves the stream. If ctx ends, Read and
// Write fail. Open returns the same errors as [Cluster.Ask], with one exception: the error of the function on the other replica.
// Read returns that error, as a [RemoteError].
func (c *Cluster) Open(ctx context.Context, to, kind string, opening []byte) (*Stream, error) {
	if len(opening) > maxPiece {
		return nil, fmt.Errorf("%d bytes are too many to open a stream with", len(opening))
	}
	x, err := c.ask(ctx, to)
	if err != nil {
		return nil, err
	}
	if err := x.write(kind, opening, false, ""); err != nil {
		x.stop("")
		c.calls.remove(x)
		return nil, err
	}
	return &Stream{x: x}, nil
}

// Accept calls serve for each stream of this kind that another replica opens. The stream ends when serve returns. If serve returns
// an error, Read of the other side returns it as a [RemoteError], else io.EOF. ctx ends with the stream.
func (c *Cluster) Accept(kind string, serve func(ctx context.Context, opening []byte, s *Stream) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer[kind] = func(ctx context.Context, x *exchange) error {
		first, err := x.read()
		if err != nil {
			return err
		}
		return serve(ctx, first.data, &Stream{x: x})
	}
}

// Read waits until the other side has sent bytes. After the last of them it returns io.EOF, or a [RemoteError] if the other side
// has failed.
func (s *Stream) Read(into []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.over != nil {
			return 0, s.over
		}
		p, err := s.x.read()
		switch {
		case err != nil:
			s.over = err
		case p.err != "":
			s.over = &RemoteError{p.err}
		case p.last:
			s.over = io.EOF
		}
		s.rest = p.data
	}
	n := copy(into, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Write implements io.Writer. It waits while the other side has too many unread pieces.
func (s *Stream) Write(data []byte) (int, error) {
	if len(data) == 0 {
		return 0, nil
	}
	if err := s.x.write("", data, false, ""); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Close ends the stream for both sides. It may be called more than once.
func (s *Stream) Close() error {
	s.x.stop("")
	s.x.cluster.calls.remove(s.x)
	return nil
}
