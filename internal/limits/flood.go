package limits

import (
	"hash/maphash"
	"net/netip"
	"time"

	"mcpx/internal/identity"
)

// A flood is refused where a request has cost little: before anything but its header is
// read. Requests of others at the same address, as behind a proxy, differ from it by the
// credential in their header, once that was found good. No credential counts as proved for
// that reason: each is checked as ever.

// Connections bounds the connections in all, and those of one address that are not of a
// known principal; 0 = any number.
func (l *Limits) Connections() (all, ofAddress int) {
	if l == nil {
		return 0, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.options.Connections, l.options.AddressConnections
}

// Arrived counts a request from an address, before anybody has asked who sent it. credential
// is what it has to prove that, as in its header Authorization. It returns how long the sender
// should wait if there are too many, else 0.
func (l *Limits) Arrived(address netip.Addr, credential string) time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	rate := perSecond(l.options.AddressRequests)
	if rate.rate <= 0 {
		return 0
	}
	now, from := time.Now(), l.addresses.Get(address)
	if credential != "" && l.proved.Find(maphash.String(l.seed, credential)) != nil {
		return 0
	}
	wait := from.wait(now, rate)
	if wait == 0 {
		from.take(now, rate, 1)
	}
	return wait
}

// Known counts a request whose principal is known, nil if anybody may send requests. The
// address, and the credential that has proved to be good, are those of Arrived; without a
// principal neither counts. It returns how long the request should wait before it goes on
// or, if it is part of a flood, the sender before the next one.
func (l *Limits) Known(p *identity.Principal, address netip.Addr, credential string) (wait time.Duration, flood bool) {
	if l == nil {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.options.AddressRequests > 0 && p != nil && credential != "" {
		if digest := maphash.String(l.seed, credential); l.proved.Find(digest) == nil {
			l.proved.Get(digest)
			l.addresses.Get(address).taken-- // fill keeps it from going below 0
		}
	}
	q := l.quotaOf(p)
	if q.RequestsPerSecond <= 0 && q.Pace <= 0 {
		return 0, false
	}
	now, who := time.Now(), l.of(p)
	if most := perSecond(q.RequestsPerSecond); most.rate > 0 {
		if wait := who.requests.wait(now, most); wait > 0 {
			return wait, true
		}
		who.requests.take(now, most, 1)
	}
	pace := perSecond(q.Pace)
	wait = who.pace.wait(now, pace)
	who.pace.take(now, pace, 1)
	return wait, false
}

// perSecond is the flow of so many a second. Many clients of one principal may begin at
// the same time.
func perSecond(n int) flow {
	if n <= 0 {
		return flow{}
	}
	return flow{float64(n), float64(2*n + 100)}
}

// refusals is how many requests may be refused for what they are. Few clients of good will
// get more than one.
var refusals = flow{10, 100}

// Refused counts a request that was refused for what it is, and reports whether there are
// so many of the principal or, without one, of the address that the answer should be late.
func (l *Limits) Refused(p *identity.Principal, address netip.Addr) (late bool) {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := refusedKey{address: address}
	if p != nil {
		key = refusedKey{principal: p.Key()}
	}
	now, of := time.Now(), l.refused.Get(key)
	if of.wait(now, refusals) > 0 {
		return true
	}
	of.take(now, refusals, 1)
	return false
}

// refusedKey is a principal, or an address without one.
type refusedKey struct {
	principal string
	address   netip.Addr
}
