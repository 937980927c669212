package registry

import (
	"time"

	"mcpx/internal/catalog"
	"mcpx/internal/upstream"
)

type clientKey struct{ server, client string }

// clientSession is a session that belongs to one client. Guarded by the
// registry's lock.
type clientSession struct {
	upstream *upstream.Upstream
	open     int // calls under way
	used     time.Time
}

// clientUpstream returns the client's own session with a server, opening it
// with the first call. release ends the use. u is nil after Close, and where e is
// not the server's entry any more.
func (r *Registry) clientUpstream(e *entry, client *upstream.Client) (u *upstream.Upstream, release func()) {
	key := clientKey{e.server.Spec.Name, client.ID}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.clients[key]
	if now := r.entries[key.server]; r.ended || now == nil || now.upstream != e.upstream {
		return nil, nil
	}
	if c == nil {
		spec := e.server.Spec
		spec.NoCatalogue = true
		spec.Catalogue = func() []catalog.Tool { return e.upstream.Status().Tools }
		spec.OnChange = nil
		if client.Name != "" {
			spec.ClientName = client.Name + "-through-proxy"
		}
		if status := e.upstream.Status(); status.Protocol != "" {
			spec.Legacy = !status.Modern
		}
		c = &clientSession{upstream: upstream.New(spec)}
		c.upstream.Start()
		r.clients[key] = c
	}
	c.open++
	return c.upstream, func() {
		r.mu.Lock()
		c.open--
		c.used = time.Now()
		r.mu.Unlock()
	}
}

// ForgetClient begins to end the sessions that belong to a client that is gone;
// Close waits for them.
func (r *Registry) ForgetClient(id string) {
	r.endClients(func(key clientKey, _ *clientSession) bool { return key.client == id })
}

// endClients begins to end sessions of clients. Close waits for them too.
func (r *Registry) endClients(which func(clientKey, *clientSession) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return // Close has them
	}
	for key, c := range r.clients {
		if which(key, c) {
			delete(r.clients, key)
			r.retire(c.upstream, retired{}, 0)
		}
	}
}

// defaultIdle is the SessionIdle of servers that have none.
const defaultIdle = 5 * time.Minute

// idle reports whether a session was not used for as long as its server says now.
// The caller holds the lock.
func (r *Registry) idle(key clientKey, c *clientSession) bool {
	most := defaultIdle
	if e := r.entries[key.server]; e != nil && e.server.SessionIdle > 0 {
		most = e.server.SessionIdle
	}
	return c.open == 0 && time.Since(c.used) >= most
}

// sweepClients ends the sessions that nobody used for their idle time; it ends
// with Close.
func (r *Registry) sweepClients() {
	defer r.loops.Done()
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.endClients(r.idle)
		case <-r.stop:
			return
		}
	}
}
