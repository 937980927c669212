package logins

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"

	"mcpx/internal/base/netguard"
)

// maxAttempts is how often a request is sent at most: first with the present token or without a token, then with a new token, then
// with a token for more scopes.
const maxAttempts = 3

// tokens provides the access tokens for one server. The tokens come from a login, are issued to mcpx itself, or were exchanged for
// the token of a caller.
type tokens interface {
	// token returns the token for the next request, or "" to send the request without a token.
	token(ctx context.Context) (string, error)
	// refused is called after the server has answered 401 or 403 to a request with token. It returns another token with which to
	// repeat the request, or "" if the request should not be repeated.
	refused(ctx context.Context, token string, resp *http.Response) (string, error)
	// worked is called when the server has accepted a request with token.
	worked(token string)
}

// transport adds a server's token to requests. If the server refuses the token, transport repeats the request with another one.
// That is safe, because the server did not execute the refused request.
type transport struct {
	base   http.RoundTripper
	server Server
	tokens tokens
}

// RoundTrip implements http.RoundTripper. It repeats a request until maxAttempts is reached, but only if its body can be read
// again.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := t.tokens.token(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		resp, err := t.base.RoundTrip(t.withToken(req, token))
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			t.tokens.worked(token)
			return resp, nil
		}
		next, err := t.tokens.refused(req.Context(), token, resp)
		if err != nil {
			discard(resp)
			return nil, err
		}
		if next == "" || next == token || attempt == maxAttempts || req.Body != nil && req.GetBody == nil {
			return resp, nil
		}
		discard(resp)
		token = next
		if req.GetBody != nil {
			again := *req
			if again.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
			req = &again
		}
	}
}

// discard reads and closes the body of a response, so that its connection can be used again.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
}

// withToken returns the request with the token in its Authorization header. If the request goes to another host than the server's,
// or unencrypted to another machine, withToken returns the request without the token.
func (t *transport) withToken(req *http.Request, token string) *http.Request {
	if token == "" || !t.server.hasHost(req.URL.Hostname()) || !netguard.Safe(req.URL.String()) {
		return req
	}
	out := req.Clone(req.Context())
	out.Header.Set("Authorization", "Bearer "+token)
	return out
}

// hasHost reports whether host is the host of the server or of one of its instances.
func (s Server) hasHost(host string) bool {
	return slices.ContainsFunc(append([]string{s.URL}, s.URLs...), func(address string) bool {
		u, err := url.Parse(address)
		return err == nil && u.Hostname() == host
	})
}

// CloseIdleConnections closes the idle connections of the base transport.
func (t *transport) CloseIdleConnections() {
	if closer, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
