package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/base/wire"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// A server that speaks both eras behaves differently in each era: in the modern era it cannot send requests to its clients,
// and it may offer other capabilities. The shared session uses the modern era. If several clients share mcpx, there are
// additional sessions of the legacy era for the legacy clients. (A client over stdio owns the shared sessions, because it
// is the only client. So these sessions use its era.)

// olderEra has what mcpx knows about a server in the legacy era, and its session of that era. The registry's lock guards it. A
// reload of the config that keeps the upstream of the server also keeps the olderEra.
type olderEra struct {
	// upstream is a session for all legacy clients. mcpx learns from it what the server offers to legacy clients, and opens it
	// again when a legacy client needs it. It is nil as long as meetOlder has no reason to open it, for example because the shared
	// session is of the legacy era. It is also nil if the server refused the legacy era.
	upstream *upstream.Upstream
	// refused means that meetOlder has ended upstream. restarts is how often the shared session had been restarted when
	// upstream was opened; after a further restart, meetOlder may open it again.
	refused  bool
	restarts int
	// byEra has what the server offered in the shared session, by era: in this run of mcpx, or according to the saved record.
	byEra map[string]catalog.Offers
	// byResult has the names of the tools that ask the user only in the way of the modern era, with an input_required result.
	byResult sync.Map
}

// meetOlder opens a second session, of the legacy era, once the shared session turns out to be of the modern era. It does so only
// with ManyClients, over HTTP or to a process, and if the config does not fix the era. It gives up the second session if connecting
// fails, or if the shared session is no longer of the modern era. The caller holds the lock.
func (r *Registry) meetOlder(e *entry, status *upstream.Status) {
	spec, older := e.server.Spec, e.older
	if !r.options.ManyClients || !r.started || r.ended || !up(status.State) {
		return
	}
	auto := spec.Protocol != upstream.EraLegacy && spec.Protocol != upstream.EraModern
	possible := auto && status.Modern && (spec.Type == transport.HTTP || spec.Type == transport.Stdio)
	switch {
	case older.upstream == nil && possible && !(older.refused && older.restarts == status.Restarts):
		older.refused, older.restarts = false, status.Restarts
		older.upstream = upstream.New(r.olderSpec(e, status))
		older.upstream.Start()
	case older.upstream != nil && (!possible || older.upstream.Status().State == catalog.Unavailable):
		r.retire(older.upstream, retired{}, time.Nanosecond)
		older.upstream, older.refused = nil, true
	}
}

// olderSpec returns the spec for the session of the legacy era. The caller holds the lock.
func (r *Registry) olderSpec(e *entry, status *upstream.Status) upstream.Spec {
	spec := e.server.Spec
	spec.Protocol = upstream.EraLegacy
	spec.Introduction.Capabilities, spec.Introduction.Owner = caller.SharedCapabilities, nil
	spec.Catalogue.Shared = func() []catalog.Tool { return e.upstream.Status().Tools }
	spec.OnChange, spec.OnUnknown = r.changed, nil
	spec.Lazy, spec.StopIdle = true, cmp.Or(e.server.SessionIdle, defaultIdle)
	// A server without PerClient gets a second process only when a client needs it (a lazy upstream with StartedBefore waits for
	// that), or when mcpx must find out whether the server has subscriptions in the legacy era.
	spec.StartedBefore = spec.Type == transport.Stdio && !e.server.PerClient && (!status.Offers.Resources || status.Offers.Subscribe)
	if spec.Type == transport.HTTP {
		spec.Logger = slog.New(slog.DiscardHandler) // it is not an error that a server speaks only one era
	} else if spec.Logger != nil {
		spec.Logger = spec.Logger.With("era", upstream.EraLegacy)
	}
	return spec
}

// olderOffers returns what the server offers in the legacy era; ok is false as long as this is unknown. The caller holds the
// lock.
func (e *entry) olderOffers() (offers catalog.Offers, ok bool) {
	if e.older.upstream == nil {
		return offers, false
	}
	status := e.older.upstream.Status()
	return status.Offers, status.Protocol != ""
}

// offersOfBoth returns offers, which is what the server offers in the shared session. It adds subscriptions and completions if the
// server has them only in the legacy era; mcpx then sends the requests for them over the session of the legacy era. For a PerClient
// server, nothing is added. The caller holds the lock.
func (e *entry) offersOfBoth(offers catalog.Offers) catalog.Offers {
	if older, ok := e.olderOffers(); ok && !e.server.PerClient {
		offers.Subscribe = offers.Subscribe || older.Subscribe && offers.Resources
		offers.Completions = offers.Completions || older.Completions
	}
	return offers
}

// olderRoute changes the route of a request from the shared session to a session of the legacy era in two cases. In the first
// case, the client speaks the legacy era and can be asked questions, and the server can serve the request in that era. In the
// second case, the server can serve the request only in the legacy era. The first case excludes tools that are known to ask only
// in the way of the modern era.
//
// Over HTTP, a client of the first case gets a session of its own, so that the server's questions surely reach it. A server
// that runs as a process has one legacy session for all legacy clients. If the server does not speak the legacy era, or if only
// one client uses the registry, the route does not change.
func (r *Registry) olderRoute(ctx context.Context, t *route) {
	q, e := t.request, t.entry
	asks := asksOlder(q.Client)
	if only := q.Subscription != nil || q.Method == "completion/complete"; !r.options.ManyClients || !asks && !only {
		return
	}
	older := r.metOlder(ctx, t)
	if older == nil || e.older.asksByResult(q) || asks && older.Status().Protocol == "" && !t.await(ctx, older) {
		return
	}
	if has, shared := offered(q, older.Status().Offers), offered(q, e.status().Offers); shared && !(asks && has) || !has {
		return
	}
	if !asks || e.server.Spec.Type == transport.Stdio {
		t.single, t.older = older, asks
		return
	}
	// If no further session can be opened, the shared session serves the client as well as it can.
	if own, release, err := r.clientSession(e, q.Client, nil, false); err == nil && own != nil {
		t.single, t.release, t.older = own.upstream, release, true
	}
}

