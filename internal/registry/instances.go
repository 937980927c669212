package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/transport"
	"mcpx/internal/upstream"
)

// instances are the upstreams of a server with several addresses. Calls are distributed over their shared sessions. The
// catalogue comes from a single instance.
type instances struct {
	all  []*upstream.Upstream
	host []string // the host of each instance, for messages
	turn atomic.Uint32

	mu     sync.Mutex
	home   map[string]*upstream.Upstream // by client ID: the instance that may have state of that client
	source int                           // the index of the instance that the catalogue comes from
	other  []bool                        // by index: whether the instance lists other tools than the catalogue has
}

// newInstances returns the instances of an entry; nil if the server has only one address or is PerClient.
func (r *Registry) newInstances(e *entry, spec upstream.Spec) *instances {
	if len(spec.Remote.URLs) < 2 || e.server.PerClient {
		return nil
	}
	in := &instances{home: make(map[string]*upstream.Upstream), other: make([]bool, len(spec.Remote.URLs))}
	for _, address := range spec.Remote.URLs {
		one := spec
		host := transport.HostOf(address)
		one.Remote.URL, one.Remote.URLs = address, nil
		if one.Logger != nil {
			one.Logger = one.Logger.With("instance", host)
		}
		one.OnChange = func() { r.instanceChanged(e) }
		in.all, in.host = append(in.all, upstream.New(one)), append(in.host, host)
	}
	return in
}

// upstreams returns the upstream of an entry, or the upstreams of all its instances. It returns nil if the server is disabled or
// misconfigured. The session of the legacy era is not among them, because it is in e.older.
func (e *entry) upstreams() []*upstream.Upstream {
	switch {
	case e.upstream == nil:
		return nil
	case e.instances == nil:
		return []*upstream.Upstream{e.upstream}
	}
	return e.instances.all
}

func (e *entry) start(r *Registry) {
	if e.pooled != nil {
		e.pooled.start(r)
		return
	}
	for _, u := range e.upstreams() {
		u.Start()
	}
}

