// Package limits bounds how much callers may use. It limits calls, bytes of results and sessions, for each principal, for each
// server and in all; the rate of requests, for each principal and for each address; and the bodies that each principal sends.
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

// Limits count what callers use. They may be used by several goroutines at the same time.
//
// Calls, bytes of results and requests are counted in counters, which several processes can share. Everything else is counted per
// process: calls in progress, sessions, bodies being read, large answers being written, the pace of requests and bodies, and error
// answers.
type Limits struct {
	options    func() *conf.Limits // returns the current options
	counters   state.Counters
	mu         sync.Mutex
	draws      [6]state.Draw // a buffer that is reused for each list of draws
	all        usage
	servers    *lru.Map[string, usage]
	principals *lru.Map[string, usage]
	proved     *lru.Map[uint64, struct{}] // keys are digests of credentials that were valid once
	seed       maphash.Seed               // seed of the digests in proved
	refused    *lru.Map[refusedKey, state.Bucket]
}

// maxKept is the size of each map of Limits and of its counters (see [lru.Map]). The maps need a bound because callers can make up
// keys. If an entry is dropped, its counts are lost.
const maxKept = 10_000

// NewCounters makes counters that only this process uses.
func NewCounters() state.Counters { return state.NewCounters(maxKept) }

// New makes limits whose options do not change, with counters that only this process uses.
func New(options conf.Limits) *Limits {
	return Following(func() *conf.Limits { return &options }, NewCounters())
}

// Following makes limits whose options may change: each use calls current for them. After a change, calls in progress are still
// counted.
func Following(current func() *conf.Limits, counters state.Counters) *Limits {
	return &Limits{
		options: current, counters: counters, seed: maphash.MakeSeed(),
		servers:    lru.New[string](maxKept, (*usage).busy),
		principals: lru.New[string](maxKept, (*usage).busy),
		proved:     lru.New[uint64, struct{}](maxKept, nil),
		refused:    lru.New[refusedKey, state.Bucket](maxKept, nil),
	}
}

// usage is what one principal, one server, or all together use in this process.
type usage struct {
	kind         *kind
	whose        string     // ID of the principal or name of the server; empty for all and for anonymous callers
	quota        conf.Quota // set by the method under
	pace, bodies state.Bucket
	gate         semaphore.Semaphore
	open         int   // number of calls between Begin and End
	sessions     int   // open sessions in this process
	reading      int64 // total bytes of the bodies being read
	writing      int64 // total bytes of the large answers being written
	// read is closed when writing falls below its bound (AnswerBytes). It is nil if no call waits for that.
	read chan struct{}
}

// kind has the names of the counters for principals, for servers or for all.
type kind struct {
	calls, bytes, requests string
	of                     string // the end of error texts: whose limit it is, with a space before; empty for a principal
}

var (
	ofPrincipal = &kind{calls: "calls of a principal", bytes: "bytes of a principal", requests: "requests of a principal"}
	ofServer    = &kind{calls: "calls of a server", bytes: "bytes of a server", of: " of this server"}
	ofAll       = &kind{calls: "calls of all", bytes: "bytes of all", of: " of all callers together"}
)

const addressRequests = "requests of an address"

func (u *usage) busy() bool { return u.open > 0 || u.sessions > 0 || u.reading > 0 || u.writing > 0 }

// under sets the kind, the name and the quota of a usage, and returns the usage. If the quota has changed, the buckets pace and
// bodies are full again, and gate gets the new limits.
func (u *usage) under(q conf.Quota, kind *kind, whose string) *usage {
	if u.kind == nil || u.quota != q {
		u.kind, u.whose, u.quota = kind, whose, q
		u.pace, u.bodies = state.Bucket{}, state.Bucket{}
		u.gate.Set(q.ConcurrentCalls, q.Queue)
	}
	return u
}

// draw appends to draws what a new call takes from the counters. The size of the call's result is not known yet. So the draw for
// the bytes takes none, and only checks that there are some left.
func (u *usage) draw(draws []state.Draw) []state.Draw {
	if u.quota.CallsPerMinute > 0 {
		draws = append(draws, state.Draw{What: u.kind.calls, Whose: u.whose, Flow: u.callFlow(), Tokens: 1})
	}
	if u.quota.ResultBytesPerMinute > 0 {
		draws = append(draws, u.bytes(0))
	}
	return draws
}

// bytes returns a draw of n bytes of results.
func (u *usage) bytes(n int) state.Draw {
	most := float64(u.quota.ResultBytesPerMinute)
	return state.Draw{What: u.kind.bytes, Whose: u.whose, Flow: state.Flow{Rate: most / 60, Burst: most}, Tokens: float64(n)}
}

