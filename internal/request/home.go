package request

import "context"

type farKey struct{}

// FarFromHome returns a context for a request that is far from home. The home is the replica of mcpx that has the client's sessions
// with servers. A request is far from home if another replica handles it, because the home cannot be reached. Such a request cannot
// use PerClient servers, which have a session for each client.
func FarFromHome(ctx context.Context) context.Context { return context.WithValue(ctx, farKey{}, true) }

// IsFar reports whether a request with this context is far from home (see FarFromHome).
func IsFar(ctx context.Context) bool { return ctx.Value(farKey{}) != nil }
