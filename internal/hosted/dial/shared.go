package dial

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/cluster"
	"mcpx/internal/policy"
	"mcpx/internal/transport"
)

// In a cluster a server dials in to one replica, which stores that in a record. The other replicas make a slot of each record, and
// their upstreams reach the server through a stream to that replica.

const (
	// recordPrefix is the beginning of the keys of the records; the name under which the server is served follows.
	recordPrefix = "dial."
	// kindRelay is the kind of the streams to a server at another replica. The first bytes are the served name.
	kindRelay = "dial"
	// recordTime is how long a record holds without being renewed, which happens after recordRenewed.
	recordTime, recordRenewed = time.Hour, 20 * time.Minute
	// lookEvery is how often a hub looks for replicas that have ended, and tries again what has failed.
	lookEvery = time.Second
)

// holding is the record of a server.
type holding struct {
	policy.Dialled
	Name  string            `json:"name"`
	Place string            `json:"place,omitempty"`
	By    *caller.Principal `json:"by,omitempty"`
	At    string            `json:"at"`   // the replica with the connection; empty while the server is away
	Conn  string            `json:"conn"` // another one for each connection
}

// elsewhere is what a slot knows of other replicas. The mutex of the hub guards it.
type elsewhere struct {
	at, conn string  // of the record; at is empty if the server is away or here
	armed    bool    // the upstream may open a tunnel
	tunnel   *tunnel // nil, or the last one
	own      string  // holding.Conn of the connection that is or was here
	told     time.Time
	toldAway bool // the record says that the connection of own has ended
}

// shared is the part of a hub that a cluster needs; zero without one.
type shared struct {
	life context.Context // ends with Close
	end  context.CancelFunc
	loop sync.WaitGroup
	wake chan struct{} // buffer of one

	newsMu sync.Mutex
	news   [][]byte // records that have come
	stale  bool     // Refresh was called
}

// Share begins to exchange records with the other replicas, if there is a cluster, until Close. Changed may be called from now on.
func (h *Hub) Share() {
	c := h.options.Cluster
	if c == nil {
		return
	}
	c.Accept(kindRelay, func(ctx context.Context, name []byte, s *cluster.Stream) error {
		return h.relayed(ctx, string(name), s)
	})
	c.Watch(recordPrefix, func(value []byte) {
		h.newsMu.Lock()
		h.news = append(h.news, value)
		h.newsMu.Unlock()
		h.look()
	})
	h.loop.Go(func() { // ends with Close
		ticks := time.NewTicker(lookEvery)
		defer ticks.Stop()
		for {
			select {
			case <-h.wake:
			case <-ticks.C:
			case <-h.life.Done():
				return
			}
			h.takeNews()
			h.lookAfter()
			h.tell()
		}
	})
}

// Refresh makes the hub call Changed soon. It does not wait.
func (h *Hub) Refresh() {
	h.newsMu.Lock()
	h.stale = true
	h.newsMu.Unlock()
	h.look()
}

// look wakes the loop of Share.
func (h *Hub) look() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

var errHeld = errors.New("the name is held by another principal")

// claim stores that the server of a slot is here from now on.
func (h *Hub) claim(ctx context.Context, s *slot) error {
	c := h.options.Cluster
	if c == nil {
		return nil
	}
	own := rand.Text()[:16]
	err := c.Records().Change(ctx, recordPrefix+s.Dialled.Server, func(old []byte) ([]byte, time.Time, error) {
		var was holding
		if json.Unmarshal(old, &was) == nil && was.Owner != s.Owner && (was.At == "" || c.IsLive(was.At)) {
			return nil, time.Time{}, errHeld
		}
		return wire.Encode(s.holding(c.Self(), own)), time.Now().Add(recordTime), nil
	})
	if err == nil {
		h.mu.Lock()
		s.own, s.told, s.toldAway = own, time.Now(), false
		h.mu.Unlock()
	}
	return err
}

func (s *slot) holding(at, conn string) holding {
	return holding{s.Dialled, s.Name, s.Place, s.By, at, conn}
}

// errChanged means that a record is not about the present connection any more.
var errChanged = errors.New("another connection has the name")

// tell stores what has changed at this replica: connections that have ended, and records that are old.
func (h *Hub) tell() {
	type change struct {
		s    *slot
		own  string
		away bool
	}
	var changes []change
	h.mu.Lock()
	for _, s := range h.slots {
		away := s.live == nil
		if s.own != "" && (away && !s.toldAway || !away && time.Since(s.told) > recordRenewed) {
			changes = append(changes, change{s, s.own, away})
		}
	}
	h.mu.Unlock()
	c := h.options.Cluster
	for _, one := range changes {
		err := c.Records().Change(h.life, recordPrefix+one.s.Dialled.Server, func(old []byte) ([]byte, time.Time, error) {
			var was holding
			switch {
			case json.Unmarshal(old, &was) != nil || was.Conn != one.own:
				return nil, time.Time{}, errChanged
			case one.away:
				return wire.Encode(one.s.holding("", one.own)), time.Now().Add(keepAway), nil
			}
			return old, time.Now().Add(recordTime), nil
		})
		if err == nil || errors.Is(err, errChanged) { // otherwise NATS is away, and the loop tries again
			h.mu.Lock()
			if one.s.own == one.own {
				one.s.told, one.s.toldAway = time.Now(), one.away
			}
			h.mu.Unlock()
		}
	}
}

