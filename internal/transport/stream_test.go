package transport

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"mcpx/internal/base/wire"
	"mcpx/internal/mcptest"
)

// scriptedConn is a Conn on which the test plays the server.
type scriptedConn struct {
	said    chan []byte // what the method Read returns; closed at the end of the stream
	written func(messages [][]byte) error
	once    sync.Once
}

func (c *scriptedConn) Read() ([]byte, error) {
	if data, ok := <-c.said; ok {
		return data, nil
	}
	return nil, io.EOF
}

func (c *scriptedConn) Write(messages ...[]byte) error { return c.written(messages) }

func (c *scriptedConn) Close() error {
	c.once.Do(func() { close(c.said) })
	return nil
}

// TestAnswerBeforeTheWriteIsOver: the answer is returned even if the server answers and exits before the write of
// the request has returned.
func TestAnswerBeforeTheWriteIsOver(t *testing.T) {
	mcptest.NoLeaks(t)
	d := NewDialer(Options{})
	over := make(chan struct{})
	conn := &scriptedConn{said: make(chan []byte, 1)}
	l := newStreamLink(d).use(conn, nil)
	conn.written = func([][]byte) error {
		conn.said <- []byte(`{"jsonrpc":"2.0","id":7,"result":{"last":"words"}}`)
		_ = conn.Close()
		<-over
		return nil
	}
	l.Start(func(wire.Message, int64) {})
	message, err := l.Request(context.Background(), Outgoing{ID: 7, Message: []byte("{}")})
	if err != nil || string(message.Result) != `{"last":"words"}` {
		t.Errorf("got %s, %v", message.Result, err)
	}
	close(over)
	l.Close()
}

// TestRequestNotSent: if waiting for an answer ends before the request was being written, the request counts as
// not sent. A request that is being written may have been sent.
func TestRequestNotSent(t *testing.T) {
	for _, lost := range []bool{false, true} {
		mcptest.NoLeaks(t)
		d := NewDialer(Options{})
		writing, free := make(chan struct{}), make(chan struct{})
		conn := &scriptedConn{said: make(chan []byte)}
		conn.written = func([][]byte) error {
			close(writing)
			<-free
			return io.ErrClosedPipe
		}
		l := newStreamLink(d).use(conn, nil)
		l.Start(func(wire.Message, int64) {})
		ctx, cancel := context.WithCancel(context.Background())
		ends := make(chan error, 2)
		send := func(id int64) {
			_, err := l.Request(ctx, Outgoing{ID: id, Message: []byte("{}")})
			ends <- err
		}
		go send(1)
		<-writing
		go send(2)
		mcptest.WaitFor(t, "the second request", patience, func() bool {
			l.out.mu.Lock()
			defer l.out.mu.Unlock()
			return len(l.out.waiting) == 1
		})
		if lost {
			_ = conn.Close()
		} else {
			cancel()
		}
		unsent := 0
		for range 2 {
			err := <-ends
			if errors.Is(err, ErrNotSent) {
				unsent++
			}
			if err == nil || !lost && !errors.Is(err, context.Canceled) {
				t.Errorf("lost %v: got %v", lost, err)
			}
		}
		if unsent != 1 {
			t.Errorf("lost %v: %d requests were not sent, want 1", lost, unsent)
		}
		close(free)
		cancel()
		l.Close()
	}
}
