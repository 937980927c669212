package httpd

import (
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"mcpx/internal/identity"
)

// flood refuses requests that come too fast, in plain text and before their bodies are
// read. Before anybody has asked who sends them they count for their address, as long as
// there is no credential with them that was found good; after that for the principal.
type flood struct {
	options *Options
	pauses  chan struct{} // holds one for each refusal that waits
	logged  atomic.Int64  // when the last flood was logged, in nanoseconds of Unix
}

const (
	// floodPause delays a refusal: a sender who waits for the answer before the next
	// request costs that much less.
	floodPause = 100 * time.Millisecond
	// mostPaused bounds the refusals that wait; those beyond do not.
	mostPaused = 1_000
	// floodLog is the least time between two lines in the log about floods.
	floodLog = 10 * time.Second
)

// beforeAuth counts requests for their address, where there are principals.
func (f *flood) beforeAuth(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !probe(r) && f.options.Identity.Options() != nil {
			address, credential := sender(r)
			if wait := f.options.Limits.Arrived(address, credential); wait > 0 {
				f.refuse(w, r, wait, address.String())
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// afterAuth counts requests for their principal.
func (f *flood) afterAuth(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who := identity.From(r.Context()); who != nil || !probe(r) && f.options.Identity.Options() == nil {
			if who != nil {
				connectionOf(r.Context()).know()
			}
			address, credential := sender(r)
			if wait := f.options.Limits.Known(who, address, credential); wait > 0 {
				f.refuse(w, r, wait, who.Key())
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// probe reports whether a request asks only whether mcpx is well.
func probe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// sender is the address of a request, and what the request has to prove who sent it.
func sender(r *http.Request) (address netip.Addr, credential string) {
	credential = r.Header.Get("Authorization")
	if credential == "" && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		credential = string(r.TLS.PeerCertificates[0].Raw)
	}
	return addressOf(r.RemoteAddr), credential
}

// addressOf is the address that the other end of a connection counts for. Whoever has an
// IPv6 address has at least all those of its /64.
func addressOf(remote string) netip.Addr {
	port, _ := netip.ParseAddrPort(remote) // package net writes it so
	address := port.Addr().Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64)
		address = network.Addr()
	}
	return address
}

// refuse answers a request of a flood.
func (f *flood) refuse(w http.ResponseWriter, r *http.Request, wait time.Duration, whose string) {
	now := time.Now()
	if last := f.logged.Load(); now.UnixNano()-last > int64(floodLog) && f.logged.CompareAndSwap(last, now.UnixNano()) {
		f.options.Logger.Warn("requests refused", "reason", "flood", "of", whose, "remote", r.RemoteAddr)
	}
	select {
	case f.pauses <- struct{}{}:
		pause := time.NewTimer(floodPause)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-r.Context().Done():
		}
		<-f.pauses
	default:
	}
	seconds := strconv.Itoa(max(1, int((wait+time.Second-1)/time.Second)))
	w.Header().Set("Retry-After", seconds)
	http.Error(w, "too many requests; try again in "+seconds+" s", http.StatusTooManyRequests)
}
