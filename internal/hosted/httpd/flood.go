package httpd

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"mcpx/internal/caller"
)

// flood refuses requests that come too fast, in plain text and before their bodies are read.
// beforeAuth counts a request for its address, unless its credential was found good before;
// afterAuth counts it for its principal.
type flood struct {
	options *Options
	pauses  chan struct{} // holds one for each request that waits
	logged  atomic.Int64  // when the last flood was logged, in nanoseconds of Unix
}

const (
	// floodPause is the average delay of a refusal: a sender that waits for each answer sends the
	// less. The delays differ, so that not many end at the same time.
	floodPause = 100 * time.Millisecond
	// mostPaused bounds the requests that wait. Answers beyond it are not delayed.
	mostPaused = 10_000
	// floodLog is the least time between two lines in the log about floods.
	floodLog = 10 * time.Second
)

// beforeAuth counts requests for their address, where auth is configured.
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

// afterAuth counts requests for their principal, and delays answers to senders that are refused
// over and over.
func (f *flood) afterAuth(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := caller.From(r.Context())
		if who == nil && (probe(r) || f.options.Identity.Options() != nil) {
			next.ServeHTTP(w, r)
			return
		}
		var address netip.Addr
		var credential string
		if who != nil {
			connectionOf(r.Context()).know()
			address, credential = sender(r)
		}
		wait, refused := f.options.Limits.Known(who, address, credential)
		if refused {
			f.refuse(w, r, wait, who.Key())
			return
		}
		f.pause(r.Context(), wait)
		next.ServeHTTP(w, r)
		if answerOf(w).status >= http.StatusBadRequest && f.options.Limits.Refused(who, addressOf(r.RemoteAddr)) {
			f.pause(r.Context(), uneven(floodPause)) // net/http sends a short answer when this returns
		}
	})
}

// refused delays the answer of guard to a request from an address that is refused over and over.
// A nil *flood delays nothing.
func (f *flood) refused(r *http.Request) {
	if f != nil && f.options.Limits.Refused(nil, addressOf(r.RemoteAddr)) {
		f.pause(r.Context(), uneven(floodPause))
	}
}

// pause waits for a time, or until ctx ends. It returns at once if mostPaused requests wait.
func (f *flood) pause(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		return
	}
	select {
	case f.pauses <- struct{}{}:
	default:
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	<-f.pauses
}

// uneven is a time of that length on average.
func uneven(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// probe reports whether a request asks only whether mcpx is well.
func probe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// sender returns the address of a request, and its credential: the header Authorization, else
// the client's certificate.
func sender(r *http.Request) (address netip.Addr, credential string) {
	credential = r.Header.Get("Authorization")
	if credential == "" && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		credential = string(r.TLS.PeerCertificates[0].Raw)
	}
	return addressOf(r.RemoteAddr), credential
}

// addressOf is the address for which the other end of a connection counts. An IPv6 host has at
// least a whole /64, so all addresses of one count as one.
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
	f.pause(r.Context(), uneven(floodPause))
	seconds := strconv.Itoa(max(1, int((wait+time.Second-1)/time.Second)))
	w.Header().Set("Retry-After", seconds)
	http.Error(w, "too many requests; try again in "+seconds+" s", http.StatusTooManyRequests)
}
