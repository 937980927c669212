package registry

import (
	"context"
	"encoding/json"
	"maps"
	"sync/atomic"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/upstream"
)

// clientSession is a session with a server that belongs to one client, to a [caller.Home] or to a principal. The registry's lock
// guards its fields, except subject.
type clientSession struct {
	upstream  *upstream.Upstream
	home      *caller.Home           // nil if the session ends with its client
	loginOf   string                 // the ID of the principal whose login it uses; empty for a server without Logins
	principal string                 // the ID of the principal that opened it; empty without authentication
	subject   atomic.Pointer[string] // the caller's latest token, if it is exchanged for a token of the server
	open      int                    // the number of open calls
	waiting   int                    // how many of the open calls wait for the server's lists
	// learned means that the method learn has been given the first list of tools of this session, for other clients with the same
	// capabilities.
	learned bool
	used    time.Time // when a call last ended; zero before that
}

// Own makes client, the only client of this registry, the owner of the shared sessions. Shared sessions that are opened from
// now on declare the capabilities of this client to their servers. Own does not change three kinds of sessions: sessions of a
// Pool, sessions with servers that have a session for each client (PerClient without PerPrincipal), and sessions with servers that
// may ask nothing (NoQuestions).
func (r *Registry) Own(client *caller.Client) {
	r.owner.Store(client)
	r.ownOnce()
}

// Owned returns a channel that is closed by the first call of Own.
func (r *Registry) Owned() <-chan struct{} { return r.owned }

// ownerFor returns the owner of the session that the parameter client uses with the server. With PerPrincipal, the owner is the
// client that represents the principal (see [caller.Client.AsPrincipal]). Without PerPrincipal, or if the client has no principal,
// the client itself is the owner.
func (s *Server) ownerFor(client *caller.Client) *caller.Client {
	if s.PerPrincipal && client.On() != nil {
		return client.AsPrincipal()
	}
	return client
}

// clientSession returns a session with a server for one client or, if the client has a [caller.Home], for all clients of that home.
// The first call opens the session, which is used only with these credentials. If readLists is true, a session that this call opens
// reads the server's lists in any case (see clientSpec). The caller must call release after use. c and release are nil if the
// registry is closed, if a reload has replaced the entry e, or if err is not nil. err is the error of [Options.SessionLimit].
func (r *Registry) clientSession(
	e *entry, client *caller.Client, credentials *request.Credentials, readLists bool,
) (c *clientSession, release func(), err error) {
	client = e.server.ownerFor(client)
	name, who := e.server.Spec.Name, client.HomeKey()
	key := keyOf(name, credentials)
	r.mu.Lock()
	defer r.mu.Unlock()
	c = r.clients[who][key]
	if now := r.entries[name]; r.ended || now == nil || now.upstream != e.upstream {
		return nil, nil, nil
	}
	if c != nil && credentials != nil && *c.subject.Swap(&credentials.Subject) != credentials.Subject &&
		c.upstream.Status().State == catalog.Unavailable {
		// Connecting may have failed because of the old token, so try the new token now instead of waiting.
		r.endSessions(who, retired{}, 0, func(_ sessionKey, other *clientSession) bool { return other == c })
		c = nil
	}
	if c == nil {
		if client.Home != nil {
			r.makeRoom(name, client.Home.Owner())
		}
		if limit := r.options.SessionLimit; limit != nil {
			if over := limit(r.sessionsOf(name)); over != nil && !r.displace(name, client.On().Key()) {
				return nil, nil, over
			}
		}
		c = &clientSession{home: client.Home, principal: client.On().Key()}
		spec := r.clientSpec(e, client.Remembered(), credentials, c)
		if readLists {
			r.listing(&spec, client.Remembered(), e, c)
		}
		c.upstream = upstream.New(spec)
		c.upstream.Start()
		if r.clients[who] == nil {
			r.clients[who] = make(map[sessionKey]*clientSession)
			// A request may outlast its connection, such as a program that waited for the user's answer. Its sessions end when idle.
			if c.home != nil && c.home.Life() != nil && c.home.Life().Err() == nil {
				r.lives[who] = context.AfterFunc(c.home.Life(), func() { r.ForgetClient(who) })
			}
		}
		r.clients[who][key] = c
	}
	if c.open++; readLists {
		c.waiting++ // the method listFor decrements it again
	}
	return c, func() {
		r.mu.Lock()
		c.open--
		c.used = time.Now()
		r.mu.Unlock()
	}, nil
}

