package request

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
)

// Sees returns the catalogue that the sender of a request may see at this moment.
type Sees func(r *Request) *catalog.Snapshot

// Rights refuses requests that the sender may not make. It is needed because the executor has checked the rights only for some
// kinds of message, and because the rights may have changed since. sees returns the catalogue that the sender may see now.
func Rights(sees Sees) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, r *Request) (json.RawMessage, error) {
			if err := r.permitted(sees(r)); err != nil {
				return nil, err
			}
			return next(ctx, r)
		}
	}
}

// permitted returns an error if the sender may not make the request, otherwise nil. visible is the catalogue that the sender may
// see. The built-in server is in no catalogue, because every caller may use its tools.
func (r *Request) permitted(visible *catalog.Snapshot) error {
	server, ok := visible.Server(r.To.Name)
	switch {
	case !ok && r.Serve == nil:
		return &ReplacedError{Server: r.To.Name}
	case r.Tool != nil && r.ReadOnly && !r.Program && !r.Tool.Hints.IsReadOnly():
		return &RefusedError{r.To.Name + "." + r.Tool.Name + " is not declared read-only; call it with exec"}
	case r.Serve != nil:
		return nil
	case r.Tool != nil:
		if now, ok := server.Tool(r.Tool.Name); !ok || now != r.Tool && !bytes.Equal(now.Raw, r.Tool.Raw) {
			return &ReplacedError{Server: r.To.Name}
		}
	case Known(r.Method):
	// Without this case, tasks/list, for example, would show the tasks of other principals.
	case server.Limited, r.Client.On() != nil && strings.HasPrefix(r.Method, "tasks/"):
		return &wire.RPCError{Code: wire.MethodNotFound, Message: "method " + r.Method + " not found"}
	}
	return nil
}

// Pinned ensures that the caller may still make the request when it is sent, and that a called tool still has the definition that the
// caller was shown and that mcpx compared with the lock file. Both may have changed: while the request waited for its turn, while the
// user was asked to confirm, or when a session was opened during the call. Then Pinned ends the request with a [ReplacedError], after
// which the caller of the chain checks it again from the beginning. refresh updates the catalogue to what the server has just listed.
func Pinned(sees Sees, refresh func()) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, r *Request) (json.RawMessage, error) {
			if r.Consent.asked { // if the rights have changed meanwhile, the request need not wait for its turn
				if err := r.permitted(sees(r)); err != nil {
					return nil, err
				}
			}
			listed := r.To.State == catalog.Ready || r.To.State == catalog.Degraded
			r.Check = func(opened bool) error {
				if r.Tool != nil && (opened || !listed) {
					refresh()
				}
				return r.permitted(sees(r))
			}
			return next(ctx, r)
		}
	}
}
