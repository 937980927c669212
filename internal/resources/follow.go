package resources

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/registry"
)

// Topic is a resource whose changes a client follows.
type Topic struct {
	servers *Servers
	client  *caller.Client
	uri     string
	// Patient means that a server that cannot be reached is no end.
	Patient bool
}

// Topic is the resource that a URI of a client names. The error is that of
// [Servers.Relay], or a [ParamsError] if its server does not tell of changes.
func (s *Servers) Topic(ctx context.Context, client *caller.Client, uri string) (*Topic, error) {
	t := &Topic{servers: s, client: client, uri: uri}
	if uri == "" {
		return nil, &ParamsError{"the URI of the resource is missing"}
	}
	_, server, _, err := s.find(ctx, uri)
	if err == nil && server.Listed && !server.Offers.Subscribe {
		err = &ParamsError{"the server " + server.Name + " does not tell of changes of its resources"}
	}
	return t, err
}

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

// Follow calls updated, with the params of the notification for the client, whenever the
// resource has changed, or may have: after a loss of the session too. It goes on until
// ctx ends, over losses and reloads. It returns the server's error if that has not agreed
// once; see Patient. agreed is called when it has. Neither func may block.
func (t *Topic) Follow(ctx context.Context, agreed func(), updated func(params json.RawMessage)) error {
	began := false // the server has agreed once
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		snap, server, own, err := t.servers.find(ctx, t.uri)
		if err == nil {
			again := func() {
				pause = firstRetry
				switch {
				case !began:
					began = true
					agreed()
				case t.shown(server.Name):
					updated(wire.Encode(map[string]string{"uri": t.uri}))
				}
			}
			err = t.servers.Registry.Follow(ctx, server, t.client, own, t.servers.Wait, again, func(params json.RawMessage) {
				if t.shown(server.Name) {
					updated(t.renamed(snap, server, own, params))
				}
			})
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if server != nil {
			err = failed(server, err)
		}
		_, replaced := errors.AsType[*registry.ReplacedError](err)
		_, refused := errors.AsType[*wire.RPCError](err)
		if !began && !replaced && (refused || !t.Patient) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
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