// clientSpec returns the spec for a session of a single client. It also stores in c which token the session exchanges, and whose
// login it uses. The caller holds the lock.
func (r *Registry) clientSpec(e *entry, client *caller.Client, own *request.Credentials, c *clientSession) upstream.Spec {
	spec := e.server.Spec
	if len(spec.Remote.URLs) > 0 {
		spec.Remote.URL = spec.Remote.URLs[r.turn.Add(1)%uint32(len(spec.Remote.URLs))]
	}
	spec.Lazy, spec.StopIdle, spec.OnChange = false, 0, nil
	cached := e.cached
	tools := func() []catalog.Tool { return e.sharedTools(cached) }
	if own != nil {
		putOn(&spec, own)
		c.subject.Store(&own.Subject)
	}
	if e.server.Logins != nil {
		authorize, secrets := e.server.Logins.Authorize(client.Principal, own.Login)
		c.loginOf = own.Principal
		spec.Remote.Authorize, spec.Secrets = authorize, spec.Secrets.And(nil, secrets)
	}
	if e.server.Exchange != nil {
		authorize, fresh := e.server.Exchange(client.Principal.Key(), func() string { return *c.subject.Load() })
		spec.Remote.Authorize, spec.Secrets = authorize, spec.Secrets.And(nil, fresh)
	}
	// A session does not list anything in four cases: it serves only one request; its lists depend on the credentials of one
	// caller; the lists are known without the principal's login; or the client only needs a session of the legacy era.
	if client.Notify == nil && client.Home == nil || own != nil && (own.Login == "" || e.listsShared()) || !e.server.PerClient {
		spec.Catalogue.Shared = tools
	} else {
		r.listing(&spec, client, e, c)
	}
	spec.OnUnknown = func(method string, params json.RawMessage) {
		if client.Transparent && client.Notify != nil {
			client.Notify(method, params)
		}
	}
	if spec.Introduction.Owner = func() *caller.Client { return client }; client.IsPrincipal() {
		spec.Introduction.Owner, spec.Introduction.Capabilities = nil, caller.SharedCapabilities
	}
	status := e.upstream.Status()
	spec.StartedBefore = status.Known || cached != nil && !cached.tried
	switch {
	case status.Protocol != "":
		spec.Era = status.Era()
	case cached != nil:
		spec.Era = cached.era()
	}
	return spec
}

// listsShared reports whether mcpx knows the lists of the server without the login of any principal (see [Server.Logins]): the
// shared session has read them, or they are in the saved record. All principals then see these lists.
func (e *entry) listsShared() bool {
	return e.upstream.Status().Known || e.cached != nil && !e.cached.tried
}

// listing configures a client's session to read the server's lists. Until the lists are read, the session has the tools that
// sharedTools returns.
func (r *Registry) listing(spec *upstream.Spec, client *caller.Client, e *entry, c *clientSession) {
	spec.Catalogue.Shared, spec.Catalogue.Tools = nil, e.sharedTools(e.cached)
	spec.OnChange = func() { r.listed(client, e, c) }
}

// sharedTools returns the tools that the shared session has listed. As long as it has listed none, sharedTools returns those of
// cached, the record that mcpx has saved earlier; cached may be nil.
func (e *entry) sharedTools(cached *record) []catalog.Tool {
	if status := e.upstream.Status(); status.Known || cached == nil {
		return status.Tools
	}
	return cached.tools
}

// maxHomes limits the unused sessions with one server that belong to homes of one owner: a principal or, without a principal, a
// connection (see [caller.Home.Owner]). If there are so many, opening another session ends one of them. Without this limit, an
// owner could leave any number of sessions open, by using a new client name for each.
const maxHomes = 8

// makeRoom is called before one more session with a server is opened for a home (see [caller.Home]) of this owner. All homes of the
// owner together may have maxHomes unused sessions with the server. If they have that many already, makeRoom ends the least recently
// used one. The caller holds the lock.
func (r *Registry) makeRoom(server, owner string) {
	unused, end := r.oldest(server, func(c *clientSession) bool { return c.home != nil && c.home.Owner() == owner })
	if unused >= maxHomes {
		end()
	}
}

