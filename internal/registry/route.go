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

// route is the upstreams that one request may go to: one or, of a server with instances, one after another. Its
// maker calls release after use.
type route struct {
	entry   *entry
	request *request.Request
	only    *upstream.Upstream // nil for a server with instances
	release func()
	wait    time.Duration // that the request came with
	tried   []*upstream.Upstream
	ran     error // of an instance that may have executed the request
}

// routeOf finds the way of a request: over a session of the client's own, where the server has such, else over the shared
// one. Errors are a [request.ReplacedError], a [request.UnavailableError], a [request.LimitError], or ctx's own.
func (r *Registry) routeOf(ctx context.Context, q *request.Request) (*route, error) {
	r.mu.Lock()
	e, ended := r.entries[q.To.Name], r.ended
	r.mu.Unlock()
	switch {
	case e == nil || e.generation != q.To.Generation && !ended:
		return nil, &request.ReplacedError{Server: q.To.Name}
	case e.server.Disabled:
		return nil, &request.UnavailableError{State: catalog.Disabled, Reason: "disabled in the configuration"}
	case e.upstream == nil:
		return nil, &request.UnavailableError{State: catalog.Unavailable, Reason: e.server.Fault}
	case ctx.Err() != nil:
		return nil, ctx.Err() // open no session for a client that is gone
	}
	t := &route{entry: e, request: q, wait: q.Wait, release: func() {}}
	switch {
	case e.server.PerClient && q.Client != nil && q.Client.ID != "":
		var err error
		if t.only, t.release, err = r.clientUpstream(e, q.Client, q.Credentials); err != nil {
			return nil, err
		}
		if t.only == nil {
			return nil, r.stopped(t, stoppedError())
		}
	case e.server.takesCredentials():
		return nil, errors.New("no middleware has looked for the caller's credentials")
	case e.instances == nil:
		t.only = e.upstream
	}
	return t, nil
}

// stoppedError is of a session that a reload, or the end of mcpx, has ended.
func stoppedError() error {
	return &request.UnavailableError{State: catalog.Unavailable, Reason: "mcpx stopped the server", Stopped: true}
}

func isStopped(err error) bool {
	unavailable, ok := errors.AsType[*request.UnavailableError](err)
	return ok && unavailable.Stopped
}

// next returns the upstream to try after failed, nil for the first: the next instance after a failure that can do no harm, of a
// request that surely was not executed, or that may be executed twice. Where there is none it returns the error of
// the request.
func (t *route) next(ctx context.Context, failed error) (*upstream.Upstream, error) {
	if t.only != nil {
		return t.only, failed
	}
	if failed != nil {
		again, executed := elsewhere(failed, t.request.Repeatable)
		switch {
		case !again || ctx.Err() != nil:
			return nil, failed
		case executed && t.ran == nil:
			t.ran = failed
		}
	}
	u, more := t.entry.instances.pick(t.request.Client, t.tried)
	switch {
	case u == nil && t.ran != nil:
		return nil, t.ran
	case u == nil:
		status := t.entry.status()
		none := &request.UnavailableError{State: status.State, Reason: status.Reason}
		if !status.RetryAfter.IsZero() {
			none.RetryAfter = max(0, time.Until(status.RetryAfter))
		}
		return nil, none
	}
	t.tried = append(t.tried, u)
	if t.request.Wait = t.wait; more { // another one is up: this one is not waited for
		t.request.Wait = time.Nanosecond
	}
	return u, nil
}

// sessionsWith are the upstreams over which a notification goes. The caller holds the lock.
func (r *Registry) sessionsWith(e *entry, q *request.Request) (all []*upstream.Upstream) {
	if e.server.PerClient {
		own := r.clients[q.Client.ID]
		if !request.Known(q.Method) {
			if c := own[keyOf(q.To.Name, q.Credentials)]; c != nil {
				all = append(all, c.upstream)
			}
			return all
		}
		for key, c := range own {
			if key.server == q.To.Name {
				all = append(all, c.upstream)
			}
		}
		return all
	}
	switch owner := r.owner.Load(); {
	case request.Known(q.Method) && (owner == nil || owner.ID != q.Client.ID):
		return nil // other clients share the session
	case request.Known(q.Method):
		return e.upstreams()
	case e.instances == nil:
		return []*upstream.Upstream{e.upstream}
	}
	if u, _ := e.instances.pick(q.Client, nil); u != nil {
		all = append(all, u)
	}
	return all
}

// Belonging returns the servers of a catalogue with a session that belongs to the client alone.
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
		own := owns && !e.server.PerClient
		for key := range r.clients[client.ID] {
			own = own || key.server == server.Name
		}
		if own {
			all = append(all, server)
		}
	}
	return all
}
