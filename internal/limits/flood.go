package limits

import (
	"hash/maphash"
	"net/netip"
	"time"

	"mcpx/internal/identity"
)

// A flood is refused where a request has cost little: before anything but its header is
// read. It is told from the requests of others at the same address, as behind a proxy, by
// the credential in the header, once that was found good. A credential is never trusted for
// that: it is checked as ever.

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
	now, from := time.Now(), l.addresses.get(address)
	if credential != "" && l.proved.find(maphash.String(l.seed, credential)) != nil {
		return 0
	}
	wait := from.wait(now, rate)
	if wait == 0 {
		from.take(now, rate, 1)
	}
	return wait
}

// Known counts a request whose principal is known, nil if anybody may send requests. The
// address, and the credential that has proved to be good, are those of Arrived. It returns
// how long the principal should wait if it sends too many, else 0.
func (l *Limits) Known(p *identity.Principal, address netip.Addr, credential string) time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.options.AddressRequests > 0 && p != nil && credential != "" {
		if digest := maphash.String(l.seed, credential); l.proved.find(digest) == nil {
			l.proved.get(digest)
			l.addresses.get(address).taken-- // fill keeps it from going below 0
		}
	}
	rate := perSecond(l.quotaOf(p).RequestsPerSecond)
	if rate.rate <= 0 {
		return 0
	}
	now, from := time.Now(), &l.of(p).requests
	wait := from.wait(now, rate)
	if wait == 0 {
		from.take(now, rate, 1)
	}
	return wait
}

func perSecond(n int) flow { return flow{float64(n), 10 * float64(n)} }
