// Package limits bounds how much callers may use: calls, bytes of results and sessions of
// a principal, of a server and in all, and requests that come too fast.
package limits

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"mcpx/internal/base/conf"
	"mcpx/internal/base/lru"
	"mcpx/internal/base/semaphore"
	"mcpx/internal/base/state"
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
//
// What a caller may use of all processes that serve it lies in counters: calls, bytes of results and requests. The rest bounds what a
// caller takes of this one: calls under way, sessions that live here, bodies that are being read, the pace of both, and how late
// refusals are.
type Limits struct {
	options    func() *Options // those in force
	counters   state.Counters
	mu         sync.Mutex
	draws      [6]state.Draw // room for those of one call
	all        usage
	servers    *lru.Map[string, usage]
	principals *lru.Map[string, usage]
	proved     *lru.Map[uint64, struct{}] // digests of the credentials of principals
	seed       maphash.Seed               // of the digests, which are a cache of this process
	refused    *lru.Map[refusedKey, state.Bucket]
}

// mostKept bounds each of the maps of Limits ([lru.Map]): callers can make up keys. One that
// is forgotten begins anew.
const mostKept = 10_000

// NewCounters makes the counters of limits for one process.
func NewCounters() state.Counters { return state.NewCounters(mostKept) }

// New makes limits that stay as they are, with counters of their own.
func New(options Options) *Limits {
	return Following(func() *Options { return &options }, NewCounters())
}

// Following makes limits that follow the options which current returns: it is called for each
// use. What is under way stays counted when they change.
func Following(current func() *Options, counters state.Counters) *Limits {
	return &Limits{
		options: current, counters: counters, seed: maphash.MakeSeed(),
		servers:    lru.New[string](mostKept, (*usage).busy),
		principals: lru.New[string](mostKept, (*usage).busy),
		proved:     lru.New[uint64, struct{}](mostKept, nil),
		refused:    lru.New[refusedKey, state.Bucket](mostKept, nil),
	}
}

// usage is a principal, a server, or all together, with the use of its quota in this process.
type usage struct {
	kind         *kind
	whose        string // its name among those of its kind
	quota        Quota  // for which the buckets and the gate were made
	pace, bodies state.Bucket
	gate         semaphore.Semaphore
	open         int   // calls from Begin to End
	sessions     int   // that live in this process
	reading      int64 // bytes of bodies
}

// kind names what the counters have of a kind of holders.
type kind struct {
	calls, bytes, requests string
	of                     string // whose limit it is, in words, behind a space
}

// The kinds of holders, and what is counted of an address.
var (
	ofPrincipal = &kind{calls: "calls of a principal", bytes: "bytes of a principal", requests: "requests of a principal"}
	ofServer    = &kind{calls: "calls of a server", bytes: "bytes of a server", of: " of this server"}
	ofAll       = &kind{calls: "calls of all", bytes: "bytes of all", of: " of all callers together"}
)

const addressRequests = "requests of an address"

func (h *usage) busy() bool { return h.open > 0 || h.sessions > 0 || h.reading > 0 }

// under says which holder it is, and gives it a quota. Buckets of a changed one begin full.
func (h *usage) under(q Quota, kind *kind, whose string) *usage {
	if h.kind == nil || h.quota != q {
		h.kind, h.whose, h.quota = kind, whose, q
		h.pace, h.bodies = state.Bucket{}, state.Bucket{}
		h.gate.SetLimit(q.ConcurrentCalls)
		h.gate.SetQueue(q.Queue)
	}
	return h
}

// draw appends what a call that begins now takes of the counters. Of the bytes of results it asks only whether there is room.
func (h *usage) draw(from []state.Draw) []state.Draw {
	if h.quota.CallsPerMinute > 0 {
		from = append(from, state.Draw{What: h.kind.calls, Whose: h.whose, Flow: callsOf(&h.quota), Tokens: 1})
	}
	if h.quota.ResultBytesPerMinute > 0 {
		from = append(from, h.bytes(0))
	}
	return from
}

// bytes are so many bytes of results.
func (h *usage) bytes(n int) state.Draw {
	return state.Draw{What: h.kind.bytes, Whose: h.whose, Flow: bytesOf(&h.quota), Tokens: float64(n)}
}

