package registry

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"mcpx/internal/base/catalog"
	"mcpx/internal/caller"
	"mcpx/internal/request"
	"mcpx/internal/upstream"
)

// Credential says where mcpx finds the value of a header that it sends to a server: in a header of the caller's request, or in the
// caller's JWT. Exactly one field is set.
type Credential struct {
	Header string // the name of a header of the caller's request to mcpx
	Claim  string // the name of a claim of the caller's verified JWT
}

// sessionKey identifies one of a client's sessions. A change of a header, principal or login that the server needs leads to another
// session. A new token to exchange does not: it is used in the same session.
type sessionKey struct {
	server      string
	credentials [sha256.Size]byte // a digest; zero for a server that needs neither credentials from callers nor their logins
}

// Credentials is the middleware that finds the credentials for a server. It takes them from the caller's message, as configured, or
// uses the stored login of the caller's principal. A request without the necessary credentials gets no session, and in particular
// not the session of another client.
func (r *Registry) Credentials(next request.Handler) request.Handler {
	return func(ctx context.Context, q *request.Request) (json.RawMessage, error) {
		r.mu.Lock()
		e := r.entries[q.To.Name]
		r.mu.Unlock()
		if e != nil && e.server.takesCredentials() {
			var err error
			if q.Credentials, err = e.server.credentialsOf(ctx, q.Client); err != nil {
				return nil, err
			}
		}
		if e == nil || e.server.Logins == nil {
			return next(ctx, q)
		}
		own, err := e.server.loginOf(ctx, q.Client)
		if err != nil {
			return nil, err
		}
		q.Credentials = own
		result, err := next(ctx, q)
		if err != nil && ctx.Err() == nil { // the request may have failed because the login has ended
			if _, ended := e.server.loginOf(ctx, q.Client); ended != nil {
				return nil, ended
			}
		}
		return result, err
	}
}

// takesCredentials reports whether each request needs credentials from its caller's message. Logins do not count, because mcpx
// has stored them.
func (s *Server) takesCredentials() bool { return len(s.Credentials) > 0 || s.Exchange != nil }

// ofCallers reports whether a session of the server needs the credentials of a caller, or a principal's login.
func (s *Server) ofCallers() bool { return s.takesCredentials() || s.Logins != nil }

// credentialsOf takes the credentials for the server from the client's message. If some are missing, the error names the first.
func (s *Server) credentialsOf(ctx context.Context, client *caller.Client) (*request.Credentials, error) {
	var headers http.Header
	var principal *caller.Principal
	if client.Ident() != "" { // a client without an ID cannot have its own session
		headers, principal = client.Headers, client.Principal
	}
	own := &request.Credentials{Headers: make(map[string]string, len(s.Credentials))}
	for _, header := range slices.Sorted(maps.Keys(s.Credentials)) {
		from := s.Credentials[header]
		value, missing := one(headers.Values(from.Header)), "the caller's header "+from.Header+", once and not empty"
		if from.Claim != "" {
			value, missing = claim(principal, from.Claim), "a caller's JWT (auth.issuers) with the claim "+from.Claim+", a line of text, a number or a boolean"
		}
		if strings.TrimSpace(value) == "" {
			return nil, lacking(missing)
		}
		own.Headers[header] = value
		if from.Claim == "" {
			own.Secrets = append(own.Secrets, value)
		}
	}
	if s.Exchange != nil {
		if own.Subject = bearer(principal, headers); own.Subject == "" && principal != nil && principal.IssuerToken != nil {
			var err error
			if own.Subject, err = principal.IssuerToken(ctx); err != nil {
				return nil, lacking("the issuer's token of your login, which is exchanged for it: " + err.Error())
			}
		}
		if own.Subject == "" {
			return nil, lacking("a caller's JWT (auth.issuers), or a login through auth.front, which is exchanged for it")
		}
		own.Principal = principal.Key()
	}
	return own, nil
}

// lacking returns the error for a request that lacks this credential. The parameter is a text that describes the credential.
func lacking(credential string) error {
	return &request.UnavailableError{State: catalog.Unavailable, Reason: "each request to mcpx that reaches it must have " + credential}
}

func one(values []string) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// claim returns a claim of the caller's JWT as the value of a header; a number keeps its spelling. It returns "" if the claim
// is missing or cannot be the value of a header.
func claim(p *caller.Principal, name string) string {
	if p == nil {
		return ""
	}
	var claims map[string]json.RawMessage
	if json.Unmarshal(p.Claims, &claims) != nil {
		return ""
	}
	raw := string(claims[name])
	switch {
	case raw == "" || raw == "null" || raw[0] == '{' || raw[0] == '[':
		return ""
	case raw[0] != '"':
		return raw
	}
	var text string
	if json.Unmarshal(claims[name], &text) != nil || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return ""
	}
	return text
}

// bearer returns the token of the caller's request if it is a verified JWT. A token that mcpx itself issued (auth.front) is not
// a JWT and is never sent to servers; mcpx sends the token of the issuer instead (Principal.IssuerToken).
func bearer(p *caller.Principal, headers http.Header) string {
	if p == nil || p.Claims == nil {
		return ""
	}
	token, err := caller.Bearer(headers)
	if err != nil || strings.Count(token, ".") != 2 {
		return ""
	}
	return token
}

// keyOf returns the key of a client's session with a server. c is nil for a server that needs neither credentials from callers
// nor their logins.
func keyOf(server string, c *request.Credentials) sessionKey {
	if c == nil {
		return sessionKey{server: server}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%q %q ", c.Principal, c.Login)
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		fmt.Fprintf(&text, "%q %q ", name, c.Headers[name])
	}
	return sessionKey{server, sha256.Sum256([]byte(text.String()))}
}

// putOn adds the headers of a caller to the spec of a session. They replace headers with the same names in the config. putOn
// removes the login of the config, which belongs to another user. If the caller has a token to exchange or a login, putOn also
// removes the Authorization header of the config.
func putOn(spec *upstream.Spec, c *request.Credentials) {
	headers := make(map[string]string, len(spec.Remote.Headers)+len(c.Headers))
	for name, value := range spec.Remote.Headers {
		replaced := slices.ContainsFunc(slices.Collect(maps.Keys(c.Headers)), func(own string) bool { return strings.EqualFold(own, name) })
		if !replaced && !((c.Subject != "" || c.Login != "") && strings.EqualFold(name, "Authorization")) {
			headers[name] = value
		}
	}
	maps.Copy(headers, c.Headers)
	spec.Remote.Headers, spec.Remote.Authorize = headers, nil
	spec.Secrets = spec.Secrets.And(c.Secrets, nil)
}
