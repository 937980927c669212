// Package limits bounds how much callers may use: calls, bytes of results and sessions of
// a principal, of a server and in all, and requests that come too fast.
package limits

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/lru"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/caller"
	"mcpx/internal/request"
)

// Options are the limits of a process, Quota is how much one principal may use, or all together,
// or all of one server. What is zero bounds nothing.
type (
	Options = conf.Limits
	Quota   = conf.Quota
)

// Limits count what is used. Safe for concurrent use. A nil *Limits bounds nothing.
type Limits struct {
	options    func() *Options // those in force
	mu         sync.Mutex
	all        holder
	servers    *lru.Map[string, holder]
	principals *lru.Map[string, holder]
	addresses  *lru.Map[netip.Addr, bucket]
	proved     *lru.Map[uint64, struct{}] // digests of the credentials of principals
	seed       maphash.Seed               // of the digests
	refused    *lru.Map[refusedKey, bucket]
}

// mostKept bounds each of the maps of Limits ([lru.Map]): callers can make up keys. One that
// is forgotten begins anew.
const mostKept = 10_000

// New makes limits that stay as they are.
func New(options Options) *Limits { return Following(func() *Options { return &options }) }

// Following makes limits that follow the options which current returns: it is called for each
// use. What is under way stays counted when they change.
func Following(current func() *Options) *Limits {
	return &Limits{
		options: current, seed: maphash.MakeSeed(),
		servers:    lru.New[string](mostKept, (*holder).busy),
		principals: lru.New[string](mostKept, (*holder).busy),
		addresses:  lru.New[netip.Addr, bucket](mostKept, nil),
		proved:     lru.New[uint64, struct{}](mostKept, nil),
		refused:    lru.New[refusedKey, bucket](mostKept, nil),
	}
}

// holder is a principal, a server, or all together, with the use of its quota.
type holder struct {
	quota        Quota // for which the buckets and the gate were made
	calls, bytes bucket
	requests     bucket
	pace, bodies bucket
	gate         semaphore.Semaphore
	open         int // calls from Begin to End
	sessions     int
	reading      int64 // bytes of bodies
}

func (h *holder) busy() bool { return h.open > 0 || h.sessions > 0 || h.reading > 0 }

// under gives the holder a quota. Buckets of a changed one begin full.
func (h *holder) under(q Quota) *holder {
	if h.quota != q {
		h.quota = q
		h.calls, h.bytes, h.requests, h.pace, h.bodies = bucket{}, bucket{}, bucket{}, bucket{}, bucket{}
		h.gate.SetLimit(q.ConcurrentCalls)
		h.gate.SetQueue(q.Queue)
	}
	return h
}

// refusal says why no call may begin now, with whose limit that is (of, behind a space); nil if
// one may. It takes nothing.
func (h *holder) refusal(now time.Time, of string) *request.LimitError {
	q := &h.quota
	if wait := h.calls.wait(now, callsOf(q)); wait > 0 {
		return &request.LimitError{Limit: fmt.Sprintf("%d calls a minute%s", q.CallsPerMinute, of), RetryAfter: wait}
	}
	if wait := h.bytes.wait(now, bytesOf(q)); wait > 0 {
		return &request.LimitError{Limit: fmt.Sprintf("%d bytes of results a minute%s", q.ResultBytesPerMinute, of), RetryAfter: wait}
	}
	return nil
}

func callsOf(q *Quota) flow {
	return flow{float64(q.CallsPerMinute) / 60, float64(cmp.Or(q.Burst, q.CallsPerMinute))}
}

func bytesOf(q *Quota) flow {
	return flow{float64(q.ResultBytesPerMinute) / 60, float64(q.ResultBytesPerMinute)}
}

func boundsCalls(q *Quota) bool {
	return q.CallsPerMinute > 0 || q.ResultBytesPerMinute > 0 || q.ConcurrentCalls > 0
}

// of returns the holder for a principal. The caller holds the lock.
func (l *Limits) of(p *caller.Principal) *holder {
	return l.principals.Get(p.Key()).under(*l.quotaOf(p))
}

func (l *Limits) quotaOf(p *caller.Principal) *Quota {
	if p == nil {
		return &l.options().Anybody
	}
	return &l.options().Principal
}

// Call is a call from Begin to End. The zero value is one that nothing bounds.
type Call struct {
	limits                 *Limits
	all, server, principal *holder
	inside                 bool // the gate of the principal
}

// Limit is the middleware that asks the limits of the caller, and counts what the caller uses.
func (l *Limits) Limit(next request.Handler) request.Handler {
	return func(ctx context.Context, r *request.Request) (result json.RawMessage, err error) {
		use, err := l.Begin(ctx, r.Client.On(), r.To.Name, r.Belongs())
		if err != nil {
			return nil, err
		}
		defer func() { use.End(len(result)) }()
		return next(ctx, r)
	}
}

