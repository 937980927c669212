package request

import "context"

type farKey struct{}

// FarFromHome returns a context for a request that cannot use PerClient servers: the client's sessions with them are at another
// replica of mcpx, which cannot be reached.
func FarFromHome(ctx context.Context) context.Context { return context.WithValue(ctx, farKey{}, true) }

// IsFar reports whether FarFromHome made ctx, or a context from which ctx is derived.
func IsFar(ctx context.Context) bool { return ctx.Value(farKey{}) != nil }
