package httpd

import (
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"mcpx/internal/base/netguard"
)

// guard admits only requests whose Host and Origin belong to mcpx. It protects against web pages: browsers send the origin of the
// page with each request, and a page that reaches mcpx by DNS rebinding sends a different host. Probes may have any Host, because
// load balancers choose it themselves. A probe with a foreign Host gets only the public content of /readyz ([Readiness]).
type guard struct {
	next     http.Handler
	options  *Options
	refusals *refusals
	flood    *flood // nil means that refusals are not delayed
	// local is the last Host that was found to be a loopback name or address. It is cached because most requests have the same
	// Host.
	local atomic.Pointer[string]
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if g.options.draining.Load() { // so that the client opens a new connection, which a load balancer sends elsewhere
		w.Header().Set("Connection", "close")
	}
	switch {
	case !probe(r) && !g.ownHost(r):
		g.refusals.note(slog.LevelWarn, r, "host", r.Host)
		http.Error(w, "this Host is not served here", http.StatusForbidden)
		g.flood.refused(r)
	case !g.options.ownOrigins(r):
		g.refusals.note(slog.LevelWarn, r, "origin", strings.Join(r.Header["Origin"], ", "))
		http.Error(w, "this Origin may not connect", http.StatusForbidden)
		g.flood.refused(r)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// ownHost does what [Options.ownHost] does, but caches the last Host that is a loopback name or address.
func (g *guard) ownHost(r *http.Request) bool {
	if local := g.local.Load(); local != nil && *local == r.Host {
		return true
	}
	if !g.options.ownHost(r) {
		return false
	}
	if host := r.Host; localHost(strings.ToLower(host)) {
		g.local.Store(&host) // the address of a copy: &r.Host would keep the whole request in memory
	}
	return true
}

// ownHost reports whether the Host is this machine, the host of the public URL, or the IP address that the request came to. Any IP
// address is safe, because DNS rebinding needs a name.
func (o *Options) ownHost(r *http.Request) bool {
	host := strings.ToLower(r.Host)
	if localHost(host) {
		return true
	}
	if public := o.public(); public != nil && withPort(host, public.Scheme) == withPort(strings.ToLower(public.Host), public.Scheme) {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	ip := net.ParseIP(hostname(host))
	return ok && ip != nil && ip.Equal(local.IP)
}

// ownOrigins reports whether every Origin of a request belongs to this machine or to the public URL.
func (o *Options) ownOrigins(r *http.Request) bool {
	for _, origin := range r.Header["Origin"] {
		u, err := url.Parse(origin)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
			return false
		}
		public := o.public()
		if !localHost(strings.ToLower(u.Host)) && (public == nil || !strings.EqualFold(origin, public.Scheme+"://"+public.Host)) {
			return false
		}
	}
	return true
}

// public returns the public URL of the endpoint, or nil if none is configured.
func (o *Options) public() *url.URL {
	if asked := o.Identity.Options(); asked != nil {
		return asked.Resource
	}
	return nil
}

func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.Trim(host, "[]")
}

// withPort adds the default port of the scheme to a host without a port.
func withPort(host, scheme string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(hostname(host), map[string]string{"http": "80", "https": "443"}[scheme])
}

func localHost(host string) bool { return netguard.Loopback(hostname(host)) }
