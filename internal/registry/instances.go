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

// instances are those of a server with several addresses, on whose shared sessions the
// calls are spread. The catalogue is that of one of them.
type instances struct {
	all  []*upstream.Upstream
	host []string // where each is
	turn atomic.Uint32

	mu     sync.Mutex
	home   map[string]*upstream.Upstream // by client: the instance that may keep something for it
	source int                           // of the catalogue
	other  []bool                        // lists other tools than the catalogue has
}

// newInstances makes the instances of an entry whose spec this is; nil if there is one only.
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

// upstreams are all upstreams of an entry; none if it is disabled or at fault.
func (e *entry) upstreams() []*upstream.Upstream {
	switch {
	case e.upstream == nil:
		return nil
	case e.instances == nil:
		return []*upstream.Upstream{e.upstream}
	}
	return e.instances.all
}

func (e *entry) start() {
	for _, u := range e.upstreams() {
		u.Start()
	}
}

// await returns when an instance is up, or the first attempt of each has ended, or with ctx.
func (e *entry) await(ctx context.Context) {
	if e.instances == nil {
		e.upstream.Await(ctx)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for _, u := range e.instances.all {
		all.Go(func() { // ends with the attempt, or ctx
			if u.Await(ctx); up(u.Status().State) {
				cancel()
			}
		})
	}
	all.Wait()
}

// up reports whether calls can be made on an upstream in this state.
func up(state catalog.State) bool { return state == catalog.Ready || state == catalog.Degraded }

// lists is the upstream whose lists are the catalogue: the one that it was, while that is
// up, else the first that is up.
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

// instanceChanged says once of each instance that it lists other tools than the catalogue
// has. The supervising goroutines call it.
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

// status is what is known about the server of an entry, over all its instances.
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
		if one.Reason != "" { // else it is ready, idle, or at its first attempt
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

// others says which instances list other tools than the catalogue has; empty if none does.
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

// ranks say to instances in which states calls go first: 0. An idle one is woken by a call,
// or it would get none while others are up.
var ranks = map[catalog.State]int{catalog.Ready: 0, catalog.Idle: 0, catalog.Degraded: 1, catalog.Connecting: 2, catalog.Unavailable: 3}

// pick is the instance for a request of a client, nil if all were tried. more: another one
// is up. It is the one with the fewest open calls of those in the best state; the requests
// of one client stay together where a server may keep something for it.
func (in *instances) pick(client *caller.Client, tried []*upstream.Upstream) (u *upstream.Upstream, more bool) {
	var best upstream.Status
	var rank, open int
	var ready []*upstream.Upstream
	offset := int(in.turn.Add(1))
	for i := range in.all {
		one := in.all[(i+offset)%len(in.all)] // of equals the one after the last
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

// homeOf is which of the ready instances keeps something for a client: the one that it had,
// else best. A request without a session has that of its connection.
func (in *instances) homeOf(client *caller.Client, best *upstream.Upstream, ready []*upstream.Upstream) *upstream.Upstream {
	if client != nil && client.Peer != "" {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(client.Peer))
		slices.SortFunc(ready, func(a, b *upstream.Upstream) int { return slices.Index(in.all, a) - slices.Index(in.all, b) })
		return ready[int(hash.Sum32()%uint32(len(ready)))]
	}
	id := client.Ident() // a command has none
	in.mu.Lock()
	defer in.mu.Unlock()
	switch home := in.home[id]; {
	case home != nil && slices.Contains(ready, home):
		return home
	case home == nil || !up(home.Status().State): // else it has failed this one request
		in.home[id] = best
	}
	return best
}

// forget drops what is kept of a client that is gone.
func (in *instances) forget(client string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.home, client)
}

// elsewhere reports whether a request that ended with err may be sent to another instance,
// and whether it may have been executed.
func elsewhere(err error, repeatable bool) (next, executed bool) {
	if unavailable, ok := errors.AsType[*request.UnavailableError](err); ok {
		return !unavailable.Stopped, false
	}
	if lost, ok := errors.AsType[*request.LostError](err); ok {
		return repeatable || !lost.MayHaveRun, lost.MayHaveRun
	}
	status, ok := errors.AsType[*request.HTTPError](err) // of what stands before an instance that is gone
	return ok && repeatable && status.Status >= 500, true
}
