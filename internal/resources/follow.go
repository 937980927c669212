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

// find finds the server of a resource, and its own name for it.
func (s *Servers) find(ctx context.Context, uri string) (snap *catalog.Snapshot, server *catalog.Server, own string, err error) {
	snap = s.Catalogue()
	server, own, err = snap.Resource(uri)
	if err != nil && anyUnlisted(snap) {
		s.awaitLists(ctx, s.Wait)
		snap = s.Catalogue()
		server, own, err = snap.Resource(uri)
	}
	return snap, server, own, err
}

const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Topic is a resource whose changes a client follows, by resources/subscribe.
type Topic struct {
	servers *Servers
	// From is of the client's request; its event is that of the first subscription.
	from request.From
	uri  string
	// patient means that a server that cannot be reached is no end: the client has other resources to follow.
	patient bool
}

// Topic is the resource that a URI of a client names. The error is one of [Servers.Send], or a [ParamsError] if its server
// does not report changes.
func (s *Servers) Topic(ctx context.Context, from request.From, uri string, patient bool) (*Topic, error) {
	t := &Topic{servers: s, from: from, uri: uri, patient: patient}
	if uri == "" {
		return nil, &ParamsError{"the URI of the resource is missing"}
	}
	_, server, _, err := s.find(ctx, uri)
	if err == nil && server.Listed && !server.Offers.Subscribe {
		err = &ParamsError{"the server " + server.Name + " does not tell of changes of its resources"}
	}
	return t, err
}

// Follow calls updated, with the params of the notification for the client, whenever the resource has changed, or may
// have: after a loss of the session too. It subscribes again after losses and reloads, until ctx ends. It returns the
// server's error if that has not agreed once, but for a patient topic. agreed is called when it has. Neither func may
// block.
func (t *Topic) Follow(ctx context.Context, agreed func(), updated func(params json.RawMessage)) error {
	began := false // the server has agreed once
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		snap, server, own, err := t.servers.find(ctx, t.uri)
		if err == nil {
			subscription := &request.Subscription{Renewal: began, Updated: func(params json.RawMessage) {
				if t.shown(server.Name) {
					updated(t.renamed(snap, server, own, params))
				}
			}}
			if err = t.subscribe(ctx, server, own, subscription); err == nil {
				pause = firstRetry
				switch {
				case !began:
					began = true
					agreed()
				case t.shown(server.Name):
					updated(wire.Encode(map[string]string{"uri": t.uri}))
				}
				err = <-subscription.Ended // with ctx at the latest
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
			pause = max(pause, over.RetryAfter) // before that, asking again would only be one more refusal in the audit trail
		}
		if !t.await(ctx, pause) {
			return ctx.Err()
		}
	}
}

// await returns after a pause, when the server of the resource can be asked, or is gone: asking one that is down would only
// be one more failure in the audit trail. It reports false if ctx has ended.
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

// subscribe sends resources/subscribe. The event of the client's request is that of the first one alone.
func (t *Topic) subscribe(ctx context.Context, server *catalog.Server, own string, subscription *request.Subscription) error {
	from := t.from
	t.from.Event = nil
	_, err := t.servers.Registry.Send(ctx, &request.Request{
		From: from, To: server, Method: "resources/subscribe", Params: wire.Encode(map[string]string{"uri": own}),
		Subscription: subscription, Scope: t.servers.Scope(), Times: request.Times{Wait: t.servers.Wait},
	})
	return err
}

// shown reports whether the client may still see resources of the server: a reload may
// have taken that away.
func (t *Topic) shown(server string) bool {
	now, ok := t.servers.Catalogue().Server(server)
	return ok && (now.Offers.Resources || !now.Listed)
}

// renamed are the params of a notification of a server in the words of the client. It may
// be about a part of the resource.
func (t *Topic) renamed(snap *catalog.Snapshot, server *catalog.Server, own string, params json.RawMessage) json.RawMessage {
	params = wire.Edit(params, "uri", wire.EditText(func(uri string) string {
		if part, ok := strings.CutPrefix(uri, own); ok {
			return t.uri + part
		}
		return snap.Link(server, uri)
	}))
	return without(params, "_meta") // which names the subscription between mcpx and the server
}
