package request

import "context"

type farKey struct{}

// FarFromHome returns the context for a request of a client whose sessions with PerClient servers belong to a replica of mcpx that
// cannot be reached. Such servers are unavailable to the request.
func FarFromHome(ctx context.Context) context.Context { return context.WithValue(ctx, farKey{}, true) }

// IsFar reports whether ctx comes from [FarFromHome].
func IsFar(ctx context.Context) bool { return ctx.Value(farKey{}) != nil }
