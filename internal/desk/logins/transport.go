package logins

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"

	"mcpx/internal/base/netguard"
)

// mostAttempts bounds how often a request is sent: without a token or with an old one, with a fresh one, with more scopes.
const mostAttempts = 3

// tokens yields the tokens for one server: of a login, of a machine, or exchanged for a caller's.
type tokens interface {
	// token returns the token for the next request; empty if there is none.
	token(ctx context.Context) (string, error)
	// refused returns another token after the server has answered 401 or 403 to this one; empty if the request should
	// not be repeated.
	refused(ctx context.Context, token string, resp *http.Response) (string, error)
	// worked notes that the server has accepted a token.
	worked(token string)
}

// transport adds a server's token to requests, and repeats a request with another token if the server refuses the first. A
// refused request was not executed.
type transport struct {
	base   http.RoundTripper
	server Server
	tokens tokens
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := t.tokens.token(req.Context())
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		resp, err := t.base.RoundTrip(t.with(req, token))
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
		if next == "" || next == token || attempt == mostAttempts || req.Body != nil && req.GetBody == nil {
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

// discard ends a response so that its connection can be used again.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	_ = resp.Body.Close()
}

// with adds the token to a request, if that goes to the server itself.
func (t *transport) with(req *http.Request, token string) *http.Request {
	if token == "" || !t.server.at(req.URL.Hostname()) || !netguard.Safe(req.URL.String()) {
		return req
	}
	out := req.Clone(req.Context())
	out.Header.Set("Authorization", "Bearer "+token)
	return out
}

// at reports whether a host is that of the server or of one of its instances.
func (s Server) at(host string) bool {
	return slices.ContainsFunc(append([]string{s.URL}, s.URLs...), func(address string) bool {
		u, err := url.Parse(address)
		return err == nil && u.Hostname() == host
	})
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the base transport.
func (t *transport) CloseIdleConnections() {
	if closer, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
