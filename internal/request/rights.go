package request

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
)

// Sees returns the catalogue that the caller of a request may see at this moment.
type Sees func(r *Request) *catalog.Snapshot

// Rights refuses what the caller may not send. The caller has found the server and the tool in a catalogue that it
// may see; this is the one place that every message passes, and it looks at the catalogue of this moment.
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

// permitted is the error of a request that a caller that sees the catalogue may not send. The server inside of mcpx is in no
// catalogue: every caller may call its tools.
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
	case server.Limited, r.Client.On() != nil && strings.HasPrefix(r.Method, "tasks/"): // which would list those of others
		return &wire.RPCError{Code: wire.MethodNotFound, Message: "method " + r.Method + " not found"}
	}
	return nil
}

// Pinned holds a call to the definition of its tool that the caller was shown, and that pins were compared with. A session that
// opens during the call, or a person who takes time to confirm it, may bring another one: the catalogue was then that of
// an earlier session, or from the disk. Such a call begins anew ([ReplacedError]). refresh makes the catalogue show what
// the server has just listed.
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
