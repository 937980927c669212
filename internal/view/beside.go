package view

import (
	"context"
	"encoding/json"
	"errors"

	"mcpx/internal/aggregate"
	"mcpx/internal/catalog"
	"mcpx/internal/upstream"
)

// FailedError is the error of a request to which no server has answered.
type FailedError struct {
	Message string
	// Data is a JSON object with the code and what belongs to it (design 7).
	Data json.RawMessage
}

func (e *FailedError) Error() string { return e.Message }

// beside are the servers of the view with all that they have beside tools.
func (b *base) beside(client *upstream.Client) *aggregate.Servers {
	servers := b.executor.Beside(client, b.part())
	servers.Alone = b.current.Load().Naming.Alone
	return servers
}

// Has implements [View].
func (b *base) Has(kind catalog.Kind) bool { return b.beside(nil).Shows(kind) }

// Offers implements [View].
func (b *base) Offers(client *upstream.Client) catalog.Offers {
	return b.beside(client).Offers()
}

// List implements [View].
func (b *base) List(ctx context.Context, client *upstream.Client, kind catalog.Kind, cursor string) (aggregate.Page, bool) {
	b.registry.Need()
	return b.beside(client).List(ctx, kind, cursor)
}

// Relay implements [View].
func (b *base) Relay(ctx context.Context, r aggregate.Request) (json.RawMessage, error) {
	b.registry.Need()
	raw, server, err := b.beside(r.Client).Relay(ctx, r)
	if _, answered := errors.AsType[*upstream.RPCError](err); err == nil || server == nil || answered || ctx.Err() != nil {
		return raw, err
	}
	failure := b.executor.Failure(server.Name, r.Method, err)
	return nil, &FailedError{Message: failure.Message, Data: failure.Data()}
}
