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

// flood answers 429 to requests that come too fast, before their bodies are read. beforeAuth counts a request for its
// address, unless its credential was valid before; afterAuth counts it for its principal.
type flood struct {
	options *Options
	pauses  chan struct{} // holds one element per delayed request
	logged  atomic.Int64  // when the last flood was logged, in Unix nanoseconds
}

const (
	// floodPause is the average delay of a refusal: it slows down a sender that waits for each answer. The delays
	// vary, so that they do not all end at the same time.
	floodPause = 100 * time.Millisecond
	// mostPaused bounds the delayed requests. Above it, answers are not delayed.
	mostPaused = 10_000
	// floodLog is the least time between two log lines about floods.
	floodLog = 10 * time.Second
)

// beforeAuth counts requests for their address, if auth is configured.
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

// afterAuth counts requests for their principal, and delays the answers to senders that are refused repeatedly.
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
			f.pause(r.Context(), uneven(floodPause)) // net/http sends a short answer only after this returns
		}
	})
}

// refused delays the answer of guard to an address that is refused repeatedly. A nil *flood does not delay.
func (f *flood) refused(r *http.Request) {
	if f != nil && f.options.Limits.Refused(nil, addressOf(r.RemoteAddr)) {
		f.pause(r.Context(), uneven(floodPause))
	}
}

// pause waits, at most until ctx ends. It returns at once if mostPaused requests wait already.
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

// uneven returns a random time with the average d.
func uneven(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// probe reports whether a request is a health check.
func probe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// sender returns the address and the credential of a request: the Authorization header, else the client's
// certificate.
func sender(r *http.Request) (address netip.Addr, credential string) {
	credential = r.Header.Get("Authorization")
	if credential == "" && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		credential = string(r.TLS.PeerCertificates[0].Raw)
	}
	return addressOf(r.RemoteAddr), credential
}

// addressOf is the address under which a remote host is counted. An IPv6 host has at least a whole /64, so all
// addresses of a /64 are counted as one.
func addressOf(remote string) netip.Addr {
	port, _ := netip.ParseAddrPort(remote) // the format of package net
	address := port.Addr().Unmap().WithZone("")
	if address.Is6() {
		network, _ := address.Prefix(64)
		address = network.Addr()
	}
	return address
}

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
