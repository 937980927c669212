package limits

import (
	"fmt"
	"hash/maphash"
	"net/netip"
	"time"

	"mcpx/internal/base/state"
	"mcpx/internal/caller"
	"mcpx/internal/request"
)

// A flood of requests is refused as early as possible: when only the header of a request was read. Many clients behind a proxy
// share one address. So a request is not counted for its address if its credential was valid earlier. The cache of such credentials
// (proved) is used for nothing else: the credential of each request is still verified.

// Connections returns two bounds for open connections; 0 means no bound. total is for the connections on which an authenticated
// request has come (without auth, for all connections). perAddress is for the other connections from one address.
func (l *Limits) Connections() (total, perAddress int) {
	o := l.options()
	return o.Connections, o.AddressConnections
}

// Arrived counts a request for the address it comes from, before its credential is verified. It does not count if this credential
// was valid earlier and was not refused since. credential is empty if the request has none. If there were too many requests,
// Arrived returns how long the sender should wait, otherwise 0.
func (l *Limits) Arrived(address netip.Addr, credential string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	rate := perSecond(l.options().AddressRequests)
	if rate.Rate <= 0 {
		return 0
	}
	if credential != "" && l.proved.Find(maphash.String(l.seed, credential)) != nil {
		return 0
	}
	return l.take(state.Draw{What: addressRequests, Whose: address.String(), Flow: rate, Tokens: 1})
}

// Invalid is called when a credential was refused. It makes Arrived count the requests with this credential again, even if the
// credential was valid earlier.
func (l *Limits) Invalid(credential string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.proved.Delete(maphash.String(l.seed, credential))
}

// take takes the tokens of d from its bucket and returns 0. If the bucket has too few, take returns the time until it has enough.
// The caller holds the lock.
func (l *Limits) take(d state.Draw) time.Duration {
	l.draws[0] = d
	_, wait := l.counters.Take(l.draws[:1])
	return wait
}

// Known counts a request for its principal after authentication. p is nil if no credentials are needed. address and credential are
// what Arrived got; they are ignored if p is nil. If the credential is valid for the first time, the count for the address is taken
// back. If flood is true, the request must be refused, and wait is how long its sender should wait before the next request.
// Otherwise, wait is how long this request should be delayed.
func (l *Limits) Known(p *caller.Principal, address netip.Addr, credential string) (wait time.Duration, flood bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if rate := perSecond(l.options().AddressRequests); rate.Rate > 0 && p != nil && credential != "" {
		if digest := maphash.String(l.seed, credential); l.proved.Find(digest) == nil {
			l.proved.Get(digest)
			l.draws[0] = state.Draw{What: addressRequests, Whose: address.String(), Flow: rate, Tokens: -1}
			l.counters.Charge(l.draws[:1])
		}
	}
	return l.request(p)
}

// Request counts one more message of a request that [Limits.Known] has already counted. If refusal is not nil, the message must be
// refused. Otherwise it should be delayed by wait.
func (l *Limits) Request(p *caller.Principal) (wait time.Duration, refusal *request.LimitError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait, flood := l.request(p)
	if flood {
		return 0, &request.LimitError{Limit: fmt.Sprintf("%d requests a second", l.quotaOf(p).RequestsPerSecond), RetryAfter: wait}
	}
	return wait, nil
}

// request counts a request of a principal. Its results are those of [Limits.Known]. The caller holds the lock.
func (l *Limits) request(p *caller.Principal) (wait time.Duration, flood bool) {
	q := l.quotaOf(p)
	if q.RequestsPerSecond <= 0 && q.Pace <= 0 {
		return 0, false
	}
	now, who := time.Now(), l.of(p)
	if most := perSecond(q.RequestsPerSecond); most.Rate > 0 {
		if wait := l.take(state.Draw{What: who.kind.requests, Whose: who.whose, Flow: most, Tokens: 1}); wait > 0 {
			return wait, true
		}
	}
	pace := perSecond(q.Pace)
	wait = who.pace.Wait(now, pace)
	who.pace.Take(now, pace, 1)
	return wait, false
}

// perSecond returns a flow of n requests per second; the zero Flow, which has no limit, if n is not positive. Its burst is larger
// than n, because many clients of one principal may start at the same time.
func perSecond(n int) state.Flow {
	if n <= 0 {
		return state.Flow{}
	}
	return state.Flow{Rate: float64(n), Burst: float64(2*n + 100)}
}

// refusals is the flow of error answers that one principal, or one address, gets without a delay. Clients that behave well get few
// error answers.
var refusals = state.Flow{Rate: 10, Burst: 100}

// Refused counts an error answer to a principal or, if p is nil, to an address. If late is true, there were too many, and the
// answer should be delayed.
func (l *Limits) Refused(p *caller.Principal, address netip.Addr) (late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := refusedKey{address: address}
	if p != nil {
		key = refusedKey{principal: p.Key()}
	}
	now, of := time.Now(), l.refused.Get(key)
	if of.Wait(now, refusals) > 0 {
		return true
	}
	of.Take(now, refusals, 1)
	return false
}

// refusedKey is a principal, or the address that a request without a principal came from.
type refusedKey struct {
	principal string
	address   netip.Addr
}
