package caller

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Principal is the authenticated user who sends a request; read-only. A nil *Principal means that there is no authentication: the
// endpoint has no auth, or the request came over stdio.
type Principal struct {
	// ID is the same in all requests of the principal. It begins with the kind of the credential, or with the issuer, so that no
	// issuer can forge the ID of another issuer's user. Sessions, handles and limits belong to the principal with this ID.
	ID string
	// Name is the name of the principal in rights, limits, the log, the audit trail and on the status page. Its form
	// depends on the credential: NAME for a token, DNS:NAME or a URI for a certificate, USER@ISSUER for a user of
	// an issuer, and agent:ID for an agent of another system that mcpx replaces (dial.compat in the config).
	Name string
	// Display is a more readable name of the principal, such as "Ann Example"; it may be empty. It is only shown. Nothing may
	// depend on it, because users may be able to choose it.
	Display string
	// Groups and Scopes are taken from the token or its issuer; rights may depend on them.
	Groups, Scopes []string
	// Claims are the claims of the JWT or, with auth.front, of the login: a JSON object, or nil.
	Claims json.RawMessage
	// IssuerToken returns the newest access token that the issuer gave mcpx for the principal's login through auth.front. It is nil
	// for principals without such a login. The client never gets this token.
	IssuerToken func(ctx context.Context) (string, error) `json:"-"`
}

// Key returns the ID. Without authentication, p is nil, and Key returns an empty string.
func (p *Principal) Key() string {
	if p == nil {
		return ""
	}
	return p.ID
}

// String returns the name. Without authentication, p is nil, and String returns an empty string.
func (p *Principal) String() string {
	if p == nil {
		return ""
	}
	return p.Name
}

// ProvedBy reports whether a credential of this kind, or a token of this issuer, has proved the principal. prefix is the kind, or
// the URL of the issuer: the first word of the ID.
func (p *Principal) ProvedBy(prefix string) bool { return strings.HasPrefix(p.ID, prefix+" ") }

type contextKey struct{}

// proof is what the context of a request says about its authenticated sender.
type proof struct {
	principal *Principal
	until     time.Time
	revoked   context.Context // ends when the credential is revoked; nil if it cannot be
}

// With returns a context for a request of p. expiry is when the credential of p expires; the zero time means never.
func With(ctx context.Context, p *Principal, expiry time.Time) context.Context {
	return Revocable(ctx, p, expiry, nil)
}

// Revocable does what [With] does, for a credential that can be revoked: the context revoked ends when this happens.
func Revocable(ctx context.Context, p *Principal, expiry time.Time, revoked context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, &proof{p, expiry, revoked})
}

// From returns the principal of the request that ctx belongs to; nil without authentication.
func From(ctx context.Context) *Principal {
	if of, ok := ctx.Value(contextKey{}).(*proof); ok {
		return of.principal
	}
	return nil
}

// Until returns when the credential of the request expires; the zero time means never. Streams must end then. Other requests may go
// on, because they were authorized when they began.
func Until(ctx context.Context) time.Time {
	if of, ok := ctx.Value(contextKey{}).(*proof); ok {
		return of.until
	}
	return time.Time{}
}

// ErrRevoked is the cause with which a request is cancelled when its credential is revoked: a reload of the config has removed the
// credential or changed what it gives, or its login at the authorization server inside mcpx was ended. Calls that go on after the
// answer to the request are cancelled with it, too.
var ErrRevoked = errors.New("the credential was revoked, or what it gives was changed")

// OnRevoked calls f, in a goroutine of its own, when the credential of the request that ctx belongs to is revoked. It also does so
// after the request was answered, because a call that goes on must end with its credential. When the work that f would end is done,
// the caller must call stop.
func OnRevoked(ctx context.Context, f func()) (stop func() bool) {
	if of, ok := ctx.Value(contextKey{}).(*proof); ok && of.revoked != nil {
		return context.AfterFunc(of.revoked, f)
	}
	return func() bool { return false }
}
