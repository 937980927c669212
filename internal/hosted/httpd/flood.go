package httpd

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"mcpx/internal/base/delay"
	"mcpx/internal/caller"
)

// flood answers 429 to requests that come too fast, before their bodies are read. The handler beforeAuth counts a request for the
// address of the sender, unless the credential of the request was valid earlier. The handler afterAuth counts the request for its
// principal. Without auth only afterAuth counts, and it counts all requests together. Probes are not counted.
type flood struct {
	options *Options
	pauses  chan struct{} // holds one element per delayed request
	logged  atomic.Int64  // when the last flood was logged, in Unix nanoseconds
}

const (
	// floodPause is the average delay of a refusal. It slows down senders that wait for each answer. The delays are random, so that
	// they do not all end at the same time.
	floodPause = 100 * time.Millisecond
	// maxPaused is the maximum number of requests and refusals that are delayed at the same time. Further ones are not delayed.
	maxPaused = 10_000
	// floodLog is the least time between two log lines about floods.
	floodLog = 10 * time.Second
)

// beforeAuth counts requests for the addresses they come from, if auth is configured.
func (f *flood) beforeAuth(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connectionOf(r.Context()).heard()
		if probe(r) || f.options.Identity.Options() == nil {
			next.ServeHTTP(w, r)
			return
		}
		address, credential := sender(r)
		if wait := f.options.Limits.Arrived(address, credential); wait > 0 {
			f.refuse(w, r, wait, address.String())
			return
		}
		next.ServeHTTP(w, r)
		if answerOf(w).status == http.StatusUnauthorized {
			f.options.Limits.Invalid(credential)
		}
	})
}

// afterAuth counts requests for their principals. It delays a request if the requests of the principal come faster than the pace of
// the quota. It also delays the error answers to a principal that gets many. A request with a principal proves its connection (see
// [connections]).
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
			if !connectionOf(r.Context()).prove(r.Context(), who.Key()) {
				noPlace(w)
				return
			}
			address, credential = sender(r)
		}
		wait, refused := f.options.Limits.Known(who, address, credential)
		if refused {
			f.refuse(w, r, wait, who.Key())
			return
		}
		f.pause(r.Context(), wait)
		next.ServeHTTP(w, r)
		if answerOf(w).status >= http.StatusBadRequest && f.options.Limits.Refused(who, AddressOf(r.RemoteAddr)) {
			f.pause(r.Context(), uneven(floodPause)) // net/http sends a short answer after next returns
		}
	})
}

// refused is called when the handler guard has refused a request. It delays the answer if there were too many refusals for the same
// address. A nil *flood does not delay.
func (f *flood) refused(r *http.Request) {
	if f != nil && f.options.Limits.Refused(nil, AddressOf(r.RemoteAddr)) {
		f.pause(r.Context(), uneven(floodPause))
	}
}

// pause waits for the duration wait, or until ctx ends. It returns at once if maxPaused requests are already waiting.
func (f *flood) pause(ctx context.Context, wait time.Duration) {
	if wait <= 0 {
		return
	}
	select {
	case f.pauses <- struct{}{}:
	default:
		return
	}
	delay.Sleep(ctx, wait)
	<-f.pauses
}

// uneven returns a random duration whose average is d.
func uneven(d time.Duration) time.Duration { return d/2 + rand.N(d) }

// probe reports whether a request is a health check.
func probe(r *http.Request) bool { return r.URL.Path == "/healthz" || r.URL.Path == "/readyz" }

// sender returns the address and the credential of a request. The credential is the Authorization header. Without this header, it
// is the token of an agent, or else the client's certificate.
func sender(r *http.Request) (address netip.Addr, credential string) {
	credential = r.Header.Get("Authorization")
	if credential == "" && strings.HasPrefix(r.URL.Path, AgentsPath) {
		credential = r.URL.Query().Get("token")
	}
	if credential == "" && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		credential = string(r.TLS.PeerCertificates[0].Raw)
	}
	return AddressOf(r.RemoteAddr), credential
}

// AddressOf returns the address for which requests from a remote address are counted. remote has the form of
// [http.Request.RemoteAddr]. An IPv6 host usually has a whole /64 network, so all its addresses are counted together.
func AddressOf(remote string) netip.Addr {
	port, _ := netip.ParseAddrPort(remote)
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
