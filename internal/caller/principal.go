package caller

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Principal is the authenticated user who sends a request; read-only. It is nil without authentication: at an
// endpoint without auth, or over stdio.
type Principal struct {
	// ID is the same in all requests of the principal. It begins with the kind of the credential, or with the
	// issuer, so that no issuer can forge the ID of another issuer's user. Sessions, handles and limits belong to
	// an ID.
	ID string
	// Name is the name of the principal in rights, limits, the log, the audit trail and on the status page. Its form
	// depends on the credential: NAME for a token, DNS:NAME or a URI for a certificate, USER@ISSUER for a user of
	// an issuer, and agent:ID for an agent of another system that mcpx replaces (dial.compat in the config).
	Name string
	// Display is a more readable name of the principal, such as "Ann Example"; it may be empty. It is only shown: nothing may
	// depend on it, since users may be able to choose it.
	Display string
	// Groups and Scopes are taken from the token or its issuer; rights may depend on them.
	Groups, Scopes []string
	// Claims are the claims of the JWT or, with auth.front, of the login: a JSON object, or nil.
	Claims json.RawMessage
	// IssuerToken returns the newest access token that the issuer gave mcpx for the principal's login through auth.front. The
	// func is nil for other principals. The client never gets this token.
	IssuerToken func(ctx context.Context) (string, error) `json:"-"`
}

// Key returns the ID; empty for a nil principal.
func (p *Principal) Key() string {
	if p == nil {
		return ""
	}
	return p.ID
}

// String returns the name; empty for a nil principal.
func (p *Principal) String() string {
	if p == nil {
		return ""
	}
	return p.Name
}

// ProvedBy reports whether the ID begins with this prefix: the URL of an issuer, or a kind of credential.
func (p *Principal) ProvedBy(prefix string) bool { return strings.HasPrefix(p.ID, prefix+" ") }

type contextKey struct{}

// proof is what the context of a request says about its authenticated sender.
type proof struct {
	principal *Principal
	until     time.Time
	revoked   context.Context // ends when the credential is revoked; nil if it cannot be
}

// With returns a context for a request of p. expiry is when the credential of p expires; a zero expiry means never.
func With(ctx context.Context, p *Principal, expiry time.Time) context.Context {
	return Revocable(ctx, p, expiry, nil)
}

// Revocable is like [With], for a credential that can be revoked: then the context revoked ends.
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

// Until returns when the credential of the request expires; zero means never. Streams end at that time. Other
// requests may go on, since they were authorized when they began.
func Until(ctx context.Context) time.Time {
	if of, ok := ctx.Value(contextKey{}).(*proof); ok {
		return of.until
	}
	return time.Time{}
}

// ErrRevoked is the cause with which a request, and the calls that go on after it, are cancelled when the credential of the request
// is revoked: a reload of the config has removed it, or its login at the authorization server inside mcpx was ended.
var ErrRevoked = errors.New("the credential was revoked")

// OnRevoked calls f, in a goroutine of its own, when the credential of the request that ctx belongs to is revoked. It does so also
// after the request was answered: a call that goes on must end with its credential. The caller must call stop when the work that f
// ends is done.
func OnRevoked(ctx context.Context, f func()) (stop func() bool) {
	if of, ok := ctx.Value(contextKey{}).(*proof); ok && of.revoked != nil {
		return context.AfterFunc(of.revoked, f)
	}
	return func() bool { return false }
}