// offered reports whether a server with these offers serves a request. It checks only subscriptions and completions; for all
// other requests it returns true.
func offered(q *request.Request, offers catalog.Offers) bool {
	return (q.Subscription == nil || offers.Subscribe) && (q.Method != "completion/complete" || offers.Completions)
}

// isOlder reports whether a client speaks the legacy era; false if the client has not said its version.
func isOlder(client *caller.Client) bool {
	return client != nil && client.Version != "" && !client.Modern()
}

// asksOlder reports whether a client with an ID speaks the legacy era and can be asked questions.
func asksOlder(client *caller.Client) bool {
	return client.Ident() != "" && isOlder(client) && client.Answers()
}

// metOlder returns the server's session of the legacy era, or nil if there is none. It opens that session if there is a reason (see
// meetOlder). As long as the era of the shared session is not known, metOlder first waits for it, but not longer than the request
// may wait.
func (r *Registry) metOlder(ctx context.Context, t *route) *upstream.Upstream {
	e := t.entry
	if status := e.status(); status.Protocol == "" {
		t.await(ctx, e.upstream)
	}
	status := e.status()
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.entries[e.server.Spec.Name]; r.ended || now == nil || now.upstream != e.upstream {
		return nil // a reload has replaced the server
	}
	r.meetOlder(e, &status)
	return e.older.upstream
}

// asksByResult reports whether the tool of a request is known to ask questions only with input_required results.
func (o *olderEra) asksByResult(q *request.Request) bool {
	if q.Method != "tools/call" {
		return false
	}
	_, seen := o.byResult.Load(wire.MemberText(q.Params, "name"))
	return seen
}

// await waits while u connects, but not longer than the request may wait. It reports whether u has ever had a session. The time
// that await takes is subtracted from the wait of the request.
func (t *route) await(ctx context.Context, u *upstream.Upstream) bool {
	began := time.Now()
	if t.wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.wait)
		defer cancel()
	}
	u.Ask()
	u.Await(ctx)
	if t.wait > 0 {
		t.wait = max(t.wait-time.Since(began), time.Nanosecond)
		t.request.Wait = t.wait
	}
	return u.Status().Protocol != ""
}

// learn records that the tool of the request asks questions only with input_required results.
func (t *route) learn() {
	if t.request.Method == "tools/call" {
		t.entry.older.byResult.Store(wire.MemberText(t.request.Params, "name"), true)
	}
}

// asksByResult reports whether err says that a tool tried to ask a legacy client by an input_required result. The legacy era has no
// such results. The SDKs for TypeScript and Go do not fail then: they send the question as a request, unless the session lacks the
// capability (errUndeclared). The Python SDK fails with the first of the two texts below, FastMCP with the second.
func asksByResult(err error) bool {
	rpc, ok := errors.AsType[*wire.RPCError](err)
	return err == errUndeclared || ok && (rpc.Message == "Handler returned an invalid result" || strings.Contains(rpc.Message, "InputRequiredResult"))
}

// undeclared reports whether the result says that the tool has asked the client for something, but the session did not declare
// the capability for that. For example, a session that several clients share declares no roots. The texts are from the SDK for
// TypeScript.
func undeclared(result json.RawMessage) bool {
	return bytes.Contains(result, []byte("Cannot request input ")) && bytes.Contains(result, []byte("-era connection did not declare the required capability"))
}

var errUndeclared = errors.New("the session did not declare what the tool asks for")

func eraOf(modern bool) string {
	if modern {
		return upstream.EraModern
	}
	return upstream.EraLegacy
}

// offersToOlder returns what a server offers to legacy clients. ok is false if that is unknown, or if the snapshot already shows
// it. The snapshot may have something else in two cases: for a PerClient server, as long as the client's own session has not read
// what the server offers; and for a server whose lists are known only from the saved record. The caller holds the lock.
func (e *entry) offersToOlder() (offers catalog.Offers, ok bool) {
	if e.upstream == nil {
		return offers, false
	}
	if offers, ok = e.olderOffers(); ok {
		return offers, e.server.PerClient
	}
	offers, ok = e.older.byEra[upstream.EraLegacy]
	return offers, ok && e.cached != nil && !e.status().Listed
}

// olderSnapshot returns the snapshot for legacy clients, made from the shared snapshot snap; nil if it would be equal to snap.
// The caller holds the lock.
func (r *Registry) olderSnapshot(snap *catalog.Snapshot) *catalog.Snapshot {
	var servers []catalog.Server
	for i := range snap.Servers {
		e := r.entries[snap.Servers[i].Name]
		older, ok := e.offersToOlder()
		if !ok || older == snap.Servers[i].Offers {
			continue
		}
		if servers == nil {
			servers = slices.Clone(snap.Servers)
		}
		servers[i].Offers = older
	}
	if servers == nil {
		return nil
	}
	made := catalog.NewSnapshot(servers)
	made.Rules = snap.Rules
	return made
}
