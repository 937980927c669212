package registry

import (
	"time"

	"mcpx/internal/upstream"
)

// Client is who calls. With an empty ID only shared sessions are used.
type Client struct {
	// ID is unique to one client connection.
	ID string
	// Name is the clientInfo.name that the client gave.
	Name string
}

type clientKey struct{ server, client string }

// clientSession is a session that belongs to one client. Guarded by the
// registry's lock.
type clientSession struct {
	upstream *upstream.Upstream
	open     int // calls under way
	used     time.Time
	idle     time.Duration
}

// clientUpstream returns the client's own session with a server, opening it
// with the first call. release ends the use. u is nil after Close, and where e is
// not the server's entry any more.
func (r *Registry) clientUpstream(e *entry, client Client) (u *upstream.Upstream, release func()) {
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
		spec.OnChange = nil
		if client.Name != "" {
			spec.ClientName = client.Name + "-through-proxy"
		}
		if status := e.upstream.Status(); status.Protocol != "" {
			spec.Legacy = !status.Modern
		}
		c = &clientSession{upstream: upstream.New(spec), idle: e.server.SessionIdle}
		if c.idle <= 0 {
			c.idle = 5 * time.Minute
		}
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

// ForgetClient ends the sessions that belong to a client that is gone.
func (r *Registry) ForgetClient(id string) {
	r.endClients(func(key clientKey, c *clientSession) bool { return key.client == id })
}

func (r *Registry) endClients(which func(clientKey, *clientSession) bool) {
	r.mu.Lock()
	var gone []*upstream.Upstream
	for key, c := range r.clients {
		if which(key, c) {
			gone = append(gone, c.upstream)
			delete(r.clients, key)
		}
	}
	r.mu.Unlock()
	closeAll(gone, 0)
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
			r.endClients(func(_ clientKey, c *clientSession) bool {
				return c.open == 0 && time.Since(c.used) >= c.idle
			})
		case <-r.stop:
			return
		}
	}
}
