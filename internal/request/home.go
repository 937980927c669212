package request

import "context"

type farKey struct{}

// FarFromHome returns a context for a request whose client has its sessions with PerClient servers at another replica of mcpx,
// which cannot be reached. With this context, the request cannot use PerClient servers.
func FarFromHome(ctx context.Context) context.Context { return context.WithValue(ctx, farKey{}, true) }

// IsFar reports whether FarFromHome made ctx, or a context from which ctx is derived.
func IsFar(ctx context.Context) bool { return ctx.Value(farKey{}) != nil }
