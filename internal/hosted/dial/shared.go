package dial

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/hosted/cluster"
	"mcpx/internal/policy"
	"mcpx/internal/transport"
)

// In a cluster, the replica to which a server dials in stores a record about the server. The other replicas make a slot for
// each such record. Their upstreams reach the server through a stream to that replica, here called a tunnel.

const (
	// recordPrefix begins the keys of the records about servers. The served name of the server follows.
	recordPrefix = "dial."
	// kindRelay is the kind of the streams to servers at other replicas. Such a stream begins with the served name.
	kindRelay = "dial"
	// recordTime is how long a record is valid while the server has a connection; it is renewed after recordRenewed. The record
	// of a server without a connection is valid for awayTime.
	recordTime, recordRenewed = time.Hour, 20 * time.Minute
	// lookEvery is how often a hub looks for ended replicas, and retries failed changes of records.
	lookEvery = time.Second
)

// holding is the record about a server.
type holding struct {
	policy.Dialled
	Name  string            `json:"name"`
	Place string            `json:"place,omitempty"`
	By    *caller.Principal `json:"by,omitempty"`
	At    string            `json:"at"`   // ID of the replica with the connection; empty while there is no connection
	Conn  string            `json:"conn"` // identifies the connection: each has another value
}

// elsewhere has what the record about the server of a slot says, if there is a cluster. The mutex of the hub guards it.
type elsewhere struct {
	at, conn string    // At and Conn of the record; at is empty unless the server has a connection to another replica
	armed    bool      // the method arm has closed the channel arrived, so that the upstream opens a tunnel
	tunnel   *tunnel   // the newest tunnel, which may have ended; nil before the first
	own      string    // holding.Conn of the connection that is or was here
	told     time.Time // when this replica last changed or renewed the record, or found that it is no longer about own
	toldAway bool      // the record says that the connection own has ended, or is no longer about own
}

// shared has the fields of a [Hub] that are needed only in a cluster.
type shared struct {
	life context.Context // ends with Close
	end  context.CancelFunc
	loop sync.WaitGroup
	wake chan struct{} // buffer of one

	freed []*slot // removed slots whose records have yet to end; the mutex of the hub guards it

	newsMu sync.Mutex
	news   [][]byte // values of records, also of this replica's own, that were received and not yet applied
	stale  bool     // Refresh was called
}

// Share adds the servers that have dialled in to other replicas, and starts the exchange of records with these replicas, if there
// is a cluster. Close ends the exchange. From the call of Share on, [Options.Changed] may be called at any time.
func (h *Hub) Share() {
	c := h.options.Cluster
	if c == nil {
		return
	}
	c.Accept(kindRelay, func(ctx context.Context, name []byte, s *cluster.Stream) error {
		return h.relayed(ctx, string(name), s)
	})
	c.Records().Watch(recordPrefix, func(value []byte) {
		h.newsMu.Lock()
		h.news = append(h.news, value)
		h.newsMu.Unlock()
		h.look()
	})
	h.takeNews()
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

// Refresh makes the hub call [Options.Changed] soon, if Share has started the exchange with other replicas. It does not wait
// for the call.
func (h *Hub) Refresh() {
	h.newsMu.Lock()
	h.stale = true
	h.newsMu.Unlock()
	h.look()
}

// look wakes the goroutine of Share.
func (h *Hub) look() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

var errHeld = errors.New("the name is held by another principal")

// claim changes the record about the server of a slot, to say that the server is now at this replica. It fails if the record
// cannot be changed now. It also fails if a server of another principal has the name, unless the replica of that server has
// ended. Without a cluster, claim does nothing.
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

// errChanged means that the record is missing, or about a newer connection than expected.
var errChanged = errors.New("another connection has the name")

// free makes the method tell end the record about the server of a removed slot. Otherwise other principals could not use the
// name until the record expires. The caller holds the lock.
func (h *Hub) free(s *slot) {
	if s.own != "" {
		h.freed = append(h.freed, s)
		h.look()
	}
}

// tell writes to the records what has changed at this replica: it notes ended connections, ends the records of removed slots,
// renews old records, and writes again those that have expired while NATS could not be reached.
func (h *Hub) tell() {
	type change struct {
		s           *slot
		own         string
		away, freed bool
	}
	var changes []change
	h.mu.Lock()
	for _, s := range h.slots {
		away := s.live == nil
		if s.own != "" && (away && !s.toldAway || !away && (time.Since(s.told) > recordRenewed || !h.recorded(s))) {
			changes = append(changes, change{s, s.own, away, false})
		}
	}
	for _, s := range h.freed {
		changes = append(changes, change{s, s.own, true, true})
	}
	h.freed = nil
	h.mu.Unlock()
	c := h.options.Cluster
	for _, one := range changes {
		err := c.Records().Change(h.life, recordPrefix+one.s.Dialled.Server, func(old []byte) ([]byte, time.Time, error) {
			var was holding
			switch {
			case old == nil && !one.away:
				return wire.Encode(one.s.holding(c.Self(), one.own)), time.Now().Add(recordTime), nil
			case json.Unmarshal(old, &was) != nil || was.Conn != one.own:
				return nil, time.Time{}, errChanged
			case one.freed:
				return old, time.Now(), nil
			case one.away:
				return wire.Encode(one.s.holding("", one.own)), time.Now().Add(awayTime), nil
			}
			return old, time.Now().Add(recordTime), nil
		})
		h.mu.Lock()
		switch { // in the first two cases, the goroutine of Share tries again; mostly NATS cannot be reached
		case err != nil && !errors.Is(err, errChanged) && one.freed:
			h.freed = append(h.freed, one.s)
		case err != nil && !errors.Is(err, errChanged):
		case one.s.own == one.own:
			one.s.told, one.s.toldAway = time.Now(), one.away
		}
		h.mu.Unlock()
	}
}

// recorded reports whether there is a valid record about the server of a slot.
func (h *Hub) recorded(s *slot) bool {
	_, err := h.options.Cluster.Records().Get(recordPrefix + s.Dialled.Server)
	return err == nil
}

// takeNews applies the records that were received from other replicas, and calls [Options.Changed] if that is needed.
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
		// A value that was overtaken must not replace what this replica has claimed since, so only the present value is
		// applied.
		if now, err := h.options.Cluster.Records().Get(recordPrefix + one.Dialled.Server); err == nil && bytes.Equal(now, value) {
			fresh = h.apply(&one) || fresh
		}
	}
	if fresh {
		h.options.Changed()
	}
}