// oldest counts the unused sessions that single clients have with a server and for which the func matches returns true. The
// returned func ends the least recently used of them; it is nil if there are none. The caller holds the lock, also when it calls
// the returned func.
func (r *Registry) oldest(server string, matches func(c *clientSession) bool) (unused int, end func()) {
	var oldest *clientSession
	for client, sessions := range r.clients {
		for key, c := range sessions {
			if key.server != server || c.open > 0 || !matches(c) {
				continue
			}
			if unused++; oldest == nil || c.used.Before(oldest.used) {
				oldest = c
				end = func() {
					r.endSessions(client, retired{}, 0, func(_ sessionKey, other *clientSession) bool { return other == c })
				}
			}
		}
	}
	return unused, end
}

// displace makes room for one more session of this principal with a server that already has the maximum number of sessions. For
// that it ends an unused session of another principal. It chooses the principal with the most sessions among those that have an
// unused one, and ends the least recently used session of the chosen one. It returns false, and ends nothing, if there is no such
// principal, or if the chosen one would then have fewer sessions than this principal. The caller holds the lock.
func (r *Registry) displace(server, principal string) bool {
	count, unused := make(map[string]int), make(map[string]bool)
	for _, sessions := range r.clients {
		for key, c := range sessions {
			if key.server == server {
				count[c.principal]++
				unused[c.principal] = unused[c.principal] || c.open == 0
			}
		}
	}
	most := principal
	for other, n := range count {
		if unused[other] && n > count[most] {
			most = other
		}
	}
	if count[most] <= count[principal]+1 {
		return false
	}
	_, end := r.oldest(server, func(c *clientSession) bool { return c.principal == most })
	end()
	return true
}

// sessionsOf counts the sessions with a server in r.clients. The session that all clients share is not one of them. The caller
// holds the lock.
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

// longestCall is how long the open calls of a client that has disconnected may continue.
const longestCall = 24 * time.Hour

// ForgetClient ends the sessions of a client that has disconnected; id is the ID of the client, or the key of its home. Each
// session lasts until its last call has ended, but at most for longestCall: another client of the same principal may still fetch
// the result of such a call. ForgetClient does not wait for the calls. Close ends them.
func (r *Registry) ForgetClient(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endSessions(id, retired{}, longestCall, func(sessionKey, *clientSession) bool { return true })
	r.forgetLists(id)
	for _, e := range r.entries {
		if e.instances != nil {
			e.instances.forget(id)
		}
	}
}

// forgetLists removes what is stored about the lists of a client's sessions. The caller holds the lock.
func (r *Registry) forgetLists(client string) {
	delete(r.own, client)
	r.countDiffering()
}

// endSessions stops those sessions of a client for which the func matches returns true. Their open calls may continue for the
// duration grace. The parameter end says, by name or definition, which new servers must wait until the sessions have ended. When
// endSessions stops the last session of a home, it also removes the home's lists (see keepsLists). The caller holds the lock.
func (r *Registry) endSessions(client string, end retired, grace time.Duration, matches func(key sessionKey, c *clientSession) bool) {
	if r.ended {
		return // Close ends them
	}
	sessions, home := r.clients[client], false
	for key, c := range sessions {
		if matches(key, c) {
			home = c.home != nil
			delete(sessions, key)
			r.retire(c.upstream, end, grace)
		}
	}
	if len(sessions) == 0 {
		delete(r.clients, client)
		if stop := r.lives[client]; stop != nil {
			stop()
			delete(r.lives, client)
		}
	}
	// A home may never disconnect, so its lists are removed here.
	if home && len(sessions) == 0 && !r.keepsLists(client) {
		r.forgetLists(client)
	}
}

// keepsLists is called when the last session of a client has ended. It removes what is stored about the lists of the client's
// sessions, except for servers that list only to principals who have logged in: mcpx cannot get these lists in another way. It
// reports whether any lists were kept. The caller holds the lock.
func (r *Registry) keepsLists(client string) bool {
	own := r.own[client]
	if own == nil {
		return false
	}
	maps.DeleteFunc(own.servers, func(name string, lists ownLists) bool {
		e := r.entries[name]
		return lists.alone == nil || e == nil || e.generation != lists.generation
	})
	r.forgetMade()
	return len(own.servers) > 0
}

// defaultIdle is the default of [Server.SessionIdle].
const defaultIdle = 5 * time.Minute

// idle reports whether a session was unused for the SessionIdle of its server. The caller holds the lock.
func (r *Registry) idle(key sessionKey, c *clientSession) bool {
	limit := defaultIdle
	if e := r.entries[key.server]; e != nil && e.server.SessionIdle > 0 {
		limit = e.server.SessionIdle
	}
	return c.open == 0 && time.Since(c.used) >= limit
}

// sweepClients ends the idle sessions of clients, every 5 s until Close.
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
