package request

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
)

// Sees returns the catalogue that the sender of a request may see now.
type Sees func(r *Request) *catalog.Snapshot

// Rights refuses what the sender may not do. The executor has already found the server and the tool in a catalogue that the
// sender may see; this check covers every message, and uses the catalogue of this moment.
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

// permitted returns the error of a request that the sender may not make, given the catalogue that it sees. The built-in
// server is in no catalogue: every caller may use its tools.
func (r *Request) permitted(seen *catalog.Snapshot) error {
	if r.Serve != nil {
		return nil
	}
	server, ok := seen.Server(r.To.Name)
	switch {
	case !ok:
		return &ReplacedError{Server: r.To.Name}
	case r.Tool != nil && r.ReadOnly && !r.Tool.Hints.IsReadOnly():
		return &RefusedError{r.To.Name + "." + r.Tool.Name + " is not declared read-only; call it with exec"}
	case r.Tool != nil:
		if now, ok := server.Tool(r.Tool.Name); !ok || now != r.Tool && !bytes.Equal(now.Raw, r.Tool.Raw) {
			return &ReplacedError{Server: r.To.Name}
		}
	case Known(r.Method):
	case server.Limited, r.Client.On() != nil && strings.HasPrefix(r.Method, "tasks/"): // tasks/list would show other principals' tasks
		return &wire.RPCError{Code: wire.MethodNotFound, Message: "method " + r.Method + " not found"}
	}
	return nil
}

// Pinned ensures that a call reaches the definition of the tool that the caller was shown and that lock pins were compared
// with. A session that opens during the call, or the time the user takes to confirm, may bring another definition; then the
// call begins anew ([ReplacedError]). refresh updates the catalogue to what the server has just listed.
func Pinned(sees Sees, refresh func()) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, r *Request) (json.RawMessage, error) {
			if r.Tool == nil {
				return next(ctx, r)
			}
			listed := r.To.State == catalog.Ready || r.To.State == catalog.Degraded
			r.Check = func(opened bool) error {
				if !opened && listed {
					return nil
				}
				refresh()
				return r.permitted(sees(r))
			}
			if r.Consent.asked {
				if err := r.permitted(sees(r)); err != nil {
					return nil, err
				}
			}
			return next(ctx, r)
		}
	}
}
