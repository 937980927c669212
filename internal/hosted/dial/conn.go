package dial

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"mcpx/internal/transport"
)

// Bounds limit the servers of one principal together.
type Bounds struct {
	Bytes   int // that they may send in a minute; 0 means 256 MiB
	Changes int // notifications that a list has changed, in a minute; 0 means 600
	Tools   int // 0 means 200
}

func (b Bounds) withDefaults() Bounds {
	return Bounds{cmp.Or(b.Bytes, 256<<20), cmp.Or(b.Changes, 600), cmp.Or(b.Tools, 200)}
}

// conn is the connection of a slot. It counts what the server sends.
type conn struct {
	*transport.Peer
	meter *meter
	log   *slog.Logger
	full  sync.Once
}

// listChanged is in the notifications about changed lists. Texts that contain it are counted too, which is harmless.
var listChanged = []byte(`/list_changed"`)

// notificationBytes is the length up to which a message may be such a notification.
const notificationBytes = 4 << 10

// Read implements [transport.Conn].
func (c *conn) Read() ([]byte, error) {
	data, err := c.Peer.Read()
	if err != nil {
		return data, err
	}
	if len(data) < notificationBytes && bytes.Contains(data, listChanged) {
		c.add(0, 1)
	}
	return data, nil
}

// received counts what was read from the network.
func (c *conn) received(bytes int) { c.add(bytes, 0) }

// add counts, and ends the connection if there was too much.
func (c *conn) add(bytes, changes int) {
	if why := c.meter.add(bytes, changes, time.Now()); why != "" {
		c.full.Do(func() {
			c.log.Warn("a connection is over the bounds and is closed", "reason", why)
			go func() { _ = c.CloseWith(transport.ClosePolicy, why) }() // ends within a second; Close waits for the reader
		})
	}
}

// meter counts what all servers of a principal have sent in the current minute.
type meter struct {
	bounds Bounds

	mu             sync.Mutex
	minute         time.Time // when the current minute began
	bytes, changes int
}

func newMeter(b Bounds) *meter { return &meter{bounds: b.withDefaults()} }

// add returns the reason to end the connection, or "".
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
