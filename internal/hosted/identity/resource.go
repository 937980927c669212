package identity

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// endpoint returns the path of the endpoint.
func (o *Options) endpoint() string { return cmp.Or(o.Path, "/mcp") }

// Folder returns the part of the public URL's path before the endpoint's own path. It is not empty if a proxy serves
// mcpx below another path.
func (o *Options) Folder() string {
	if o.Resource == nil {
		return ""
	}
	return strings.TrimSuffix(o.Resource.Path, o.endpoint())
}

// base returns the URL of the endpoint: the configured public URL, if there is one. The Host header is then ignored, because with
// it a client could choose which tokens are accepted. Only on loopback may there be no public URL. Then base returns the URL in the
// request, because clients treat localhost and 127.0.0.1 as different hosts.
func (o *Options) base(r *http.Request) *url.URL {
	if o.Resource != nil {
		return o.Resource
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return &url.URL{Scheme: scheme, Host: strings.ToLower(r.Host), Path: o.endpoint()}
}

// ResourceAt returns the resource identifier (RFC 8707) that a client uses if it connects to this path of mcpx.
func (o *Options) ResourceAt(r *http.Request, path string) *url.URL {
	at := *o.base(r)
	below, isBelow := strings.CutPrefix(path, o.endpoint())
	switch {
	case isBelow && (below == "" || below[0] == '/'):
		at.Path += below
	case path != "" && path != "/":
		at.Path = strings.TrimSuffix(at.Path, o.endpoint()) + path
	}
	if messages, found := strings.CutSuffix(at.Path, "/messages"); found { // SSE clients use the URL of their stream
		at.Path = messages + "/sse"
	}
	at.RawPath = ""
	return &at
}

// accepts reports whether a token has one of the audiences that it may have for the request (see wanted).
func (s *State) accepts(v *verified, r *http.Request) bool {
	wanted := s.wanted(v, r)
	return slices.ContainsFunc(v.audience, func(audience string) bool { return slices.Contains(wanted, audience) })
}

// wanted returns the audiences that a token of an issuer may have for a request. These are the audiences that the config has for
// the issuer. If it has none, they are the URL of the endpoint and the URL of the request.
func (s *State) wanted(v *verified, r *http.Request) []string {
	if own := v.issuer.audiences; own != nil {
		return own
	}
	o, base := s.options, s.base
	if base == "" {
		base = canonical(o.base(r).String())
	}
	at := canonical(o.ResourceAt(r, r.URL.Path).String())
	if at == base {
		return []string{base}
	}
	return []string{base, at}
}

// canonical normalizes an identifier that is a URL. Scheme and host get lower case; the default port, the fragment and the trailing
// slash are removed. Other identifiers are returned unchanged.
func canonical(identifier string) string {
	u, err := url.Parse(identifier)
	if err != nil || u.Host == "" || !strings.EqualFold(u.Scheme, "http") && !strings.EqualFold(u.Scheme, "https") {
		return identifier
	}
	u.Scheme, u.Host, u.Fragment, u.RawFragment = strings.ToLower(u.Scheme), strings.ToLower(u.Host), "", ""
	if host, port, err := net.SplitHostPort(u.Host); err == nil && port == map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		if u.Host = host; strings.Contains(host, ":") {
			u.Host = "[" + host + "]"
		}
	}
	u.Path, u.RawPath = strings.TrimSuffix(u.Path, "/"), strings.TrimSuffix(u.RawPath, "/")
	return u.String()
}
