// Package netguard makes HTTP clients for addresses that come from outside, for example from an MCP server. Such a client
// connects only to public addresses and to addresses that the config allows. If the user has configured a proxy, the proxy
// resolves host names, so only IP addresses in URLs are checked.
package netguard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// RequestTime bounds the time of one request, including reading the body of the response.
const RequestTime = 20 * time.Second

// Reach says which addresses a client may connect to besides public ones.
type Reach struct {
	// Loopback allows the loopback addresses of this machine. Private allows all addresses.
	Loopback, Private bool
	// Key is the config key that sets Private. Error messages name it.
	Key string
}

// guard is the transport of the clients that NewClient makes. A malicious server can name addresses of the user's own network in
// metadata documents and redirects; guard refuses to connect to them.
type guard struct {
	Reach
	checked, overProxy http.RoundTripper
}

// NewClient returns an HTTP client that is restricted to r. It follows redirects of GET requests only, and not more than four
// in a row.
func NewClient(r Reach) *http.Client {
	g := &guard{Reach: r}
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		host, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return g.address(host.Addr())
	}}
	transport := func(dialer *net.Dialer) *http.Transport {
		return &http.Transport{ // idle connections end before common servers end them, which is after 5 s
			DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 2, IdleConnTimeout: 4 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		}
	}
	g.checked = transport(dialer)
	// A proxy may have a private address, since the user has configured it.
	overProxy := transport(&net.Dialer{Timeout: 10 * time.Second})
	overProxy.Proxy = http.ProxyFromEnvironment
	g.overProxy = overProxy
	return &http.Client{Transport: g, Timeout: RequestTime, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		switch {
		case next.Method != http.MethodGet || via[0].Method != http.MethodGet:
			return errors.New("the server redirects a request that holds secrets")
		case len(via) >= 5:
			return errors.New("too many redirects")
		}
		return nil
	}}
}

// maxAnswer bounds the body of a response, in bytes. A longer body is cut off.
const maxAnswer = 1 << 20

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if !Safe(req.URL.String()) {
		return nil, fmt.Errorf("%s://%s is neither https nor on this machine", req.URL.Scheme, req.URL.Host)
	}
	if ip, err := netip.ParseAddr(req.URL.Hostname()); err == nil {
		if err := g.address(ip); err != nil {
			return nil, err
		}
	}
	transport := g.checked
	if proxy, err := http.ProxyFromEnvironment(req); err != nil || proxy != nil {
		transport = g.overProxy
	}
	resp, err := transport.RoundTrip(req)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// StatusError means that the status of a response is not 200.
type StatusError struct {
	Code   int
	Status string // such as "404 Not Found"
}

func (e *StatusError) Error() string { return "the answer is " + e.Status }

// Get reads the JSON document at an address. If token is not empty, the request has it as its bearer token. If the status is not
// 200, the error is a [*StatusError].
func Get(ctx context.Context, web *http.Client, address, token string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := web.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &StatusError{resp.StatusCode, resp.Status}
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return errors.New("the answer is not the expected JSON document")
	}
	return nil
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (g *guard) CloseIdleConnections() {
	for _, t := range []http.RoundTripper{g.checked, g.overProxy} {
		t.(*http.Transport).CloseIdleConnections()
	}
}

// Cause returns why a request failed, without method and URL. It is for error messages that already contain the
// address.
func Cause(err error) error {
	outer, ok := errors.AsType[*url.Error](err)
	switch {
	case !ok:
		return err
	case outer.Timeout():
		return errors.New("no answer in time")
	}
	return outer.Err
}

// reserved are private and special address ranges for which package netip has no method: the local network 0.0.0.0/8,
// carrier-grade NAT, protocol assignments, benchmarks, class E, discard, Teredo.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/32"),
}

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	nat64Here = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// address returns an error if the client must not connect to ip.
func (g *guard) address(ip netip.Addr) error {
	if g.Private {
		return nil
	}
	ip = ip.Unmap().WithZone("")
	switch bytes := ip.As16(); {
	case nat64.Contains(ip):
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	case sixToFour.Contains(ip):
		ip = netip.AddrFrom4([4]byte(bytes[2:6]))
	}
	bad := ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || nat64Here.Contains(ip) ||
		slices.ContainsFunc(reserved, func(prefix netip.Prefix) bool { return prefix.Contains(ip) })
	if bad || ip.IsLoopback() && !g.Loopback {
		return fmt.Errorf("this leads to %s, an address that is not public; %s allows that", ip, g.Key)
	}
	return nil
}

// Safe reports whether secrets may be sent to this URL: it uses TLS, or its host is this machine.
func Safe(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "wss" || (u.Scheme == "http" || u.Scheme == "ws") && Loopback(u.Hostname()))
}

// LoopbackURL reports whether the host of a URL is this machine, as [Loopback] does.
func LoopbackURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && Loopback(u.Hostname())
}

// Loopback reports whether a host is this machine. It does not resolve host names other than localhost.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
