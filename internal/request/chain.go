package request

import (
	"context"
	"encoding/json"
	"slices"
)

// Handler sends a request to a server. It returns the raw result, which is valid JSON and UTF-8, or nil for a notification. It
// returns within the time limits of the request, plus the time that the user takes to confirm it. Its error is a *wire.RPCError,
// one of the error types of this package, a *semaphore.BusyError, the error of ctx, or an error of a middleware. After an error of
// a middleware, nothing was sent.
type Handler func(ctx context.Context, r *Request) (json.RawMessage, error)

// Middleware puts a handler around the handler next. It may refuse a request, change it, or act on its result, but must not send it
// to another server. A new middleware gets a file of its own and a line in the list in [executor.Executor.Chain].
type Middleware func(next Handler) Handler

// Chain returns a Handler that passes a request through each Middleware, in the given order, and then to the handler final. It
// leaves out a nil Middleware.
func Chain(final Handler, middleware ...Middleware) Handler {
	for _, before := range slices.Backward(middleware) {
		if before != nil {
			final = before(final)
		}
	}
	return final
}
