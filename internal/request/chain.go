package request

import (
	"context"
	"encoding/json"
	"slices"
)

// Handler sends a request and returns the raw result, which is valid JSON and UTF-8; nil for a notification. It returns
// within the request's time. Its errors are *wire.RPCError, the error types of this package, *semaphore.BusyError, or ctx's own.
type Handler func(ctx context.Context, r *Request) (json.RawMessage, error)

// Middleware wraps a handler. It may refuse a request, change it, or act on its result; it never sends it to another
// server. To add one: write it in a file of its own and add it to the list in [executor.Executor.Chain].
type Middleware func(next Handler) Handler

// Chain puts the middleware in front of last; the first one sees a request first. A nil Middleware is skipped.
func Chain(last Handler, all ...Middleware) Handler {
	for _, before := range slices.Backward(all) {
		if before != nil {
			last = before(last)
		}
	}
	return last
}
