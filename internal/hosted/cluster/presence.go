package cluster

import (
	"maps"
	"slices"
	"sync"
	"time"

	"mcpx/internal/base/lru"
)

const (
	beatEvery = 500 * time.Millisecond
	// deadAfter is how long a replica may be silent before the others assume that it has ended.
	deadAfter = 2 * time.Second
)

// presence knows which other replicas are running. While NATS cannot be reached, it keeps the replicas that were running before.
type presence struct {
	mu     sync.Mutex
	epoch  int  // goes up when this replica may have lost messages
	leaves bool // this replica has begun to shut down
	peers  map[string]*peer
	// ended has the replicas that have said goodbye. NATS keeps messages in order only within one subject, so a beat to all may come
	// after the goodbye. It must not look like a new replica.
	ended lru.Map[string, struct{}]
	// patience is [Options.patience].
	patience time.Duration
}

type peer struct {
	epoch  int
	leaves bool
	last   time.Time
}

// lost notes that this replica may have missed messages, and raises its epoch. The next beat (a message that says that this replica
// is running) has the new epoch, by which the others learn of the loss.
func (p *presence) lost(now time.Time) {
	p.mu.Lock()
	p.epoch++
	p.mu.Unlock()
	p.touch(now)
}

// touch is called if this replica could not hear the others for a while. Then their silence counts from now, so this replica waits
// for the whole patience before it assumes that they have ended.
func (p *presence) touch(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.peers {
		one.last = now
	}
}

// heard notes a beat of a replica. isNew says whether it is the first beat of this replica. lostMessages says whether the replica
// has lost messages since its last beat.
func (p *presence) heard(h *head, now time.Time) (isNew, lostMessages bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended.Find(h.From) != nil {
		return false, false
	}
	one := p.peers[h.From]
	if one == nil {
		p.peers[h.From] = &peer{h.N, h.Leaves, now}
		return true, false
	}
	lostMessages = one.epoch != h.N
	*one = peer{h.N, h.Leaves, now}
	return false, lostMessages
}

// forget removes a replica that has sent a goodbye.
func (p *presence) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.peers, id)
	p.ended.Get(id)
}

// silent reports whether any replica has been silent for longer than patience. Only sweep removes such replicas.
func (p *presence) silent(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.peers {
		if now.Sub(one.last) > p.patience {
			return true
		}
	}
	return false
}

func (p *presence) sweep(now time.Time) (dead []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, one := range p.peers {
		if now.Sub(one.last) > p.patience {
			delete(p.peers, id)
			dead = append(dead, id)
		}
	}
	return dead
}

// Others returns the ids of the other replicas that are running, sorted. While NATS cannot be reached, these are the replicas that
// were running when the connection was lost.
func (c *Cluster) Others() []string {
	c.presence.mu.Lock()
	defer c.presence.mu.Unlock()
	return slices.Sorted(maps.Keys(c.presence.peers))
}

// IsLive reports whether a replica is running. For this replica it returns true.
func (c *Cluster) IsLive(id string) bool {
	if id == c.self {
		return true
	}
	c.presence.mu.Lock()
	defer c.presence.mu.Unlock()
	return c.presence.peers[id] != nil
}

// Stays reports whether a replica is running and has not begun to shut down. For this replica it returns true.
func (c *Cluster) Stays(id string) bool {
	if id == c.self {
		return true
	}
	c.presence.mu.Lock()
	defer c.presence.mu.Unlock()
	one := c.presence.peers[id]
	return one != nil && !one.leaves
}

// Leave tells the other replicas that this one begins to shut down. This replica goes on answering them until Close.
func (c *Cluster) Leave() {
	c.presence.mu.Lock()
	c.presence.leaves = true
	c.presence.mu.Unlock()
	c.sendBeat("all")
}

// replicas returns the number of replicas, including this one.
func (c *Cluster) replicas() int {
	c.presence.mu.Lock()
	defer c.presence.mu.Unlock()
	return 1 + len(c.presence.peers)
}

// sendBeat tells one replica, or all, that this replica is running.
func (c *Cluster) sendBeat(address string) {
	c.presence.mu.Lock()
	beat := head{Do: doBeat, Kind: c.name, N: c.presence.epoch, Leaves: c.presence.leaves}
	c.presence.mu.Unlock()
	_ = c.send(address, &beat, nil)
}

// beat sends beats until Close, and removes other replicas that have been silent for too long.
func (c *Cluster) beat() {
	ticks := time.NewTicker(beatEvery)
	defer ticks.Stop()
	c.sendBeat("all")
	for before := time.Now(); ; {
		select {
		case <-ticks.C:
		case <-c.life.Done():
			return
		}
		now := time.Now()
		if now.Sub(before) > 2*beatEvery || !c.Connected() { // this process was suspended, or cannot hear the others
			c.presence.touch(now)
		}
		before = now
		c.sendBeat("all")
		// If NATS itself does not answer, the silence of a replica says nothing.
		if c.presence.silent(now) && c.conn.FlushTimeout(beatEvery) != nil {
			c.presence.touch(now)
		}
		for _, id := range c.presence.sweep(now) {
			c.gone(id, "it sends nothing any more")
		}
	}
}

// takeBeat handles a beat of another replica. If that replica is new, it gets a beat of this one at once. If it has lost messages,
// the exchanges with it end.
func (c *Cluster) takeBeat(h *head) {
	fresh, lost := c.presence.heard(h, time.Now())
	if fresh {
		c.log.Info("a replica is there", "replica", h.Kind, "id", h.From)
		c.sendBeat("to." + h.From)
		c.records.read() // read again, to write back records that NATS has lost or rolled back: the new replica does not know them
	}
	if lost {
		c.calls.fail(func(x *exchange) bool { return x.id.peer == h.From }, errLost)
	}
}

func (c *Cluster) gone(id, why string) {
	c.log.Info("a replica has ended", "id", id, "reason", why)
	c.calls.fail(func(x *exchange) bool { return x.id.peer == id }, errGone)
}