// limit describes the limit that has refused the draw d. It returns an empty string if d belongs to a different usage.
func (u *usage) limit(d *state.Draw) string {
	switch d.What {
	case u.kind.calls:
		return fmt.Sprintf("%d calls a minute%s", u.quota.CallsPerMinute, u.kind.of)
	case u.kind.bytes:
		return fmt.Sprintf("%d bytes of results a minute%s", u.quota.ResultBytesPerMinute, u.kind.of)
	}
	return ""
}

func (u *usage) callFlow() state.Flow {
	return state.Flow{Rate: float64(u.quota.CallsPerMinute) / 60, Burst: float64(cmp.Or(u.quota.Burst, u.quota.CallsPerMinute))}
}

func boundsCalls(q *conf.Quota) bool {
	return q.CallsPerMinute > 0 || q.ResultBytesPerMinute > 0 || q.ConcurrentCalls > 0
}

// of returns the usage of a principal in this process. The caller holds the lock.
func (l *Limits) of(p *caller.Principal) *usage {
	return l.principals.Get(p.Key()).under(*l.quotaOf(p), ofPrincipal, p.Key())
}

func (l *Limits) quotaOf(p *caller.Principal) *conf.Quota {
	if p == nil {
		return &l.options().Anybody
	}
	return &l.options().Principal
}

// Call is a call between Begin and End. The zero value is a call without limits.
type Call struct {
	limits                 *Limits
	all, server, principal *usage
	inside                 bool // whether the call has one of the principal's concurrency slots
}

// Limit is the middleware that applies the limits to calls. A notification needs no concurrency slot: it ends at once, and if it
// had to wait, everything that its client sends later would wait too. A request to the built-in server with [request.ChargeWait]
// needs no slot either. For requests to the built-in server there is no limit per server, because one principal could use it up for
// all others.
func (l *Limits) Limit(next request.Handler) request.Handler {
	return func(ctx context.Context, r *request.Request) (result json.RawMessage, err error) {
		var use Call
		server := r.To.Name
		if r.Serve != nil {
			server = ""
		}
		if r.Notification || r.Serve != nil && r.Charge == request.ChargeWait {
			use, err = l.begin(r.Client.On(), server, r.Belongs())
		} else {
			use, err = l.Begin(ctx, r.Client.On(), server, r.Belongs())
		}
		if err != nil {
			return nil, err
		}
		defer func() { use.End(len(result)) }()
		if !r.Notification {
			if err := l.answersRead(ctx, r.Client.On()); err != nil {
				return nil, err
			}
		}
		return next(ctx, r)
	}
}

// Begin admits a call of a principal to a server. It may wait for one of the principal's concurrency slots. An empty server means
// the built-in server, which has no limit per server. part marks a request that belongs to a call that was already admitted, such
// as a request about its task; only the bytes of its result are counted. If the error is nil, the caller must call End. Otherwise
// the error is a *request.LimitError or the error of ctx.
func (l *Limits) Begin(ctx context.Context, p *caller.Principal, server string, part bool) (Call, error) {
	c, err := l.begin(p, server, part)
	switch {
	case err != nil:
		return Call{}, err
	case c.limits == nil || part:
		return c, nil
	}
	if c.principal.gate.Enter(ctx, "") == nil {
		c.inside = true
		return c, nil
	}
	c.End(0)
	if ctx.Err() != nil {
		return Call{}, ctx.Err()
	}
	return Call{}, &request.LimitError{Limit: fmt.Sprintf("%d calls at once", c.principal.quota.ConcurrentCalls)}
}

// begin does what Begin does, except that it takes no concurrency slot. The error is nil or a *request.LimitError.
func (l *Limits) begin(p *caller.Principal, server string, part bool) (Call, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, who := l.options(), l.quotaOf(p)
	all, each := &o.All, &o.Server
	if server == "" {
		each = &conf.Quota{}
	}
	if !boundsCalls(all) && !boundsCalls(each) && !boundsCalls(who) {
		return Call{}, nil
	}
	c := Call{limits: l, all: l.all.under(*all, ofAll, ""), server: l.servers.Get(server).under(*each, ofServer, server), principal: l.of(p)}
	if !part {
		if err := l.charge(&c); err != nil {
			return Call{}, err
		}
	}
	for _, one := range c.usages() {
		one.open++
	}
	return c, nil
}