// limit is the limit of the holder that a draw meets, in words; empty if the draw is another holder's.
func (h *usage) limit(d *state.Draw) string {
	switch d.What {
	case h.kind.calls:
		return fmt.Sprintf("%d calls a minute%s", h.quota.CallsPerMinute, h.kind.of)
	case h.kind.bytes:
		return fmt.Sprintf("%d bytes of results a minute%s", h.quota.ResultBytesPerMinute, h.kind.of)
	}
	return ""
}

func callsOf(q *Quota) state.Rate {
	return state.Rate{Rate: float64(q.CallsPerMinute) / 60, Burst: float64(cmp.Or(q.Burst, q.CallsPerMinute))}
}

func bytesOf(q *Quota) state.Rate {
	return state.Rate{Rate: float64(q.ResultBytesPerMinute) / 60, Burst: float64(q.ResultBytesPerMinute)}
}

func boundsCalls(q *Quota) bool {
	return q.CallsPerMinute > 0 || q.ResultBytesPerMinute > 0 || q.ConcurrentCalls > 0
}

// of returns the holder for a principal. The caller holds the lock.
func (l *Limits) of(p *caller.Principal) *usage {
	return l.principals.Get(p.Key()).under(*l.quotaOf(p), ofPrincipal, p.Key())
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
	all, server, principal *usage
	inside                 bool // the gate of the principal
}

// Limit is the middleware that asks the limits of the caller, and counts what the caller uses. A notification takes no place
// among the calls under way: it is over at once, and a wait would hold up all that its client sends after it.
func (l *Limits) Limit(next request.Handler) request.Handler {
	if l == nil {
		return next
	}
	return func(ctx context.Context, r *request.Request) (result json.RawMessage, err error) {
		var use Call
		if r.Notification {
			use, err = l.begin(r.Client.On(), r.To.Name, r.Belongs())
		} else {
			use, err = l.Begin(ctx, r.Client.On(), r.To.Name, r.Belongs())
		}
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
	c := Call{limits: l, all: l.all.under(*all, ofAll, ""), server: l.servers.Get(server).under(*each, ofServer, server), principal: l.of(p)}
	if !part {
		if err := l.drawn(&c); err != nil {
			return Call{}, err
		}
	}
	for _, one := range c.holders() {
		one.open++
	}
	return c, nil
}

// drawn takes what a call takes of the counters, or says why it may not begin now. The caller holds the lock.
func (l *Limits) drawn(c *Call) error {
	draws := l.draws[:0]
	for _, one := range c.holders() {
		draws = one.draw(draws)
	}
	if len(draws) == 0 {
		return nil
	}
	short, wait := l.counters.Take(draws)
	if short < 0 {
		return nil
	}
	limit := ""
	for _, one := range c.holders() {
		limit = cmp.Or(limit, one.limit(&draws[short]))
	}
	return &request.LimitError{Limit: limit, RetryAfter: wait}
}

func (c *Call) holders() [3]*usage { return [3]*usage{c.principal, c.server, c.all} }

// End ends the call, whose result had so many bytes.
func (c *Call) End(bytes int) {
	if c.limits == nil {
		return
	}
	if c.inside {
		c.principal.gate.Leave()
	}
	l := c.limits
	l.mu.Lock()
	defer l.mu.Unlock()
	draws := l.draws[:0]
	for _, one := range c.holders() {
		one.open--
		if one.quota.ResultBytesPerMinute > 0 {
			draws = append(draws, one.bytes(bytes))
		}
	}
	if len(draws) > 0 {
		l.counters.Charge(draws)
	}
}

// sessionsEnd is the wait that the refusal of a session names. It is a guess: sessions end when
// their clients end them, or after session_timeout.
const sessionsEnd = time.Minute

// OpenSession counts a session of a principal that lives in this process, as what it takes is here: memory, streams and
// subscriptions. If the error is nil, the caller must call
// CloseSession with the same principal.
func (l *Limits) OpenSession(p *caller.Principal) *request.LimitError {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	who, all := l.of(p), l.all.under(l.options().All, ofAll, "")
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
	pace := state.Rate{Rate: float64(who.quota.BodyPace), Burst: float64(who.quota.BodyPace)}
	who.bodies.Take(now, pace, float64(bytes))
	return who.bodies.Wait(now, pace), true
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
