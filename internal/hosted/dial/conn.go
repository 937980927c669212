package dial

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/transport"
)

// Bounds limit what all servers of one principal together may send and have. Each replica counts for itself.
type Bounds struct {
	Bytes   int // bytes that are received in a minute; 0 means 256 MiB
	Changes int // notifications of changed lists in a minute; 0 means 600
	Tools   int // tools of all servers; 0 means 200
	Listed  int // bytes of the listed tools, resources and prompts; 0 means 4 MiB
}

func (b Bounds) withDefaults() Bounds {
	return Bounds{cmp.Or(b.Bytes, 256<<20), cmp.Or(b.Changes, 600), cmp.Or(b.Tools, 200), cmp.Or(b.Listed, 4<<20)}
}

// conn is the connection of a server that has dialled in to this replica. It counts what the server sends.
type conn struct {
	*transport.Peer
	meter *meter
	log   *slog.Logger
	full  sync.Once
}

// Read reads one message of the server. It counts notifications of changed lists.
func (c *conn) Read() ([]byte, error) {
	data, err := c.Peer.Read()
	if err != nil {
		return data, err
	}
	if n := listChanges(data); n > 0 {
		c.add(0, n)
	}
	return data, nil
}

// listChanges returns how many notifications of a changed list a message or a batch has. It parses messages just as the session
// with the server does. Otherwise a server that floods mcpx could hide notifications, by escapes, spaces or batches.
func listChanges(data []byte) (n int) {
	messages, err := wire.Batch(data)
	if err != nil {
		messages = []json.RawMessage{data}
	}
	for _, one := range messages {
		if m, _ := wire.Parse(one); strings.HasSuffix(m.Method, "/list_changed") {
			n++
		}
	}
	return n
}

// received counts bytes read from the network.
func (c *conn) received(bytes int) { c.add(bytes, 0) }

// add counts bytes and notifications of changed lists for the principal. If the principal's servers together exceed the bounds, add
// closes this connection.
func (c *conn) add(bytes, changes int) {
	if why := c.meter.add(bytes, changes, time.Now()); why != "" {
		c.full.Do(func() {
			c.log.Warn("a connection is over the bounds and is closed", "reason", why)
			// This goroutine ends within a second. It is needed because CloseWith waits for the reader of the connection, which may
			// have called add.
			go func() { _ = c.CloseWith(transport.ClosePolicy, why) }()
		})
	}
}

// meter counts what all servers of a principal have sent to this replica in the current minute.
type meter struct {
	bounds Bounds

	mu             sync.Mutex
	minute         time.Time // when the current minute began
	bytes, changes int
}

func newMeter(b Bounds) *meter { return &meter{bounds: b.withDefaults()} }

// add adds to the counts. It returns why the connection must be closed, or "" if it may stay open.
func (m *meter) add(bytes, changes int, now time.Time) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.minute) >= time.Minute {
		m.minute, m.bytes, m.changes = now, 0, 0
	}
	m.bytes += bytes
	m.changes += changes
	switch {
	case m.bytes > m.bounds.Bytes:
		return fmt.Sprintf("your servers sent more than %d bytes in a minute", m.bounds.Bytes)
	case m.changes > m.bounds.Changes:
		return fmt.Sprintf("your servers announced more than %d changes of lists in a minute", m.bounds.Changes)
	}
	return ""
}

// over reports whether the minute in which the meter counts has ended, so that its counts no longer matter.
func (m *meter) over() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.minute) >= time.Minute
}
