package registry

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/upstream"
)

// clientSession is a session that belongs to one client. The registry's lock guards it.
type clientSession struct {
	upstream *upstream.Upstream
	subject  atomic.Pointer[string] // the client's latest JWT, if the server exchanges it
	open     int                    // how many calls are open
	used     time.Time
}

// Own makes client, the only one that this process serves, the owner of the shared sessions. Sessions that open from now
// on declare its capabilities.
func (r *Registry) Own(client *caller.Client) {
	r.owner.Store(client)
	r.ownOnce()
}

// Owned returns a channel that the first Own closes.
func (r *Registry) Owned() <-chan struct{} { return r.owned }

// clientUpstream returns the client's own session with a server, for these credentials only. The first call opens the
// session. The caller must call release after use. u is nil after Close, and if e was replaced.
func (r *Registry) clientUpstream(
	e *entry, client *caller.Client, own *request.Credentials,
) (u *upstream.Upstream, release func(), err error) {
	name := e.server.Spec.Name
	key := keyOf(name, own)
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.clients[client.ID][key]
	if now := r.entries[name]; r.ended || now == nil || now.upstream != e.upstream {
		return nil, nil, nil
	}
	if c != nil && own != nil && *c.subject.Swap(&own.Subject) != own.Subject && c.upstream.Status().State == catalog.Unavailable {
		// Connecting may have failed because of the old token: try the new one now, not after the pause.
		r.endSessions(client.ID, retired{}, 0, func(_ sessionKey, other *clientSession) bool { return other == c })
		c = nil
	}
	if c == nil {
		if limit := r.options.SessionLimit; limit != nil {
			if over := limit(r.sessionsOf(name)); over != nil {
				return nil, nil, over
			}
		}
		c = &clientSession{}
		c.upstream = upstream.New(r.clientSpec(e, client, own, c))
		c.upstream.Start()
		if r.clients[client.ID] == nil {
			r.clients[client.ID] = make(map[sessionKey]*clientSession)
		}
		r.clients[client.ID][key] = c
	}
	c.open++
	return c.upstream, func() {
		r.mu.Lock()
		c.open--
		c.used = time.Now()
		r.mu.Unlock()
	}, nil
}

// clientSpec returns the spec for a session of a single client, and sets the subject of c. The caller holds the lock.
func (r *Registry) clientSpec(e *entry, client *caller.Client, own *request.Credentials, c *clientSession) upstream.Spec {
	spec := e.server.Spec
	if len(spec.Remote.URLs) > 0 {
		spec.Remote.URL = spec.Remote.URLs[r.turn.Add(1)%uint32(len(spec.Remote.URLs))]
	}
	spec.Lazy, spec.StopIdle, spec.OnChange = false, 0, nil
	cached := e.cached
	tools := func() []catalog.Tool {
		if status := e.upstream.Status(); status.Known || cached == nil {
			return status.Tools
		}
		return cached.tools
	}
	if own != nil {
		putOn(&spec, own)
		c.subject.Store(&own.Subject)
	}
	if e.server.Exchange != nil {
		authorize, fresh := e.server.Exchange(func() string { return *c.subject.Load() })
		spec.Remote.Authorize, spec.Secrets = authorize, spec.Secrets.And(nil, fresh)
	}
	// Do not list over a session that serves a single request, or whose lists are specific to one caller, or that is there for
	// its era alone.
	if client.Notify == nil || own != nil || !e.server.PerClient {
		spec.Catalogue.Shared = tools
	} else {
		spec.Catalogue.Tools = tools()
		spec.OnChange = func() { r.listed(client, e, c.upstream) }
	}
	spec.OnUnknown = func(method string, params json.RawMessage) {
		if client.Transparent && client.Notify != nil {
			client.Notify(method, params)
		}
	}
	spec.Introduction.Owner = func() *caller.Client { return client }
	status := e.upstream.Status()
	spec.Seen = status.Known || cached != nil && !cached.tried
	switch {
	case status.Protocol != "":
		spec.Legacy = !status.Modern
	case cached != nil:
		spec.Legacy = cached.legacy()
	}
	return spec
}

// sessionsOf counts the sessions that a server has with single clients. The caller holds the lock.
func (r *Registry) sessionsOf(server string) (n int) {
	for _, sessions := range r.clients {
		for key := range sessions {
			if key.server == server {
				n++
			}
		}
	}
	return n
}

// longestCall is longer than any call takes.
const longestCall = 24 * time.Hour

// ForgetClient ends the sessions of a client that is gone. Each lasts until its last call has ended, as another session
// of the same principal may still fetch the result. ForgetClient does not wait; Close does.
func (r *Registry) ForgetClient(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endSessions(id, retired{}, longestCall, func(sessionKey, *clientSession) bool { return true })
	delete(r.own, id)
	for _, e := range r.entries {
		if e.instances != nil {
			e.instances.forget(id)
		}
	}
	r.differing.Store(int32(len(r.own)))
}

// endSessions retires the sessions of a client that which selects, with grace for their open calls. The caller holds the
// lock.
func (r *Registry) endSessions(client string, end retired, grace time.Duration, which func(key sessionKey, c *clientSession) bool) {
	if r.ended {
		return // Close ends them
	}
	sessions := r.clients[client]
	for key, c := range sessions {
		if which(key, c) {
			delete(sessions, key)
			r.retire(c.upstream, end, grace)
		}
	}
	if len(sessions) == 0 {
		delete(r.clients, client)
	}
}

// defaultIdle is the default of [Server.SessionIdle].
const defaultIdle = 5 * time.Minute

// idle reports whether a session was not used for the SessionIdle of its server. The caller holds the lock.
func (r *Registry) idle(key sessionKey, c *clientSession) bool {
	most := defaultIdle
	if e := r.entries[key.server]; e != nil && e.server.SessionIdle > 0 {
		most = e.server.SessionIdle
	}
	return c.open == 0 && time.Since(c.used) >= most
}

// sweepClients ends idle sessions until Close.
func (r *Registry) sweepClients() {
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
