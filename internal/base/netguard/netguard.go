// Package netguard makes HTTP clients for addresses that somebody else names. They reach public
// addresses only, and beside those what the config allows.
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
	"strings"
	"syscall"
	"time"
)

// RequestTime bounds one request, body and all.
const RequestTime = 20 * time.Second

// Reach is what a client may reach beside public addresses.
type Reach struct {
	// Loopback allows this machine, and Private every address.
	Loopback, Private bool
	// Key is the key of the config that sets Private, for errors.
	Key string
}

// guard keeps requests out of the user's own network: metadata and redirects name addresses, and
// a malicious server could have mcpx ask anything that it can reach.
type guard struct {
	Reach
	checked, overProxy http.RoundTripper
}

// NewClient makes a client. It follows redirects of GET requests alone.
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
		return &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 2, IdleConnTimeout: 10 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		}
	}
	g.checked = transport(dialer)
	// A proxy may well be on a private address; it is the user's own choice.
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

// maxAnswer bounds the body of an answer, in bytes: a longer one ends there.
const maxAnswer = 1 << 20

// RoundTrip implements http.RoundTripper.
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

// StatusError is an answer without the document that was asked for.
type StatusError struct {
	Code   int
	Status string // the line, such as "404 Not Found"
}

func (e *StatusError) Error() string { return "the answer is " + e.Status }

// Get reads the JSON document at an address, with a bearer token unless that is empty.
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
		return errors.New("the answer is no such document")
	}
	return nil
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (g *guard) CloseIdleConnections() {
	for _, t := range []http.RoundTripper{g.checked, g.overProxy} {
		t.(*http.Transport).CloseIdleConnections()
	}
}

// Cause is why a request failed, without its method and URL: for errors that name the address.
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

// reserved are the private and special ranges that netip does not know: this network,
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

// address returns an error unless ip may be reached.
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
	bad := ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || nat64Here.Contains(ip)
	for _, prefix := range reserved {
		bad = bad || prefix.Contains(ip)
	}
	if bad || ip.IsLoopback() && !g.Loopback {
		return fmt.Errorf("this leads to %s, an address that is not public; %s allows that", ip, g.Key)
	}
	return nil
}

// Safe reports whether secrets may go to this address: over TLS, or on this machine.
func Safe(address string) bool {
	u, err := url.Parse(address)
	return err == nil && (u.Scheme == "https" || u.Scheme == "wss" || (u.Scheme == "http" || u.Scheme == "ws") && Loopback(u.Hostname()))
}

// LoopbackURL reports whether a URL leads to this machine by its host's name alone.
func LoopbackURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && Loopback(u.Hostname())
}

// Loopback reports whether a host is this machine by its name alone.
func Loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
