package registry

import (
	"time"

	"mcpx/internal/catalog"
	"mcpx/internal/upstream"
)

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
	name := e.server.Spec.Name
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.clients[client.ID][name]
	if now := r.entries[name]; r.ended || now == nil || now.upstream != e.upstream {
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
		if r.clients[client.ID] == nil {
			r.clients[client.ID] = make(map[string]*clientSession)
		}
		r.clients[client.ID][name] = c
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endSessions(id, retired{}, 0, func(string, *clientSession) bool { return true })
}

// endSessions begins to end sessions of a client, with grace for their open calls.
// The caller holds the lock.
func (r *Registry) endSessions(client string, what retired, grace time.Duration, which func(server string, c *clientSession) bool) {
	if r.ended {
		return // Close has them
	}
	sessions := r.clients[client]
	for server, c := range sessions {
		if which(server, c) {
			delete(sessions, server)
			r.retire(c.upstream, what, grace)
		}
	}
	if len(sessions) == 0 {
		delete(r.clients, client)
	}
}

// defaultIdle is the SessionIdle of servers that have none.
const defaultIdle = 5 * time.Minute

// idle reports whether a session was not used for as long as its server says now.
// The caller holds the lock.
func (r *Registry) idle(server string, c *clientSession) bool {
	most := defaultIdle
	if e := r.entries[server]; e != nil && e.server.SessionIdle > 0 {
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
			r.mu.Lock()
			for client := range r.clients {
				r.endSessions(client, retired{}, 0, r.idle)
			}
			r.mu.Unlock()
		case <-r.stop:
			return
		}
	}
}
