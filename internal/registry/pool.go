package registry

import (
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"mcpx/internal/base/lru"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/caller"
	"mcpx/internal/upstream"
)

// Pool has the upstreams that several registries of this process share. Each registry serves one client. The pool must be
// closed after the registries, which use its upstreams until then. It is safe for concurrent use.
type Pool struct {
	log      *slog.Logger
	installs *semaphore.Semaphore

	mu    sync.Mutex // never held while a registry or an upstream is called
	idle  time.Duration
	all   map[string]*pooled        // by Server.Shared
	asked lru.Map[string, struct{}] // by Server.Shared: servers that have asked a client something; no further registry joins them
	ended bool
	work  sync.WaitGroup // goroutines that end upstreams
}

// pooled is an upstream of a Pool. When no registry uses it any more, it is ended after a while.
type pooled struct {
	pool     *Pool
	key      string
	name     string // the name of the server
	upstream *upstream.Upstream
	starting sync.Once
	usedBy   map[*Registry]bool // guarded by Pool.mu
	timer    *time.Timer        // guarded by Pool.mu; runs after the last registry has left
	ended    bool               // guarded by Pool.mu; the upstream is not in the pool any more, and is being ended
}

// NewPool returns an empty pool. An upstream that no registry uses is ended after the time idle.
func NewPool(idle time.Duration, log *slog.Logger) *Pool {
	return &Pool{
		idle: idle, log: log, installs: semaphore.New(upstream.MaxInstalls, semaphore.Queue{}),
		all: make(map[string]*pooled),
	}
}

// SetIdle changes the time after which an upstream that no registry uses is ended. For an upstream that is unused already, the
// old time applies.
func (p *Pool) SetIdle(idle time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = idle
}

// join returns the upstream for the key, which is the server's Shared. It records that r uses the upstream; leave and drop remove
// this record. If no registry uses this key yet, join makes the upstream from spec. join returns nil if the server must not be
// shared, or if the pool is closed.
func (p *Pool) join(r *Registry, key string, spec upstream.Spec) *pooled {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.asked.Find(key) != nil {
		return nil
	}
	if one := p.all[key]; one != nil {
		one.usedBy[r] = true
		if one.timer != nil {
			one.timer.Stop()
		}
		return one
	}
	one := &pooled{pool: p, key: key, name: spec.Name, usedBy: map[*Registry]bool{r: true}}
	// The upstream can outlive its first registry, so it must not keep that registry's logger, client, or limits for all servers
	// together.
	spec.Logger, spec.Concurrency.All, spec.Concurrency.Installs = p.log, nil, p.installs
	spec.Introduction.Owner = nil
	if !spec.NoQuestions {
		spec.Introduction.Capabilities = caller.SharedCapabilities
	}
	spec.OnChange = func() { one.each((*Registry).changed) }
	spec.OnUnknown = func(method string, params json.RawMessage) {
		one.each(func(r *Registry) { r.unknown(one.name, method, params) })
	}
	spec.OnLog = func(program string, params json.RawMessage) {
		one.each(func(r *Registry) { r.logged(program, params) })
	}
	spec.OnQuestion = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked.Get(key)
	}
	one.upstream = upstream.New(spec)
	p.all[key] = one
	return one
}

// Renew removes the servers with this name from the pool, so that the next registry that uses such a server starts a new
// process. Registries that already use the old process keep it until they leave it; without such registries it ends at once.
func (p *Pool) Renew(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, one := range p.all {
		if one.name != server {
			continue
		}
		delete(p.all, key)
		if len(one.usedBy) == 0 {
			one.end()
		}
	}
}

func (p *pooled) each(call func(*Registry)) {
	p.pool.mu.Lock()
	all := make([]*Registry, 0, len(p.usedBy))
	for r := range p.usedBy {
		all = append(all, r)
	}
	p.pool.mu.Unlock()
	for _, r := range all {
		call(r)
	}
}

// start starts the upstream, unless another registry has started it already.
func (p *pooled) start(r *Registry) {
	p.starting.Do(p.upstream.Start)
	r.changed() // the upstream may already run for other registries, and then reports no change to r
}

// leave records that r no longer uses the upstream. When no registry uses it any more, the upstream is ended after the idle time,
// or at once if Renew has removed it from the pool.
func (p *pooled) leave(r *Registry) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	switch last := p.without(r); {
	case !last:
	case p.pool.all[p.key] == p:
		p.timer = time.AfterFunc(p.pool.idle, p.retire)
	default:
		p.end()
	}
}

// drop records that r no longer uses the upstream, because Apply has removed or replaced the server in r. Unlike leave, it keeps no
// unused upstream for a later registry, because none is likely to use it soon. If last is true, no other registry uses the
// upstream. It is then not in the pool any more, and r must end it.
func (p *pooled) drop(r *Registry) (last bool) {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	if last = p.without(r); last {
		p.remove()
	}
	return last
}

// without records that r no longer uses the upstream. last is true if no other registry uses it either, and it has not been ended.
// The caller holds the lock.
func (p *pooled) without(r *Registry) (last bool) {
	if !p.usedBy[r] {
		return false
	}
	delete(p.usedBy, r)
	return len(p.usedBy) == 0 && !p.ended
}

// retire ends the upstream, unless a registry uses it again or it has been ended already.
func (p *pooled) retire() {
	p.pool.mu.Lock()
	defer p.pool.mu.Unlock()
	if len(p.usedBy) == 0 && !p.ended {
		p.end()
	}
}

// end ends the upstream. The caller holds the lock.
func (p *pooled) end() {
	p.remove()
	p.pool.work.Go(func() { p.upstream.Close(retireWithin) }) // ends soon; Pool.Close waits for it
}

// remove takes the upstream out of the pool for good. The caller holds the lock.
func (p *pooled) remove() {
	p.ended = true
	if p.pool.all[p.key] == p {
		delete(p.pool.all, p.key)
	}
}

// Close ends all upstreams. All registries have left by then, so the upstreams that Renew removed are ending already.
func (p *Pool) Close() {
	p.mu.Lock()
	p.ended = true
	for _, one := range p.all {
		one.end()
	}
	p.mu.Unlock()
	p.work.Wait()
}