// takeNews applies the records that have come.
func (h *Hub) takeNews() {
	h.newsMu.Lock()
	news, fresh := h.news, h.stale
	h.news, h.stale = nil, false
	h.newsMu.Unlock()
	for _, value := range news {
		var one holding
		if json.Unmarshal(value, &one) != nil || one.Dialled.Server == "" || one.At == h.options.Cluster.Self() {
			continue
		}
		// An older record must not replace what this replica has claimed since.
		if now, err := h.options.Cluster.Records().Get(recordPrefix + one.Dialled.Server); err == nil && bytes.Equal(now, value) {
			fresh = h.apply(&one) || fresh
		}
	}
	if fresh {
		h.options.Changed()
	}
}

// apply applies a record of a server that is away or at another replica. It reports whether the list of servers has changed.
func (h *Hub) apply(one *holding) (fresh bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.slots[one.Dialled.Server]
	if h.ended || s != nil && one.At == "" && (s.live != nil || s.at != "" && s.conn != one.Conn) {
		return false
	}
	if s != nil && (s.Owner != one.Owner || s.Place != one.Place) {
		h.remove(s)
		s, fresh = nil, true
	}
	if s == nil {
		s, fresh = h.newSlot(one.Name, one.By, one.Dialled), true
		s.Place = one.Place
	}
	if older := s.live; older != nil {
		s.live, s.waiting = nil, nil
		s.disarm()
		h.loop.Go(func() { // ends within a second
			_ = older.CloseWith(transport.CloseReplaced, "replaced: the same principal has dialled in again as "+s.Name)
		})
	}
	if s.at, s.conn = one.At, one.Conn; s.tunnel != nil && (s.tunnel.to != s.at || s.tunnel.conn != s.conn) {
		s.tunnel.cut()
	}
	if s.at == "" {
		h.leave(s)
	} else {
		s.stay()
		s.arm()
	}
	return fresh
}

// lookAfter notices replicas that have ended, and tunnels that are to be opened again.
func (h *Hub) lookAfter() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.slots {
		switch {
		case s.at == "" || s.live != nil:
		case !h.options.Cluster.IsLive(s.at):
			s.at = ""
			h.leave(s)
		case s.tunnel == nil || s.tunnel.ended.Load():
			s.arm()
		}
	}
}

// arm lets the upstream open a tunnel. The caller holds the lock.
func (s *slot) arm() {
	if s.waiting == nil && !s.armed {
		s.armed = true
		close(s.arrived)
	}
}

// disarm makes the upstream wait for the next connection. The caller holds the lock.
func (s *slot) disarm() {
	s.armed = false
	select {
	case <-s.arrived:
		s.arrived = make(chan struct{})
	default:
	}
}

// tunnel is the Conn of a server at another replica.
type tunnel struct {
	*wire.Reader
	*wire.Writer
	stream   *cluster.Stream
	to, conn string
	ended    atomic.Bool
}

// open opens a tunnel to the replica with the server. The caller holds the lock of the hub, which open releases.
func (s *slot) open() (transport.Conn, error) {
	h, to, conn := s.hub, s.at, s.conn
	s.disarm()
	h.mu.Unlock()
	stream, err := h.options.Cluster.Open(h.life, to, kindRelay, []byte(s.Dialled.Server))
	if err != nil {
		return nil, err
	}
	t := &tunnel{wire.NewReader(stream, h.options.MaxMessage, nil), wire.NewWriter(stream, wire.Newline), stream, to, conn, atomic.Bool{}}
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.at != to || s.conn != conn {
		t.cut()
		return nil, errAway
	}
	s.tunnel = t
	return t, nil
}

func (t *tunnel) cut() {
	t.ended.Store(true)
	_ = t.stream.Close()
}

// Close implements [transport.Conn].
func (t *tunnel) Close() error {
	t.cut()
	return nil
}

// relayed serves a server that is here to another replica, until ctx ends.
func (h *Hub) relayed(ctx context.Context, served string, stream io.ReadWriteCloser) error {
	h.mu.Lock()
	s := h.slots[served]
	here := s != nil && s.live != nil
	h.mu.Unlock()
	if !here {
		return errors.New("the server is not at this replica")
	}
	return h.options.Relay(ctx, served, stream)
}
