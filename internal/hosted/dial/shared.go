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

// In a cluster, the replica to which a server dials in stores a record about the server. Each other replica makes a slot from this
// record. Its upstream reaches the server through a stream to the first replica. Here this stream is called a tunnel.

const (
	// recordPrefix begins the keys of the records about servers. The served name of the server follows.
	recordPrefix = "dial."
	// kindRelay is the kind of the streams to servers at other replicas. A replica opens such a stream with the served name.
	kindRelay = "dial"
	// recordTime is how long a record is valid while the server has a connection. After recordRenewed, the record is renewed. The
	// record of a server without a connection is valid for awayTime.
	recordTime, recordRenewed = time.Hour, 20 * time.Minute
	// lookEvery is how often a hub checks whether other replicas have ended, and retries changes of records that have failed.
	lookEvery = time.Second
)

// holding is the record that a cluster stores about a server that has dialled in.
type holding struct {
	policy.Dialled
	Name  string            `json:"name"`
	Place string            `json:"place,omitempty"`
	By    *caller.Principal `json:"by,omitempty"`
	At    string            `json:"at"`   // ID of the replica that has the connection; empty while there is none
	Conn  string            `json:"conn"` // identifies the connection: random for each
}

// elsewhere has the fields of a slot that are needed only in a cluster. They are about the server's record. The mutex of the hub
// guards them.
type elsewhere struct {
	at, conn string    // At and Conn of the record; if no other replica has the connection, at is empty
	armed    bool      // arm has closed slot.arrived, so that the upstream calls take, which opens a tunnel
	tunnel   *tunnel   // the newest tunnel, which may have ended; nil before the first
	own      string    // holding.Conn of the newest connection to this replica; empty before the first
	told     time.Time // when this replica last changed or renewed the record, or found that the record is about another connection
	toldAway bool      // the record says that connection own has ended, or is not about own any more
}

// shared has the fields of a [Hub] that are needed only in a cluster.
type shared struct {
	life context.Context // ends with Close
	end  context.CancelFunc
	loop sync.WaitGroup
	wake chan struct{} // buffer of one

	freed []*slot // removed slots whose records tell still has to end; guarded by the mutex of the hub

	newsMu sync.Mutex
	news   [][]byte // new values of records, including this replica's own, for takeNews
	stale  bool     // Refresh was called
}

// If there is a cluster, Share adds the servers that have dialled in to other replicas, and starts a goroutine that exchanges
// records with these replicas until Close. From the call of Share on, [Options.Changed] may be called at any time.
func (h *Hub) Share() {
	c := h.options.Cluster
	if c == nil {
		return
	}
	c.Accept(kindRelay, func(ctx context.Context, name []byte, s *cluster.Stream) error {
		return h.relayed(ctx, string(name), s)
	})
	h.watch()
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

// watch gives the present values of all records to takeNews and, until stop is called, each new value. Without a cluster it has no
// effect.
func (h *Hub) watch() (stop func()) {
	if h.options.Cluster == nil {
		return func() {}
	}
	return h.options.Cluster.Records().Watch(recordPrefix, func(value []byte) {
		h.newsMu.Lock()
		h.news = append(h.news, value)
		h.newsMu.Unlock()
		h.look()
	})
}

// Refresh makes the goroutine of Share call [Options.Changed] soon. It does not wait for the call. Without a cluster it has no
// effect.
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

// claim stores in the cluster that the server of a slot is now at this replica. It fails if the record cannot be changed now, or if
// a server of another principal has the name. But if the replica of that server has ended, claim takes the name. Without a cluster,
// claim does nothing.
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

// errChanged means that the record of a server is missing, or is about a newer connection than the one to be noted.
var errChanged = errors.New("another connection has the name")

// free makes the method tell end the record of a removed slot. Otherwise other principals could not use the name until the record
// expires. The caller holds the lock.
func (h *Hub) free(s *slot) {
	if s.own != "" {
		h.freed = append(h.freed, s)
		h.look()
	}
}

// tell writes to the records what has changed at this replica. It notes ended connections, ends the records of removed slots,
// renews records after recordRenewed, and writes records again that have expired while NATS could not be reached.
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
		// In the first two cases, the next tell tries again. Mostly NATS cannot be reached.
		switch {
		case err != nil && !errors.Is(err, errChanged) && one.freed:
			h.freed = append(h.freed, one.s)
		case err != nil && !errors.Is(err, errChanged):
		case one.s.own == one.own:
			one.s.told, one.s.toldAway = time.Now(), one.away
		}
		h.mu.Unlock()
	}
}

// recorded reports whether the cluster has a valid record about the server of a slot.
func (h *Hub) recorded(s *slot) bool {
	_, err := h.options.Cluster.Records().Get(recordPrefix + s.Dialled.Server)
	return err == nil
}

// takeNews applies the values of records that other replicas have stored. It calls [Options.Changed] if the list of servers has
// changed, or if Refresh was called.
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
		// Only the present value of the record is applied. An older value must not undo what this replica has claimed since.
		if now, err := h.options.Cluster.Records().Get(recordPrefix + one.Dialled.Server); err == nil && bytes.Equal(now, value) {
			fresh = h.apply(&one) || fresh
		}
	}
	if fresh {
		h.options.Changed()
	}
}

// apply updates a slot, or makes it, from a record that says that the server has no connection, or has one to another replica. It
// makes no slot for a server that the config of this replica does not allow: a changed config may reach the other replica first.
// changed says whether the list of servers has changed.
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
	if s == nil && !h.allowed(one.By, one.Name, one.Dialled) {
		return changed
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

// lookAfter checks the servers at other replicas. A server has lost its connection if its replica has ended or has not renewed the
// record. If the replica was only silent and is heard of again, lookAfter takes the server back. If a tunnel has ended, lookAfter
// lets the upstream open a new one.
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

// arm wakes the upstream, so that it calls the method take, which opens a tunnel. The caller holds the lock.
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

// relayed lets another replica use a server that has dialled in here. It passes messages between stream and the server until ctx
// ends.
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