// charge takes from the counters what the call needs. If there is too little, the error names the limit that the call has reached.
// The caller holds the lock.
func (l *Limits) charge(c *Call) error {
	draws := l.draws[:0]
	for _, one := range c.usages() {
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
	for _, one := range c.usages() {
		limit = cmp.Or(limit, one.limit(&draws[short]))
	}
	return &request.LimitError{Limit: limit, RetryAfter: wait}
}

func (c *Call) usages() [3]*usage { return [3]*usage{c.principal, c.server, c.all} }

// End ends the call. bytes is the size of its result in bytes.
func (c *Call) End(bytes int) {
	if c.limits == nil {
		return
	}
	if c.inside {
		c.principal.gate.Leave("")
	}
	l := c.limits
	l.mu.Lock()
	defer l.mu.Unlock()
	draws := l.draws[:0]
	for _, one := range c.usages() {
		one.open--
		if one.quota.ResultBytesPerMinute > 0 {
			draws = append(draws, one.bytes(bytes))
		}
	}
	if len(draws) > 0 {
		l.counters.Charge(draws)
	}
}

// sessionsEnd is how long a client should wait after a session was refused. It is a guess: sessions end when their clients end
// them, or after session_timeout.
const sessionsEnd = time.Minute

// OpenSession counts a session of a principal. The limit is per process, because a session uses memory, streams and subscriptions
// of this process. If the result is nil, the caller must call CloseSession with the same principal.
func (l *Limits) OpenSession(p *caller.Principal) *request.LimitError {
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

// CloseSession says that a session which OpenSession has counted has ended.
func (l *Limits) CloseSession(p *caller.Principal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(p).sessions--
	l.all.sessions--
}

// ServerSession checks whether mcpx may give one more client a session of its own with a server. open is how many such sessions the
// server has. The error is nil or a *[request.LimitError].
func (l *Limits) ServerSession(open int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if most := l.options().Server.Sessions; most > 0 && open >= most {
		return &request.LimitError{Limit: fmt.Sprintf("%d sessions of this server with single clients", most), RetryAfter: sessionsEnd}
	}
	return nil
}

// ReadBody counts bytes of a body before they are read. ok is false if all the bodies that the principal is sending now are
// together too large. Otherwise, wait is how long the caller should wait before it reads the bytes. After the body was processed,
// the caller calls BodyRead with the sum of the bytes that were counted for it.
func (l *Limits) ReadBody(p *caller.Principal, bytes int) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	who, now := l.of(p), time.Now()
	if most := who.quota.BodyBytes; most > 0 && who.reading+int64(bytes) > most {
		return 0, false
	}
	who.reading += int64(bytes)
	pace := state.Flow{Rate: float64(who.quota.BodyPace), Burst: float64(who.quota.BodyPace)}
	who.bodies.Take(now, pace, float64(bytes))
	return who.bodies.Wait(now, pace), true
}

// BodyRead subtracts the bytes that ReadBody has counted for a body.
func (l *Limits) BodyRead(p *caller.Principal, bytes int) {
	if bytes == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(p).reading -= int64(bytes)
}

// answersRead waits until the large answers that are being written to the principal have fewer than AnswerBytes bytes. The reason:
// the answer to one more call would also be kept in memory. It returns the error of ctx if ctx ends first. Without a principal it
// does not wait, because the unread answers may be those of a different client.
func (l *Limits) answersRead(ctx context.Context, p *caller.Principal) error {
	for p != nil {
		l.mu.Lock()
		who := l.of(p)
		unread := who.unread()
		if unread && who.read == nil {
			who.read = make(chan struct{})
		}
		read := who.read
		l.mu.Unlock()
		if !unread {
			return nil
		}
		select {
		case <-read:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (u *usage) unread() bool { return u.quota.AnswerBytes > 0 && u.writing >= u.quota.AnswerBytes }

// mostAnswers times AnswerBytes is the bound for all the answers together that are being written to a principal. They can have more
// than AnswerBytes only if their calls were made at the same time, because later calls wait in answersRead. Without a principal no
// call waits, and the bound is AnswerBytes.
const mostAnswers = 4

// WriteAnswer counts the bytes of a large answer before they are written. ok is false if this answer is too large together with the
// answers that are already being written to the principal. An answer alone is never too large. If ok is true, the caller must call
// AnswerWritten after writing.
func (l *Limits) WriteAnswer(p *caller.Principal, bytes int) (ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	who := l.of(p)
	most := who.quota.AnswerBytes
	if p != nil {
		most *= mostAnswers
	}
	if most > 0 && who.writing > 0 && who.writing+int64(bytes) > most {
		return false
	}
	who.writing += int64(bytes)
	return true
}

// AnswerWritten subtracts the bytes that WriteAnswer has counted. If answersRead was waiting for them, it goes on.
func (l *Limits) AnswerWritten(p *caller.Principal, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	who := l.of(p)
	if who.writing -= int64(bytes); who.read != nil && !who.unread() {
		close(who.read)
		who.read = nil
	}
}
