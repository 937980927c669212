package request

import (
	"context"
	"encoding/json"
	"slices"
)

// Handler sends a request and returns the raw result, which is valid JSON in valid UTF-8; nil for a notification. It
// ends within the request's time. Errors: *wire.RPCError, the types of this package, *semaphore.BusyError, or ctx's own.
type Handler func(ctx context.Context, r *Request) (json.RawMessage, error)

// Middleware stands before a handler. It may refuse a request, change it, or act on its result; it never sends one to
// another server than the request is for. To add one: a file with it, and its line in the list of [executor.Executor.Chain].
type Middleware func(next Handler) Handler

// Chain is the last handler behind all of the middleware, of which the first comes first. A nil Middleware does nothing.
func Chain(last Handler, all ...Middleware) Handler {
	for _, before := range slices.Backward(all) {
		if before != nil {
			last = before(last)
		}
	}
	return last
}
