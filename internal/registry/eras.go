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

// A server that speaks both eras behaves differently in each: in the modern era it cannot send requests to its clients, and
// it may offer other capabilities. The shared session is of the modern era. Beside it there are sessions of the legacy era
// for the legacy clients, where many clients share mcpx. (A client over stdio owns the shared sessions, which are of its
// era anyway.)

// olderEra is what is known of a server in the legacy era, and its session of that era. The registry's lock guards it. A
// reload that keeps the upstream of the server keeps it too.
type olderEra struct {
	// upstream is a session for all legacy clients. It tells what the server offers to them, and is opened again when one of
	// them needs it. It is nil while the shared session is not of the modern era, and if the server refuses the legacy one.
	upstream *upstream.Upstream
	// refused is set if the server refused the legacy era, while the shared session had restarted so many times before.
	refused  bool
	restarts int
	// byEra are the offers in each era in which the server was seen, now or by an earlier mcpx.
	byEra map[string]catalog.Offers
	// byResult are the names of the tools that ask in the way of the modern era alone: by an input_required result.
	byResult sync.Map
}

// meetOlder opens a second session, of the legacy era, once the shared one turns out to be of the modern era. It ends the
// second one if the server does not speak the legacy era. The caller holds the lock.
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

// olderSpec returns the spec of the session of the legacy era. The caller holds the lock.
func (r *Registry) olderSpec(e *entry, status *upstream.Status) upstream.Spec {
	spec := e.server.Spec
	spec.Protocol = upstream.EraLegacy
	spec.Introduction.Capabilities, spec.Introduction.Owner = caller.SharedCapabilities, nil
	spec.Catalogue.Shared = func() []catalog.Tool { return e.upstream.Status().Tools }
	spec.OnChange, spec.OnUnknown = r.changed, nil
	spec.Lazy, spec.StopIdle = true, cmp.Or(e.server.SessionIdle, defaultIdle)
	// Another process is started only for a client, or if there is something to find out.
	spec.Seen = spec.Type == transport.Stdio && !e.server.PerClient && (!status.Offers.Resources || status.Offers.Subscribe)
	if spec.Type == transport.HTTP {
		spec.Logger = slog.New(slog.DiscardHandler) // that a server speaks one era only is no fault
	} else if spec.Logger != nil {
		spec.Logger = spec.Logger.With("era", upstream.EraLegacy)
	}
	return spec
}

// olderOffers returns what the server offers in the legacy era; ok is false while that is unknown. The caller holds the lock.
func (e *entry) olderOffers() (offers catalog.Offers, ok bool) {
	if e.older.upstream == nil {
		return offers, false
	}
	status := e.older.upstream.Status()
	return status.Offers, status.Protocol != ""
}

// offersOfBoth adds to the offers of the shared session those of the legacy era that mcpx can pass on to clients of either
// era: see [Registry.olderRoute]. The caller holds the lock.
func (e *entry) offersOfBoth(offers catalog.Offers) catalog.Offers {
	if older, ok := e.olderOffers(); ok && !e.server.PerClient {
		offers.Subscribe = offers.Subscribe || older.Subscribe && offers.Resources
		offers.Completions = offers.Completions || older.Completions
	}
	return offers
}

// olderRoute sends a request over a session of the legacy era, if it has to: one of a legacy client that can be asked
// something, unless the server serves it in the modern era only, and one that the server serves in the legacy era only.
// Over HTTP such a client gets a session of its own, so that the server's questions surely are for it, and its roots too; a
// process is one for all legacy clients, as the shared session is one for all clients. t is left as it is if the server does
// not speak the legacy era.
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
		t.only, t.older = older, asks
		return
	}
	// A limit of sessions, or the end of mcpx: the shared session serves the client as well as it can.
	if own, release, err := r.clientSession(e, q.Client, nil, false); err == nil && own != nil {
		t.only, t.release, t.older = own.upstream, release, true
	}
}

// offered reports whether a server that offers this serves a request; one that is about no capability, always.
func offered(q *request.Request, offers catalog.Offers) bool {
	return (q.Subscription == nil || offers.Subscribe) && (q.Method != "completion/complete" || offers.Completions)
}

// isOlder reports whether a client speaks the legacy era.
func isOlder(client *caller.Client) bool {
	return client != nil && client.Version != "" && !client.Modern()
}

// asksOlder reports whether a client speaks the legacy era and can be asked something.
func asksOlder(client *caller.Client) bool {
	return client.Ident() != "" && isOlder(client) && client.Answers()
}

// metOlder returns the session of the legacy era, after the shared session has told whether there may be one.
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

// asksByResult reports whether the tool of a request was seen to ask by its results alone.
func (o *olderEra) asksByResult(q *request.Request) bool {
	if q.Method != "tools/call" {
		return false
	}
	_, seen := o.byResult.Load(wire.MemberText(q.Params, "name"))
	return seen
}

// await waits for the first attempt of u, as a part of the wait of the request, and reports whether it was successful.
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

// learn notes that the tool of the request asks by its results alone.
func (t *route) learn() {
	if t.request.Method == "tools/call" {
		t.entry.older.byResult.Store(wire.MemberText(t.request.Params, "name"), true)
	}
}

// asksByResult reports the error of a server that had to send an input_required result to a client of the legacy era. The
// SDKs for TypeScript and Go send requests instead; the Python SDK has the first text, FastMCP the second.
func asksByResult(err error) bool {
	rpc, ok := errors.AsType[*wire.RPCError](err)
	return err == errUndeclared || ok && (rpc.Message == "Handler returned an invalid result" || strings.Contains(rpc.Message, "InputRequiredResult"))
}

// undeclared reports the result of a tool that has asked by its result for something that the session did not declare, as
// one of several clients declares no roots. The SDK for TypeScript then answers so.
func undeclared(result json.RawMessage) bool {
	return bytes.Contains(result, []byte("Cannot request input ")) && bytes.Contains(result, []byte("-era connection did not declare the required capability"))
}

var errUndeclared = errors.New("the session did not declare what the tool asks for")

// eraOf returns the name of an era.
func eraOf(modern bool) string {
	if modern {
		return upstream.EraModern
	}
	return upstream.EraLegacy
}

// offersToOlder returns what a server offers to legacy clients, if that is known and not what the snapshot says: of a server
// with a session for each client, until that session tells it, and of one that has answered only an earlier mcpx. The
// caller holds the lock.
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

// olderSnapshot returns the snapshot for legacy clients, nil if it says the same. The caller holds the lock.
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