// Begin admits a call of a principal to a server, perhaps after a wait for a place among the
// calls of that principal. A part is a request that belongs to a call already admitted, such as
// one about its task: only its result counts. If the error is nil, the caller must call End.
// Else it is an *request.LimitError, or that of ctx.
func (l *Limits) Begin(ctx context.Context, p *caller.Principal, server string, part bool) (Call, error) {
	if l == nil {
		return Call{}, nil
	}
	c, err := l.begin(p, server, part)
	switch {
	case err != nil:
		return Call{}, err
	case c.limits == nil || part:
		return c, nil
	}
	if c.principal.gate.Enter(ctx) == nil {
		c.inside = true
		return c, nil
	}
	c.End(0)
	if ctx.Err() != nil {
		return Call{}, ctx.Err()
	}
	return Call{}, &request.LimitError{Limit: fmt.Sprintf("%d calls at once", c.principal.quota.ConcurrentCalls)}
}

// begin is Begin up to the wait. The error is nil or an *request.LimitError.
func (l *Limits) begin(p *caller.Principal, server string, part bool) (Call, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, who := l.options(), l.quotaOf(p)
	all, each := &o.All, &o.Server
	if !boundsCalls(all) && !boundsCalls(each) && !boundsCalls(who) {
		return Call{}, nil
	}
	c := Call{limits: l, all: l.all.under(*all), server: l.servers.Get(server).under(*each), principal: l.of(p)}
	now := time.Now()
	for _, one := range c.holders() {
		if err := one.refusal(now, one.of); err != nil && !part { // before anything is taken from any
			return Call{}, err
		}
	}
	for _, one := range c.holders() {
		one.open++
		if !part {
			one.calls.take(now, callsOf(&one.quota), 1)
		}
	}
	return c, nil
}

// named is a holder with the words for whose limits those are, behind a space.
type named struct {
	*holder
	of string
}

func (c *Call) holders() [3]named {
	return [3]named{{c.principal, ""}, {c.server, " of this server"}, {c.all, " of all callers together"}}
}

// End ends the call, whose result had so many bytes.
func (c *Call) End(bytes int) {
	if c.limits == nil {
		return
	}
	if c.inside {
		c.principal.gate.Leave()
	}
	now := time.Now()
	c.limits.mu.Lock()
	defer c.limits.mu.Unlock()
	for _, one := range c.holders() {
		one.bytes.take(now, bytesOf(&one.quota), float64(bytes))
		one.open--
	}
}

// sessionsEnd is the wait that the refusal of a session names. It is a guess: sessions end when
// their clients end them, or after session_timeout.
const sessionsEnd = time.Minute

// OpenSession counts a session of a principal. If the error is nil, the caller must call
// CloseSession with the same principal.
func (l *Limits) OpenSession(p *caller.Principal) *request.LimitError {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	who, all := l.of(p), l.all.under(l.options().All)
	if most := who.quota.Sessions; most > 0 && who.sessions >= most {
		return &request.LimitError{Limit: fmt.Sprintf("%d open sessions", most), RetryAfter: sessionsEnd}
	}
	if most := all.quota.Sessions; most > 0 && all.sessions >= most {
		return &request.LimitError{Limit: fmt.Sprintf("%d open sessions of all callers together", most), RetryAfter: sessionsEnd}
	}
	who.sessions++
	all.sessions++
	return nil
}

// CloseSession takes back what OpenSession has counted.
func (l *Limits) CloseSession(p *caller.Principal) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(p).sessions--
	l.all.sessions--
}

// ServerSession refuses one more session with a server for a single client, if open says that
// there are as many as there may be. The error is nil or a *[request.LimitError].
func (l *Limits) ServerSession(open int) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if most := l.options().Server.Sessions; most > 0 && open >= most {
		return &request.LimitError{Limit: fmt.Sprintf("%d sessions of this server with single clients", most), RetryAfter: sessionsEnd}
	}
	return nil
}

// ReadBody counts bytes of a body that a principal is about to send. It reports whether there is
// room for them beside its other bodies, and how long the caller should wait before it reads
// them. When the body is no longer read, the caller calls BodyRead with the sum.
func (l *Limits) ReadBody(p *caller.Principal, bytes int) (wait time.Duration, ok bool) {
	if l == nil {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	who, now := l.of(p), time.Now()
	if most := who.quota.BodyBytes; most > 0 && who.reading+int64(bytes) > most {
		return 0, false
	}
	who.reading += int64(bytes)
	pace := flow{float64(who.quota.BodyPace), float64(who.quota.BodyPace)}
	who.bodies.take(now, pace, float64(bytes))
	return who.bodies.wait(now, pace), true
}

// BodyRead takes back what ReadBody has counted for a body.
func (l *Limits) BodyRead(p *caller.Principal, bytes int) {
	if l == nil || bytes == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(p).reading -= int64(bytes)
}
