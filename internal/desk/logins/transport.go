package logins

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"

	"mcpx/internal/base/netguard"
)

// mostAttempts bounds how often one request is sent: with no token or an old one, with a
// fresh one, with more rights.
const mostAttempts = 3

// tokens are those of one server: a login's, a machine's, or a caller's.
type tokens interface {
	// token is what goes on the next request; empty where there is none.
	token(ctx context.Context) (string, error)
	// refused looks for another token after the server has answered 401 or 403 to this
	// one. It is empty where the answer stands.
	refused(ctx context.Context, token string, resp *http.Response) (string, error)
	// worked says that the server has taken a token.
	worked(token string)
}

// transport puts a server's token on its requests, and tries again with another one where
// the server refuses that. What it sends again was surely not executed.
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
			_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
			_ = resp.Body.Close()
			return nil, err
		}
		if next == "" || next == token || attempt == mostAttempts || req.Body != nil && req.GetBody == nil {
			return resp, nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
		_ = resp.Body.Close()
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

// with is the request with the token, where it goes to the server itself.
func (t *transport) with(req *http.Request, token string) *http.Request {
	if token == "" || !t.server.at(req.URL.Hostname()) || !netguard.Safe(req.URL.String()) {
		return req
	}
	out := req.Clone(req.Context())
	out.Header.Set("Authorization", "Bearer "+token)
	return out
}

// at reports whether the server, or an instance of it, is at this host.
func (s Server) at(host string) bool {
	return slices.ContainsFunc(append([]string{s.URL}, s.URLs...), func(address string) bool {
		u, err := url.Parse(address)
		return err == nil && u.Hostname() == host
	})
}

// CloseIdleConnections ends what no request uses.
func (t *transport) CloseIdleConnections() {
	if closer, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
