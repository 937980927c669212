package registry

import (
	"context"
	"errors"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/upstream"
)

// route says to which upstreams one request may be sent. There are three kinds of routes: to a single upstream; to the instances of
// a server, one after another; or to a session of the legacy era, and then to the shared session or the instances. The caller of
// routeOf must call release.
type route struct {
	entry   *entry
	request *request.Request
	single  *upstream.Upstream // nil for a server with instances
	// older means that the session in the field single is of the legacy era, and that the client can be asked questions. If this
	// session cannot serve the request, the shared session or an instance does.
	older   bool
	release func()
	wait    time.Duration // how much is left of the time that the request may wait (its field Wait)
	tried   []*upstream.Upstream
	ran     error // the error of the first instance that may have executed the request
}

// routeOf returns the route of a request: for a PerClient server the client's own session, otherwise the shared session, the
// instances, or a session of the legacy era (see olderRoute). The error is a [request.ReplacedError], a
// [request.UnavailableError], a [request.LimitError], the error of ctx, or a fault of the middleware chain.
func (r *Registry) routeOf(ctx context.Context, q *request.Request) (route, error) {
	r.mu.Lock()
	e, ended := r.entries[q.To.Name], r.ended
	r.mu.Unlock()
	switch {
	case e == nil || e.generation != q.To.Generation && !ended:
		return route{}, &request.ReplacedError{Server: q.To.Name}
	case e.server.Disabled:
		return route{}, &request.UnavailableError{State: catalog.Disabled, Reason: "disabled in the configuration"}
	case e.upstream == nil:
		return route{}, &request.UnavailableError{State: catalog.Unavailable, Reason: e.server.Fault}
	case ctx.Err() != nil:
		return route{}, ctx.Err() // open no session for a client that is gone
	}
	t := route{entry: e, request: q, wait: q.Wait, release: func() {}}
	switch {
	case e.server.PerClient && q.Client != nil && q.Client.ID != "":
		if request.IsFar(ctx) {
			const reason = "your session with it belongs to another replica of mcpx, which cannot be reached while NATS is away"
			return route{}, &request.UnavailableError{State: catalog.Unavailable, Reason: reason}
		}
		c, release, err := r.clientSession(e, q.Client, q.Credentials, false)
		if err != nil {
			return route{}, err
		}
		if c == nil {
			err = &request.UnavailableError{State: catalog.Unavailable, Reason: "mcpx stopped the server", Stopped: true}
			return route{}, r.stopped(&t, err)
		}
		t.single, t.release = c.upstream, release
	case e.server.ofCallers():
		return route{}, errors.New("no middleware has looked for the caller's credentials")
	default:
		t.share()
		r.olderRoute(ctx, &t)
	}
	return t, nil
}

// share routes the request over the shared session or, if the server has instances, over the instances.
func (t *route) share() {
	if t.single, t.older = nil, false; t.entry.instances == nil {
		t.single = t.entry.upstream
	}
}

// next returns the upstream for the next attempt. failed is the error of the previous attempt, nil for the first one. After a
// failure, next returns another instance, but only if the request was certainly not executed or is repeatable. If a session of the
// legacy era has failed, next returns the shared session or an instance, provided that the request was not executed, or that its
// tool has asked a question with an input_required result. If there is no upstream to try, next returns the error for the request.
func (t *route) next(ctx context.Context, failed error) (*upstream.Upstream, error) {
	if t.older {
		// An UnavailableError means that the request was not executed.
		_, unavailable := errors.AsType[*request.UnavailableError](failed)
		if asksByResult(failed) {
			t.learn()
			t.request.MayHaveRun = true
		}
		if unavailable || asksByResult(failed) {
			t.share()
			failed = nil
		}
	}
	if t.single != nil {
		return t.single, failed
	}
	if failed != nil {
		again, executed := elsewhere(failed, t.request.Repeatable)
		switch {
		case !again || ctx.Err() != nil:
			return nil, failed
		case executed && t.ran == nil:
			t.ran, t.request.MayHaveRun = failed, true
		}
	}
	u, more := t.entry.instances.pick(t.request.Client, t.tried)
	switch {
	case u == nil && t.ran != nil:
		return nil, t.ran
	case u == nil:
		status := t.entry.status()
		return nil, status.Unavailable()
	}
	t.tried = append(t.tried, u)
	if t.request.Wait = t.wait; more { // another instance is up, so do not wait for this one
		t.request.Wait = time.Nanosecond
	}
	return u, nil
}

// sessionsWith returns the upstreams to which a client's notification is sent; none if no session may get it. The caller holds the
// lock.
func (r *Registry) sessionsWith(e *entry, q *request.Request) (all []*upstream.Upstream) {
	owner, known := e.server.ownerFor(q.Client), request.Known(q.Method)
	if known && owner.IsPrincipal() {
		return nil // other clients of the principal use the session too
	}
	own := r.clients[owner.HomeKey()]
	for key, c := range own {
		if key.server == q.To.Name && (known || key == keyOf(q.To.Name, q.Credentials)) {
			all = append(all, c.upstream)
		}
	}
	switch sole := r.owner.Load(); {
	case e.server.PerClient, !known && len(all) > 0:
		return all
	case known && (sole == nil || sole.ID != q.Client.ID || e.pooled != nil):
		return all // the shared session does not belong to this client alone
	case known:
		return append(all, e.upstreams()...)
	// The requests of this client use the session of the legacy era, so its notifications do too.
	case e.older.upstream != nil && asksOlder(q.Client):
		return []*upstream.Upstream{e.older.upstream}
	case e.instances == nil:
		return []*upstream.Upstream{e.upstream}
	}
	if u, _ := e.instances.pick(q.Client, nil); u != nil {
		all = append(all, u)
	}
	return all
}

// Belonging returns the servers of snap with which mcpx has a session that belongs only to this client or its home.
func (r *Registry) Belonging(snap *catalog.Snapshot, client *caller.Client) (all []*catalog.Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	owner := r.owner.Load()
	owns := owner != nil && owner.ID == client.ID
	for i := range snap.Servers {
		server := &snap.Servers[i]
		e := r.entries[server.Name]
		if e == nil || e.upstream == nil {
			continue
		}
		own := owns && !e.server.PerClient && e.pooled == nil
		for key := range r.clients[client.HomeKey()] {
			own = own || key.server == server.Name
		}
		if own {
			all = append(all, server)
		}
	}
	return all
}
