package transport

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"mcpx/internal/mcptest"
)

// fullConn is a Conn that accepts all messages at once, but with TryWrite none while full is set.
type fullConn struct {
	mu      sync.Mutex
	full    bool
	written []string
	rest    [][]byte
	broken  error
}

func (c *fullConn) Read() ([]byte, error) { return nil, io.EOF }

func (c *fullConn) Close() error { return nil }

func (c *fullConn) TryWrite(messages ...[]byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.full {
		c.rest = slices.Clone(messages)
		return false
	}
	return c.write(messages) == nil
}

func (c *fullConn) Write(messages ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.write(c.rest); err != nil {
		return err
	}
	c.rest = nil
	return c.write(messages)
}

func (c *fullConn) write(messages [][]byte) error {
	for _, message := range messages {
		c.written = append(c.written, string(message))
	}
	return c.broken
}

// TestOutbox: the method write writes in order what the stream does not accept at once. A message can be taken
// back until it is being written.
func TestOutbox(t *testing.T) {
	conn := &fullConn{}
	o := newOutbox(conn)
	add := func(text string) *frame {
		f := &frame{message: []byte(text)}
		o.add(f, true)
		return f
	}
	first := add("1")
	conn.full = true
	second, third := add("2"), add("3")
	add("4")
	if !slices.Equal(conn.written, []string{"1"}) {
		t.Errorf("written %q", conn.written)
	}
	if o.takeBack(first) || o.takeBack(second) || !o.takeBack(third) {
		t.Error("taken back what may be written, or not what cannot")
	}
	closing, over := make(chan struct{}), make(chan error)
	go func() { over <- o.write(closing) }()
	mcptest.WaitFor(t, "the writer", patience, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return !o.writing
	})
	conn.mu.Lock()
	conn.full = false
	conn.mu.Unlock()
	add("5")
	close(closing)
	if err := <-over; err != nil {
		t.Error(err)
	}
	if want := []string{"1", "2", "4", "5"}; !slices.Equal(conn.written, want) {
		t.Errorf("written %q, want %q", conn.written, want)
	}
}

// TestOutboxOfMany: all messages of many callers are written once, and the messages of each caller in order.
func TestOutboxOfMany(t *testing.T) {
	for _, full := range []bool{false, true} {
		conn := &fullConn{full: full}
		o := newOutbox(conn)
		closing, over := make(chan struct{}), make(chan error)
		go func() { over <- o.write(closing) }()
		var callers sync.WaitGroup
		for caller := range 16 {
			callers.Go(func() {
				for n := range 100 {
					o.add(&frame{message: fmt.Appendf(nil, "%d %03d", caller, n)}, true)
				}
			})
		}
		callers.Wait()
		mcptest.WaitFor(t, "the writer", patience, func() bool {
			o.mu.Lock()
			defer o.mu.Unlock()
			return !o.writing
		})
		close(closing)
		<-over
		last := make(map[int]int)
		for _, text := range conn.written {
			var caller, n int
			_, _ = fmt.Sscanf(text, "%d %d", &caller, &n)
			if n != last[caller] {
				t.Fatalf("full %v: caller %d: %d after %d", full, caller, n, last[caller]-1)
			}
			last[caller]++
		}
		if len(conn.written) != 1600 {
			t.Errorf("full %v: %d written", full, len(conn.written))
		}
	}
}

// TestOutboxBroken: the outbox reports a failed write, and later messages do not count as sent.
func TestOutboxBroken(t *testing.T) {
	conn := &fullConn{full: true, broken: io.ErrClosedPipe}
	o := newOutbox(conn)
	o.add(&frame{message: []byte("1")}, false)
	if err := o.write(nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
	later := &frame{message: []byte("2")}
	o.add(later, false)
	if !o.takeBack(later) {
		t.Error("written after the end")
	}
}
