package view

import (
	"context"
	"encoding/json"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/sanitize"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/resources"
)

// resources returns the resources and prompts of the view's servers.
func (b *base) resources(client *caller.Client) *resources.Servers {
	servers := b.executor.Resources(client, b.scope)
	settings := b.current()
	servers.Transparent, servers.Explain = settings.Naming.Transparent, b.failed
	servers.ListWait = time.Until(b.began.Add(settings.StartupWait))
	if settings.Naming.Prefix != PrefixAlways {
		servers.Prefix = settings.Naming.Prefix
	}
	return servers
}

// List returns one page of the items of a kind, as described at [View].
func (b *base) List(ctx context.Context, client *caller.Client, kind catalog.Kind, cursor string) (resources.Page, bool) {
	b.registry.Need()
	return b.resources(client).List(ctx, kind, cursor)
}

// Topic returns the resource with this URI, as described at [View].
func (b *base) Topic(ctx context.Context, from request.From, uri string, patient bool) (*resources.Topic, error) {
	b.registry.Need()
	return b.resources(from.Client).Topic(ctx, from, uri, patient)
}

// Send sends a request or a notification to the servers for which it is meant, as described at [View].
func (b *base) Send(ctx context.Context, q *request.Request) (json.RawMessage, error) {
	if q.Notification {
		b.notify(ctx, q)
		return nil, nil
	}
	b.registry.Need()
	return b.resources(q.Client).Send(ctx, q)
}

// failed returns the error that the client gets if a message to a server has failed.
func (b *base) failed(method string, err *resources.ServerError) error {
	failure := b.executor.Failure(err.Server, method, err.Err)
	return &Failure{failure.Message, failure.Data()}
}

// notify sends a client's notification to the servers for which it is meant. Errors are only logged, because a notification has
// no answer.
func (b *base) notify(ctx context.Context, q *request.Request) {
	snap := b.catalogue(q.Client)
	var all []*catalog.Server
	switch {
	case request.Known(q.Method):
		all = b.registry.Belonging(snap, q.Client)
	case b.current().Naming.Transparent && len(snap.Servers) == 1:
		all = []*catalog.Server{&snap.Servers[0]}
	}
	for _, server := range all {
		one := *q
		one.To, one.Scope = server, b.scope()
		if _, err := b.registry.Send(ctx, &one); err != nil {
			b.log.Debug("notification not sent", "server", server.Name, "method", sanitize.Line(q.Method, 80), "err", err)
		}
	}
}
