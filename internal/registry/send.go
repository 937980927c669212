package registry

import (
	"context"
	"encoding/json"
	"time"

	"mcpx/internal/request"
)

// Use puts middleware before the servers: every message to one passes it, in this order. It must not be called once
// there are messages.
func (r *Registry) Use(all ...request.Middleware) { r.handler = request.Chain(r.send, all...) }

// Send sends a message to its server, through the chain, over the server's shared session or over one of the client's
// own. Errors are those of [request.Handler]; a [request.ReplacedError] says that the server is another one since the
// caller's catalogue.
func (r *Registry) Send(ctx context.Context, q *request.Request) (json.RawMessage, error) {
	return r.handler(ctx, q)
}

// send is the end of the chain.
func (r *Registry) send(ctx context.Context, q *request.Request) (json.RawMessage, error) {
	switch {
	case q.Serve != nil:
		return q.Serve(ctx, q)
	case q.Notification:
		return nil, r.tell(q)
	case q.Method == "resources/unsubscribe":
		// The session tells its server itself, once no client follows the resource.
		return json.RawMessage("{}"), nil
	}
	t, err := r.routeOf(ctx, q)
	if err != nil {
		return nil, err
	}
	if q.Subscription != nil {
		return r.follow(ctx, t)
	}
	defer t.release()
	began, timeout := time.Now(), q.Timeout
	u, err := t.next(ctx, nil)
	for err == nil {
		result, failed := u.Call(ctx, *q)
		if failed == nil {
			return result, nil
		}
		if u, err = t.next(ctx, failed); timeout > 0 {
			q.Timeout = max(timeout-time.Since(began), time.Nanosecond)
		}
	}
	return nil, r.stopped(t, err)
}

// follow begins a subscription. It returns when the server has agreed; what ends the subscription later goes to its
// Ended.
func (r *Registry) follow(ctx context.Context, t *route) (json.RawMessage, error) {
	agreed, ended := make(chan struct{}), make(chan error, 1)
	go func() { // ends with ctx, with the session, or with the server's refusal
		defer t.release()
		u, err := t.next(ctx, nil)
		for begun := false; err == nil; {
			failed := u.Follow(ctx, t.request, func() {
				begun = true
				close(agreed)
			})
			if err = failed; !begun { // else its end is the end: who follows subscribes anew, perhaps at another instance
				u, err = t.next(ctx, failed)
			}
		}
		ended <- r.stopped(t, err)
	}()
	select {
	case err := <-ended:
		return nil, err
	case <-agreed:
	}
	t.request.Subscription.Ended = ended
	return json.RawMessage("{}"), nil
}

// stopped is err, or a [request.ReplacedError] where the upstream was stopped to be replaced.
func (r *Registry) stopped(t *route, err error) error {
	if isStopped(err) && r.replaced(t.entry.server.Spec.Name, t.entry) {
		return &request.ReplacedError{Server: t.entry.server.Spec.Name}
	}
	return err
}

// replaced reports whether e is no longer the entry of its server.
func (r *Registry) replaced(server string, e *entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.entries[server]
	return !r.ended && (now == nil || now.upstream != e.upstream)
}

// tell sends a notification over the session that the requests of the client use, if one is open. One that mcpx knows goes
// over sessions that belong to the client alone.
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