// await returns as soon as one instance is up, or the first attempt of every instance to connect has ended, or ctx has ended.
func (e *entry) await(ctx context.Context) {
	if e.instances == nil {
		e.upstream.Await(ctx)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for _, u := range e.instances.all {
		all.Go(func() { // ends with the attempt, or with ctx
			if u.Await(ctx); up(u.Status().State) {
				cancel()
			}
		})
	}
	all.Wait()
}

// up reports whether an upstream in this state has a session.
func up(state catalog.State) bool { return state == catalog.Ready || state == catalog.Degraded }

// lists returns the upstream whose lists are the catalogue. It keeps the instance that it has chosen before as long as this
// instance is up and has listed its tools. Otherwise it chooses the first instance that is up and has listed its tools. If there
// is none, it keeps the previous one.
func (e *entry) lists() *upstream.Upstream {
	in := e.instances
	if in == nil {
		return e.upstream
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if now := in.all[in.source].Status(); !now.Known || !up(now.State) {
		if i := slices.IndexFunc(in.all, func(u *upstream.Upstream) bool {
			status := u.Status()
			return status.Known && up(status.State)
		}); i >= 0 {
			in.source = i
		}
	}
	return in.all[in.source]
}

// instanceChanged publishes a change of an instance. It logs each instance that begins to list other tools than the catalogue
// has. The goroutines that supervise the upstreams call it.
func (r *Registry) instanceChanged(e *entry) {
	r.changed()
	in, shared := e.instances, e.lists().Status()
	in.mu.Lock()
	defer in.mu.Unlock()
	for i, u := range in.all {
		own := u.Status()
		if !own.Known || !up(own.State) || !shared.Known {
			continue
		}
		other := !catalog.EqualTools(own.Tools, shared.Tools)
		if other && !in.other[i] {
			r.log.Warn("an instance lists other tools than the one whose list is the catalogue",
				"server", e.server.Spec.Name, "instance", in.host[i], "catalogue", in.host[in.source])
		}
		in.other[i] = other
	}
}

// status returns the status of an entry's server, combined from all its instances.
func (e *entry) status() upstream.Status {
	status := e.lists().Status()
	if e.instances == nil {
		return status
	}
	ready, trouble := 0, ""
	for i, u := range e.instances.all {
		one := u.Status()
		if up(one.State) {
			ready++
		}
		if one.Reason != "" { // the instance is in trouble
			trouble = cmp.Or(trouble, e.instances.host[i]+": "+one.Reason)
		}
	}
	if trouble != "" {
		status.Reason = fmt.Sprintf("%d of %d instances are up; %s", ready, len(e.instances.all), trouble)
		if ready > 0 {
			status.State, status.RetryAfter = catalog.Degraded, time.Time{}
		}
	}
	if others := e.instances.others(); others != "" && ready > 0 {
		status.Reason = strings.TrimPrefix(status.Reason+"; "+others, "; ")
	}
	return status
}

// others returns a text that names the instances whose tools differ from the catalogue; "" if there are none.
func (in *instances) others() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	var hosts []string
	for i, other := range in.other {
		if other {
			hosts = append(hosts, in.host[i])
		}
	}
	if len(hosts) == 0 {
		return ""
	}
	return "other tools than the catalogue has are listed by " + strings.Join(hosts, ", ")
}

// ranks is the order in which instances get calls, by state. An idle instance ranks as high as a ready one, because only a call
// wakes it up: it would otherwise get no calls as long as others are up.
var ranks = map[catalog.State]int{catalog.Ready: 0, catalog.Idle: 0, catalog.Degraded: 1, catalog.Connecting: 2, catalog.Unavailable: 3}

// pick returns the instance for a request of a client. The parameter tried has the instances to which the request was already sent;
// if it has all instances, u is nil. hasOther reports whether a further instance is up that is neither u nor in tried. pick prefers
// the instance with the fewest open calls among those in the best state. But if the server may keep state between requests, all
// requests of a client go to the same instance as long as it is up.
func (in *instances) pick(client *caller.Client, tried []*upstream.Upstream) (u *upstream.Upstream, hasOther bool) {
	var best upstream.Status
	var rank, open int
	var ready []*upstream.Upstream
	offset := int(in.turn.Add(1))
	for i := range in.all {
		one := in.all[(i+offset)%len(in.all)] // equal instances take turns
		if slices.Contains(tried, one) {
			continue
		}
		status := one.Status()
		if up(status.State) {
			ready = append(ready, one)
		}
		itsRank, itsOpen := ranks[status.State], one.Open()
		if u == nil || cmp.Or(itsRank-rank, itsOpen-open) < 0 {
			u, best, rank, open = one, status, itsRank, itsOpen
		}
	}
	if best.Stateful && up(best.State) {
		u = in.homeOf(client, u, ready)
	}
	return u, slices.ContainsFunc(ready, func(other *upstream.Upstream) bool { return other != u })
}

// homeOf returns the instance that the client has used before, because that instance may have state of the client. If there is
// none, or if it is not in the parameter ready, homeOf returns the parameter best. For a client whose connection is known (Peer),
// the choice depends only on the connection and on the instances in ready.
func (in *instances) homeOf(client *caller.Client, best *upstream.Upstream, ready []*upstream.Upstream) *upstream.Upstream {
	if client != nil && client.Peer != "" {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(client.Peer))
		slices.SortFunc(ready, func(a, b *upstream.Upstream) int { return slices.Index(in.all, a) - slices.Index(in.all, b) })
		return ready[int(hash.Sum32()%uint32(len(ready)))]
	}
	id := client.Ident() // empty for a command of mcpx: all such commands share one home
	in.mu.Lock()
	defer in.mu.Unlock()
	switch home := in.home[id]; {
	case home != nil && slices.Contains(ready, home):
		return home
	case home == nil || !up(home.Status().State): // an instance that is up stays the home: only this one request failed there
		in.home[id] = best
	}
	return best
}

// forget removes what is stored for a client that has disconnected.
func (in *instances) forget(client string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.home, client)
}

// elsewhere is for a request that failed with err on one instance. retry reports whether the request may be sent to another
// instance; executed reports whether the failed instance may have executed the request.
func elsewhere(err error, repeatable bool) (retry, executed bool) {
	if unavailable, ok := errors.AsType[*request.UnavailableError](err); ok {
		return !unavailable.Stopped, false
	}
	if lost, ok := errors.AsType[*request.LostError](err); ok {
		return repeatable || !lost.MayHaveRun, lost.MayHaveRun
	}
	status, ok := errors.AsType[*request.HTTPError](err) // from a gateway in front of an instance that is gone
	return ok && repeatable && status.Status >= 500, true
}
