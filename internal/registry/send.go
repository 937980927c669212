package registry

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/request"
)

// Use sets the middleware that every message given to Send passes through, in this order. It must be called before the first
// message.
func (r *Registry) Use(all ...request.Middleware) { r.handler = request.Chain(r.send, all...) }

// Send sends a message through the middleware to its server (see routeOf for the session). The errors are those of
// [request.Handler]; a [request.ReplacedError] means that the server was removed or replaced after the caller took its
// snapshot.
func (r *Registry) Send(ctx context.Context, q *request.Request) (json.RawMessage, error) {
	return r.handler(ctx, q)
}

// Relay sends a request of another replica over the shared session with a server, without the middleware. Its errors are those
// of [upstream.Upstream.Call].
func (r *Registry) Relay(ctx context.Context, server string, q *request.Request) (json.RawMessage, error) {
	e := r.running(server)
	if e == nil {
		return nil, &request.UnavailableError{State: catalog.Unavailable, Reason: "it is not at this replica of mcpx"}
	}
	return e.upstream.Call(ctx, *q)
}

// send is the last handler of the middleware chain.
func (r *Registry) send(ctx context.Context, q *request.Request) (json.RawMessage, error) {
	switch {
	case q.Serve != nil:
		return q.Serve(ctx, q)
	case q.Notification:
		return nil, r.tell(q)
	case q.Method == "resources/unsubscribe":
		// The session itself unsubscribes at the server, once no client follows the resource any more.
		return json.RawMessage("{}"), nil
	}
	t, err := r.routeOf(ctx, q)
	if err != nil {
		return nil, begun(q, err)
	}
	if q.Subscription != nil {
		return r.follow(ctx, t)
	}
	defer t.release()
	began, timeout := time.Now(), q.Timeout
	u, err := t.next(ctx, nil)
	for err == nil {
		result, failed := u.Call(ctx, *q)
		if failed == nil && t.older && undeclared(result) {
			failed = errUndeclared
		}
		if failed == nil {
			return result, nil
		}
		if u, err = t.next(ctx, failed); timeout > 0 {
			q.Timeout = max(timeout-time.Since(began), time.Nanosecond)
		}
	}
	return nil, begun(q, r.stopped(&t, err))
}

// begun returns the error to report for a request that failed with err. If an earlier message may already have had the effect of
// the request, begun converts err with [request.Begun], so that the caller does not repeat the request as if nothing had happened.
func begun(q *request.Request, err error) error {
	if q.MayHaveRun || q.Input.Continues() {
		return request.Begun(err)
	}
	return err
}

// follow begins a subscription and returns as soon as the server has accepted or refused it. The error that later ends the
// subscription is sent to Subscription.Ended.
func (r *Registry) follow(ctx context.Context, t route) (json.RawMessage, error) {
	agreed, ended := make(chan struct{}), make(chan error, 1)
	go func() { // ends with ctx, with the session, or when the server refuses
		defer t.release()
		u, err := t.next(ctx, nil)
		for begun := false; err == nil; {
			failed := u.Follow(ctx, t.request, func() {
				begun = true
				close(agreed)
			})
			if err = failed; !begun { // if the subscription has begun before it ends, the subscriber has to subscribe again
				u, err = t.next(ctx, failed)
			}
		}
		ended <- r.stopped(&t, err)
	}()
	select {
	case err := <-ended:
		return nil, err
	case <-agreed:
	}
	t.request.Subscription.Ended = ended
	return json.RawMessage("{}"), nil
}

// stopped returns a [request.ReplacedError] if err says that the upstream was stopped, and the server was removed or replaced;
// otherwise err.
func (r *Registry) stopped(t *route, err error) error {
	unavailable, ok := errors.AsType[*request.UnavailableError](err)
	if ok && unavailable.Stopped && r.replaced(t.entry.server.Spec.Name, t.entry) {
		return &request.ReplacedError{Server: t.entry.server.Spec.Name}
	}
	return err
}

// replaced reports whether [Registry.Apply] has removed the server of e or replaced its upstream; false after Close.
func (r *Registry) replaced(server string, e *entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.entries[server]
	return !r.ended && (now == nil || now.upstream != e.upstream)
}

// tell sends a client's notification over the session that the client's requests use, if one is open. Notifications that mcpx
// knows are sent only over sessions that belong to this client alone.
func (r *Registry) tell(q *request.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[q.To.Name]
	if e == nil || e.upstream == nil {
		return nil
	}
	all := r.sessionsWith(e, q)
	for _, u := range all {
		u.Notify(q.Method, q.Params)
	}
	return nil
}
