package resources

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/request"
)

// find returns the server that has a resource, and the URI by which this server knows it. If no server is known to have the
// resource, find waits for servers that have not listed their resources yet, and looks again.
func (s *Servers) find(ctx context.Context, uri string) (snap *catalog.Snapshot, server *catalog.Server, ownURI string, err error) {
	snap = s.Catalogue()
	server, ownURI, err = snap.Resource(uri)
	if err != nil && anyUnlisted(snap) {
		s.awaitLists(ctx, s.Wait)
		snap = s.Catalogue()
		server, ownURI, err = snap.Resource(uri)
	}
	return snap, server, ownURI, err
}

const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Topic is one resource that a client follows: with resources/subscribe, or with subscriptions/listen in the modern era.
type Topic struct {
	// Again means that the client has subscribed to the resource before, and may have missed updates since. Then Follow also
	// reports an update when the server has accepted the first subscription.
	Again bool

	servers *Servers
	// from is the client's request. Its event is used only for the first subscription.
	from request.From
	uri  string
	// patient means that Follow keeps trying if the server cannot be reached. It is set if the client follows several resources in
	// one request, which must not fail because of this one.
	patient bool
}

// Topic returns the resource with this URI, so that a client can follow it. uri is the one that clients see, which may differ from
// the server's own. patient means that Follow keeps trying if the server cannot be reached. The errors are those of [Servers.Send],
// and a [ParamsError] if the server does not support subscriptions.
func (s *Servers) Topic(ctx context.Context, from request.From, uri string, patient bool) (*Topic, error) {
	t := &Topic{servers: s, from: from, uri: uri, patient: patient}
	if uri == "" {
		return nil, &ParamsError{"the URI of the resource is missing"}
	}
	_, server, _, err := s.find(ctx, uri)
	if err == nil && server.Listed && !server.Offers.Subscribe {
		err = &ParamsError{"the server " + server.Name + " does not report changes of its resources"}
	}
	return t, err
}

// Follow subscribes to the resource. It subscribes again after the session with the server was lost or the config was reloaded. It
// calls agreed when the server has accepted the first subscription. It calls updated each time the resource has changed or may have
// changed, for example after a lost session; params are those of the notification to the client. Neither func may block.
//
// Follow returns when ctx ends, or when the first subscription fails. If t is patient, the first subscription fails only if the
// server refuses it; after any other error, Follow tries again.
func (t *Topic) Follow(ctx context.Context, agreed func(), updated func(params json.RawMessage)) error {
	began := false // true once the server has accepted a subscription
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		snap, server, own, err := t.servers.find(ctx, t.uri)
		if err == nil {
			subscription := &request.Subscription{Renewal: began, Updated: func(params json.RawMessage) {
				if t.shown(server.Name) {
					updated(request.Originated(server.Name, t.renamed(snap, server, own, params)))
				}
			}}
			if err = t.subscribe(ctx, server, own, subscription); err == nil {
				pause = firstRetry
				renewed := began || t.Again
				if !began {
					began = true
					agreed()
				}
				if renewed && t.shown(server.Name) {
					updated(request.Originated(server.Name, wire.Encode(map[string]string{"uri": t.uri})))
				}
				err = <-subscription.Ended // the reason comes when ctx ends, at the latest
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_, replaced := errors.AsType[*request.ReplacedError](err)
		_, refused := errors.AsType[*wire.RPCError](err)
		if !began && !replaced && (refused || !t.patient) {
			if server == nil {
				return err
			}
			return t.servers.failed("resources/subscribe", server, err)
		}
		if over, ok := errors.AsType[*request.LimitError](err); ok {
			// An earlier attempt would only be refused again, and fill the audit trail.
			pause = max(pause, over.RetryAfter)
		}
		if !t.await(ctx, pause) {
			return ctx.Err()
		}
	}
}

// await waits for the pause, and then until requests can be sent to the server or the server was removed. It does so because
// requests to a server that is down would only fill the audit trail. It returns false if ctx ends first.
func (t *Topic) await(ctx context.Context, pause time.Duration) bool {
	changed := make(chan struct{}, 1)
	defer t.servers.Registry.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for waited := false; ; {
		select {
		case <-timer.C:
			waited = true
		case <-changed:
		case <-ctx.Done():
			return false
		}
		if _, server, _, err := t.servers.find(ctx, t.uri); waited && (err != nil || up(server) && server.State != catalog.Connecting) {
			return true
		}
	}
}

// subscribe sends resources/subscribe. Follow calls it again whenever the subscription was lost. Only the first attempt is recorded
// in the event of the client's request. Later attempts are mcpx's own and get events of their own.
func (t *Topic) subscribe(ctx context.Context, server *catalog.Server, own string, subscription *request.Subscription) error {
	from := t.from
	t.from.Event = nil
	_, err := t.servers.Registry.Send(ctx, &request.Request{
		From: from, To: server, Method: "resources/subscribe", Params: wire.Encode(map[string]string{"uri": own}),
		Subscription: subscription, Scope: t.servers.Scope(), Times: request.Times{Wait: t.servers.Wait},
	})
	return err
}

// shown reports whether the client may still see the resources of the server. A reload may have changed this.
func (t *Topic) shown(server string) bool {
	now, ok := t.servers.Catalogue().Server(server)
	return ok && (now.Offers.Resources || !now.Listed)
}

// renamed returns the params of a server's notification, with the URI that clients know. ownURI is the server's URI of the resource
// that the client follows. If the notification is about a part of this resource, the URI in params begins with ownURI: then renamed
// replaces only this beginning.
func (t *Topic) renamed(snap *catalog.Snapshot, server *catalog.Server, ownURI string, params json.RawMessage) json.RawMessage {
	return wire.Edit(params, "uri", wire.EditText(func(uri string) string {
		if part, ok := strings.CutPrefix(uri, ownURI); ok {
			return t.uri + part
		}
		return snap.Link(server, uri)
	}))
}