// apply updates a slot from a record. The record says that the server has no connection, or has one to another replica. changed
// reports whether the list of servers has changed.
func (h *Hub) apply(one *holding) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.slots[one.Dialled.Server]
	if h.ended || s != nil && one.At == "" && (s.live != nil || s.at != "" && s.conn != one.Conn) {
		return false
	}
	if s != nil && (!reflect.DeepEqual(s.Dialled, one.Dialled) || s.Place != one.Place) {
		h.remove(s)
		h.replaced(s)
		s, changed = nil, true
	}
	if s == nil {
		s, changed = h.newSlot(one.Name, one.By, one.Dialled), true
		s.Place = one.Place
	}
	if s.live != nil {
		h.replaced(s)
		s.live, s.waiting = nil, nil
		s.disarm()
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
	return changed
}

// lookAfter notes that servers have lost their connection because their replica has ended, or because it has not renewed the
// record. If such a replica was only silent, and is heard of again, lookAfter takes its servers back. It lets upstreams open
// ended tunnels again.
func (h *Hub) lookAfter() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.slots {
		switch {
		case s.live != nil:
		case s.at == "":
			var one holding
			value, err := h.options.Cluster.Records().Get(recordPrefix + s.Dialled.Server)
			if err != nil || json.Unmarshal(value, &one) != nil || one.At == h.options.Cluster.Self() ||
				!h.options.Cluster.IsLive(one.At) || !reflect.DeepEqual(s.Dialled, one.Dialled) {
				continue
			}
			s.at, s.conn = one.At, one.Conn
			s.stay()
		case !h.options.Cluster.IsLive(s.at), !h.recorded(s):
			s.at = ""
			h.leave(s)
		case s.tunnel == nil || s.tunnel.ended.Load():
			s.arm()
		}
	}
}

// arm makes the upstream call the method take, which opens a tunnel. The caller holds the lock.
func (s *slot) arm() {
	if s.waiting == nil && !s.armed {
		s.armed = true
		close(s.arrived)
	}
}

// disarm makes the upstream wait until a connection comes or arm is called. The caller holds the lock.
func (s *slot) disarm() {
	s.armed = false
	select {
	case <-s.arrived:
		s.arrived = make(chan struct{})
	default:
	}
}

// tunnel is the [transport.Conn] to a server at another replica.
type tunnel struct {
	*wire.Reader
	*wire.Writer
	stream   *cluster.Stream
	to, conn string
	ended    atomic.Bool
}

// open opens a tunnel to the replica that has the server. The caller holds the lock of the hub, and open unlocks it.
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

// Close ends the tunnel, but not the connection between the server and the other replica.
func (t *tunnel) Close() error {
	t.cut()
	return nil
}

// relayed lets another replica use a server of this replica, until ctx ends: the messages go over stream.
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
