package logins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"mcpx/internal/base/netguard"
	"mcpx/internal/base/sanitize"
)

// found is the outcome of discover for one server: how mcpx gets tokens for it.
type found struct {
	resource string // the resource that token requests must name
	scopes   []string
	server   *oauthex.AuthServerMeta
}

// wanted says which authorization server discover must find.
type wanted struct {
	// asked means that the server has asked for a login. In this case the endpoints have the default paths of MCP 2025-03-26 if
	// there are no metadata at all.
	asked bool
	// issuer is the preferred authorization server. If the server names it, discover takes no other one. It is empty if there is no
	// preference.
	issuer string
	// fits returns an error if an authorization server cannot do what is needed. It may be nil.
	fits func(*oauthex.AuthServerMeta) error
}

// discover finds an authorization server of s and its endpoints. If the config has oauth.issuer, there is no other choice.
// Otherwise the metadata of s name one or several issuers (RFC 9728). If s has no metadata, the issuer is the origin of s. The
// issuer's own metadata (RFC 8414 or OpenID Connect Discovery) name the endpoints. Of several authorization servers, discover takes
// the first one that answers and fits. If none does, discover returns the error of the first in the list.
func discover(ctx context.Context, client *http.Client, s Server, c challenge, w wanted) (*found, error) {
	resource, err := resourceMetadata(ctx, client, s, c)
	if err != nil && s.Issuer == "" {
		return nil, err
	}
	out := &found{resource: s.URL}
	if resource != nil {
		out.resource, out.scopes = resource.Resource, resource.ScopesSupported
	}
	first := errors.New("the metadata of the server names no authorization server")
	for i, issuer := range s.issuers(resource, w.issuer) {
		var err error
		if resource == nil && s.Issuer == "" {
			out.server, err = metadataOrDefaults(ctx, client, issuer, w.asked)
		} else {
			out.server, err = usableMetadata(ctx, client, issuer)
		}
		if err == nil && w.fits != nil {
			err = w.fits(out.server)
		}
		if err == nil {
			return out, nil
		}
		if i == 0 {
			first = err
		}
	}
	return nil, first
}

// maxIssuers is how many authorization servers mcpx tries at most, if a server names several.
const maxIssuers = 3

// issuers returns the authorization servers of s to try, in order. resource has the metadata of s, or is nil if there are none. If
// the metadata name the issuer preferred, the result has only this issuer. If the config has a client for s, the client is
// registered at one authorization server, and no other may get the client's secret. Then the result has only the first issuer.
func (s Server) issuers(resource *oauthex.ProtectedResourceMetadata, preferred string) []string {
	switch {
	case s.Issuer != "":
		return []string{s.Issuer}
	case resource == nil:
		return []string{origin(s.URL)}
	}
	all := resource.AuthorizationServers
	for _, issuer := range all {
		if preferred != "" && sameIssuer(issuer, preferred) {
			return []string{issuer}
		}
	}
	if s.ClientID != "" {
		return all[:min(len(all), 1)]
	}
	return all[:min(len(all), maxIssuers)]
}

// sameIssuer reports whether two URLs identify the same authorization server. Some libraries add a slash to the issuer in the
// metadata of a server.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// metadataOrDefaults is like usableMetadata, for the origin of a server without metadata. If this issuer has no metadata either,
// but the server has asked for a login, the endpoints have their default paths.
func metadataOrDefaults(ctx context.Context, client *http.Client, issuer string, asked bool) (*oauthex.AuthServerMeta, error) {
	metadata, err := usableMetadata(ctx, client, issuer)
	switch _, absent := errors.AsType[*noMetadataError](err); {
	case !absent:
		return metadata, err
	case !asked:
		return nil, errors.New("the server does not ask for a login, and has no metadata about one")
	}
	return &oauthex.AuthServerMeta{
		Issuer:                issuer,
		AuthorizationEndpoint: issuer + "/authorize",
		TokenEndpoint:         issuer + "/token",
		RegistrationEndpoint:  issuer + "/register",

		CodeChallengeMethodsSupported: []string{pkce}, // MCP 2025-03-26 requires PKCE of all authorization servers
	}, nil
}

// noMetadataError means that an authorization server answers 4xx at all places where its metadata could be.
type noMetadataError struct{ issuer string }

func (e *noMetadataError) Error() string {
	return fmt.Sprintf("the authorization server %s has no metadata", sanitize.Line(e.issuer, 200))
}

// usableMetadata reads the metadata of the authorization server with this issuer, and checks that tokens can be requested there.
func usableMetadata(ctx context.Context, client *http.Client, issuer string) (*oauthex.AuthServerMeta, error) {
	who := sanitize.Line(issuer, 200)
	if !netguard.Safe(issuer) {
		return nil, fmt.Errorf("the authorization server %s is neither https nor on this machine", who)
	}
	metadata, err := serverMetadata(ctx, client, issuer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the metadata of the authorization server %s: %w", who, explain(err))
	case metadata == nil:
		return nil, &noMetadataError{issuer}
	case !netguard.Safe(metadata.TokenEndpoint):
		return nil, fmt.Errorf("the authorization server %s names no token endpoint over https", who)
	}
	return metadata, nil
}

// pkce is the PKCE method that mcpx uses.
const pkce = "S256"

