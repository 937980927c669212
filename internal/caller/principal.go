package caller

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// Principal is the authenticated sender of a request; read-only. It is nil without authentication: at an endpoint without
// auth, or over stdio.
type Principal struct {
	// ID identifies the principal in all of its requests. It begins with the kind of the credential, or with the issuer, so
	// that no issuer can forge the ID of another issuer's user. Sessions, handles and limits belong to an ID.
	ID string
	// Name is for display: in logs and on the status page.
	Name string
	// Groups and Scopes come from the token or its issuer; rights may depend on them.
	Groups, Scopes []string
	// Claims are from the JWT or, with auth.front, from the login: a JSON object, or nil.
	Claims json.RawMessage
}

// Key returns the ID; empty for a nil principal.
func (p *Principal) Key() string {
	if p == nil {
		return ""
	}
	return p.ID
}

// ProvedBy reports whether the ID begins with first: the URL of an issuer, or a kind of credential.
func (p *Principal) ProvedBy(first string) bool { return strings.HasPrefix(p.ID, first+" ") }

type contextKey struct{}

// proof is what a request's context holds about its sender.
type proof struct {
	principal *Principal
	until     time.Time
}

// With returns a context for a request of p, whose credential expires at until; zero = never.
func With(ctx context.Context, p *Principal, until time.Time) context.Context {
	return context.WithValue(ctx, contextKey{}, &proof{p, until})
}

// From returns the principal of the request that ctx belongs to; nil without authentication.
func From(ctx context.Context) *Principal {
	if of, ok := ctx.Value(contextKey{}).(*proof); ok {
		return of.principal
	}
	return nil
}

// Until returns when the request's credential expires; zero = never. Streams end then. Other requests may finish, as they
// were authorized when they began.
func Until(ctx context.Context) time.Time {
	if of, ok := ctx.Value(contextKey{}).(*proof); ok {
		return of.until
	}
	return time.Time{}
}
