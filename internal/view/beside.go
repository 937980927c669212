package view

import (
	"context"
	"encoding/json"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/resources"
	"mcpx/internal/upstream"
)

// beside are the servers of the view with all that they have beside tools.
func (b *base) beside(client *upstream.Client) *resources.Servers {
	servers := b.executor.Beside(client, b.part)
	settings := b.current()
	servers.Alone = settings.Naming.Alone
	servers.ListWait = time.Until(b.began.Add(settings.StartupWait))
	if settings.Naming.Prefix != PrefixAlways {
		servers.Prefix = settings.Naming.Prefix
	}
	return servers
}

// Has implements [View].
func (b *base) Has(kind catalog.Kind) bool { return b.beside(nil).Shows(kind) }

// Offers implements [View].
func (b *base) Offers(client *upstream.Client) catalog.Offers {
	return b.beside(client).Offers()
}

// List implements [View].
func (b *base) List(ctx context.Context, client *upstream.Client, kind catalog.Kind, cursor string) (resources.Page, bool) {
	b.registry.Need()
	return b.beside(client).List(ctx, kind, cursor)
}

// Topic implements [View].
func (b *base) Topic(ctx context.Context, client *upstream.Client, uri string) (*resources.Topic, error) {
	b.registry.Need()
	return b.beside(client).Topic(ctx, client, uri)
}

// Relay implements [View].
func (b *base) Relay(ctx context.Context, r resources.Request) (json.RawMessage, error) {
	b.registry.Need()
	return b.beside(r.Client).Relay(ctx, r)
}

// Explain implements [View].
func (b *base) Explain(method string, err *resources.ServerError) (message string, data json.RawMessage) {
	failure := b.executor.Failure(err.Server, method, err.Err)
	return failure.Message, failure.Data()
}