// metadataTime is the time limit for reading one metadata document, and also for all metadata of one authorization server together.
const metadataTime = 10 * time.Second

// serverMetadata reads the metadata of the authorization server with this issuer. It tries the well-known URLs in order, and takes
// the first metadata that are of this issuer: at a wrong URL some servers answer with a page, an error or the metadata of another
// issuer. It returns nil and no error if all URLs answer 4xx. It does not use the SDK's function for three reasons. That function
// ends at the first wrong answer, it keeps the slash at the end of an issuer in the URLs, and it demands PKCE even for tokens that
// need no browser.
func serverMetadata(ctx context.Context, client *http.Client, issuer string) (*oauthex.AuthServerMeta, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, metadataTime)
	defer cancel()
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{"/.well-known/oauth-authorization-server" + path, "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, path+"/.well-known/openid-configuration")
	}
	var first error
	for _, place := range places {
		metadata, err := readMetadata[oauthex.AuthServerMeta](ctx, client, origin(issuer)+place)
		switch {
		case err != nil:
		case metadata == nil:
			continue
		case !sameIssuer(metadata.Issuer, issuer):
			err = fmt.Errorf("they are of another issuer, %s", sanitize.Line(metadata.Issuer, 200))
		default:
			return metadata, nil
		}
		first = cmp.Or(first, err)
	}
	return nil, first
}

// resourceMetadata reads the protected resource metadata of s. It tries the URL in the challenge, then the well-known URL for the
// server's path, then the well-known URL for the root. It returns nil if there is no metadata.
func resourceMetadata(ctx context.Context, client *http.Client, s Server, c challenge) (*oauthex.ProtectedResourceMetadata, error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	places := []string{c.metadata}
	if path := strings.Trim(u.EscapedPath(), "/"); path != "" {
		places = append(places, origin(s.URL)+wellKnown+"/"+path)
	}
	places = append(places, origin(s.URL)+wellKnown)
	var missed error // the error for the URL in the challenge; behind a proxy it may be unreachable
	for _, place := range places {
		if place == "" {
			continue
		}
		metadata, err := readMetadata[oauthex.ProtectedResourceMetadata](ctx, client, place)
		if err == nil && metadata != nil && metadata.Resource == "" {
			err = errors.New("the answer names no resource")
		}
		switch {
		case err != nil && place == c.metadata:
			missed = fmt.Errorf("reading the metadata of the server: %w", err)
			continue
		case err != nil || metadata == nil:
			continue
		case !covers(metadata.Resource, s.URL):
			return nil, fmt.Errorf("the metadata of the server is for another resource: %s", sanitize.Line(metadata.Resource, 200))
		}
		return metadata, nil
	}
	return nil, cmp.Or(missed, ctx.Err())
}

// readMetadata reads the metadata at the URL address. It returns nil without an error if the server answers 4xx, except for 429
// (too many requests), which is an error. It does not use oauthex, because oauthex refuses metadata whose resource differs from the
// server's URL, and many servers have such metadata.
func readMetadata[T any](ctx context.Context, client *http.Client, address string) (*T, error) {
	var metadata T
	ctx, cancel := context.WithTimeout(ctx, metadataTime)
	defer cancel()
	err := netguard.Get(ctx, client, address, "", &metadata)
	status, answered := errors.AsType[*netguard.StatusError](err)
	switch {
	case answered && status.Code >= 400 && status.Code < 500 && status.Code != http.StatusTooManyRequests:
		return nil, nil
	case err != nil:
		return nil, explain(err)
	}
	return &metadata, nil
}

// covers reports whether the URL resource equals the URL address, or has the same origin and a path that is a parent of the path of
// address. The TypeScript SDK has the same rule.
func covers(resource, address string) bool {
	r, err := url.Parse(resource)
	if err != nil || !strings.EqualFold(origin(resource), origin(address)) || r.RawQuery != "" || r.Fragment != "" {
		return resource == address
	}
	a, err := url.Parse(address)
	return err == nil && strings.HasPrefix(strings.TrimSuffix(a.Path, "/")+"/", strings.TrimSuffix(r.Path, "/")+"/")
}

// origin returns the origin of an address. For a WebSocket URL it returns the origin of the HTTP request that opens the
// WebSocket.
func origin(address string) string {
	u, err := url.Parse(overHTTP(address))
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// overHTTP returns the HTTP URL that opens a WebSocket. It returns other addresses unchanged.
func overHTTP(address string) string {
	if rest, ok := strings.CutPrefix(address, "ws"); ok {
		return "http" + rest
	}
	return address
}

// explain makes a short error without secrets from an error of net/http or x/oauth2. Their errors quote URLs and bodies, which may
// contain codes and tokens.
func explain(err error) error {
	return errors.New(sanitize.Line(netguard.Cause(err).Error(), 300))
}

// newHTTPClient returns the client for requests to authorization servers and for metadata. The URLs of these requests come from
// servers, so a malicious server could make mcpx send requests into the user's network. Therefore the client refuses private
// addresses, unless oauth.allow_private is set, and loopback addresses, unless the server itself is on loopback.
func newHTTPClient(s Server) *http.Client {
	return netguard.NewClient(netguard.Reach{Loopback: netguard.LoopbackURL(s.URL), Private: s.AllowPrivate, Key: "oauth.allow_private"})
}
